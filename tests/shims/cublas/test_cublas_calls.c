/* SPDX-License-Identifier: Apache-2.0
 *
 * Which calls libtegula_cublas.so asks Tegula for and in which arithmetic, and what it leaves to
 * cuBLAS: the call with the same arguments, its result, and a line of the trace with the reason.
 */
#include "cublas_case.h"

#include <stdlib.h>
#include <string.h>

static void set_mode(const char *setter, int value)
{
    cublasStatus_t (*set)(cublasHandle_t, int) =
        (cublasStatus_t(*)(cublasHandle_t, int))rig_function(setter);
    assert_int_equal(set(handle, value), CUBLAS_STATUS_SUCCESS);
}

/* ---- Arguments are passed on unchanged ------------------------------------------------------- */

/* All arguments differ from each other. The operation is not served. */
static void test_pass_through(void **state)
{
    (void)state;
    const int64_t large = INT64_C(0x123456789);
    for (size_t i = 0; i < COUNT_OF(cublas_functions); i++) {
        const function_row *f = &cublas_functions[i];
        const cublas_call c = {.handle = handle,
                               .trans_a = (cublasOperation_t)3,
                               .trans_b = CUBLAS_OP_T,
                               .m = f->is_64 ? large : 11,
                               .n = f->is_64 ? large + 1 : 12,
                               .k = f->is_64 ? large + 2 : 13,
                               .lda = f->is_64 ? large + 3 : 14,
                               .ldb = f->is_64 ? large + 4 : 15,
                               .ldc = f->is_64 ? large + 5 : 16,
                               .stride_a = large + 6,
                               .stride_b = -large,
                               .stride_c = large + 8,
                               .batch = f->is_64 ? large + 9 : 17,
                               .alpha = &one,
                               .beta = &zero,
                               .A = small_a,
                               .B = small_b,
                               .C = small_c,
                               .type_a = CUDA_R_16BF,
                               .type_b = CUDA_R_16F,
                               .type_c = CUDA_R_64F,
                               .compute = CUBLAS_COMPUTE_32F_FAST_TF32,
                               .algo = CUBLAS_GEMM_DEFAULT_TENSOR_OP};
        assert_passed(f, &c, "operation 3,1");
    }
}

/* ---- What is left to cuBLAS ------------------------------------------------------------------ */

static void test_arguments(void **state)
{
    (void)state;
    const function_row *gemm = row_of("cublasSgemm_v2"),
                       *strided = row_of("cublasSgemmStridedBatched");
    const char *const sizes = "nothing to compute, or an illegal size";
    rig_forget();
    cublas_call c = small_call();
    c.m = 0;
    assert_passed(gemm, &c, sizes);
    c = small_call(), c.n = -1;
    assert_passed(gemm, &c, sizes);
    c = small_call(), c.k = -1;
    assert_passed(gemm, &c, sizes);
    c = small_call(), c.batch = 0;
    assert_passed(strided, &c, sizes);
    c = small_call(), c.lda = 0;
    assert_passed(gemm, &c, "an illegal leading dimension");
    c = small_call(), c.ldb = 7;
    assert_passed(gemm, &c, "ldb is 7; it must be at least 8");
    c = small_call(), c.batch = 2, c.stride_a = -64, c.stride_c = 64;
    assert_passed(strided, &c, "stride_a is -64; it must not be negative");
    c.batch = 1; /* the strides have no meaning */
    assert_served(strided, &c);
    c = small_call(), c.alpha = NULL;
    assert_passed(gemm, &c, "alpha or beta is NULL");
    c = small_call(), c.beta = NULL;
    assert_passed(gemm, &c, "alpha or beta is NULL");
    c = small_call(), c.A = NULL;
    assert_passed(gemm, &c, "A is NULL");
    c = small_call(), c.handle = NULL;
    assert_passed(gemm, &c, "the handle cannot be read");
}

