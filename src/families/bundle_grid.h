/* SPDX-License-Identifier: Apache-2.0
 *
 * The grid of bundles, lists of products of different sizes in one launch (plan/bundle.h), in the
 * families with serves_bundles. Their kernels have the macro BUNDLE (kernels/lib/bundle_tiles.h).
 */
#ifndef TGL_FAMILY_BUNDLE_GRID_H
#define TGL_FAMILY_BUNDLE_GRID_H

#include "families/gemm_step.h"

static const char tgl_no_splits_of_bundles[] = "tiles of bundles are not split over K";

/* For kernels whose blocks compute one tile each: replaces the step's grid for products of equal
 * size by that of a bundle, whose width each run determines. Does nothing for other products. */
static inline void tgl_bundle_set_grid(const tgl_shape *s, tgl_gemm_step *step)
{
    if (!s->is_bundle) return;
    step->blocks = step->tiles *= s->batch;
    step->batch_step = (int)s->batch;
    step->loops_over_batch = true;           /* the batch is not in gridDim.z */
    step->args.tiles_whole = TGL_GRID_X_MAX; /* no tile is split over K */
    step->args.raster = TGL_RASTER;
}

#endif
