/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws the sizes, layout, scalars and kernel options of a case (a random problem). check_case.c
 * makes its memory and its reference result.
 */
#include "check_draw.h"
#include "check_epilogue.h"
#include "check_groups.h"
#include "elements.h"
#include "problem_options.h"

#include <math.h>

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* Limits of random sizes. size: greatest m, n and k of usual cases, apart from some up to 257 in
 * draw_size(); length: greatest long side of a long matrix; depth: greatest k of a deep product.
 * The others are limits of m*n*k*batch: `usual` in most cases, `more` in one case of ten, `most` in
 * one of sixty (only SCALE_LARGE). */
typedef struct limits {
    int size, length, depth;
    double usual, more, most;
} limits;

static const limits limits_of[] = {
    [SCALE_SMALL] = {140, 700, 2500, 6e4, 6e5, 6e5},
    [SCALE_MEDIUM] = {400, 20000, 20000, 2e6, 2e6, 2e6},
    [SCALE_LARGE] = {700, 20000, 20000, 4e6, 6e7, 6e8},
};

/* Draws a size near a multiple of a tile size, at most l->size. */
static int64_t draw_edge(random_state *r, const limits *l)
{
    const int64_t tile = (int64_t)16 << random_int(r, 0, 4); /* 16 .. 256 */
    const int64_t times = l->size / tile > 0 ? random_int(r, 1, l->size / tile) : 1;
    const int64_t past = random_once_in(r, 2) ? random_int(r, -1, 1) : random_int(r, 1, 16);
    const int64_t edge = tile * times + past;
    return edge < l->size ? edge : l->size;
}

static int64_t draw_size(random_state *r, const limits *l)
{
    static const int primes[] = {2, 3, 5, 7, 11, 13, 17, 31, 37, 61, 67, 97, 127, 131, 251, 257};
    switch (random_int(r, 0, 9)) {
    case 0:
        return random_int(r, 0, 3);
    case 1:
        return primes[random_int(r, 0, 15)];
    case 2:
        return ((int64_t)1 << random_int(r, 2, 8)) + random_int(r, -1, 1);
    case 3:
    case 4:
        return draw_edge(r, l);
    case 5:
    case 6:
        return random_int(r, 1, l->size);
    case 7:
        return random_int(r, 1, 130);
    default:
        return random_int(r, 1, 32);
    }
}

static void draw_usual(random_state *r, const limits *l, tgl_problem *p)
{
    p->m = draw_size(r, l);
    p->n = draw_size(r, l);
    p->k = draw_size(r, l);
}

/* Draws a product with at most 16 rows or at most 16 columns; its other side and k may be large. */
static void draw_skinny(random_state *r, const limits *l, tgl_problem *p)
{
    const int64_t narrow = random_int(r, 1, (int64_t)1 << random_int(r, 0, 4));
    const bool is_long = random_once_in(r, 3), is_deep = random_once_in(r, 3);
    const int64_t wide = is_long ? random_int(r, 1, l->length) : draw_size(r, l);
    p->m = narrow;
    p->n = wide;
    p->k = is_deep ? random_int(r, 1, l->depth) : draw_size(r, l);
    if (random_once_in(r, 2)) p->m = wide, p->n = narrow;
}

/* Draws a product with one large and two small sizes among m, n and k. */
static void draw_long(random_state *r, const limits *l, tgl_problem *p)
{
    int64_t *sizes[] = {&p->m, &p->n, &p->k};
    const int size_max = random_once_in(r, 2) ? 20 : 70;
    for (int i = 0; i < 3; i++)
        *sizes[i] = random_int(r, 1, size_max);
    const int which = (int)random_int(r, 0, 2);
    *sizes[which] = random_int(r, 300, which == 2 ? l->depth : l->length);
}

/* Draws a product whose C may have more tiles than a GPU can compute at the same time. */
static void draw_large(random_state *r, tgl_problem *p)
{
    p->m = random_int(r, 700, 2300);
    p->n = random_int(r, 700, 2300);
    p->k = random_int(r, 16, 400);
}

/* Draws the number of products in the batch: usually 1, else up to 6, up to 400 small ones, or
 * about as many as the z dimension of a CUDA grid allows (65535), and more. */
static void draw_batch(random_state *r, check_scale scale, tgl_problem *p)
{
    p->batch = random_once_in(r, 6) ? random_int(r, 0, 6) : 1;
    const bool is_vast = scale == SCALE_LARGE && random_once_in(r, 400);
    if (!is_vast && !random_once_in(r, 40)) return;
    const int side = is_vast ? 3 : 24;
    p->m = random_int(r, 1, side);
    p->n = random_int(r, 1, side);
    p->k = random_int(r, 1, side);
    p->batch =
        is_vast ? random_int(r, 65530, 70000) : random_int(r, 7, scale == SCALE_SMALL ? 40 : 400);
}

