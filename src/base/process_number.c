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

/* The number is alone in its memory page, because a child process finds the whole page cleared. */
static union {
    _Alignas(PAGE) _Atomic unsigned number; /* 0: the process has none yet */
    char page[PAGE];
} own;

static _Atomic unsigned latest; /* the largest number that this process or an ancestor has had */
static atomic_bool has_handler; /* whether forget_number() has been registered with
                                   pthread_atfork(); child processes inherit the registration */

static void forget_number(void)
{
    atomic_store(&own.number, 0);
}

static unsigned make_number(void)
{
    madvise(&own, sizeof own, MADV_WIPEONFORK);
    if (!atomic_exchange(&has_handler, true)) pthread_atfork(NULL, NULL, forget_number);
    unsigned none = 0;
    const unsigned made = atomic_fetch_add(&latest, 1) + 1;
    return atomic_compare_exchange_strong(&own.number, &none, made) ? made : none;
}

unsigned tgl_process(void)
{
    const unsigned number = atomic_load_explicit(&own.number, memory_order_acquire);
    return number != 0 ? number : make_number();
}
