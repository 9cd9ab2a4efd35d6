/* SPDX-License-Identifier: Apache-2.0
 *
 * A family that only tests know, small, and with all that a launch list can hold: a pre-pass, a
 * tensor map, clusters, a flag, alternatives. docs/adding-a-kernel.md says how a family is written.
 *
 * It computes C := alpha*A*B + beta*C in FP32, and negates the result if A has an element whose
 * magnitude is beyond the threshold. That has no use but to be seen.
 */
#ifndef PROBE_FAMILY_H
#define PROBE_FAMILY_H

#include "families/family.h"

enum { PROBE_THRESHOLD = 100 }; /* the default of its option */

extern const tgl_family probe_family;

#endif