static void draw_any(random_state *r, check_scale scale, tgl_problem *p)
{
    const limits *l = &limits_of[scale];
    const int64_t kind = random_int(r, 0, 11);
    if (kind < 3)
        draw_skinny(r, l, p);
    else if (kind < 4)
        draw_long(r, l, p);
    else
        draw_usual(r, l, p);
    draw_batch(r, scale, p);
}

static double count_products(const tgl_problem *p)
{
    return (double)p->m * (double)p->n * (double)p->k * (double)p->batch;
}

/* Draws sizes again and again until m*n*k*batch is within the limit; reducing sizes that are too
 * large would change their distribution. */
static void draw_sizes(random_state *r, check_scale scale, tgl_problem *p)
{
    const limits *l = &limits_of[scale];
    if (scale == SCALE_LARGE && random_once_in(r, 60)) {
        p->batch = 1;
        do
            draw_large(r, p);
        while (count_products(p) > l->most);
        return;
    }
    const double limit = random_once_in(r, 10) ? l->more : l->usual;
    do
        draw_any(r, scale, p);
    while (count_products(p) > limit);
}

/* ---- Layout ---------------------------------------------------------------------------------- */

/* Draws op(). For complex types it may also be the conjugate without a transpose. */
static tgl_transpose draw_transpose(random_state *r, tgl_type type)
{
    static const tgl_transpose all[] = {TGL_NO_TRANS, TGL_NO_TRANS, TGL_TRANS, TGL_TRANS,
                                        TGL_CONJ_TRANS};
    if (element_parts(type) == 2 && random_once_in(r, 3))
        return random_once_in(r, 2) ? TGL_CONJ_NO_TRANS : TGL_CONJ_TRANS;
    return all[random_int(r, 0, 4)];
}

static bool is_transposed(tgl_transpose trans)
{
    return trans == TGL_TRANS || trans == TGL_CONJ_TRANS;
}

static int64_t round_up(int64_t x, int64_t unit)
{
    return (x + unit - 1) / unit * unit;
}

/* Draws a number of elements: leading dimensions and strides are rounded up to multiples of it, and
 * in two thirds of the cases the offset of the first element is rounded down to a multiple. */
static int64_t draw_unit(random_state *r)
{
    static const int64_t units[] = {1, 1, 2, 4, 4};
    return units[random_int(r, 0, 4)];
}

/* Draws the memory layout of op(X), a matrix of rows x columns: *ld, *stride, and the view and size
 * of its buffer. is_input: false: X is the result. */
static void draw_layout(random_state *r, const tgl_problem *p, int64_t rows, int64_t columns,
                        bool transposed, bool is_input, int64_t *ld, int64_t *stride,
                        check_buffer *buffer)
{
    const bool lines_are_rows = (p->order == TGL_ROW_MAJOR) != transposed;
    const int64_t lines = lines_are_rows ? rows : columns;
    const int64_t length = lines_are_rows ? columns : rows, unit = draw_unit(r);
    *ld = round_up(length + (random_once_in(r, 2) ? 0 : random_int(r, 1, 17)), unit);
    if (*ld == 0) *ld = unit;
    const int64_t extent = lines > 0 ? (lines - 1) * *ld + length : 0;
    *stride = round_up(lines * *ld + (random_once_in(r, 2) ? 0 : random_int(r, 1, 40)), unit);
    if (is_input && random_once_in(r, 4)) *stride = 0;
    const int64_t off = random_once_in(r, 2) ? 0 : random_int(r, 1, 15);
    const int64_t offset = GUARD + (random_once_in(r, 3) ? off : off / unit * unit);
    buffer->view = (check_view){.offset = offset,
                                .batch = *stride,
                                .row = lines_are_rows ? *ld : 1,
                                .column = lines_are_rows ? 1 : *ld};
    const int64_t last = p->batch > 0 ? (p->batch - 1) * *stride : 0;
    /* Half of the inputs have no guard after them, so that a sanitizer detects reads past the
     * end. */
    buffer->size = offset + last + extent + (is_input && random_once_in(r, 2) ? 0 : GUARD);
}

/* Replaces half of the leading dimensions that equal the tight one by 0, which the library takes as
 * the tight one. */
static void forget_tight(random_state *r, int64_t tight, int64_t *ld)
{
    if (*ld == tight && random_once_in(r, 2)) *ld = 0;
}

/* ---- Scalars and the rest -------------------------------------------------------------------- */

