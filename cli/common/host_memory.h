/* SPDX-License-Identifier: Apache-2.0
 *
 * The available memory of the host.
 */
#ifndef CLI_HOST_MEMORY_H
#define CLI_HOST_MEMORY_H

/* The number of bytes that the program can allocate and use without being killed: the least of what
 * the system, the control group and the limit of the process allow. Infinite if none of these is
 * known. */
double host_memory_available(void);

#endif
