/* SPDX-License-Identifier: Apache-2.0
 *
 * Bundles: products of unrelated sizes that one launch computes, for tgl_grouped_list() on devices
 * with a chip. The products of a bundle have one class, which is all that the kernel depends on:
 * types, compute mode, transposes and alignment. Everything else is in the bundle's table
 * (kernels/lib/bundle_table.h), which travels in the parameters of the launch.
 *
 * The kernel is planned for a shape with is_bundle and with sizes that are rounded to powers of
 * two, so that a few plans serve all bundles.
 */
#ifndef TGL_BUNDLE_H
#define TGL_BUNDLE_H

#include "plan/chips.h"
#include "problem/run.h"

#include "../../kernels/lib/gemm_args.h"
/* Must follow gemm_args.h, whose types it uses. */
#include "../../kernels/lib/bundle_table.h"

/* Whether the product may be computed in a bundle: it is not empty, has no features that bundles do
 * not have, is so small that it would not fill the chip, and k and the leading dimensions are below
 * the limits of bundle.c. */
bool tgl_bundle_takes(const tgl_chip *chip, const tgl_shape *shape, const tgl_run *run);

/* The class of the product. Only products of one class are computed in one bundle. */
uint64_t tgl_bundle_class(const tgl_shape *shape, const tgl_run *run);

/* The entry of the product in a table, without first_tile. */
struct tgl_bundle_member tgl_bundle_member_of(const tgl_shape *shape, const tgl_run *run);

/* The shape for which the kernel of a bundle is planned. of, run: any product of the bundle. */
tgl_shape tgl_bundle_shape(const tgl_shape *of, const tgl_run *run,
                           const struct tgl_bundle_table *bundle);

/* Numbers the tiles of all products: sets first_tile and `tiles`. bm, bn: size of a tile. */
void tgl_bundle_number_tiles(struct tgl_bundle_table *bundle, int bm, int bn);

#endif
