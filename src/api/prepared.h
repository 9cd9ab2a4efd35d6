/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepared operands: the results of a plan's pre-pass (the kernels that convert A or B before the
 * product), kept for the runs of many plans.
 */
#ifndef TGL_PREPARED_H
#define TGL_PREPARED_H

#include "backend/backend.h"

/* Checks the prepared operands of a run, and sets run->kept. All other members of *run must be
 * set. */
tgl_status tgl_prepared_take(const tgl_plan *plan, const tgl_operands *operands, tgl_run *run);

#endif
