/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepared operands: what the pre-pass of a plan's launch list makes of A or B, kept for the runs
 * of many plans.
 */
#ifndef TGL_PREPARED_H
#define TGL_PREPARED_H

#include "backend/backend.h"

/* The prepared operands of a device that are not destroyed. A run looks for its own among them
 * before it reads it, so that one of another device, or a destroyed one, is an error. */
typedef struct tgl_prepared_list tgl_prepared_list;

/* NULL: no memory. */
tgl_prepared_list *tgl_prepared_list_create(void);
void tgl_prepared_list_destroy(tgl_prepared_list *list);

/* Checks the prepared operands of a run that is otherwise made, and completes run->kept. */
tgl_status tgl_prepared_take(const tgl_plan *plan, const tgl_operands *operands, tgl_run *run);

#endif
