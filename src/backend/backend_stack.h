/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack that a device needs.
 */
#ifndef TGL_BACKEND_STACK_H
#define TGL_BACKEND_STACK_H

#include "backend/backend.h"

/* Returns TGL_NO_MEMORY if the calling thread has less than backend->stack bytes of stack left,
 * which opening a device and making a plan need. */
tgl_status tgl_check_stack(const tgl_backend *backend);

#endif
