/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the C library for the stack of the calling thread, and compares it with the address of the
 * current frame.
 */
#include "base/stack.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

size_t tgl_stack_left(void)
{
    /* For the first thread, glibc would parse all of /proc/self/maps, which is slow. */
    if (syscall(SYS_gettid) == getpid()) return SIZE_MAX;
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return SIZE_MAX;
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0), end = (uintptr_t)low;
    return here - end < size ? here - end : SIZE_MAX; /* SIZE_MAX on a fiber, which has a stack of
                                                         its own */
}
