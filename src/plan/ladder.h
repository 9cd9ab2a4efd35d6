/* SPDX-License-Identifier: Apache-2.0
 *
 * What all kernels of the ladder have in common, whichever device runs them: the problems they
 * take, and the grid that covers C.
 */
#ifndef TGL_PLAN_LADDER_H
#define TGL_PLAN_LADDER_H

#include "device.h"
#include "plan/registry.h"

/* TGL_OK if the ladder takes the problem, else TGL_UNSUPPORTED: it has FP32 in IEEE arithmetic, not
 * transposed, no batches, and sizes that fit an int with a tile to spare. */
tgl_status tgl_ladder_check(tgl_device *dev, const tgl_gemm_shape *shape);

/* TGL_OK if a chip of this compute capability (90 for 9.0) runs the kernel, else TGL_UNSUPPORTED.
 */
tgl_status tgl_ladder_check_chip(tgl_device *dev, const tgl_kernel *kernel, int capability);

/* The blocks that cover C in x and y. TGL_GRID_TOO_LARGE if there would be too many rows of them.
 */
tgl_status tgl_ladder_grid(tgl_device *dev, const tgl_gemm_shape *shape, const tgl_kernel *kernel,
                           unsigned *x, unsigned *y);

#endif
