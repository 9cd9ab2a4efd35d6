/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan as text.
 */
#ifndef TGL_CPU_EXPLAIN_H
#define TGL_CPU_EXPLAIN_H

#include "backend/backend.h"

/* tgl_backend.explain. */
void tgl_cpu_explain(const tgl_plan *plan, tgl_text *out);

#endif
