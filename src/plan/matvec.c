/* SPDX-License-Identifier: Apache-2.0
 *
 * What a matrix times one vector or a few makes of kernels/gemm/matvec.cu.
 */
#include "plan/gemm.h"

#include <limits.h>
#include <stdio.h>

/* So many of a multiprocessor are enough to keep the memory busy; more only cut the matrix into
 * narrower columns. */
enum { ENOUGH_THREADS = 512, USUAL_MULTIPROCESSORS = 132 };

/* Loads of single floats of a matrix along its length take an address each: with several vectors,
 * more would not find registers. */
enum { NARROW_UNROLL_MOST = 4 };

enum { REGISTERS_PER_SM = 65536 };

/* Threads of a multiprocessor. */
static int resident_threads(const tgl_gemm_plan *plan)
{
    return REGISTERS_PER_SM / plan->row->matvec.registers;
}

int tgl_matvec_fours(const tgl_gemm_plan *plan)
{
    const tgl_matvec_row *row = &plan->row->matvec;
    return plan->along_k ? row->lines * row->unroll_k : row->unroll_length;
}

/* An element of a vector that lies apart is a load, and a place in L1, of its own: it serves as
 * many lines as a thread has loads under way. */
static int lines_of(const tgl_gemm_plan *plan)
{
    if (plan->gathers) return tgl_matvec_fours(plan);
    return plan->along_k ? plan->row->matvec.lines : 1;
}

static int unroll_of(const tgl_gemm_plan *plan)
{
    return tgl_matvec_fours(plan) / lines_of(plan);
}

/* As many as take k in one step, within a block of the usual size; more where a launch has fewer
 * blocks than the chip multiprocessors. */
static void share_lines(const tgl_gemm_shape *s, int multiprocessors, tgl_gemm_plan *plan)
{
    const int64_t groups = tgl_ceil_div(plan->length, lines_of(plan));
    const int most = groups * plan->batch_step < multiprocessors ? 512 : 256;
    plan->lanes_k = 4;
    while (plan->lanes_k < most && 4 * unroll_of(plan) * plan->lanes_k < s->k)
        plan->lanes_k *= 2;
    plan->threads = plan->lanes_k > 256 ? plan->lanes_k : 256;
}

/* As many as the chip has room for, though a step must not be longer than k. Long matrices, and
 * many to a launch, keep it busy however wide the blocks are. */
static void share_columns(const tgl_gemm_shape *s, int multiprocessors, tgl_gemm_plan *plan)
{
    const int64_t room = (int64_t)ENOUGH_THREADS * multiprocessors;
    const int64_t fours = tgl_ceil_div(plan->length, 4) * plan->batch_step;
    const int resident = resident_threads(plan);
    const int most = 8 * fours > room ? resident / 32 : resident / 8;
    plan->lanes_k = 8;
    while (plan->lanes_k < most && 2 * unroll_of(plan) * plan->lanes_k <= s->k &&
           (8 * fours > room || 2 * plan->lanes_k * fours <= room))
        plan->lanes_k *= 2;
    plan->threads = plan->lanes_k < resident / 32  ? 256
                    : plan->lanes_k < resident / 8 ? resident / 2
                                                   : resident;
}

/* Of the loads of the matrix. Those of several vectors along k have to be as wide; whether a single
 * one is aligned the kernel finds out. */
static int width_of(const tgl_gemm_shape *s, const tgl_gemm_plan *plan)
{
    const int a = tgl_gemm_copy_width(s, 0, s->lda, s->stride_a);
    const int b = tgl_gemm_copy_width(s, 0, s->ldb, s->stride_b);
    const int matrix = plan->big_a ? a : b, vectors = plan->big_a ? b : a;
    const bool is_wide = matrix == 4 && (plan->along_k || plan->length % 4 == 0) &&
                         (vectors == 4 || !plan->along_k || plan->row->count == 1);
    return is_wide ? 4 : 1;
}

const char *tgl_matvec_plan_make(const tgl_gemm_shape *s, const tgl_gemm_split *split,
                                 tgl_gemm_plan *plan)
{
    const int chip = split->multiprocessors > 0 ? split->multiprocessors : USUAL_MULTIPROCESSORS;
    const int count = plan->row->count;
    if ((s->m < s->n ? s->m : s->n) > count)
        return count == 1 ? "it takes one row or column" : "it takes fewer rows or columns";
    plan->big_a = s->m > s->n;
    plan->along_k = plan->big_a ? !s->trans_a : s->trans_b;
    plan->length = plan->big_a ? s->m : s->n;
    const bool is_apart = plan->big_a ? !s->trans_b && s->ldb > 1 : s->trans_a && s->lda > 1;
    plan->gathers = plan->along_k && is_apart;
    if (plan->gathers && count > 1)
        return "the elements of its vectors must lie next to each other";
    const int width = width_of(s, plan);
    const bool is_wide_in_both = plan->along_k && count > 1;
    plan->vec_a = plan->big_a || is_wide_in_both ? width : 1;
    plan->vec_b = !plan->big_a || is_wide_in_both ? width : 1;
    plan->registers = plan->row->matvec.registers;
    plan->is_bounded = true;
    if (plan->along_k)
        share_lines(s, chip, plan);
    else
        share_columns(s, chip, plan);
    const int parts = plan->along_k ? plan->lanes_k / 32 : plan->threads / 32;
    plan->per_block = plan->threads / plan->lanes_k * (plan->along_k ? lines_of(plan) : 4);
    plan->static_shared = (parts > 0 ? parts : 1) * plan->per_block * count * (int)sizeof(float);
    plan->k_chunk = INT_MAX;
    plan->blocks = (int)tgl_ceil_div(plan->length, plan->per_block);
    return NULL;
}

void tgl_matvec_defines(const tgl_gemm_plan *plan, bool is_any, char *text, size_t size)
{
    const int count = plan->row->count, unroll = unroll_of(plan);
    const int width = is_any ? 1 : plan->big_a ? plan->vec_a : plan->vec_b;
    const bool is_less = width == 1 && count > 1 && unroll > NARROW_UNROLL_MOST;
    snprintf(text, size,
             "BIG_A=%d ALONG_K=%d COUNT=%d VEC=%d WARPS=%d LANES_K=%d LINES=%d UNROLL=%d "
             "MIN_BLOCKS=%d",
             plan->big_a, plan->along_k, count, width, plan->threads / 32, plan->lanes_k,
             lines_of(plan), is_less ? NARROW_UNROLL_MOST : unroll,
             resident_threads(plan) / plan->threads);
}
