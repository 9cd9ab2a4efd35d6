/* SPDX-License-Identifier: Apache-2.0
 *
 * Random products of 8-bit types: e4m3, e5m2, both mixed, and i8. Sizes, layouts, batches, types of
 * C and D, scales, epilogues and amax_d are drawn.
 *
 *     test_scaled_random DEVICE CASES [SEED]
 *
 * CASES: the number of cases of each of the four kinds of types. SEED: the seed of the first case
 * (1).
 */
#include "scaled_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static unsigned draw(unsigned *state, unsigned count)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 10) % count;
}

static int64_t draw_size(unsigned *state, unsigned size_max)
{
    static const unsigned limits[] = {4, 20, 70, 140};
    const unsigned limit = limits[draw(state, COUNT_OF(limits))];
    return 1 + draw(state, limit < size_max ? limit : size_max);
}

/* The length of a stored row (column-major: column) of a matrix whose op() is rows x cols. */
static int64_t line_of(const tgl_problem *p, tgl_transpose trans, int64_t rows, int64_t cols)
{
    return (trans == TGL_TRANS) != (p->order == TGL_COL_MAJOR) ? rows : cols;
}

static int64_t lines_of(const tgl_problem *p, tgl_transpose trans, int64_t rows, int64_t cols)
{
    return line_of(p, trans, cols, rows);
}

static void draw_layouts(unsigned *state, tgl_problem *p)
{
    p->order = draw(state, 3) == 0 ? TGL_COL_MAJOR : TGL_ROW_MAJOR;
    p->trans_a = draw(state, 2) ? TGL_TRANS : TGL_NO_TRANS;
    p->trans_b = draw(state, 2) ? TGL_TRANS : TGL_NO_TRANS;
    const int64_t more = draw(state, 2) ? 0 : draw(state, 17);
    p->lda = line_of(p, p->trans_a, p->m, p->k) + more;
    p->ldb = line_of(p, p->trans_b, p->k, p->n) + more;
    p->ldc = line_of(p, TGL_NO_TRANS, p->m, p->n) + more;
    p->ldd = p->type_d != 0 ? p->ldc + draw(state, 3) : 0;
    p->batch = draw(state, 4) == 0 ? 1 + draw(state, 3) : 1;
    if (p->batch == 1) return;
    p->stride_a = lines_of(p, p->trans_a, p->m, p->k) * p->lda;
    p->stride_b = draw(state, 3) == 0 ? 0 : lines_of(p, p->trans_b, p->k, p->n) * p->ldb + 1;
    p->stride_c = lines_of(p, TGL_NO_TRANS, p->m, p->n) * p->ldc;
    if (p->type_d != 0) p->stride_d = lines_of(p, TGL_NO_TRANS, p->m, p->n) * p->ldd + 2;
}

/* Draws a type of C or D. Only integer operands have results of I8, and only F8 results of F8. */
static tgl_type draw_result(unsigned *state, bool is_integer)
{
    static const tgl_type floats[] = {TGL_BF16, TGL_F16, TGL_F32, TGL_F8_E4M3, TGL_F8_E5M2};
    const tgl_type type = floats[draw(state, COUNT_OF(floats))];
    return is_integer && tgl_type_size(type) == 1 ? TGL_I8 : type;
}

static void draw_scales(unsigned *state, tgl_problem *p)
{
    const tgl_type d = p->type_d != 0 ? p->type_d : p->type_c;
    p->scaling_a = (tgl_scaling)draw(state, 3);
    p->scaling_b = (tgl_scaling)draw(state, 3);
    p->scaling_d = (tgl_scaling)(tgl_type_size(d) == 1 || draw(state, 4) == 0 ? draw(state, 3) : 0);
    const bool needs_one =
        p->type_a == TGL_I8 || tgl_type_size(d) == 1 || tgl_type_size(p->type_c) == 1;
    if (needs_one && p->scaling_a == 0 && p->scaling_b == 0 && p->scaling_d == 0)
        p->scaling_b = TGL_SCALING_LINE;
}

