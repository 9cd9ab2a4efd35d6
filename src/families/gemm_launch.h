/* SPDX-License-Identifier: Apache-2.0
 *
 * The common part of the launches of all kernel families (plan/family.h) but the ladder, the
 * kernels that teach. Their kernels take a struct tgl_gemm_args, and differ in grid, macros and a
 * few members of that struct. A family describes its launch by a tgl_gemm_step (gemm_step.h). The
 * functions below derive the launch list from it, and the members of the candidate but its times.
 */
#ifndef TGL_GEMM_LAUNCH_H
#define TGL_GEMM_LAUNCH_H

#include "families/cost.h"
#include "families/gemm_step.h"

/* Sets batch_step, tiles and args.raster for a grid of all tiles of bm x bn. is_split: some tiles
 * may be split over K. Returns NULL, or why the grid is impossible. */
const char *tgl_gemm_cut_tiles(const tgl_shape *shape, int bm, int bn, bool is_split,
                               tgl_gemm_step *step);

/* Sets the members of the candidate that follow from the step. Returns false if it has rejected the
 * candidate. */
bool tgl_gemm_predict_step(const tgl_chip *chip, const tgl_shape *shape, const tgl_gemm_step *step,
                           tgl_candidate *c);

/* For tgl_family.predict. If `why` is NULL, calls tgl_gemm_predict_step(); else rejects the
 * candidate for this reason and returns false. If it returns true, the family sets the times. */
static inline bool tgl_gemm_predict(const tgl_chip *chip, const tgl_shape *shape, const char *why,
                                    const tgl_gemm_step *step, tgl_candidate *c)
{
    if (why != NULL) tgl_reject(c, why);
    return why == NULL && tgl_gemm_predict_step(chip, shape, step, c);
}

/* For tgl_family.launch: if `why` is not NULL, fails the list and returns true. That would be an
 * error of the planner, which must not choose a rejected candidate. */
static inline bool tgl_gemm_fails(const char *why, tgl_list_builder *builder)
{
    if (why != NULL && builder->status == TGL_OK)
        builder->status = tgl_fail(TGL_UNSUPPORTED, "the planner's choice cannot serve: %s", why);
    return why != NULL;
}

/* A macro of a kernel. */
typedef struct tgl_macro {
    const char *name;
    int value;
} tgl_macro;
void tgl_add_macros(tgl_list_builder *builder, const tgl_macro *macros, size_t count);

/* Adds the family's macros of the aligned or the unaligned kernel. part: the shape of the part of D
 * that the kernel computes. */
typedef void tgl_macros_fn(const void *geometry, const tgl_shape *part, bool is_unaligned,
                           tgl_list_builder *builder);

/* Adds the step with its kernels and its alternative launches: without a product (if the host knows
 * alpha), aligned, unaligned (if needed). For grouped products, adds the pre-pass of groups.h
 * before it. geometry: passed to add_macros(). */
void tgl_gemm_launch(const tgl_partition *of, tgl_gemm_step *step, tgl_macros_fn *add_macros,
                     const void *geometry, tgl_list_builder *builder);

/* For tgl_family.explain: writes how many tiles are split over K, if any. first_depth: K of the
 * first split, if it differs from the other splits' K; else 0. */
void tgl_gemm_explain_split(const tgl_gemm_step *step, int64_t first_depth, tgl_text *out);

/* For tgl_family.explain: writes how A and B are copied. */
void tgl_gemm_explain_copies(const tgl_shape *shape, const tgl_gemm_step *step, tgl_text *out);

#endif
