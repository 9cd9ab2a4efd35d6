/* SPDX-License-Identifier: Apache-2.0
 *
 * What a matrix times a vector makes of kernels/gemm/matvec.cu.
 */
#include "plan/gemm.h"

#include <limits.h>
#include <stdio.h>

/* The thread's fours where the matrix lies along k, and where it lies along its length. The
 * registers allow a multiprocessor 1024 threads. */
enum { UNROLL_K = 4, UNROLL_LENGTH = 8, REGISTERS = 64, RESIDENT_THREADS = 1024 };

/* Half of these are enough to keep the memory busy; more only cut the matrix into narrower
 * columns. */
enum { ENOUGH_THREADS = 512, USUAL_MULTIPROCESSORS = 132 };

int tgl_matvec_unroll(const tgl_gemm_plan *plan)
{
    return plan->along_k ? UNROLL_K : UNROLL_LENGTH;
}

/* As many as take k in one step, within a block of the usual size; more where there are fewer
 * results than multiprocessors. */
static void share_lines(const tgl_gemm_shape *s, int multiprocessors, tgl_gemm_plan *plan)
{
    const int most = plan->length * s->batch < multiprocessors ? 512 : 256;
    plan->lanes_k = 4;
    while (plan->lanes_k < most && 4 * UNROLL_K * plan->lanes_k < s->k)
        plan->lanes_k *= 2;
    plan->threads = plan->lanes_k > 256 ? plan->lanes_k : 256;
}

/* As many as the chip has room for, though a step must not be longer than k. Long matrices keep it
 * busy however wide the blocks are. */
static void share_columns(const tgl_gemm_shape *s, int multiprocessors, tgl_gemm_plan *plan)
{
    const int64_t room = (int64_t)ENOUGH_THREADS * multiprocessors;
    const int64_t fours = tgl_ceil_div(plan->length, 4) * s->batch;
    const int most = 8 * fours > room ? 32 : 128;
    plan->lanes_k = 8;
    while (plan->lanes_k < most && 2 * UNROLL_LENGTH * plan->lanes_k <= s->k &&
           (8 * fours > room || 2 * plan->lanes_k * fours <= room))
        plan->lanes_k *= 2;
    plan->threads = plan->lanes_k < 32 ? 256 : plan->lanes_k < 128 ? 512 : 1024;
}

const char *tgl_matvec_plan_make(const tgl_gemm_shape *s, const tgl_gemm_split *split,
                                 tgl_gemm_plan *plan)
{
    const int chip = split->multiprocessors > 0 ? split->multiprocessors : USUAL_MULTIPROCESSORS;
    if (s->m > 1 && s->n > 1) return "it takes one row or column";
    plan->big_a = s->m > s->n;
    plan->along_k = plan->big_a ? !s->trans_a : s->trans_b;
    plan->length = plan->big_a ? s->m : s->n;
    const bool is_apart = plan->big_a ? !s->trans_b && s->ldb > 1 : s->trans_a && s->lda > 1;
    if (plan->along_k && is_apart) return "the elements of its vector must lie next to each other";
    const int width =
        tgl_gemm_copy_width(s, plan->along_k ? 0 : plan->length, plan->big_a ? s->lda : s->ldb,
                            plan->big_a ? s->stride_a : s->stride_b);
    plan->vec_a = plan->big_a && width == 4 ? 4 : 1;
    plan->vec_b = !plan->big_a && width == 4 ? 4 : 1;
    plan->registers = REGISTERS;
    plan->is_bounded = true;
    if (plan->along_k)
        share_lines(s, chip, plan);
    else
        share_columns(s, chip, plan);
    const int parts = plan->along_k ? plan->lanes_k / 32 : plan->threads / 32;
    plan->per_block = plan->threads / plan->lanes_k * (plan->along_k ? 1 : 4);
    plan->static_shared = (parts > 0 ? parts : 1) * plan->per_block * (int)sizeof(float);
    plan->k_chunk = INT_MAX;
    plan->blocks = (int)tgl_ceil_div(plan->length, plan->per_block);
    return NULL;
}

void tgl_matvec_defines(const tgl_gemm_plan *plan, bool is_any, char *text, size_t size)
{
    const int width = is_any ? 1 : plan->big_a ? plan->vec_a : plan->vec_b;
    snprintf(text, size, "BIG_A=%d ALONG_K=%d VEC=%d WARPS=%d LANES_K=%d UNROLL=%d MIN_BLOCKS=%d",
             plan->big_a, plan->along_k, width, plan->threads / 32, plan->lanes_k,
             tgl_matvec_unroll(plan), RESIDENT_THREADS / plan->threads);
}
