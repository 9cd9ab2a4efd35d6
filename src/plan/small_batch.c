/* SPDX-License-Identifier: Apache-2.0
 *
 * What a batch of small products makes of kernels/gemm/small_batch.cu.
 */
#include "plan/gemm.h"

#include <limits.h>
#include <stdio.h>

enum { BATCH_MAX = INT_MAX / 2 };

/* As the kernel has it: lines along k have four floats more every four lines. */
static int tile_floats(int edge, int bk, bool along_k)
{
    return edge * bk + (along_k ? edge : 0);
}

static int stage_floats(const tgl_small_batch_row *t, const tgl_gemm_shape *s)
{
    const int both = tile_floats(t->bm, t->bk, !s->trans_a) + tile_floats(t->bn, t->bk, s->trans_b);
    return (both + 31) / 32 * 32 + 16;
}

/* Whether offsets within a tile, in elements, pass 31 bits. */
static bool is_wide(const tgl_small_batch_row *t, const tgl_gemm_shape *s)
{
    const int edge = t->bm > t->bn ? t->bm : t->bn, lines = edge > t->bk ? edge : t->bk;
    return (s->lda > s->ldb ? s->lda : s->ldb) >= INT_MAX / lines;
}

const char *tgl_small_batch_plan_make(const tgl_gemm_shape *s, const tgl_gemm_split *split,
                                      tgl_gemm_plan *plan)
{
    const tgl_small_batch_row *t = &plan->row->small_batch;
    if (s->m > t->bm || s->n > t->bn) return "it takes fewer rows or columns";
    if (is_wide(t, s)) return "the leading dimensions are too large for it";
    plan->threads = t->bm / t->tm * (t->bn / t->tn) * t->per_block;
    plan->registers = t->registers;
    plan->is_bounded = t->min_blocks > 1;
    plan->dynamic_shared = t->stages * t->per_block * stage_floats(t, s) * (int)sizeof(float);
    plan->vec_a = tgl_gemm_copy_width(s, s->trans_a ? s->m : s->k, s->lda, s->stride_a);
    plan->vec_b = tgl_gemm_copy_width(s, s->trans_b ? s->k : s->n, s->ldb, s->stride_b);
    plan->batch_step = s->batch < BATCH_MAX ? (int)s->batch : BATCH_MAX;
    plan->blocks = (int)tgl_ceil_div(plan->batch_step, t->per_block);
    if (split->blocks > 0 && split->blocks < plan->blocks) plan->blocks = split->blocks;
    return NULL;
}

void tgl_small_batch_defines(const tgl_gemm_plan *plan, const tgl_gemm_shape *s, bool is_any,
                             char *text, size_t size)
{
    const tgl_small_batch_row *t = &plan->row->small_batch;
    snprintf(text, size,
             "BM=%d BN=%d BK=%d TM=%d TN=%d STAGES=%d PER_BLOCK=%d MIN_BLOCKS=%d TRANS_A=%d "
             "TRANS_B=%d VEC_A=%d VEC_B=%d",
             t->bm, t->bn, t->bk, t->tm, t->tn, t->stages, t->per_block, t->min_blocks, s->trans_a,
             s->trans_b, is_any ? 1 : plan->vec_a, is_any ? 1 : plan->vec_b);
}
