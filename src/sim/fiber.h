/* SPDX-License-Identifier: Apache-2.0
 *
 * Fibers: threads of control that hand over to each other when they choose to, all on one thread of
 * the operating system.
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

/* One that has stopped, or the place to come back to. A fiber that is not wanted any more is simply
 * forgotten: it owns nothing. */
typedef struct tgl_fiber {
#ifdef TGL_FIBER_UCONTEXT
    ucontext_t context;
#else
    void *stack_pointer;
#endif
} tgl_fiber;

/* Makes *fiber one that will call entry(argument) on the stack given, which starts at `stack`.
 * `entry` must not return. */
void tgl_fiber_make(tgl_fiber *fiber, void *stack, size_t size, void (*entry)(void *argument),
                    void *argument);

/* Stops here, keeping the place in *from, and goes on in *to. */
void tgl_fiber_switch(tgl_fiber *from, tgl_fiber *to);

/* To be called before a stack is used again whose fiber was forgotten half-way: tells
 * AddressSanitizer, where it watches, that no variable lives there. */
void tgl_fiber_forget(void *stack, size_t size);

#endif
