/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells a process from the processes that it descends from.
 */
#ifndef TGL_PROCESS_NUMBER_H
#define TGL_PROCESS_NUMBER_H

/* The number of this process: the same in every call, and different from the numbers of its parent,
 * its parent's parent and so on. Memory that was inherited by fork() may have been in use by
 * threads of these processes. The first of them that uses the library has number 1. A call takes a
 * load and a comparison.
 */
unsigned tgl_process(void);

#endif
