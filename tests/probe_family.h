/* SPDX-License-Identifier: Apache-2.0
 *
 * A small kernel family for tests only, with these features of launch lists: a pre-pass, a tensor
 * map, clusters, a flag, alternatives. docs/adding-a-kernel.md describes how to write a family.
 *
 * It computes C := alpha*A*B + beta*C in FP32, and negates the result if A has an element whose
 * magnitude is above the threshold. The negation only makes the flag visible.
 */
#ifndef PROBE_FAMILY_H
#define PROBE_FAMILY_H

#include "plan/family.h"

enum { PROBE_THRESHOLD = 100 }; /* the default value of the option `threshold` */

extern const tgl_family probe_family;

#endif
