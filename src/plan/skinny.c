/* SPDX-License-Identifier: Apache-2.0
 *
 * What a problem with at most 16 rows or columns makes of kernels/gemm/skinny.cu.
 */
#include "plan/gemm.h"

#include <limits.h>
#include <stdio.h>

enum { SPLITS_MAX = 65535, CHUNK_UNIT = 128 };

const tgl_skinny_row *tgl_skinny_row_of(const tgl_gemm_plan *plan)
{
    return plan->along_k ? &plan->row->along_k : &plan->row->along_length;
}

/* Which operand is big, how it lies, and how wide its loads are. */
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
    plan->per_block = plan->along_k ? row->warps * row->rows : 32 * width;
    plan->threads = row->warps * 32;
    plan->registers = row->registers;
    plan->is_bounded = row->min_blocks > 1 && plan->row->count == 16;
    const int sums = plan->threads * width, small = plan->row->count * plan->row->depth;
    plan->static_shared = (small > sums ? small : sums) * (int)sizeof(float);
}

const char *tgl_skinny_plan_make(const tgl_gemm_shape *s, const tgl_gemm_split *split,
                                 tgl_gemm_plan *plan)
{
    const int64_t small = s->m < s->n ? s->m : s->n;
    if (small > plan->row->count) return "it takes fewer rows or columns";
    look_at_operands(s, plan);
    /* The variant of single floats has the most blocks to count. */
    const int64_t blocks = tgl_ceil_div(plan->length, plan->along_k ? plan->per_block : 32);
    if (blocks > INT_MAX) return tgl_gemm_grid_too_large;
    plan->blocks = (int)tgl_ceil_div(plan->length, plan->per_block);
    if (split->blocks > 0 && split->blocks < plan->blocks) plan->blocks = split->blocks;
    int64_t splits = split->splits < 1 ? 1 : split->splits;
    if (splits > SPLITS_MAX) splits = SPLITS_MAX;
    const int64_t chunk = tgl_ceil_div(tgl_ceil_div(s->k, splits), CHUNK_UNIT) * CHUNK_UNIT;
    plan->k_chunk = chunk > 0 ? (int)chunk : CHUNK_UNIT;
    plan->splits = s->k > 0 ? (int)tgl_ceil_div(s->k, plan->k_chunk) : 1;
    if (plan->splits == 1) return NULL;
    plan->counters = (int64_t)plan->batch_step * plan->blocks;
    plan->workspace_floats =
        (int64_t)plan->batch_step * plan->splits * plan->row->count * plan->length;
    return NULL;
}

void tgl_skinny_defines(const tgl_gemm_plan *plan, bool is_any, char *text, size_t size)
{
    const tgl_skinny_row *row = tgl_skinny_row_of(plan);
    const int width = plan->big_a ? plan->vec_a : plan->vec_b;
    snprintf(text, size,
             "BIG_A=%d ALONG_K=%d COUNT=%d VEC=%d ROWS=%d UNROLL=%d WARPS=%d DEPTH=%d "
             "MIN_BLOCKS=%d",
             plan->big_a, plan->along_k, plan->row->count, is_any ? 1 : width, row->rows,
             row->unroll, row->warps, plan->row->depth, row->min_blocks);
}