/* Draws an integer alpha or beta. With a large one, results wrap modulo 2^32. */
static double draw_integer(random_state *r)
{
    static const double usual[] = {0, 1, 1, 1, -1, 2, -7, 65536, INT32_MAX, INT32_MIN};
    if (random_once_in(r, 3)) return (double)random_int(r, INT32_MIN, INT32_MAX);
    return usual[random_int(r, 0, 9)];
}

/* Draws alpha or beta, a number of the accumulation type. */
static double draw_scalar(random_state *r, tgl_type accumulator)
{
    static const double usual[] = {0, 1, 1, 1, -0.5, -1, 2};
    if (element_is_integer(accumulator)) return draw_integer(r);
    if (random_once_in(r, 60)) return NAN;
    if (random_once_in(r, 3)) return element_round(accumulator, random_normal(r));
    return usual[random_int(r, 0, 6)];
}

/* Draws the options of split-K. A third of the cases have none, so the planner decides. Of the
 * others, half compute the first `whole` tiles without split-K. Half of the latter give the K of a
 * split (`depth`) for the remaining tiles. */
static void draw_split(random_state *r, const tgl_problem *p, check_case *c)
{
    if (random_once_in(r, 3)) return;
    c->splits = random_int(r, 1, (int64_t)1 << random_int(r, 1, 6));
    if (random_once_in(r, 2)) return;
    const int64_t tile = (int64_t)32 << random_int(r, 0, 2);
    c->whole = random_int(r, 1, ((p->m + tile) / tile) * ((p->n + tile) / tile));
    if (random_once_in(r, 2)) c->depth = random_int(r, 1, 1 + p->k / c->splits);
}

/* The alignment in bytes that the case may promise for a matrix: the greatest power of two, at most
 * 16, that divides both the byte offset of the first matrix and the batch stride in bytes. */
static int64_t promise_of(const check_buffer *buffer)
{
    const int64_t both =
        (buffer->view.offset | buffer->view.batch | 16) * (int64_t)tgl_type_size(buffer->type);
    const int64_t greatest = both & -both;
    return greatest < 16 ? greatest : 16;
}

/* Turns the case into a batch that is given by arrays of pointers to its matrices. In half of the
 * cases with pointers, tgl_problem.alignment states the alignment of the matrices. */
static void draw_pointers(random_state *r, check_case *c)
{
    c->prepared_a = c->prepared_b = false; /* matrices that are given by pointers cannot be
                                              prepared */
    const int64_t a = promise_of(&c->a), b = promise_of(&c->b);
    c->problem.batching = TGL_POINTERS;
    if (random_once_in(r, 2)) c->problem.alignment = a < b ? a : b;
}

/* Adds a matrix D, so that the result does not overwrite C. C is then an input, which the products
 * of a batch may share (stride 0). */
static void draw_destination(random_state *r, tgl_type type_d, tgl_problem *p, check_case *c)
{
    const int64_t tight = p->order == TGL_ROW_MAJOR ? p->n : p->m;
    p->type_d = type_d != 0 ? type_d : p->type_c;
    draw_layout(r, p, p->m, p->n, false, true, &p->ldc, &p->stride_c, &c->c);
    draw_layout(r, p, p->m, p->n, false, false, &p->ldd, &p->stride_d, &c->d);
    forget_tight(r, tight, &p->ldc);
    forget_tight(r, tight, &p->ldd);
}

static void draw_scalars(random_state *r, tgl_problem *p, check_case *c)
{
    p->scalars = TGL_SCALARS_DEVICE;
    c->no_beta = c->beta == 0 && c->beta_imag == 0 && random_once_in(r, 2);
}

/* Draws whether D is another matrix than C, where the scalars are, who provides the workspace, the
 * number of blocks, and which operands are prepared. */
static void draw_placement(const check_drawing *from, random_state *r, tgl_problem *p,
                           check_case *c)
{
    const bool is_separate = !from->plain && random_once_in(r, 6);
    if (is_separate || from->type_d != 0) draw_destination(r, from->type_d, p, c);
    if (!from->plain && random_once_in(r, 6)) draw_scalars(r, p, c);
    c->own_workspace = random_once_in(r, 3);
    if (random_once_in(r, 4)) c->blocks = random_int(r, 1, 64);
    c->prepared_a = random_once_in(r, 6);
    c->prepared_b = random_once_in(r, 6);
}

/* Marks operands that the product does not access, so that it gets NULL for them. With scalars in
 * device memory the library cannot know on the host that alpha or beta is 0, so the case then keeps
 * A and B, and C unless the pointer to beta is NULL. */
