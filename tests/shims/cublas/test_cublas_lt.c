/* SPDX-License-Identifier: Apache-2.0
 *
 * cublasLtMatmul(): random products against its definition, and which plan they take.
 *
 *     test_cublas_lt [LIBRARY]
 *
 * LIBRARY is NVIDIA's libcublasLt, whose descriptors work without a GPU; without it: the fake one.
 * Products are computed by the cpu device.
 */
#include "lt_descriptors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 600 };

static cublasLtMatrixLayout_t layout_of(const batch *x, int type)
{
    cublasLtMatrixLayout_t layout = make_layout(type, x->rows, x->cols, x->ld);
    const int32_t count = (int32_t)x->count;
    if (count == 1) return layout;
    set_layout(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    set_layout(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &x->stride, sizeof x->stride);
    return layout;
}

/* ---- Random products ------------------------------------------------------------------------- */

typedef struct lt_case {
    batch A, B, C, D;                /* D: C itself if is_in_place */
    batch scale_a, scale_b, scale_d; /* factors of FP8 operands; memory NULL: none. One factor, one
                                        for each row or column, or one for each block */
    int block_a, block_b; /* cuBLASLt's scale mode if the factors are for blocks; else 0 */
    bool is_fast;
    float *amax; /* of a D of FP8; NULL: not requested */
    cublasOperation_t trans_a, trans_b;
    int64_t m, n, k;
    double complex alpha, beta;
    cudaDataType a, b, c, d, scale, bias_type;
    int epilogue;
    bool is_in_place, is_device;
    batch bias; /* one column for each product of the batch, or one column for all */
    int64_t bias_stride;
} lt_case;

static double complex epilogue_of(const lt_case *p, int64_t index, int64_t row,
                                  double complex value)
{
    if (p->epilogue == CUBLASLT_EPILOGUE_DEFAULT) return value;
    if ((p->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0)
        value += element_get(p->bias.type, p->bias.memory, index * p->bias_stride + row);
    return (p->epilogue & CUBLASLT_EPILOGUE_RELU) != 0 && creal(value) < 0 ? 0 : value;
}

/* The factor of a row of op(A) or column of op(B) at one place of k. block: cuBLASLt's scale mode
 * if the factors are for blocks; else 0. */
static double factor_of(const batch *factors, int block, int64_t line, int64_t k)
{
    if (factors->memory == NULL) return 1;
    return element_get(
        factors->type, factors->memory,
        block == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F       ? line + k / 128 * factors->ld
        : block == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F ? k / 128 + line / 128 * factors->ld
        : factors->rows == 1                                   ? 0
                                                               : line);
}

static void multiply(const lt_case *p, const batch *result, double *amax)
{
    *amax = 0;
    for (int64_t b = 0; b < p->D.count; b++)
        for (int64_t j = 0; j < p->n; j++)
            for (int64_t i = 0; i < p->m; i++) {
                double complex sum = 0;
                for (int64_t l = 0; l < p->k && p->alpha != 0; l++)
                    sum += matrices_at(&p->A, b, p->trans_a, i, l) *
                           matrices_at(&p->B, b, p->trans_b, l, j) *
                           factor_of(&p->scale_a, p->block_a, i, l) *
                           factor_of(&p->scale_b, p->block_b, j, l);
                if (p->alpha != 0) sum *= p->alpha;
                if (p->beta != 0) sum += p->beta * matrices_at(&p->C, b, CUBLAS_OP_N, i, j);
                const double complex value = epilogue_of(p, b, i, sum);
                matrices_set(result, b, i, j, value * factor_of(&p->scale_d, 0, 0, 0));
                *amax = fmax(*amax, fabs(creal(value)));
            }
}

/* Types of A, B, C, D, and alpha and beta. */
static const cudaDataType types[][5] = {
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F},
    {CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_32F},
    {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F},
    {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F},
    {CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, CUDA_C_32F},
    {CUDA_C_64F, CUDA_C_64F, CUDA_C_64F, CUDA_C_64F, CUDA_C_64F},
    {CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F},
    {CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUDA_R_8F_E5M2, CUDA_R_8F_E4M3, CUDA_R_16F, CUDA_R_8F_E5M2, CUDA_R_32F},
    {CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_8F_E4M3, CUDA_R_32F},
    {CUDA_R_8I, CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUDA_R_32I},
};

static bool is_f8(cudaDataType type)
{
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

static bool is_double(cudaDataType type)
{
    return type == CUDA_R_64F || type == CUDA_C_64F;
}

/* Draws one factor, or one for each of `lines` rows or columns, or in a third of the cases none. */
static batch draw_factors(uint64_t *seed, int64_t lines)
{
    static const double factors[] = {0.5, 1, 2, -1};
    const int kind = rig_between(seed, 0, 2);
    batch x = {.type = TGL_F32};
    if (kind == 0) return x;
    x = matrices_make(seed, CUDA_R_32F, kind == 1 ? 1 : lines, 1, 1, false);
    for (int64_t i = 0; i < x.rows; i++)
        matrices_set(&x, 0, i, 0, factors[rig_between(seed, 0, 3)]);
    return x;
}

static float amax_found;

/* Products with a D of FP8 need a factor. */
static void draw_f8(uint64_t *seed, lt_case *p)
{
    p->scale_a = draw_factors(seed, p->m);
    p->scale_b = draw_factors(seed, p->n);
    if (is_f8(p->d)) p->scale_d = draw_factors(seed, 1);
    if (is_f8(p->d) && p->scale_d.memory == NULL) {
        p->scale_d = matrices_make(seed, CUDA_R_32F, 1, 1, 1, false);
        matrices_set(&p->scale_d, 0, 0, 0, 2);
    }
    p->is_fast = rig_between(seed, 0, 1) == 1;
    if (is_f8(p->d) && rig_between(seed, 0, 1) == 1) p->amax = &amax_found;
    if (p->alpha == 0 && p->scale_a.memory != NULL) matrices_fill(&p->scale_a, NAN);
}

static lt_case make_case(uint64_t *seed)
{
    static const double scalars[] = {1, 0, -1, 0.5, 2};
    static const int epilogues[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU,
                                    CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS};
    const cudaDataType *t = types[rig_between(seed, 0, COUNT_OF(types) - 1)];
    const int64_t count = rig_between(seed, 1, 3);
    const bool is_complex = element_parts(element_type(t[0])) == 2, is_int = t[0] == CUDA_R_8I;
    const bool is_plain = is_complex || is_int || is_double(t[0]);
    lt_case p = {.trans_a = (cublasOperation_t)rig_between(seed, 0, is_complex ? 2 : 1),
                 .trans_b = (cublasOperation_t)rig_between(seed, 0, is_complex ? 2 : 1),
                 .m = rig_between(seed, 1, 16),
                 .n = rig_between(seed, 1, 16),
                 .k = rig_between(seed, 1, 30),
                 .alpha = scalars[rig_between(seed, 0, 4)],
                 .beta = scalars[rig_between(seed, 0, 4)],
                 .a = t[0],
                 .b = t[1],
                 .c = t[2],
                 .d = t[3],
                 .scale = t[4],
                 .epilogue =
                     is_plain ? CUBLASLT_EPILOGUE_DEFAULT : epilogues[rig_between(seed, 0, 3)],
                 .is_device = rig_between(seed, 0, 1) == 1};
    if (is_complex) p.alpha += I * rig_between(seed, -1, 1), p.beta += I * rig_between(seed, -1, 1);
    if (is_int) p.alpha = rint(creal(p.alpha)), p.beta = rint(creal(p.beta));
    const bool is_na = p.trans_a == CUBLAS_OP_N, is_nb = p.trans_b == CUBLAS_OP_N;
    p.A = matrices_make(seed, p.a, is_na ? p.m : p.k, is_na ? p.k : p.m, count, false);
    p.B = matrices_make(seed, p.b, is_nb ? p.k : p.n, is_nb ? p.n : p.k, count, false);
    p.C = matrices_make(seed, p.c, p.m, p.n, count, false);
    p.is_in_place = p.c == p.d && rig_between(seed, 0, 1) == 1;
    p.D = p.is_in_place ? p.C : matrices_make(seed, p.d, p.m, p.n, count, false);
    p.bias_type = is_f8(p.a) ? (rig_between(seed, 0, 1) ? p.c : CUDA_R_16BF)
                  : is_plain || rig_between(seed, 0, 1) ? p.d
                                                        : CUDA_R_32F;
    p.bias = matrices_make(seed, p.bias_type, p.m, count, 1, false);
    p.bias_stride = rig_between(seed, 0, 1) && count > 1 ? p.bias.ld : 0;
    if (p.beta == 0) matrices_fill(&p.C, NAN);
    if (is_f8(p.a)) draw_f8(seed, &p);
    return p;
}

/* Sets the pointer to factors, and the mode if there are several. block: as in factor_of(). */
static void set_factors(cublasLtMatmulDesc_t desc, const batch *factors, int block, int pointer,
                        int mode)
{
    if (factors->memory == NULL) return;
    set_desc(desc, pointer, &factors->memory, sizeof factors->memory);
    if (block != 0 || factors->rows > 1)
        set_int(desc, mode, block != 0 ? block : CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
}

static cublasLtMatmulDesc_t desc_of(const lt_case *p)
{
    const int8_t is_fast = p->is_fast;
    const cudaDataType usual_bias = is_f8(p->a) && p->d == CUDA_R_32F ? CUDA_R_16BF : p->d;
    cublasLtMatmulDesc_t desc = make_desc(is_double(p->a)     ? CUBLAS_COMPUTE_64F
                                          : p->a == CUDA_R_8I ? CUBLAS_COMPUTE_32I
                                                              : CUBLAS_COMPUTE_32F,
                                          (int)p->scale);
    set_int(desc, CUBLASLT_MATMUL_DESC_TRANSA, (int32_t)p->trans_a);
    set_int(desc, CUBLASLT_MATMUL_DESC_TRANSB, (int32_t)p->trans_b);
    set_int(desc, CUBLASLT_MATMUL_DESC_POINTER_MODE, p->is_device);
    set_int(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, p->epilogue);
    set_desc(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias.memory, sizeof p->bias.memory);
    set_desc(desc, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &p->bias_stride, sizeof p->bias_stride);
    if (p->bias_type != usual_bias)
        set_int(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, (int32_t)p->bias_type);
    if (is_fast) set_desc(desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &is_fast, sizeof is_fast);
    set_factors(desc, &p->scale_a, p->block_a, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
                CUBLASLT_MATMUL_DESC_A_SCALE_MODE);
    set_factors(desc, &p->scale_b, p->block_b, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
                CUBLASLT_MATMUL_DESC_B_SCALE_MODE);
    set_factors(desc, &p->scale_d, 0, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, -1);
    set_desc(desc, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, &p->amax, sizeof p->amax);
    return desc;
}

static cublasStatus_t call(const lt_case *p, const void *C)
{
    const tgl_type scale = element_type(p->scale);
    double alpha[2], beta[2];
    cublasLtMatmulDesc_t desc = desc_of(p);
    cublasLtMatrixLayout_t a = layout_of(&p->A, (int)p->a), b = layout_of(&p->B, (int)p->b);
    cublasLtMatrixLayout_t c = layout_of(&p->C, (int)p->c);
    cublasLtMatrixLayout_t d = p->is_in_place ? c : layout_of(&p->D, (int)p->d);
    for (int part = 0; part < element_parts(scale); part++) {
        element_set(scale, alpha, part, part == 0 ? creal(p->alpha) : cimag(p->alpha));
        element_set(scale, beta, part, part == 0 ? creal(p->beta) : cimag(p->beta));
    }
    const cublasStatus_t status =
        cublasLtMatmul(lt_handle, desc, alpha, p->A.memory, a, p->B.memory, b, beta, C, c,
                       p->D.memory, d, NULL, NULL, 0, NULL);
    drop_desc(desc), drop_layout(a), drop_layout(b), drop_layout(c);
    if (d != c) drop_layout(d);
    return status;
}

/* Checks the results of the case, and frees its matrices. */
static void check(const lt_case *p)
{
    const batch expected = matrices_copy(&p->D);
    const bool needs_c = p->is_in_place || p->beta != 0 || p->is_device;
    double amax;
    multiply(p, &expected, &amax);
    amax_found = 1000;
    rig_forget();
    assert_int_equal(call(p, needs_c ? p->C.memory : NULL), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(rig.ran, 1);
    assert_same_matrices(&p->D, &expected);
    assert_true(p->amax == NULL ? amax_found == 1000 : (double)amax_found == amax);
    if (!p->is_in_place) free(p->D.memory);
    free(p->A.memory), free(p->B.memory), free(p->C.memory), free(p->bias.memory);
    free(expected.memory);
    free(p->scale_a.memory), free(p->scale_b.memory), free(p->scale_d.memory);
}

static void test_products(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < CASES; i++) {
        const lt_case p = make_case(&seed);
        check(&p);
    }
}

/* ---- Factors of blocks ----------------------------------------------------------------------- */

/* The factors of `lines` rows of op(A) or columns of op(B), in the order of cuBLASLt. Neighbours
 * differ in both directions. The padding of the leading dimension is NaN. */
static batch make_blocks(int mode, int64_t lines, int64_t k)
{
    const bool by_line = mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    const int64_t blocks = (k + 127) / 128, rows = by_line ? lines : (blocks + 3) / 4 * 4;
    const int64_t cols = by_line ? blocks : (lines + 127) / 128;
    batch x = {.type = TGL_F32, .rows = rows, .cols = cols, .ld = rows, .elements = rows * cols};
    x.memory = malloc((size_t)x.elements * sizeof(float));
    assert_non_null(x.memory);
    for (int64_t i = 0; i < x.elements; i++)
        element_set(x.type, x.memory, i,
                    !by_line && i % rows >= blocks ? (double)NAN : (double)(1 + i % 37));
    return x;
}

/* Sizes and transposes. cuBLASLt has factors of blocks for TN only. */
typedef struct block_shape {
    int64_t m, n, k;
    cublasOperation_t trans_a, trans_b;
} block_shape;

/* A product whose operands have factors of blocks, with a bias and random F8 elements. */
static lt_case make_block_case(uint64_t *seed, int block_a, int block_b, const block_shape *shape)
{
    const int64_t k = shape->k;
    lt_case p = {.trans_a = shape->trans_a,
                 .trans_b = shape->trans_b,
                 .m = shape->m,
                 .n = shape->n,
                 .k = k,
                 .alpha = 2,
                 .a = CUDA_R_8F_E4M3,
                 .b = rig_between(seed, 0, 1) ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2,
                 .c = CUDA_R_32F,
                 .d = CUDA_R_32F,
                 .scale = CUDA_R_32F,
                 .bias_type = CUDA_R_16BF,
                 .epilogue = CUBLASLT_EPILOGUE_BIAS,
                 .block_a = block_a,
                 .block_b = block_b};
    const bool is_na = p.trans_a == CUBLAS_OP_N, is_nb = p.trans_b == CUBLAS_OP_N;
    p.A = matrices_make(seed, p.a, is_na ? p.m : k, is_na ? k : p.m, 1, false);
    p.B = matrices_make(seed, p.b, is_nb ? k : p.n, is_nb ? p.n : k, 1, false);
    p.C = matrices_make(seed, p.c, p.m, p.n, 1, false);
    p.D = matrices_make(seed, p.d, p.m, p.n, 1, false);
    p.bias = matrices_make(seed, p.bias_type, p.m, 1, 1, false);
    p.scale_a = make_blocks(block_a, p.m, k), p.scale_b = make_blocks(block_b, p.n, k);
    return p;
}

static void test_blocks(void **state)
{
    (void)state;
    static const int modes[] = {CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
                                CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F};
    static const block_shape shapes[] = {{132, 136, 520, CUBLAS_OP_T, CUBLAS_OP_N},
                                         {132, 140, 130, CUBLAS_OP_N, CUBLAS_OP_T},
                                         {132, 136, 5, CUBLAS_OP_N, CUBLAS_OP_N}};
    uint64_t seed = 1;
    for (size_t a = 0; a < COUNT_OF(modes); a++)
        for (size_t b = 0; b < COUNT_OF(modes); b++)
            for (size_t i = 0; i < COUNT_OF(shapes); i++) {
                const lt_case p = make_block_case(&seed, modes[a], modes[b], &shapes[i]);
                check(&p);
            }
}

/* A large product, which cuBLASLt is expected to compute faster, is served if cuBLASLt does not
 * have its scales. */
static void test_large_blocks(void **state)
{
    (void)state;
    enum {
        VECTORS = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
        BLOCKS = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F
    };
    static const struct {
        int mode_a, mode_b;
        block_shape shape;
        int served;
    } cases[] = {
        {VECTORS, BLOCKS, {704, 704, 704, CUBLAS_OP_T, CUBLAS_OP_N}, 0},
        {BLOCKS, BLOCKS, {704, 704, 704, CUBLAS_OP_T, CUBLAS_OP_N}, 1},
        {VECTORS, BLOCKS, {704, 706, 704, CUBLAS_OP_T, CUBLAS_OP_N}, 1},
    };
    uint64_t seed = 1;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        lt_case p = make_block_case(&seed, cases[i].mode_a, cases[i].mode_b, &cases[i].shape);
        p.A.ld = p.B.ld = p.C.ld = p.D.ld = 704; /* all columns are aligned */
        rig_forget();
        call(&p, p.C.memory);
        assert_int_equal(rig.ran, cases[i].served);
        free(p.A.memory), free(p.B.memory), free(p.C.memory), free(p.D.memory);
        free(p.bias.memory), free(p.scale_a.memory), free(p.scale_b.memory);
    }
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* Two products of 4 x 4 matrices, with D and a bias. Runs are skipped: the memory is not used. */
static lt_case plain_case(void)
{
    static double unused[4];
    const batch x = {
        .type = TGL_F32, .rows = 4, .cols = 4, .ld = 4, .stride = 16, .count = 2, .memory = unused};
    lt_case p = {.A = x, .B = x, .C = x, .D = x, .bias = x, .m = 4, .n = 4, .k = 4};
    p.D.memory = unused + 2;
    p.alpha = p.beta = 1;
    p.a = p.b = p.c = p.d = p.scale = p.bias_type = CUDA_R_32F;
    p.epilogue = CUBLASLT_EPILOGUE_BIAS;
    return p;
}

/* Fails unless the product gets a new plan, which its second call finds again. */
static void assert_new_plan(const lt_case *p, const char *what)
{
    rig_forget();
    rig_answer.skips_run = true;
    for (int i = 0; i < 2; i++)
        assert_int_equal(call(p, p->C.memory), CUBLAS_STATUS_SUCCESS);
    if (rig.created != 1) fail_msg("%d plans for another %s", rig.created, what);
}

static float unused_factors[4];

/* Each property on which a plan depends gives another plan when it changes alone. */
static void test_plan_keys(void **state)
{
    (void)state;
#define CHANGED(...)                                                                               \
    do {                                                                                           \
        lt_case p = plain_case();                                                                  \
        __VA_ARGS__;                                                                               \
        assert_new_plan(&p, #__VA_ARGS__);                                                         \
    } while (0)
    CHANGED((void)p);
    CHANGED(p.trans_a = CUBLAS_OP_T);
    CHANGED(p.trans_b = CUBLAS_OP_T);
    CHANGED(p.m = p.A.rows = p.C.rows = p.D.rows = 3);
    CHANGED(p.n = p.B.cols = p.C.cols = p.D.cols = 3);
    CHANGED(p.k = p.A.cols = p.B.rows = 3);
    CHANGED(p.A.count = p.B.count = p.C.count = p.D.count = 3);
    CHANGED(p.A.ld = 5);
    CHANGED(p.B.ld = 5);
    CHANGED(p.C.ld = 5, p.C.stride = 20); /* strides of C and D do not overlap */
    CHANGED(p.D.ld = 5, p.D.stride = 20);
    CHANGED(p.A.stride = 17);
    CHANGED(p.B.stride = 17);
    CHANGED(p.C.stride = 17);
    CHANGED(p.D.stride = 17);
    CHANGED(p.is_device = true);
    CHANGED(p.bias_stride = 4);
    CHANGED(p.epilogue = CUBLASLT_EPILOGUE_DEFAULT);
    CHANGED(p.epilogue = CUBLASLT_EPILOGUE_RELU);
    CHANGED(p.epilogue = CUBLASLT_EPILOGUE_RELU_BIAS);
    CHANGED(p.a = p.b = CUDA_R_16F);
    CHANGED(p.a = p.b = p.c = CUDA_R_16F);
    CHANGED(p.a = p.b = p.d = CUDA_R_16F);
    CHANGED(p.a = p.b = p.c = p.d = CUDA_R_16F, p.bias_type = CUDA_R_16F);
    CHANGED(p.a = p.b = p.c = p.d = CUDA_R_16F, p.bias_type = CUDA_R_32F);
    CHANGED(p.D = p.C, p.is_in_place = true);
    const batch factor = {.rows = 1, .memory = unused_factors};
    const batch factors = {.rows = 4, .memory = unused_factors};
    CHANGED(p.a = p.b = CUDA_R_8F_E4M3);
    CHANGED(p.a = CUDA_R_8F_E4M3, p.b = CUDA_R_8F_E5M2);
    CHANGED(p.a = p.b = CUDA_R_8F_E4M3, p.is_fast = true);
    CHANGED(p.a = p.b = CUDA_R_8F_E4M3, p.scale_a = factor);
    CHANGED(p.a = p.b = CUDA_R_8F_E4M3, p.scale_a = factors);
    CHANGED(p.a = p.b = CUDA_R_8F_E4M3, p.scale_b = factor);
    CHANGED(p.a = p.b = CUDA_R_8F_E4M3, p.scale_b = factors);
    CHANGED(p.a = p.b = p.d = CUDA_R_8F_E4M3, p.scale_a = factor);
    CHANGED(p.a = p.b = p.d = CUDA_R_8F_E4M3, p.scale_a = p.scale_d = factor);
    CHANGED(p.a = p.b = p.d = CUDA_R_8F_E4M3, p.scale_a = factor, p.amax = unused_factors);
    for (int pair = 0; pair < 4; pair++)
        CHANGED(p.A.count = p.B.count = p.C.count = p.D.count = 1, p.a = p.b = CUDA_R_8F_E4M3,
                p.scale_a = p.scale_b = factors,
                p.block_a = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F + pair % 2,
                p.block_b = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F + pair / 2);
    CHANGED(p.a = p.b = CUDA_R_8I, p.c = p.d = p.scale = CUDA_R_32I, p.epilogue = 1);
#undef CHANGED
}

/* ---- GELU ------------------------------------------------------------------------------------ */

static double tanh_gelu(double x)
{
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

/* GELU of a column alpha*A, with and without bias, on the device sim, which compiles the
 * expression. */
static void test_gelu(void **state)
{
    (void)state;
    enum { M = 16 };
    static const float alpha = 0.25F, beta = 0, unit = 1;
    rig_use_context(1);
    for (int has_bias = 0; has_bias <= 1; has_bias++) {
        float x[M], bias[M], found[M];
        const void *const bias_at = bias;
        for (int i = 0; i < M; i++)
            x[i] = (float)(2 * i - M), bias[i] = 0.5F;
        cublasLtMatmulDesc_t desc = make_desc(CUBLAS_COMPUTE_32F, CUDA_R_32F);
        cublasLtMatrixLayout_t a = make_layout(CUDA_R_32F, M, 1, M),
                               b = make_layout(CUDA_R_32F, 1, 1, 1);
        set_int(desc, CUBLASLT_MATMUL_DESC_EPILOGUE,
                has_bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU);
        set_desc(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias_at, sizeof bias_at);
        rig_forget();
        rig_answer.device = "sim";
        for (int i = 0; i < M; i++)
            found[i] = NAN;
        assert_int_equal(cublasLtMatmul(lt_handle, desc, &alpha, x, a, &unit, b, &beta, found, a,
                                        found, a, NULL, NULL, 0, NULL),
                         CUBLAS_STATUS_SUCCESS);
        for (int i = 0; i < M; i++) {
            const double value = 0.25 * x[i] + (has_bias ? 0.5 : 0);
            /* The exact GELU differs from tanh_gelu() by more than 2e-6 at several of these
             * values. */
            if (!(fabs(found[i] - tanh_gelu(value)) <= 2e-6)) /* also NaN */
                fail_msg("gelu(%g) is %g instead of %g", value, found[i], tanh_gelu(value));
        }
        drop_desc(desc), drop_layout(a), drop_layout(b);
    }
    rig_use_context(0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),     cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_large_blocks), cmocka_unit_test(test_plan_keys),
        cmocka_unit_test(test_gelu),
    };
    const int missing = lt_load(argc, argv);
    if (missing != 0) return missing;
    return cmocka_run_group_tests_name("cuBLASLt", tests, lt_make_handle, NULL);
}
