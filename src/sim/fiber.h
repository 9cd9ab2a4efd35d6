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

/* The state of a stopped fiber, or of the thread to return to. A fiber owns no resources and need
 * not be destroyed. */
typedef struct tgl_fiber {
#ifdef TGL_FIBER_UCONTEXT
    ucontext_t context;
#else
    void *stack_pointer;
#endif
} tgl_fiber;

/* Prepares *fiber to call entry(argument) on a stack of `size` bytes, of which `stack` is the
 * lowest address. `entry` must not return. */
void tgl_fiber_make(tgl_fiber *fiber, void *stack, size_t size, void (*entry)(void *argument),
                    void *argument);

/* Saves the current state in *from and continues with *to. */
void tgl_fiber_switch(tgl_fiber *from, tgl_fiber *to);

/* Must be called before the stack of a fiber that did not finish is reused. Tells AddressSanitizer
 * that the stack has no live variables. */
void tgl_fiber_forget(void *stack, size_t size);

#endif