static void take_away(const tgl_problem *p, check_case *c)
{
    const bool is_empty = p->m == 0 || p->n == 0 || p->batch == 0;
    const bool is_host = p->scalars == TGL_SCALARS_HOST;
    const bool is_separate = c->d.size > 0;
    c->a.null = c->b.null =
        is_empty || p->k == 0 || (is_host && c->alpha == 0 && c->alpha_imag == 0);
    c->c.null =
        is_empty || (is_separate && (is_host ? c->beta == 0 && c->beta_imag == 0 : c->no_beta));
    c->d.null = is_empty;
}

static void set_buffer_types(const tgl_problem *p, check_case *c)
{
    c->a.type = p->type_a;
    c->b.type = p->type_b;
    c->c.type = p->type_c;
    c->d.type = problem_result_type(p);
    c->bias.type = c->residual.type = c->d.type;
}

/* The greatest error e (reference.h) that passes. A wrong integer has an infinite error. */
static double bound_of(const check_drawing *from, const tgl_problem *p)
{
    return element_is_integer(p->type_a) ? 0 : error_bound_of(p, from->cuts_sums);
}

void check_draw(const check_drawing *from, random_state *r, check_case *c)
{
    const tgl_type drawn = random_once_in(r, 2) ? TGL_F64 : TGL_F32;
    tgl_problem p = cli_problem(from->type != 0 ? from->type : drawn, 0, 0, 0);
    p.compute = from->compute;
    if (from->type_c != 0) p.type_c = from->type_c;
    draw_sizes(r, from->scale, &p);
    p.order = random_once_in(r, 3) ? TGL_COL_MAJOR : TGL_ROW_MAJOR;
    p.trans_a = draw_transpose(r, p.type_a);
    p.trans_b = draw_transpose(r, p.type_a);
    if (from->plain) {
        p.order = TGL_ROW_MAJOR;
        p.trans_a = p.trans_b = TGL_NO_TRANS;
        p.batch = 1;
    }
    if (from->grouped) check_groups_draw(r, &p);
    const bool trans_a = is_transposed(p.trans_a), trans_b = is_transposed(p.trans_b);
    const bool row = p.order == TGL_ROW_MAJOR;
    draw_layout(r, &p, p.m, p.k, trans_a, true, &p.lda, &p.stride_a, &c->a);
    draw_layout(r, &p, p.k, p.n, trans_b, true, &p.ldb, &p.stride_b, &c->b);
    draw_layout(r, &p, p.m, p.n, false, false, &p.ldc, &p.stride_c, &c->c);
    forget_tight(r, row != trans_a ? p.k : p.m, &p.lda);
    forget_tight(r, row != trans_b ? p.n : p.k, &p.ldb);
    forget_tight(r, row ? p.n : p.m, &p.ldc);
    const tgl_type accumulator = element_accumulator(p.type_a);
    c->alpha = draw_scalar(r, accumulator);
    c->beta = draw_scalar(r, accumulator);
    if (element_parts(p.type_a) == 2) {
        c->alpha_imag = random_once_in(r, 2) ? 0 : draw_scalar(r, accumulator);
        c->beta_imag = random_once_in(r, 2) ? 0 : draw_scalar(r, accumulator);
    }
    if ((p.k == 0 || from->grouped) && (isnan(c->alpha) || isnan(c->alpha_imag)))
        c->alpha = 1, c->alpha_imag = 0; /* BLAS does not define whether a NaN alpha has an effect
                                            if k is 0, as it may be in a group */
    c->inputs = random_kind(r, p.type_a);
    /* error_of_rounded_inputs() assumes that rounding to TF32 changes a number by at most 2^-11 of
     * its value, which is not true for denormal numbers. */
    if (c->inputs == DENORMAL && p.compute == TGL_COMPUTE_TF32) c->inputs = UNIFORM_11;
    c->aligns_denormals =
        from->cuts_sums && c->inputs == DENORMAL && (p.type_a == TGL_F16 || p.type_a == TGL_BF16);
    c->again = random_once_in(r, 16);
    draw_split(r, &p, c);
    const bool takes_away = random_once_in(r, 2);
    random_state placement; /* a separate stream, so that these draws do not change the others */
    random_seed(&placement, ~from->seed, (uint64_t)c->number);
    draw_placement(from, &placement, &p, c);
    if (takes_away) take_away(&p, c);
    c->bound = bound_of(from, &p);
    c->cuts_sums = from->cuts_sums;
    if (from->grouped) {
        check_groups_join(c, &p);
        c->splits = c->whole = c->depth = 0; /* kernels do not split the k of groups */
    }
    set_buffer_types(&p, c);
    c->problem = p;
    if (!from->plain && !from->grouped && random_once_in(r, p.batch == 1 ? 30 : 3))
        draw_pointers(r, c);
    if (from->epilogues) check_epilogue_draw(r, c);
    c->strips = random_once_in(r, 2);
}