static void test_types(void **state)
{
    (void)state;
    enum { UNSIGNED_8 = 8, COMPUTE_EMULATED = 78 };
    const function_row *ex = row_of("cublasGemmEx");
    const double unit = 1;
    rig_forget();
    cublas_call c = small_call();
    c.alpha = c.beta = &unit;
    c.type_a = c.type_b = (cudaDataType)UNSIGNED_8;
    assert_passed(ex, &c, "these types");
    c = small_call(), c.type_c = (cudaDataType)UNSIGNED_8;
    assert_passed(ex, &c, "these types");
    c = small_call(), c.type_a = CUDA_R_16F, c.type_b = CUDA_R_8I; /* weights for Tegula */
    assert_passed(ex, &c, "these types");
    c = small_call(), c.type_a = c.type_b = CUDA_R_8I;
    assert_passed(ex, &c, "compute type 68, math mode 0 and these types");
    c.compute = CUBLAS_COMPUTE_32I; /* with a C of F32 */
    assert_passed(ex, &c, "compute type 72, math mode 0 and these types");
    c = small_call(), c.compute = CUBLAS_COMPUTE_32I;
    assert_passed(ex, &c, "compute type 72, math mode 0 and these types");
    c = small_call(), c.compute = (cublasComputeType_t)COMPUTE_EMULATED;
    assert_passed(ex, &c, "compute type 78, math mode 0 and these types");
    c = small_call(), c.compute = CUBLAS_COMPUTE_16F_PEDANTIC;
    c.type_a = c.type_b = c.type_c = CUDA_R_16F;
    assert_passed(ex, &c, "compute type 65, math mode 0 and these types");
    c = small_call(), c.compute = CUBLAS_COMPUTE_64F;
    assert_passed(ex, &c, "compute type 70, math mode 0 and these types");
    c = small_call(), c.type_a = c.type_b = CUDA_R_64F;
    assert_passed(ex, &c, "compute type 68, math mode 0 and these types");
    c = small_call(), c.algo = (cublasGemmAlgo_t)999; /* CUBLAS_GEMM_AUTOTUNE */
    assert_passed(ex, &c, "algorithm 999");
    c = small_call(), c.algo = (cublasGemmAlgo_t)24;
    assert_passed(ex, &c, "algorithm 24");
    /* tgl_problem_check() */
    c = small_call(), c.type_a = CUDA_R_16F, c.type_b = CUDA_R_16BF;
    traced_call t = {.f = ex, .c = &c};
    assert_non_null(strstr(stderr_of(run_traced, &t), ": cuBLAS, "));
    assert_int_equal(t.status, RECORDED);
    assert_string_equal(rig_take().function, "cublasGemmEx");
}

