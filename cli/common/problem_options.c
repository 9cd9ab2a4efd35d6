/* SPDX-License-Identifier: Apache-2.0
 *
 * Options to problems and epilogues.
 */
#include "problem_options.h"
#include "elements.h"

#include <stdio.h>
#include <string.h>

problem_options problem_options_start(int64_t least, int64_t most)
{
    return (problem_options){
        .least = least,
        .most = most,
        .m = -1,
        .n = -1,
        .k = -1,
        .batch = -1,
        .order = TGL_ROW_MAJOR,
    };
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* The index of a text among names; -1: reported. */
static int find(const char *option, const char *text, const char *const *names, int count)
{
    char known[128] = "";
    for (int i = 0; i < count; i++) {
        if (strcmp(text, names[i]) == 0) return i;
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s",
                 i == 0           ? ""
                 : i == count - 1 ? " and "
                                  : ", ",
                 names[i]);
    }
    cli_misuse("%s: \"%s\" is none of %s", option, text, known);
    return -1;
}

bool parse_option_type(const char *option, const char *text, tgl_type *type)
{
    if (element_type_of(text, type)) return true;
    cli_misuse("%s: \"%s\" is none of f32, f64, f16, bf16, i8 and i32", option, text);
    return false;
}

static bool parse_order(const char *text, tgl_order *order)
{
    static const char *const names[] = {"row", "col"};
    const int found = find("--order", text, names, 2);
    if (found >= 0) *order = found == 0 ? TGL_ROW_MAJOR : TGL_COL_MAJOR;
    return found >= 0;
}

static bool parse_bias(const char *text, tgl_bias *bias)
{
    static const char *const names[] = {"none", "row", "column"};
    const int found = find("--bias", text, names, 3);
    if (found >= 0) *bias = (tgl_bias)found;
    return found >= 0;
}

static bool parse_activation(const char *text, tgl_activation *activation)
{
    static const char *const names[] = {"none", "relu", "gelu", "silu"};
    const int found = find("--activation", text, names, 4);
    if (found >= 0) *activation = (tgl_activation)found;
    return found >= 0;
}

static bool parse_compute(const char *text, tgl_compute *compute)
{
    static const char *const names[] = {"default", "ieee", "accurate", "tf32", "fast"};
    const int found = find("--compute", text, names, 5);
    if (found >= 0) *compute = (tgl_compute)found;
    return found >= 0;
}

static option_taken taken(bool ok)
{
    return ok ? OPTION_TAKEN : OPTION_REFUSED;
}

static option_taken take_size(const char *option, const problem_options *o, int64_t *size)
{
    return taken(cli_parse_int(option, optarg, o->least, o->most, size));
}

static option_taken take_ld(const char *option, int64_t *ld)
{
    return taken(cli_parse_int(option, optarg, 1, INT64_MAX, ld));
}

static option_taken take_epilogue(int option, tgl_epilogue *e)
{
    switch (option) {
    case OPT_BIAS:
        return taken(parse_bias(optarg, &e->bias));
    case OPT_ACTIVATION:
        return taken(parse_activation(optarg, &e->activation));
    case OPT_RESIDUAL:
        e->residual = 1;
        return OPTION_TAKEN;
    case OPT_EXPRESSION:
        e->expression = optarg;
        return OPTION_TAKEN;
    default:
        return OPTION_UNKNOWN;
    }
}

option_taken problem_take_option(int option, problem_options *o)
{
    switch (option) {
    case 'm':
        return take_size("-m", o, &o->m);
    case 'n':
        return take_size("-n", o, &o->n);
    case 'k':
        return take_size("-k", o, &o->k);
    case OPT_BATCH:
        return take_size("--batch", o, &o->batch);
    case OPT_TYPE:
        return taken(parse_option_type("--type", optarg, &o->type));
    case OPT_TYPE_C:
        return taken(parse_option_type("--type-c", optarg, &o->type_c));
    case OPT_TYPE_D:
        return taken(parse_option_type("--type-d", optarg, &o->type_d));
    case OPT_COMPUTE:
        o->has_compute = true;
        return taken(parse_compute(optarg, &o->compute));
    case OPT_TRANS_A:
        return taken(o->trans_a = true);
    case OPT_TRANS_B:
        return taken(o->trans_b = true);
    case OPT_ORDER:
        return taken(parse_order(optarg, &o->order));
    case OPT_LDA:
        return take_ld("--lda", &o->lda);
    case OPT_LDB:
        return take_ld("--ldb", &o->ldb);
    case OPT_LDC:
        return take_ld("--ldc", &o->ldc);
    case OPT_KERNEL:
        o->kernel = optarg;
        return OPTION_TAKEN;
    case OPT_DEVICE:
        o->device = optarg;
        return OPTION_TAKEN;
    case OPT_THREADS:
        return taken(cli_parse_threads(optarg, &o->threads));
    default:
        return take_epilogue(option, &o->epilogue);
    }
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
        p->stride_a = p->stride_b = p->stride_c = INT64_MAX; /* tgl_problem_check() refuses it */
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

void problem_type_label(const tgl_problem *p, char text[TYPE_LABEL_SIZE])
{
    const bool is_tf32 = p->type_a == TGL_F32 && p->compute == TGL_COMPUTE_TF32;
    const char *type = is_tf32 ? "tf32" : element_type_name(p->type_a);
    if (problem_result_type(p) == problem_usual_result(p->type_a))
        snprintf(text, TYPE_LABEL_SIZE, "%s", type);
    else
        snprintf(text, TYPE_LABEL_SIZE, "%s-%s", type, element_type_name(problem_result_type(p)));
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
