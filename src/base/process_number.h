/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells a process from the processes that it descends from.
 */
#ifndef TGL_PROCESS_NUMBER_H
#define TGL_PROCESS_NUMBER_H

/* A number for this process, the same in every call. It differs from the numbers of the process's
 * ancestors, so that memory inherited by fork() can be recognised: threads of an ancestor may have
 * been using that memory during fork(). The first process that uses the library has number 1. A
 * call costs a load and a comparison. */
unsigned tgl_process(void);

#endif
