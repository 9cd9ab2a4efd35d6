/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of processes that have the same ID, as the first processes of two namespaces of process
 * IDs: children of a program with this header have the ID of their parent.
 */
#ifndef TGL_TESTS_SAME_PROCESS_ID_H
#define TGL_TESTS_SAME_PROCESS_ID_H

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Takes the place of the C library's function. */
pid_t getpid(void)
{
    static atomic_int first;
    int id = 0;
    const int own = (int)syscall(SYS_getpid);
    return atomic_compare_exchange_strong(&first, &id, own) ? own : id;
}

#endif
