/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the stack: see backend_stack.h.
 */
#include "backend/backend_stack.h"
#include "base/stack.h"

tgl_status tgl_check_stack(const tgl_backend *backend)
{
    const size_t left = backend->stack > 0 ? tgl_stack_left() : SIZE_MAX;
    if (left >= backend->stack) return TGL_OK;
    return tgl_fail(TGL_NO_MEMORY,
                    "the thread has %zu KB of stack left, and the device %s needs %zu KB: create "
                    "the thread with a larger stack",
                    left >> 10, backend->name, backend->stack >> 10);
}
