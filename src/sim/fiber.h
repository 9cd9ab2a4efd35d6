/* SPDX-License-Identifier: Apache-2.0
 *
 * Fibers: cooperative threads of control, all on one thread of the operating system.
 */
#ifndef TGL_SIM_FIBER_H
#define TGL_SIM_FIBER_H

#include <stddef.h>

#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(TGL_FIBER_UCONTEXT)
#define TGL_FIBER_UCONTEXT
#endif
#ifdef TGL_FIBER_UCONTEXT
#include <ucontext.h>
#endif

/* A suspended fiber, or the suspended thread that switched to it. The struct owns nothing and needs
 * no destructor. */
typedef struct tgl_fiber {
#ifdef TGL_FIBER_UCONTEXT
    ucontext_t context;
#else
    void *stack_pointer;
#endif
} tgl_fiber;

/* Prepares *fiber to call entry(argument). stack: lowest address of `size` bytes, owned by the
 * caller. `entry` must not return. */
void tgl_fiber_make(tgl_fiber *fiber, void *stack, size_t size, void (*entry)(void *argument),
                    void *argument);

/* Suspends the running fiber or thread in *from, and resumes *to. */
void tgl_fiber_switch(tgl_fiber *from, tgl_fiber *to);

/* Tells AddressSanitizer that the stack has no live variables. Call it before reusing the stack of
 * a fiber that did not finish. */
void tgl_fiber_forget(void *stack, size_t size);

#endif
