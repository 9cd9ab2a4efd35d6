/* SPDX-License-Identifier: Apache-2.0
 *
 * What TGL_COMPUTE_DEFAULT means for products of F32 and C64.
 */
#ifndef TGL_DEFAULT_COMPUTE_H
#define TGL_DEFAULT_COMPUTE_H

#include "plan/chips.h"
#include "problem/shape.h"

/* *compute := the mode that TEGULA_COMPUTE names, "default", "ieee" or "accurate";
 * TGL_COMPUTE_DEFAULT if it is not set or empty. Returns TGL_OK, or TGL_BAD_SETTING for any other
 * text. */
tgl_status tgl_compute_of_environment(tgl_compute *compute);

/* What TGL_COMPUTE_DEFAULT means for products of F32 and C64 on a chip. asked: the mode of
 * TEGULA_COMPUTE. If that mode is DEFAULT, too, the result is ACCURATE on chips on which the
 * accuracy of ACCURATE was measured, else IEEE. chip: NULL for the cpu device, which treats DEFAULT
 * as IEEE. */
tgl_compute tgl_compute_for(tgl_compute asked, const tgl_chip *chip);

/* Replaces TGL_COMPUTE_DEFAULT by this compute mode if the product is of F32 or C64. */
void tgl_shape_set_compute(tgl_shape *shape, tgl_compute compute);

#endif
