/* SPDX-License-Identifier: Apache-2.0
 *
 * How much memory the host can still give.
 */
#ifndef CLI_HOST_MEMORY_H
#define CLI_HOST_MEMORY_H

/* Bytes that a program can allocate and use without being stopped for it: what the system, the
 * control group and the process's own limit leave, the least of them. Infinite if nothing is known.
 */
double host_memory_available(void);

#endif
