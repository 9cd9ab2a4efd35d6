/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function for products of a handle, with random arguments, against the definition of cuBLAS:
 * column-major C := alpha*op(A)*op(B) + beta*C. The product is computed by Tegula's cpu device. All
 * values are small whole numbers, so that results are exact, or rounded once to the type of C.
 */
#include "cublas_calls.h"
#include "cublas_matrices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 60 };

/* ---- Types ----------------------------------------------------------------------------------- */

/* Types of A and B, of C, of alpha and beta, and the compute type. */
static const struct types {
    cudaDataType ab, c, scale;
    cublasComputeType_t compute;
} served_types[] = {
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC},
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_16F},
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_16BF},
    {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
    {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F_PEDANTIC},
    {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I},
    {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I_PEDANTIC},
    {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F},
    {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC},
    {CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F},
    {CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F_PEDANTIC},
    {CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
    {CUDA_C_64F, CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F},
    {CUDA_C_64F, CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F_PEDANTIC},
};

static struct types types_of(const function_row *f, uint64_t *seed)
{
    if (f->is_ex) return served_types[rig_random(seed) % COUNT_OF(served_types)];
    return (struct types){f->type, f->type, f->type, f->compute};
}

/* ---- A case ---------------------------------------------------------------------------------- */

typedef struct product_case {
    cublas_call c;
    batch A, B, C;
    double complex alpha, beta;
} product_case;

/* Computes the product by its definition. *D: a copy of C, which becomes the result. */
static void multiply(const product_case *p, const batch *D)
{
    for (int64_t b = 0; b < p->C.count; b++)
        for (int64_t j = 0; j < p->c.n; j++)
            for (int64_t i = 0; i < p->c.m; i++) {
                double complex sum = 0;
                for (int64_t l = 0; l < p->c.k && p->alpha != 0; l++)
                    sum += matrices_at(&p->A, b, p->c.trans_a, i, l) *
                           matrices_at(&p->B, b, p->c.trans_b, l, j);
                sum *= p->alpha;
                if (p->beta != 0) sum += p->beta * matrices_at(&p->C, b, CUBLAS_OP_N, i, j);
                matrices_set(D, b, i, j, sum);
            }
}

static void set_pointer_mode(cublasHandle_t handle, bool is_device)
{
    cublasStatus_t (*set)(cublasHandle_t, int) =
        (cublasStatus_t(*)(cublasHandle_t, int))rig_function("cublasSetPointerMode_v2");
    assert_int_equal(set(handle, is_device), CUBLAS_STATUS_SUCCESS);
}

static product_case make_case(const function_row *f, uint64_t *seed, const struct types *types)
{
    static const double scalars[] = {1, 0, -1, 0.5, 2};
    const int64_t m = rig_between(seed, 1, 20), n = rig_between(seed, 1, 20);
    const int64_t k = rig_between(seed, 0, 40),
                  count = f->kind == ONE ? 1 : rig_between(seed, 1, 5);
    product_case p = {.alpha = scalars[rig_between(seed, 0, 4)],
                      .beta = scalars[rig_between(seed, 0, 4)]};
    if (element_parts(element_type(types->ab)) == 2) {
        p.alpha += scalars[rig_between(seed, 0, 4)] * I;
        p.beta += scalars[rig_between(seed, 0, 4)] * I;
    }
    if (types->scale == CUDA_R_32I) p.alpha = rint(creal(p.alpha)), p.beta = rint(creal(p.beta));
    p.c = (cublas_call){.trans_a = (cublasOperation_t)rig_between(seed, 0, 2),
                        .trans_b = (cublasOperation_t)rig_between(seed, 0, 2),
                        .m = m,
                        .n = n,
                        .k = k,
                        .batch = count,
                        .type_a = types->ab,
                        .type_b = types->ab,
                        .type_c = types->c,
                        .compute = types->compute,
                        .algo = rig_between(seed, 0, 1) ? CUBLAS_GEMM_DEFAULT
                                                        : CUBLAS_GEMM_DEFAULT_TENSOR_OP};
    const bool is_reversed = f->kind == POINTERS, is_na = p.c.trans_a == CUBLAS_OP_N;
    const bool is_nb = p.c.trans_b == CUBLAS_OP_N;
    p.A = matrices_make(seed, types->ab, is_na ? m : k, is_na ? k : m, count, is_reversed);
    p.B = matrices_make(seed, types->ab, is_nb ? k : n, is_nb ? n : k, count, is_reversed);
    p.C = matrices_make(seed, types->c, m, n, count, is_reversed);
    p.c.lda = p.A.ld, p.c.ldb = p.B.ld, p.c.ldc = p.C.ld;
    p.c.stride_a = p.A.stride, p.c.stride_b = p.B.stride, p.c.stride_c = p.C.stride;
    if (p.alpha == 0) matrices_fill(&p.A, NAN);
    if (p.beta == 0) matrices_fill(&p.C, NAN);
    return p;
}

static void check(const function_row *f, uint64_t *seed, cublasHandle_t handle)
{
    const struct types types = types_of(f, seed);
    product_case p = make_case(f, seed, &types);
    const batch D = matrices_copy(&p.C);
    const bool is_device = types.scale != CUDA_R_16F && rig_between(seed, 0, 1) == 1;
    const tgl_type scale = element_type(types.scale);
    double alpha[2], beta[2];
    for (int part = 0; part < element_parts(scale); part++) {
        element_set(scale, alpha, part, part == 0 ? creal(p.alpha) : cimag(p.alpha));
        element_set(scale, beta, part, part == 0 ? creal(p.beta) : cimag(p.beta));
    }
    multiply(&p, &D);
    p.c.handle = handle, p.c.alpha = alpha, p.c.beta = beta;
    p.c.A = f->kind == POINTERS ? (void *)p.A.pointers : p.A.memory;
    p.c.B = f->kind == POINTERS ? (void *)p.B.pointers : p.B.memory;
    p.c.C = f->kind == POINTERS ? (void *)p.C.pointers : p.C.memory;
    set_pointer_mode(handle, is_device);
    rig_forget();
    const cublasStatus_t status = f->call(&p.c);
    if (status != CUBLAS_STATUS_SUCCESS) fail_msg("%s returns %d", f->name, (int)status);
    assert_int_equal(rig.ran, 1);
    assert_null(rig_take().function);
    assert_same_matrices(&p.C, &D);
    free(p.A.memory), free(p.B.memory), free(p.C.memory), free(D.memory);
}

static void test_products(void **state)
{
    (void)state;
    cublasHandle_t handle = rig_handle();
    uint64_t seed = 1;
    for (size_t i = 0; i < COUNT_OF(cublas_functions); i++)
        for (int j = 0; j < CASES; j++)
            check(&cublas_functions[i], &seed, handle);
    assert_int_equal(cublasDestroy_v2(handle), CUBLAS_STATUS_SUCCESS);
}

/* Scalars of cublasHgemm() of every kind: normal, subnormal, infinite, NaN, negative. */
static void test_half_scalars(void **state)
{
    (void)state;
    static const double values[] = {1, -0.5, 65504, 0x1p-14, 0x3p-24, -0x1p-24, INFINITY, NAN};
    cublasHandle_t handle = rig_handle();
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        uint16_t alpha, beta, one, result;
        element_set(TGL_F16, &alpha, 0, values[i]);
        element_set(TGL_F16, &beta, 0, 0);
        element_set(TGL_F16, &one, 0, 1);
        assert_int_equal(cublasHgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, (void *)&alpha,
                                     (void *)&one, 1, (void *)&one, 1, (void *)&beta,
                                     (void *)&result, 1),
                         CUBLAS_STATUS_SUCCESS);
        const double found = element_get(TGL_F16, &result, 0);
        assert_true(isnan(values[i]) ? isnan(found) : found == values[i]);
    }
    assert_int_equal(cublasDestroy_v2(handle), CUBLAS_STATUS_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_half_scalars),
    };
    setenv("TEGULA_CUBLAS_SERVE", "all", 1);
    const int missing = rig_load(NULL);
    return missing != 0 ? missing
                        : cmocka_run_group_tests_name("cuBLAS: products", tests, NULL, NULL);
}
