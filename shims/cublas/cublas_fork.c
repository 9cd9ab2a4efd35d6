/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers for fork().
 */
#include "cublas_shim.h"

/* Takes all locks before fork(), so that no lock is held by another thread in the child. */
static void before_fork(void)
{
    cublas_handles_lock(); /* in the order in which a product takes them */
    cublas_plans_lock();
}

static void after_fork_in_parent(void)
{
    cublas_plans_unlock();
    cublas_handles_unlock();
}

static void after_fork_in_child(void)
{
    after_fork_in_parent();
    cublas_plans_after_fork();
}

/* Registers the handlers when the library is loaded, because every replaced function may take a
 * lock. */
__attribute__((constructor)) static void register_handlers(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
