/* SPDX-License-Identifier: Apache-2.0
 *
 * Describes a plan as text.
 */
#ifndef TGL_CPU_EXPLAIN_H
#define TGL_CPU_EXPLAIN_H

#include "backend/backend.h"

/* The member `explain` of tgl_backend (backend.h): appends a description of the plan to `out`. */
void tgl_cpu_explain(const tgl_plan *plan, tgl_text *out);

#endif
