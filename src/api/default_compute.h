/* SPDX-License-Identifier: Apache-2.0
 *
 * What TGL_COMPUTE_DEFAULT means for products of F32.
 */
#ifndef TGL_DEFAULT_COMPUTE_H
#define TGL_DEFAULT_COMPUTE_H

#include "plan/chips.h"
#include "problem/shape.h"

/* The compute mode that TEGULA_COMPUTE asks for; TGL_BAD_SETTING if it is no such mode. */
tgl_status tgl_compute_of_environment(tgl_compute *compute);

/* What DEFAULT means for products of F32. asked: what the environment asks for; if that is DEFAULT
 * too, it means ACCURATE on the chips where the accuracy of ACCURATE was measured. chip: NULL for
 * the cpu, whose kernels treat DEFAULT as IEEE. */
tgl_compute tgl_compute_for(tgl_compute asked, const tgl_chip *chip);

/* Gives a product of F32 this compute mode if it has TGL_COMPUTE_DEFAULT. */
void tgl_shape_set_compute(tgl_shape *shape, tgl_compute compute);

#endif