/* The bound of the relative error. A wgmma adds 32 products and the sum before with 13 bits of
 * fraction and cuts the result to 13 bits. Four of them take 128 of k. After these, promotion
 * begins another sum, but in mode FAST one sum may go on for all of k. The cpu device adds in FP32.
 */
static double error_of(const tgl_problem *p, bool is_cpu)
{
    if (p->type_a == TGL_I8) return 0x1p-22;
    if (is_cpu) return ((double)p->k + 8) * 0x1p-24;
    const int64_t stages = p->compute == TGL_COMPUTE_FAST ? p->k / 128 + 1 : 1;
    return (double)stages * 4 * 34 * 0x1p-13;
}

static scaled_case draw_case(const tgl_type types[2], unsigned seed, bool is_cpu)
{
    static const double scalars[] = {1, 1, -0.75, 2, 0};
    unsigned state = seed * 2654435761u;
    const bool is_deep = draw(&state, 8) == 0, is_integer = types[0] == TGL_I8;
    const int64_t m = draw_size(&state, is_deep ? 20 : 140), n = draw_size(&state, 140);
    const int64_t k = is_deep ? draw(&state, 3000) : draw(&state, 300);
    scaled_case c = {
        .problem = scaled_problem(types[0], types[1], draw_result(&state, is_integer), m, n, k),
        .alpha = scalars[draw(&state, 5)],
        .beta = scalars[2 + draw(&state, 3)],
        .bias = (tgl_bias)draw(&state, 3),
        .activation = draw(&state, 3) == 0 ? TGL_ACTIVATION_RELU : TGL_ACTIVATION_NONE,
        .has_amax = draw(&state, 3) == 0,
        .seed = seed};
    if (draw(&state, 3) == 0) c.problem.type_d = draw_result(&state, is_integer);
    if (draw(&state, 4) == 0) c.problem.compute = TGL_COMPUTE_FAST;
    draw_layouts(&state, &c.problem);
    draw_scales(&state, &c.problem);
    c.error = error_of(&c.problem, is_cpu);
    if (is_integer && c.problem.scaling_a == 0 && c.problem.scaling_b == 0 &&
        c.problem.scaling_d == 0)
        c.has_amax = false;
    return c;
}

int main(int argc, char **argv)
{
    static const tgl_type kinds[][2] = {{TGL_F8_E4M3, TGL_F8_E4M3},
                                        {TGL_F8_E5M2, TGL_F8_E5M2},
                                        {TGL_F8_E4M3, TGL_F8_E5M2},
                                        {TGL_I8, TGL_I8}};
    tgl_device *dev;
    if (argc < 3) return 2;
    const unsigned cases = (unsigned)atoi(argv[2]), first = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
    if (tgl_device_open(argv[1], NULL, &dev) != TGL_OK) return 77;
    unsigned failed[COUNT_OF(kinds)] = {0}, all = 0;
    for (unsigned i = 0; i < cases * COUNT_OF(kinds); i++) {
        const unsigned kind = i % COUNT_OF(kinds), seed = first + i;
        const scaled_case c = draw_case(kinds[kind], seed, strcmp(argv[1], "cpu") == 0);
        char fault[512], error[200];
        const tgl_status status = scaled_case_run(dev, &c, fault, NULL);
        tgl_last_error(error, sizeof error);
        if (status == TGL_OK && fault[0] == '\0') continue;
        failed[kind]++, all++;
        if (all <= 10) printf("seed %u: %s%s\n", seed, fault, status != TGL_OK ? error : "");
    }
    printf("%u of %u cases failed: %u of e4m3, %u of e5m2, %u mixed, %u of i8\n", all,
           cases * (unsigned)COUNT_OF(kinds), failed[0], failed[1], failed[2], failed[3]);
    tgl_device_close(dev);
    return all > 0;
}