static void test_handle_modes(void **state)
{
    (void)state;
    const function_row *gemm = row_of("cublasSgemm_v2"), *half = row_of("cublasHgemm");
    const cublas_call c = small_call();
    rig_forget();
    set_mode("cublasSetSmCountTarget", 16);
    assert_passed(gemm, &c, "the handle limits the SMs");
    set_mode("cublasSetSmCountTarget", 0);
    set_mode("cublasSetPointerMode_v2", 2);
    assert_passed(gemm, &c, "pointer mode 2");
    set_mode("cublasSetPointerMode_v2", CUBLAS_POINTER_MODE_DEVICE);
    assert_passed(half, &c, "f16 scalars in device memory");
    set_mode("cublasSetPointerMode_v2", CUBLAS_POINTER_MODE_HOST);
    set_mode("cublasSetMathMode", 4); /* CUBLAS_FP32_EMULATED_BF16X9_MATH */
    assert_passed(gemm, &c, "math mode 4");
    set_mode("cublasSetMathMode", CUBLAS_PEDANTIC_MATH);
    assert_passed(half, &c, "compute type 64, math mode 2 and these types");
    set_mode("cublasSetMathMode", CUBLAS_DEFAULT_MATH);
    assert_served(gemm, &c);
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

static void test_arithmetic(void **state)
{
    (void)state;
    enum { FLAG = CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION };
    static const struct {
        int math;
        cudaDataType type;
        cublasComputeType_t compute;
        tgl_compute expected;
    } rows[] = {
        {CUBLAS_DEFAULT_MATH, CUDA_R_32F, CUBLAS_COMPUTE_32F, TGL_COMPUTE_DEFAULT},
        {CUBLAS_DEFAULT_MATH | FLAG, CUDA_R_32F, CUBLAS_COMPUTE_32F, TGL_COMPUTE_DEFAULT},
        {CUBLAS_PEDANTIC_MATH, CUDA_R_32F, CUBLAS_COMPUTE_32F, TGL_COMPUTE_IEEE},
        {CUBLAS_PEDANTIC_MATH | FLAG, CUDA_R_32F, CUBLAS_COMPUTE_32F, TGL_COMPUTE_IEEE},
        {CUBLAS_TF32_TENSOR_OP_MATH, CUDA_R_32F, CUBLAS_COMPUTE_32F, TGL_COMPUTE_TF32},
        {CUBLAS_TENSOR_OP_MATH, CUDA_R_32F, CUBLAS_COMPUTE_32F, TGL_COMPUTE_TF32},
        {CUBLAS_DEFAULT_MATH, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC, TGL_COMPUTE_IEEE},
        {CUBLAS_TF32_TENSOR_OP_MATH, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC, TGL_COMPUTE_IEEE},
        {CUBLAS_DEFAULT_MATH, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, TGL_COMPUTE_TF32},
        {CUBLAS_DEFAULT_MATH, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_16F, TGL_COMPUTE_TF32},
        {CUBLAS_DEFAULT_MATH, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_16BF, TGL_COMPUTE_TF32},
        {CUBLAS_PEDANTIC_MATH, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, TGL_COMPUTE_IEEE},
        {CUBLAS_DEFAULT_MATH, CUDA_R_16F, CUBLAS_COMPUTE_32F, TGL_COMPUTE_DEFAULT},
        {CUBLAS_PEDANTIC_MATH, CUDA_R_16F, CUBLAS_COMPUTE_32F, TGL_COMPUTE_IEEE},
        {CUBLAS_DEFAULT_MATH, CUDA_R_16BF, CUBLAS_COMPUTE_32F_FAST_16BF, TGL_COMPUTE_DEFAULT},
        {CUBLAS_DEFAULT_MATH, CUDA_R_16BF, CUBLAS_COMPUTE_32F_PEDANTIC, TGL_COMPUTE_IEEE},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        cublas_call c = small_call();
        c.type_a = c.type_b = c.type_c = rows[i].type, c.compute = rows[i].compute;
        c.m = (int64_t)(i % 8) + 1, c.k = (int64_t)(i / 8) + 1; /* sizes that have no plan yet */
        rig_forget();
        set_mode("cublasSetMathMode", rows[i].math);
        assert_served(row_of("cublasGemmEx"), &c);
        assert_int_equal(rig.created, 1);
        assert_int_equal(rig.problem.compute, rows[i].expected);
        assert_int_equal(rig.problem.order, TGL_COL_MAJOR);
    }
    set_mode("cublasSetMathMode", CUBLAS_DEFAULT_MATH);
}

/* With NVIDIA_TF32_OVERRIDE=0, which the first call of a process reads, TF32 is not used. */
static void test_no_tf32(void **state)
{
    (void)state;
    cublas_call c = small_call();
    rig_forget();
    set_mode("cublasSetMathMode", CUBLAS_TF32_TENSOR_OP_MATH);
    assert_served(row_of("cublasSgemm_v2"), &c);
    assert_int_equal(rig.problem.compute, TGL_COMPUTE_DEFAULT);
    set_mode("cublasSetMathMode", CUBLAS_DEFAULT_MATH);
    c.n = 7, c.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    assert_served(row_of("cublasGemmEx"), &c);
    assert_int_equal(rig.created, 2);
    assert_int_equal(rig.problem.compute, TGL_COMPUTE_DEFAULT);
    set_mode("cublasSetMathMode", CUBLAS_PEDANTIC_MATH);
    assert_served(row_of("cublasGemmEx"), &c);
    assert_int_equal(rig.problem.compute, TGL_COMPUTE_IEEE);
}

/* ---- Calls of cuBLAS itself ------------------------------------------------------------------ */

static void test_reentry(void **state)
{
    (void)state;
    cublas_call c = small_call();
    c.trans_a = (cublasOperation_t)3; /* passed on */
    ((recorder_reenter_function *)rig_function("recorder_reenter"))();
    traced_call t = {.f = row_of("cublasSgemm_v2"), .c = &c};
    rig_forget();
    const char *line = stderr_of(run_traced, &t);
    assert_int_equal(t.status, RECORDED);
    /* cublasSgemm_v2() of the fake has called cublasGemmEx(), which Tegula could compute. */
    assert_string_equal(rig_take().function, "cublasGemmEx");
    assert_int_equal(rig.ran, 0);
    assert_null(strstr(line, "cublasGemmEx"));
    c = small_call();
    assert_served(row_of("cublasGemmEx"), &c);
    assert_int_equal(rig.ran, 1);
}

/* ---- Which is faster ------------------------------------------------------------------------- */

/* Checks whether cuBLAS or Tegula computes a product of this size. Its run is skipped. */
static void check_faster(cudaDataType type, cublasComputeType_t compute, int64_t n, int64_t ld,
                         const void *matrix, bool is_cublas)
{
    const double scalar = 0;
    cublas_call c = small_call();
    c.type_a = c.type_b = c.type_c = type, c.compute = compute;
    c.m = c.n = c.k = n, c.lda = c.ldb = c.ldc = ld, c.A = matrix;
    c.alpha = c.beta = &scalar;
    rig_forget();
    rig_answer.skips_run = true;
    if (is_cublas)
        assert_passed(row_of("cublasGemmEx"), &c, "cuBLAS is expected to be faster");
    else
        assert_served(row_of("cublasGemmEx"), &c);
}

static void test_faster(void **state)
{
    (void)state;
    const char *const unaligned = (char *)small_a + 8;
    check_faster(CUDA_R_32F, CUBLAS_COMPUTE_32F, 1024, 1024, small_a, false);
    check_faster(CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC, 1024, 1024, small_a, false);
    check_faster(CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 1024, 1024, small_a, false);
    check_faster(CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 1024, 1026, small_a, false);
    check_faster(CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 600, 600, small_a, false);
    check_faster(CUDA_R_16F, CUBLAS_COMPUTE_32F, 1024, 1024, small_a, true);
    check_faster(CUDA_R_16F, CUBLAS_COMPUTE_32F, 1024, 1028, small_a, false);
    check_faster(CUDA_R_16F, CUBLAS_COMPUTE_32F, 1024, 1024, unaligned, false);
    check_faster(CUDA_R_16BF, CUBLAS_COMPUTE_32F, 4096, 4096, small_a, true);
    check_faster(CUDA_R_16BF, CUBLAS_COMPUTE_32F, 640, 640, small_a, false);
    check_faster(CUDA_R_64F, CUBLAS_COMPUTE_64F, 1024, 1024, small_a, true);
    check_faster(CUDA_R_64F, CUBLAS_COMPUTE_64F, 1024, 1025, small_a, false);
    check_faster(CUDA_R_64F, CUBLAS_COMPUTE_64F, 640, 640, small_a, false);
}

/* Products of 8 bits: cuBLAS is expected to be faster if both operands are K-major and aligned. */
static void test_faster_8_bits(void **state)
{
    (void)state;
    static const struct {
        cublasOperation_t trans_a, trans_b;
        int64_t lda;
        bool is_cublas;
    } cases[] = {{CUBLAS_OP_T, CUBLAS_OP_N, 1024, true},
                 {CUBLAS_OP_T, CUBLAS_OP_N, 1032, false},
                 {CUBLAS_OP_N, CUBLAS_OP_N, 1024, false},
                 {CUBLAS_OP_N, CUBLAS_OP_T, 1024, false},
                 {CUBLAS_OP_T, CUBLAS_OP_T, 1024, false}};
    const int32_t scalar = 0;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cublas_call c = small_call();
        c.type_a = c.type_b = CUDA_R_8I, c.type_c = CUDA_R_32I, c.compute = CUBLAS_COMPUTE_32I;
        c.m = c.n = c.k = c.ldb = c.ldc = 1024, c.lda = cases[i].lda, c.A = small_a;
        c.trans_a = cases[i].trans_a, c.trans_b = cases[i].trans_b;
        c.alpha = c.beta = &scalar;
        rig_forget();
        rig_answer.skips_run = true;
        if (cases[i].is_cublas)
            assert_passed(row_of("cublasGemmEx"), &c, "cuBLAS is expected to be faster");
        else
            assert_served(row_of("cublasGemmEx"), &c);
    }
}

