/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with a short k. A job (cpu_jobs.h) is a rectangle of C:
 *
 *     for each block of nc columns of C and B
 *         pack the block of B, if that pays
 *         for each strip of mc rows
 *             a small product (cpu_small.c): one call of a kernel for each panel of B
 *
 * The loops of cpu_gemm.c call a kernel for each register tile, which takes about as long as 8
 * steps of k. Each element of C is summed in the same order here.
 */
#include "cpu/run/cpu_strips.h"
#include "cpu/kernels/shares.h"
#include "cpu/run/cpu_epilogue.h"
#include "cpu/run/cpu_small.h"

/* The operands of a job. */
typedef struct strips {
    const cpu_product *product;
    const cpu_job *job;
    const cpu_kernels *kernels;
    int64_t element, a_row, b_column; /* bytes: an element; from a row of op(A), and from a column
                                         of op(B), to the next one */
    const char *A, *B;
    char *C;
    tgl_small_product strip; /* the members that all strips have in common */
} strips;

/* Locates a block of B: in x->strip if it is read in place; else packs it and locates the copy. */
static void find_block_of_b(strips *x, cpu_range columns)
{
    const tgl_shape *s = x->product->shape;
    const char *b = x->B + columns.begin * x->b_column;
    x->strip.n = cpu_length(columns);
    if (!x->product->plan->pack_b) {
        x->strip.B = b;
        return;
    }
    cpu_pack_fn *pack = s->trans_b ? x->kernels->interleave : x->kernels->copy;
    x->strip.ldb = tgl_cpu_strip_ld(x->strip.n, x->kernels->vector);
    x->strip.B = x->job->memory;
    pack(x->job->memory, x->strip.ldb, b, s->ldb, x->strip.n, s->k);
}

static void multiply_strip(strips *x, cpu_range rows, cpu_range columns)
{
    x->strip.m = cpu_length(rows);
    x->strip.A = x->A + rows.begin * x->a_row;
    x->strip.C = x->C + (rows.begin * x->strip.ldc + columns.begin) * x->element;
    tgl_cpu_multiply_small(x->kernels, &x->strip);
    tgl_cpu_epilogue(x->product, x->job->problem, rows, columns);
}

void tgl_cpu_compute_strips(const cpu_product *product, const cpu_job *job)
{
    const tgl_shape *s = product->shape;
    const cpu_plan *plan = product->plan;
    const int64_t element = (int64_t)plan->kernels->element, nc = plan->nc;
    tgl_complex_part complex = tgl_cpu_complex_part(s, product->run);
    strips x = {
        .product = product,
        .job = job,
        .kernels = plan->kernels,
        .element = element,
        .a_row = (s->trans_a ? 1 : s->lda) * element,
        .b_column = (s->trans_b ? s->ldb : 1) * element,
        .A = tgl_cpu_a_of(s, product->run, job->problem, element),
        .B = tgl_cpu_b_of(s, product->run, job->problem, element),
        .C = tgl_cpu_d_of(s, product->run, job->problem, element),
        .strip = tgl_small_product_of(s),
    };
    x.strip.trans_b = false; /* a transposed B is packed */
    x.strip.alpha = product->run->alpha;
    x.strip.beta = product->run->beta;
    x.strip.complex = &complex;
    x.strip.fetch_c = plan->fetch_c;
    const int64_t count = cpu_ceil_div(cpu_length(job->rows), plan->mc);
    for (int64_t j = job->columns.begin; j < job->columns.end; j += nc) {
        const cpu_range columns = {j, tgl_min64(job->columns.end, j + nc)};
        find_block_of_b(&x, columns);
        for (int64_t q = 0; q < count; q++)
            multiply_strip(&x, cpu_part(job->rows, plan->kernels->mr, count, q), columns);
    }
}
