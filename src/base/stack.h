/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of its stack a thread has left.
 */
#ifndef TGL_STACK_H
#define TGL_STACK_H

#include <stddef.h>

/* Bytes of stack that are left to the calling thread. SIZE_MAX if not known: in the first thread,
 * whose stack grows, and on a stack that the C library did not make. */
size_t tgl_stack_left(void);

#endif
