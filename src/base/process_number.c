/* SPDX-License-Identifier: Apache-2.0
 *
 * getpid() does not tell a child from its parent: in a new PID namespace both may be number 1, and
 * Linux reuses the numbers of dead processes. A number of our own is therefore kept in a page that
 * Linux fills with zeros in a child (MADV_WIPEONFORK, Linux 4.14), also after a clone() without the
 * C library. Where the system does not support that, a handler of fork() clears the number.
 */
#include "base/process_number.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

/* Size in bytes of the largest page that Linux can be configured with. */
#ifdef __aarch64__
enum { PAGE = 1 << 16 };
#else
enum { PAGE = 1 << 12 };
#endif

/* What a process has of its own is alone in its memory page, because a child process finds the
 * whole page cleared. 0: the process has none yet. */
static union {
    struct {
        _Alignas(PAGE) _Atomic unsigned number;
        _Atomic unsigned chosen; /* the future number, on which the threads of the process agree */
    };
    char page[PAGE];
} own;

static _Atomic unsigned latest; /* the largest number that this process or an ancestor has had */
static atomic_bool has_handler; /* whether forget_number() has been registered with
                                   pthread_atfork(); child processes inherit the registration */

static void forget_number(void)
{
    atomic_store(&own.number, 0);
    atomic_store(&own.chosen, 0);
}

/* Makes the number, which is one more than the latest. Several threads may do this at once, and a
 * signal handler may leave it: each step has the same effect whoever takes it, and how often.
 * `latest` changes before a caller sees the number, so that no child can get the number again. */
static unsigned make_number(void)
{
    madvise(&own, sizeof own, MADV_WIPEONFORK);
    if (!atomic_exchange(&has_handler, true)) pthread_atfork(NULL, NULL, forget_number);
    unsigned number = 0;
    const unsigned next = atomic_load(&latest) + 1;
    if (atomic_compare_exchange_strong(&own.chosen, &number, next)) number = next;
    unsigned last = number - 1;
    atomic_compare_exchange_strong(&latest, &last, number);
    atomic_store(&own.number, number);
    return number;
}

unsigned tgl_process(void)
{
    const unsigned number = atomic_load_explicit(&own.number, memory_order_acquire);
    return number != 0 ? number : make_number();
}
