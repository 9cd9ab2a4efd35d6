/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts the options of a command to a tgl_problem and a tgl_epilogue.
 */
#include "problem_options.h"
#include "elements.h"

#include <inttypes.h>
#include <stdio.h>

problem_options problem_options_start(void)
{
    return (problem_options){.m = -1, .n = -1, .k = -1, .batch = -1, .order = TGL_ROW_MAJOR};
}

tgl_device *problem_open_device(const problem_options *o, int *code)
{
    return cli_open_device(o->device != NULL ? o->device : "auto", o->threads, code);
}

static const char *const computes[] = {"default", "ieee", "accurate", "tf32", "fast", NULL};

const char *const order_names[] = {"row", "col", NULL};
const char *const bias_names[] = {"none", "row", "column", NULL};
const char *const activation_names[] = {"none", "relu", "gelu", "silu", NULL};

const char *compute_name(tgl_compute compute)
{
    return computes[compute];
}

bool take_compute(const char *text, void *options)
{
    problem_options *o = options;
    const int found = cli_parse_name("--compute", text, computes);
    if (found >= 0) o->compute = (tgl_compute)found;
    return o->has_compute = found >= 0;
}

bool problem_has_shape(const problem_options *o)
{
    return o->m >= 0 || o->n >= 0 || o->k >= 0 || o->batch >= 0 || o->trans_a || o->trans_b;
}

bool problem_has_sizes(const problem_options *o)
{
    return o->m >= 0 && o->n >= 0 && o->k >= 0;
}

/* ---- Problems -------------------------------------------------------------------------------- */

void problem_set_strides(tgl_problem *p)
{
    const bool row = p->order == TGL_ROW_MAJOR;
    const int64_t a_rows = p->trans_a == TGL_NO_TRANS ? p->m : p->k;
    const int64_t b_rows = p->trans_b == TGL_NO_TRANS ? p->k : p->n;
    const int64_t a_lines = row ? a_rows : p->m + p->k - a_rows;
    const int64_t b_lines = row ? b_rows : p->k + p->n - b_rows;
    const int64_t a_tight = p->m + p->k - a_lines, b_tight = p->k + p->n - b_lines;
    const int64_t c_lines = row ? p->m : p->n, c_tight = row ? p->n : p->m;
    if (__builtin_mul_overflow(a_lines, p->lda != 0 ? p->lda : a_tight, &p->stride_a) ||
        __builtin_mul_overflow(b_lines, p->ldb != 0 ? p->ldb : b_tight, &p->stride_b) ||
        __builtin_mul_overflow(c_lines, p->ldc != 0 ? p->ldc : c_tight, &p->stride_c) ||
        __builtin_mul_overflow(c_lines, c_tight, &p->stride_d))
        p->stride_a = p->stride_b = p->stride_c = INT64_MAX; /* tgl_problem_check() rejects this
                                                                stride */
    if (p->type_d == 0) p->stride_d = 0;
}

void problem_set_types(const problem_options *o, tgl_problem *p)
{
    if (o->type_c != 0) p->type_c = o->type_c;
    if (o->has_compute) p->compute = o->compute;
    p->type_d = o->type_d;
    if (p->batch > 1) problem_set_strides(p);
}

tgl_problem problem_of_options(const problem_options *o)
{
    tgl_problem p = cli_problem(o->type != 0 ? o->type : TGL_F32, o->m, o->n, o->k);
    p.order = o->order;
    p.trans_a = o->trans_a ? TGL_TRANS : TGL_NO_TRANS;
    p.trans_b = o->trans_b ? TGL_TRANS : TGL_NO_TRANS;
    p.lda = o->lda;
    p.ldb = o->ldb;
    p.ldc = o->ldc;
    if (o->batch >= 0) p.batch = o->batch;
    problem_set_types(o, &p);
    return p;
}

tgl_type problem_result_type(const tgl_problem *p)
{
    return p->type_d != 0 ? p->type_d : p->type_c;
}

tgl_type problem_usual_result(tgl_type type)
{
    return cli_problem(type, 1, 1, 1).type_c;
}

type_label problem_type_label(const tgl_problem *p)
{
    type_label label;
    const bool is_tf32 = p->type_a == TGL_F32 && p->compute == TGL_COMPUTE_TF32;
    const char *type = is_tf32 ? "tf32" : element_type_name(p->type_a);
    if (problem_result_type(p) == problem_usual_result(p->type_a))
        snprintf(label.text, sizeof label.text, "%s", type);
    else
        snprintf(label.text, sizeof label.text, "%s-%s", type,
                 element_type_name(problem_result_type(p)));
    return label;
}

const char *problem_layout(const tgl_problem *p)
{
    const bool a = p->trans_a != TGL_NO_TRANS, b = p->trans_b != TGL_NO_TRANS;
    return a ? (b ? "TT" : "TN") : (b ? "NT" : "NN");
}

shape_label problem_shape_label(const tgl_problem *p)
{
    shape_label label;
    snprintf(label.text, sizeof label.text, "%s %" PRId64 "x%" PRId64 "x%" PRId64,
             problem_layout(p), p->m, p->n, p->k);
    return label;
}

double problem_flops(const tgl_problem *p)
{
    const double each = element_parts(p->type_a) == 2 ? 8 : 2; /* FLOPs of one multiply-add */
    return each * (double)p->m * (double)p->n * (double)p->k * (double)p->batch;
}

/* ---- Epilogues ------------------------------------------------------------------------------- */

bool epilogue_is_none(const tgl_epilogue *e)
{
    return e->bias == TGL_BIAS_NONE && e->activation == TGL_ACTIVATION_NONE && !e->residual &&
           e->expression == NULL;
}

const tgl_epilogue *epilogue_for(tgl_epilogue *e, const tgl_problem *p)
{
    e->size = sizeof *e;
    e->stride_residual = p->m * p->n;
    return epilogue_is_none(e) ? NULL : e;
}
