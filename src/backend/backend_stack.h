/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack that a device needs.
 */
#ifndef TGL_BACKEND_STACK_H
#define TGL_BACKEND_STACK_H

#include "backend/backend.h"

/* Returns an error if the calling thread has too little stack to open a device or make a plan. */
tgl_status tgl_check_stack(const tgl_backend *backend);

#endif
