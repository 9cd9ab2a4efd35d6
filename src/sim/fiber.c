/* SPDX-License-Identifier: Apache-2.0
 *
 * Switches fibers: saves the callee-saved registers on the stack and switches to the other stack. A
 * switch takes a few instructions on x86-64 and aarch64. Other processors use ucontext, with one
 * system call per switch.
 */
#include "sim/fiber.h"

#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__)
#define TGL_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TGL_ASAN
#endif
#endif
#ifdef TGL_ASAN
#include <sanitizer/asan_interface.h>
#endif

void tgl_fiber_forget(void *stack, size_t size)
{
#ifdef TGL_ASAN
    __asan_unpoison_memory_region(stack, size);
#else
    (void)stack, (void)size;
#endif
}

#ifdef TGL_FIBER_UCONTEXT

/* The entry function of a ucontext fiber. makecontext() passes only ints, so that each pointer is
 * passed as two halves. */
static void start(unsigned entry_high, unsigned entry_low, unsigned arg_high, unsigned arg_low)
{
    const uintptr_t entry = (uintptr_t)((uint64_t)entry_high << 32 | entry_low);
    const uintptr_t argument = (uintptr_t)((uint64_t)arg_high << 32 | arg_low);
    ((void (*)(void *))entry)((void *)argument);
}

void tgl_fiber_make(tgl_fiber *fiber, void *stack, size_t size, void (*entry)(void *),
                    void *argument)
{
    const uint64_t e = (uintptr_t)entry, a = (uintptr_t)argument;
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = stack;
    fiber->context.uc_stack.ss_size = size;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, (void (*)(void))start, 4, (unsigned)(e >> 32), (unsigned)e,
                (unsigned)(a >> 32), (unsigned)a);
}

void tgl_fiber_switch(tgl_fiber *from, tgl_fiber *to)
{
    swapcontext(&from->context, &to->context);
}

#else

/* Saves the stack pointer to *from and switches to the stack `to`, at the point where that stack's
 * fiber called this function. */
void tgl_fiber_swap_stacks(void **from, void *to);
/* The entry point of a new fiber: calls the function in register ENTRY with the argument in
 * register ARGUMENT (defined below). */
void tgl_fiber_start(void);

#if defined(__x86_64__)
/* SAVED: number of saved registers, by ascending address: r15 r14 r13 r12 rbx rbp. ENTRY,
 * ARGUMENT: the indices of rbx and r12 in this order. */
enum { SAVED = 6, ENTRY = 4, ARGUMENT = 3 };
__asm__(".text\n"
        ".p2align 4\n"
        ".globl tgl_fiber_swap_stacks\n"
        ".hidden tgl_fiber_swap_stacks\n"
        ".type tgl_fiber_swap_stacks, @function\n"
        "tgl_fiber_swap_stacks:\n"
        "    push %rbp\n"
        "    push %rbx\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size tgl_fiber_swap_stacks, . - tgl_fiber_swap_stacks\n"
        ".globl tgl_fiber_start\n"
        ".hidden tgl_fiber_start\n"
        ".type tgl_fiber_start, @function\n"
        "tgl_fiber_start:\n"
        "    mov %r12, %rdi\n"
        "    call *%rbx\n"
        "    ud2\n"
        ".size tgl_fiber_start, . - tgl_fiber_start\n");
#else
/* SAVED: number of registers that are saved, x19 .. x30 and d8 .. d15. ENTRY, ARGUMENT, LINK: the
 * indices of x19, x20 and x30 (the link register) in this order. */
enum { SAVED = 20, ENTRY = 0, ARGUMENT = 1, LINK = 11 };
__asm__(".text\n"
        ".p2align 4\n"
        ".globl tgl_fiber_swap_stacks\n"
        ".hidden tgl_fiber_swap_stacks\n"
        ".type tgl_fiber_swap_stacks, %function\n"
        "tgl_fiber_swap_stacks:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size tgl_fiber_swap_stacks, . - tgl_fiber_swap_stacks\n"
        ".globl tgl_fiber_start\n"
        ".hidden tgl_fiber_start\n"
        ".type tgl_fiber_start, %function\n"
        "tgl_fiber_start:\n"
        "    mov x0, x20\n"
        "    blr x19\n"
        "    brk #1\n"
        ".size tgl_fiber_start, . - tgl_fiber_start\n");
#endif

void tgl_fiber_make(tgl_fiber *fiber, void *stack, size_t size, void (*entry)(void *),
                    void *argument)
{
    /* Both ABIs require a stack aligned to 16 bytes at tgl_fiber_start. */
    char *top = (char *)stack + size;
    top -= (uintptr_t)top % 64;
#if defined(__x86_64__)
    uintptr_t *saved =
        (uintptr_t *)top - SAVED - 3; /* zeros above the return address, which tell unwinders that
                                         this is the outermost frame */
    saved[SAVED] = (uintptr_t)tgl_fiber_start; /* the return address of `ret` */
#else
    uintptr_t *saved = (uintptr_t *)top - SAVED;
    saved[LINK] = (uintptr_t)tgl_fiber_start;
    saved[LINK - 1] = 0; /* the frame pointer; 0 ends the chain of frames */
#endif
    saved[ENTRY] = (uintptr_t)entry;
    saved[ARGUMENT] = (uintptr_t)argument;
    fiber->stack_pointer = saved;
}

void tgl_fiber_switch(tgl_fiber *from, tgl_fiber *to)
{
    tgl_fiber_swap_stacks(&from->stack_pointer, to->stack_pointer);
}

#endif