/* With TEGULA_CUBLAS_SERVE=measured, products for which the rule prefers cuBLAS are served if they
 * were measured to be faster. */
static void test_measured(void **state)
{
    (void)state;
    static const struct {
        double peer; /* cuBLAS's time / Tegula's */
        bool is_served;
    } cases[] = {{0, false}, {0.9, false}, {1, false}, {1.1, true}};
    const double scalar = 0;
    for (int i = 0; i < (int)COUNT_OF(cases); i++) {
        cublas_call c = small_call();
        c.type_a = c.type_b = c.type_c = CUDA_R_16BF, c.compute = CUBLAS_COMPUTE_32F;
        c.m = c.n = c.k = c.lda = c.ldb = c.ldc = 1024 + 16 * i; /* a plan of its own */
        c.A = small_a;
        c.alpha = c.beta = &scalar;
        for (int again = 0; again < 2; again++) {
            rig_forget();
            rig_answer.skips_run = true;
            rig_answer.peer = cases[i].peer;
            if (cases[i].is_served)
                assert_served(row_of("cublasGemmEx"), &c);
            else
                assert_passed(row_of("cublasGemmEx"), &c, "cuBLAS is expected to be faster");
            assert_int_equal(rig.created, again == 0);
        }
        rig_forget();
        rig_answer.skips_run = true;
        c.lda = c.lda + 1; /* Tegula is expected to be faster */
        assert_served(row_of("cublasGemmEx"), &c);
    }
}

