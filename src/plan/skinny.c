/* SPDX-License-Identifier: Apache-2.0
 *
 * What a problem with at most 16 rows or columns makes of kernels/gemm/skinny.cu.
 */
#include "plan/gemm.h"

#include <limits.h>
#include <stdio.h>

const tgl_skinny_row *tgl_skinny_row_of(const tgl_gemm_plan *plan)
{
    return plan->along_k ? &plan->row->along_k : &plan->row->along_length;
}

int tgl_skinny_step(const tgl_gemm_plan *plan)
{
    const tgl_skinny_row *row = tgl_skinny_row_of(plan);
    return 4 * row->unroll * (plan->along_k ? row->lanes_k : row->warps);
}

/* Floats of a step of a warp's in its ring, where steps are not unrolled, padded as the kernel has
 * it. */
static int stage_floats(const tgl_gemm_plan *plan)
{
    const tgl_skinny_row *row = tgl_skinny_row_of(plan);
    const int lines = 32 / row->lanes_k * row->results;
    return 32 * row->results * 4 + (plan->along_k ? lines * (row->lanes_k % 32) : 0);
}

/* The rings if copies are narrow, two places for the small operand, and where the big one lies
 * along its length the warps' sums. */
static int shared_bytes(const tgl_gemm_plan *plan, int width)
{
    enum { SUM_LINE = 40 };
    const tgl_skinny_row *row = tgl_skinny_row_of(plan);
    const int count = plan->row->count;
    const int rings = width == 4 ? 0 : row->warps * row->stages * stage_floats(plan);
    const int small = row->depth / 4 * (count * 4 + (count > 1 ? 4 : 0));
    const int sums = row->warps * (count < 4 ? count : 4) * row->results * SUM_LINE;
    return (rings + 2 * small + (plan->along_k ? 0 : sums)) * (int)sizeof(float);
}

/* Which operand is big, how it lies, and how wide its copies are. */
static void look_at_operands(const tgl_gemm_shape *s, tgl_gemm_plan *plan)
{
    plan->big_a = s->m > s->n;
    plan->along_k = plan->big_a ? !s->trans_a : s->trans_b;
    plan->length = plan->big_a ? s->m : s->n;
    const int64_t ld = plan->big_a ? s->lda : s->ldb;
    const int64_t stride = plan->big_a ? s->stride_a : s->stride_b;
    const int width = tgl_gemm_copy_width(s, plan->along_k ? 0 : plan->length, ld, stride);
    plan->vec_a = plan->big_a ? width : 1;
    plan->vec_b = plan->big_a ? 1 : width;
    const tgl_skinny_row *row = tgl_skinny_row_of(plan);
    plan->per_block =
        plan->along_k ? row->warps * (32 / row->lanes_k) * row->results : 32 * row->results;
    plan->threads = row->warps * 32;
    plan->registers = row->registers;
    plan->is_bounded = true;
    plan->dynamic_shared = shared_bytes(plan, width);
    plan->dynamic_shared_any = shared_bytes(plan, 1);
}

/* Units of work: tiles, or where these are split, k_chunk of each at a time. */
static const char *share_work(const tgl_gemm_shape *s, const tgl_gemm_split *split,
                              tgl_gemm_plan *plan)
{
    const int64_t tiles = tgl_ceil_div(plan->length, plan->per_block), step = tgl_skinny_step(plan);
    const int64_t splits = split->splits < 1 ? 1 : split->splits;
    const int64_t chunk = tgl_ceil_div(tgl_ceil_div(s->k, splits), step) * step;
    plan->k_chunk = chunk > 0 && chunk <= INT_MAX ? (int)chunk : INT_MAX;
    const int64_t per_tile = s->k > plan->k_chunk ? tgl_ceil_div(s->k, plan->k_chunk) : 1;
    const int64_t units = tiles * per_tile;
    if (units > INT_MAX / 2) return tgl_gemm_grid_too_large;
    plan->blocks = (int)(split->blocks > 0 && split->blocks < units ? split->blocks : units);
    if (per_tile == 1) return NULL;
    const int64_t each = units / plan->blocks; /* the fewest of a block */
    plan->splits = (int)(each == 1 ? per_tile : tgl_ceil_div(per_tile - 1, each) + 1);
    plan->counters = (int64_t)plan->batch_step * tiles;
    plan->workspace_floats =
        (int64_t)plan->batch_step * plan->blocks * 2 * plan->per_block * plan->row->count;
    return NULL;
}

const char *tgl_skinny_plan_make(const tgl_gemm_shape *s, const tgl_gemm_split *split,
                                 tgl_gemm_plan *plan)
{
    const int64_t small = s->m < s->n ? s->m : s->n;
    if (small > plan->row->count) return "it takes fewer rows or columns";
    look_at_operands(s, plan);
    return share_work(s, split, plan);
}

void tgl_skinny_defines(const tgl_gemm_plan *plan, bool is_any, char *text, size_t size)
{
    const tgl_skinny_row *row = tgl_skinny_row_of(plan);
    const int width = is_any ? 1 : plan->big_a ? plan->vec_a : plan->vec_b;
    snprintf(text, size,
             "BIG_A=%d ALONG_K=%d COUNT=%d VEC=%d RESULTS=%d LANES_K=%d UNROLL=%d STAGES=%d "
             "WARPS=%d DEPTH=%d MIN_BLOCKS=%d",
             plan->big_a, plan->along_k, plan->row->count, width, row->results, row->lanes_k,
             width == 4 ? row->unroll : 1, row->stages, row->warps, row->depth, row->min_blocks);
}
