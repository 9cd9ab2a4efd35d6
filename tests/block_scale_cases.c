/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes products of e4m3 and e5m2 with factors of blocks (block_scale_cases.h).
 */
#include "block_scale_cases.h"
#include "support.h"

#define E4M3 TGL_F8_E4M3
#define E5M2 TGL_F8_E5M2

/* Whether the factors of A or, with of_b, of B are for single rows or columns
 * (TGL_SCALING_LINE_128), not for blocks of 128 of them. */
static bool block_scale_has_lines(unsigned number, bool of_b)
{
    static const bool lines[BLOCK_SCALE_KINDS][2] = {
        {true, false}, {true, true}, {false, true}, {false, false}};
    return lines[number % BLOCK_SCALE_KINDS][of_b];
}

scaled_case block_scale_case(unsigned number, const int64_t size[3], const char *kernel,
                             double error)
{
    static const tgl_type pairs[][2] = {{E4M3, E4M3}, {E5M2, E4M3}, {E4M3, E5M2}};
    static const tgl_type results[] = {TGL_BF16, TGL_F32, E4M3, TGL_F16, E5M2};
    const tgl_type *in = pairs[number / 3 % COUNT_OF(pairs)];
    const tgl_type result = results[number % COUNT_OF(results)];
    const unsigned way = number / 2;
    scaled_case c = {
        .problem = scaled_problem(in[0], in[1], result, size[0], size[1], size[2]),
        .alpha = number % 3 == 0 ? 1 : -0.75,
        .beta = number % 2 == 0 ? 0 : 0.5,
        .bias = (tgl_bias)(number % 3),
        .activation = number % 4 == 0 ? TGL_ACTIVATION_RELU : TGL_ACTIVATION_NONE,
        .kernel = kernel,
        .error = error,
        .has_amax = number % 4 == 0,
        .seed = number + 1,
    };
    tgl_problem *p = &c.problem;
    const int64_t k_blocks = (p->k + 127) / 128, more = way % 2 != 0 ? 3 : 0;
    p->order = number % 5 == 4 ? TGL_COL_MAJOR : TGL_ROW_MAJOR;
    p->trans_a = way / 2 % 2 != 0 ? TGL_TRANS : TGL_NO_TRANS;
    p->trans_b = way / 4 % 2 == 0 ? TGL_TRANS : TGL_NO_TRANS;
    const bool is_column = p->order == TGL_COL_MAJOR;
    p->lda = ((p->trans_a == TGL_TRANS) != is_column ? p->m : p->k) + more;
    p->ldb = ((p->trans_b == TGL_TRANS) != is_column ? p->k : p->n) + more;
    p->ldc = (is_column ? p->m : p->n) + more;
    p->scaling_a = block_scale_has_lines(number, false) ? TGL_SCALING_LINE_128 : TGL_SCALING_BLOCK;
    p->scaling_b = block_scale_has_lines(number, true) ? TGL_SCALING_LINE_128 : TGL_SCALING_BLOCK;
    p->scaling_d = tgl_type_size(result) == 1 ? TGL_SCALING_LINE : TGL_SCALING_NONE;
    if (number % 3 == 1) { /* gaps between the factors, as cuBLASLt has them for blocks */
        p->ld_scale_a = p->scaling_a == TGL_SCALING_BLOCK ? (k_blocks + 3) / 4 * 4 : p->m + 1;
        p->ld_scale_b = p->scaling_b == TGL_SCALING_BLOCK ? (k_blocks + 3) / 4 * 4 : p->n + 2;
    }
    return c;
}

/* ---- 0, Inf and NaN -------------------------------------------------------------------------- */

enum { M = 20, N = 150, K = 300, K_BLOCKS = 3, N_BLOCKS = 2 };

static void *uploaded(tgl_device *dev, const void *from, size_t bytes)
{
    void *memory = NULL;
    assert_status(tgl_alloc(dev, bytes, &memory), TGL_OK);
    assert_status(tgl_upload(dev, memory, from, bytes, NULL), TGL_OK);
    return memory;
}

/* Computes D := A*B with these factors, where all elements of A and B are 1. */
static void multiply_ones(tgl_device *dev, const char *kernel, const float *scale_a,
                          const float *scale_b, float *d)
{
    static unsigned char ones[N * K];
    memset(ones, 0x38, sizeof ones);
    tgl_problem p = scaled_problem(E4M3, E4M3, TGL_F32, M, N, K);
    p.trans_b = TGL_TRANS;
    p.ldb = K;
    p.scaling_a = TGL_SCALING_LINE_128;
    p.scaling_b = TGL_SCALING_BLOCK;
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &p, &options, &plan), TGL_OK);
    void *const x[] = {uploaded(dev, ones, M * K), uploaded(dev, ones, N * K),
                       uploaded(dev, d, sizeof *d * M * N),
                       uploaded(dev, scale_a, sizeof *scale_a * M * K_BLOCKS),
                       uploaded(dev, scale_b, sizeof *scale_b * N_BLOCKS * K_BLOCKS)};
    const tgl_operands o = {.size = sizeof o,
                            .alpha = 1,
                            .A = x[0],
                            .B = x[1],
                            .C = x[2],
                            .scale_a = x[3],
                            .scale_b = x[4]};
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
    assert_status(tgl_download(dev, d, x[2], sizeof *d * M * N, NULL), TGL_OK);
    for (size_t i = 0; i < COUNT_OF(x); i++)
        tgl_free(dev, x[i]);
    tgl_plan_destroy(plan);
}

void check_special_factors(tgl_device *dev, const char *kernel)
{
    static float scale_a[K_BLOCKS][M], scale_b[N_BLOCKS][K_BLOCKS], d[M][N];
    for (int i = 0; i < K_BLOCKS * M; i++)
        scale_a[i / M][i % M] = 1;
    for (int i = 0; i < N_BLOCKS * K_BLOCKS; i++)
        scale_b[i / K_BLOCKS][i % K_BLOCKS] = 2;
    scale_a[0][3] = NAN;
    scale_a[2][5] = INFINITY;
    scale_a[1][7] = 0;
    scale_a[1][9] = -INFINITY;
    scale_b[1][1] = 0; /* times -Inf: NaN */
    multiply_ones(dev, kernel, scale_a[0], scale_b[0], d[0]);
    for (int i = 0; i < M * N; i++) {
        const int row = i / N, col = i % N;
        double exact = 0;
        for (int q = 0; q < K_BLOCKS; q++)
            exact += (double)scale_a[q][row] * (double)scale_b[col / 128][q] *
                     (q == K_BLOCKS - 1 ? K % 128 : 128);
        const double got = (double)d[row][col];
        if (isnan(exact) ? !isnan(got) : got != exact)
            fail_msg("%s: D[%d][%d] is %g, not %g", kernel != NULL ? kernel : "planned", row, col,
                     got, exact);
    }
}