/* ---- The trace ------------------------------------------------------------------------------- */

static void test_trace(void **state)
{
    (void)state;
    cublas_call c = small_call();
    c.trans_a = CUBLAS_OP_T, c.n = 6, c.type_a = c.type_b = CUDA_R_16BF;
    traced_call t = {.f = row_of("cublasGemmEx"), .c = &c};
    rig_forget();
    const char *line = stderr_of(run_traced, &t);
    const char *begin = "tegula_cublas: cublasGemmEx TN m=8 n=6 k=8 lda=8 ldb=8 ldc=8 batch=1 "
                        "bf16,bf16,f32 compute=68: tegula, ";
    assert_true(strncmp(line, begin, strlen(begin)) == 0);
    assert_true(strlen(line) > strlen(begin) + 1 && line[strlen(line) - 1] == '\n');
    c.compute = CUBLAS_COMPUTE_32F, c.type_a = (cudaDataType)8;
    assert_string_equal(stderr_of(run_traced, &t),
                        "tegula_cublas: cublasGemmEx TN m=8 n=6 k=8 lda=8 ldb=8 ldc=8 batch=1 "
                        "type8,bf16,f32 compute=68: cuBLAS, these types\n");
    rig_take();
    /* The trace has what `tegula tune --trace` needs to know of a batch in IEEE arithmetic. */
    c = small_call();
    c.compute = CUBLAS_COMPUTE_32F_PEDANTIC, c.batch = 2;
    c.stride_a = 70, c.stride_b = 71, c.stride_c = 72;
    t.f = row_of("cublasGemmStridedBatchedEx");
    assert_non_null(strstr(stderr_of(run_traced, &t),
                           "batch=2 f32,f32,f32 compute=69 mode=ieee stride=70,71,72: tegula, "));
    rig_take();
}

/* test_cublas_calls [no-tf32 | measured] */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pass_through), cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_types),        cmocka_unit_test(test_handle_modes),
        cmocka_unit_test(test_arithmetic),   cmocka_unit_test(test_reentry),
        cmocka_unit_test(test_faster),       cmocka_unit_test(test_faster_8_bits),
        cmocka_unit_test(test_trace),
    };
    const struct CMUnitTest tests_no_tf32[] = {cmocka_unit_test(test_no_tf32)};
    const struct CMUnitTest tests_measured[] = {cmocka_unit_test(test_measured)};
    const int missing = load_with_trace();
    if (missing != 0) return missing;
    if (argc > 1 && strcmp(argv[1], "no-tf32") == 0) {
        setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
        return cmocka_run_group_tests_name("cuBLAS: no TF32", tests_no_tf32, make_handle, NULL);
    }
    if (argc > 1 && strcmp(argv[1], "measured") == 0) {
        setenv("TEGULA_CUBLAS_SERVE", "measured", 1);
        return cmocka_run_group_tests_name("cuBLAS: measured", tests_measured, make_handle, NULL);
    }
    return cmocka_run_group_tests_name("cuBLAS: calls", tests, make_handle, NULL);
}
