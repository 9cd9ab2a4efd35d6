/* SPDX-License-Identifier: Apache-2.0
 *
 * What libtegula_cublas.so asks of Tegula for a call, and what it leaves to cuBLAS: the call with
 * the same arguments, its result, and a line of the trace with the reason.
 */
#include "cublas_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cublasHandle_t handle;
static const float one = 1, zero = 0;
static _Alignas(256) char workspace[4096];

/* ---- Calls ----------------------------------------------------------------------------------- */

/* A product of two 8 x 8 matrices of F32 that Tegula computes. There is room for batches of two. */
static float A[160], B[160], C[160];
static cublas_call small_call(void)
{
    return (cublas_call){.handle = handle,
                         .trans_a = CUBLAS_OP_N,
                         .trans_b = CUBLAS_OP_N,
                         .m = 8,
                         .n = 8,
                         .k = 8,
                         .lda = 8,
                         .ldb = 8,
                         .ldc = 8,
                         .batch = 1,
                         .alpha = &one,
                         .beta = &zero,
                         .A = A,
                         .B = B,
                         .C = C,
                         .type_a = CUDA_R_32F,
                         .type_b = CUDA_R_32F,
                         .type_c = CUDA_R_32F,
                         .compute = CUBLAS_COMPUTE_32F,
                         .algo = CUBLAS_GEMM_DEFAULT};
}

static const function_row *row_of(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(cublas_functions); i++)
        if (strcmp(cublas_functions[i].name, name) == 0) return &cublas_functions[i];
    fail_msg("no function %s", name);
    return NULL;
}

static void set_mode(const char *setter, int value)
{
    cublasStatus_t (*set)(cublasHandle_t, int) =
        (cublasStatus_t(*)(cublasHandle_t, int))rig_function(setter);
    assert_int_equal(set(handle, value), CUBLAS_STATUS_SUCCESS);
}

static void assert_served(const function_row *f, const cublas_call *c)
{
    const cublasStatus_t status = f->call(c);
    const recorded_call passed = rig_take();
    if (status != CUBLAS_STATUS_SUCCESS || passed.function != NULL)
        fail_msg("%s returns %d", f->name, (int)status);
}

/* A call, and the line of the trace that it prints. */
typedef struct traced_call {
    const function_row *f;
    const cublas_call *c;
    cublasStatus_t status;
} traced_call;

static void run_traced(void *data)
{
    traced_call *t = data;
    t->status = t->f->call(t->c);
}

/* The call reaches cuBLAS with these arguments and no other, and the trace gives the reason. */
static void assert_passed(const function_row *f, const cublas_call *c, const char *reason)
{
    traced_call t = {.f = f, .c = c};
    const recorded_call expected = expected_record(f, c);
    rig.ran = 0;
    const char *line = stderr_of(run_traced, &t);
    const recorded_call passed = rig_take();
    if ((int)t.status != RECORDED) fail_msg("%s is not passed on: %s", f->name, line);
    assert_string_equal(passed.function, expected.function);
    assert_int_equal(passed.count, expected.count);
    assert_memory_equal(passed.words, expected.words, sizeof expected.words);
    char end[300];
    snprintf(end, sizeof end, ": cuBLAS, %s\n", reason);
    const size_t length = strlen(line), wanted = strlen(end);
    if (length < wanted || strcmp(line + length - wanted, end) != 0)
        fail_msg("\"%s\" does not end in \"%s\"", line, end);
}

/* ---- Arguments are passed on unchanged ------------------------------------------------------- */

/* All arguments differ from each other. The operation is not one that is served. */
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
                               .A = A,
                               .B = B,
                               .C = C,
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
        c.m = (int64_t)(i % 8) + 1, c.k = (int64_t)(i / 8) + 1; /* a plan that does not exist yet */
        rig_forget();
        set_mode("cublasSetMathMode", rows[i].math);
        assert_served(row_of("cublasGemmEx"), &c);
        assert_int_equal(rig.created, 1);
        assert_int_equal(rig.problem.compute, rows[i].expected);
        assert_int_equal(rig.problem.order, TGL_COL_MAJOR);
    }
    set_mode("cublasSetMathMode", CUBLAS_DEFAULT_MATH);
}

/* With NVIDIA_TF32_OVERRIDE=0, which is read by the first call of a process. */
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

/* ---- Streams and workspace ------------------------------------------------------------------- */

static void test_stream(void **state)
{
    (void)state;
    const cublas_call c = small_call();
    rig_forget();
    assert_int_equal(cublasSetStream_v2(handle, (cudaStream_t)0x1230), CUBLAS_STATUS_SUCCESS);
    assert_served(row_of("cublasSgemm_v2"), &c);
    assert_ptr_equal(rig.stream, (void *)0x1230);
    assert_int_equal(cublasSetStream_v2(handle, NULL), CUBLAS_STATUS_SUCCESS);
    assert_served(row_of("cublasSgemm_v2"), &c);
    assert_null(rig.stream);
}

/* The workspace of a run: the plan's limit, and what the run gets. The library may take none. */
static void assert_workspace(cublasHandle_t of, int64_t m, int64_t limit, const void *memory,
                             size_t bytes)
{
    cublas_call c = small_call();
    c.handle = of, c.m = m;
    rig_forget();
    assert_served(row_of("cublasSgemm_v2"), &c);
    assert_int_equal(rig.created, 1); /* the limit is part of the key */
    assert_int_equal(rig.workspace_limit, limit);
    assert_ptr_equal(rig.operands.workspace, memory);
    assert_int_equal(rig.operands.workspace_bytes, bytes);
}

static void test_workspace(void **state)
{
    (void)state;
    cublasHandle_t first = rig_handle(), second = rig_handle();
    assert_workspace(first, 5, 0, NULL, 0); /* the device's own */
    assert_int_equal(cublasSetWorkspace_v2(first, workspace, 1024), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cublasSetWorkspace_v2(second, workspace + 2048, 512), CUBLAS_STATUS_SUCCESS);
    assert_workspace(first, 5, 1024, workspace, 1024);
    assert_workspace(second, 5, 512, workspace + 2048, 512);
    /* aligned to 256 bytes */
    assert_int_equal(cublasSetWorkspace_v2(first, workspace + 16, 1000), CUBLAS_STATUS_SUCCESS);
    assert_workspace(first, 5, 760, workspace + 256, 760);
    assert_int_equal(cublasSetWorkspace_v2(first, workspace + 16, 240), CUBLAS_STATUS_SUCCESS);
    assert_workspace(first, 5, -1, NULL, 0);
    assert_int_equal(cublasSetWorkspace_v2(first, NULL, 0), CUBLAS_STATUS_SUCCESS);
    assert_workspace(first, 6, -1, NULL, 0);
    /* a setter that fails changes nothing */
    assert_int_not_equal(cublasSetWorkspace_v2(second, workspace + 1, 99), CUBLAS_STATUS_SUCCESS);
    assert_workspace(second, 6, 512, workspace + 2048, 512);
    /* the stream ends it */
    assert_int_equal(cublasSetStream_v2(second, NULL), CUBLAS_STATUS_SUCCESS);
    assert_workspace(second, 6, 0, NULL, 0);
    assert_int_equal(cublasSetWorkspace_v2(second, workspace, 768), CUBLAS_STATUS_SUCCESS);
    assert_workspace(second, 7, 768, workspace, 768);
    /* the fake allocator gives the address of a destroyed handle again */
    assert_int_equal(cublasDestroy_v2(second), CUBLAS_STATUS_SUCCESS);
    cublasHandle_t third = rig_handle();
    if (third == second) assert_workspace(third, 7, 0, NULL, 0);
    assert_int_equal(cublasDestroy_v2(third), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cublasDestroy_v2(first), CUBLAS_STATUS_SUCCESS);
    assert_int_not_equal(cublasDestroy_v2(NULL), CUBLAS_STATUS_SUCCESS);
}

/* ---- Plans and devices ----------------------------------------------------------------------- */

/* The library may take 3 MiB: the limit is the larger one, and the caller's memory is used if the
 * plan needs no more. */
static void test_own_workspace(void **state)
{
    (void)state;
    cublasHandle_t of = rig_handle();
    assert_workspace(of, 5, 0, NULL, 0);
    assert_int_equal(cublasSetWorkspace_v2(of, workspace, 1024), CUBLAS_STATUS_SUCCESS);
    assert_workspace(of, 5, 3 << 20, workspace, 1024);
    assert_int_equal(cublasSetWorkspace_v2(of, NULL, 0), CUBLAS_STATUS_SUCCESS);
    assert_workspace(of, 6, 3 << 20, NULL, 0);
    assert_int_equal(cublasSetWorkspace_v2(of, workspace, 4 << 20), CUBLAS_STATUS_SUCCESS);
    assert_workspace(of, 6, 4 << 20, workspace, 4 << 20);
    assert_int_equal(cublasDestroy_v2(of), CUBLAS_STATUS_SUCCESS);
}

static void test_plans(void **state)
{
    (void)state;
    const function_row *gemm = row_of("cublasSgemm_v2");
    cublas_call c = small_call();
    c.n = 3;
    rig_forget();
    assert_served(gemm, &c);
    assert_served(gemm, &c);
    c.alpha = &zero; /* not part of a plan */
    assert_served(gemm, &c);
    assert_int_equal(rig.created, 1);
    assert_int_equal(rig.ran, 3);
    assert_int_equal(rig.opened, 0); /* by an earlier test */
    rig_use_context(1);
    assert_served(gemm, &c);
    assert_int_equal(rig.opened, 1);
    assert_int_equal(rig.created, 2);
    rig_use_context(0);
    assert_served(gemm, &c);
    assert_int_equal(rig.created, 2);
    rig_use_context(-1);
    assert_passed(gemm, &c, "no CUDA context is current");
    rig_use_context(0);
}

static void test_failures(void **state)
{
    (void)state;
    const function_row *gemm = row_of("cublasSgemm_v2");
    cublas_call c = small_call();
    c.n = 4;
    rig_forget();
    rig_answer.create = TGL_NO_MEMORY;
    assert_passed(gemm, &c, "no memory for a plan");
    rig_answer.create = TGL_UNSUPPORTED; /* not asked for again */
    traced_call t = {.f = gemm, .c = &c};
    assert_non_null(strstr(stderr_of(run_traced, &t), ": cuBLAS, "));
    assert_int_equal(t.status, RECORDED);
    rig_answer.create = TGL_OK;
    assert_non_null(strstr(stderr_of(run_traced, &t), ": cuBLAS, "));
    assert_int_equal(rig.created, 2);
    assert_int_equal(rig.ran, 0);
    rig_take();

    c.n = 5;
    rig_answer.run = TGL_NO_MEMORY;
    stderr_of(run_traced, &t);
    assert_int_equal(t.status, RECORDED);
    rig_answer.run = TGL_OK;
    rig_take();
    assert_served(gemm, &c);
}

/* Ever new sizes: all are served, and the oldest plans are destroyed. */
static void run_many(void *data)
{
    enum { KINDS = 20000, PLANS = 8192 };
    const function_row *gemm = row_of("cublasSgemm_v2");
    cublas_call c = small_call();
    (void)data;
    for (int i = 0; i < KINDS; i++) {
        c.lda = 9 + i; /* k = 1: no element is beyond the first column */
        c.k = 1;
        assert_served(gemm, &c);
    }
    assert_int_equal(rig.created, KINDS);
    assert_in_range(rig.destroyed, KINDS - PLANS, KINDS);
}

static void test_many_plans(void **state)
{
    (void)state;
    const function_row *gemm = row_of("cublasSgemm_v2");
    cublas_call c = small_call();
    c.k = 1;
    const cudaStream_t stream = rig_captured_stream();
    rig_forget();
    rig_answer.skips_run = true;
    assert_int_equal(cublasSetStream_v2(handle, stream), CUBLAS_STATUS_SUCCESS);
    assert_served(gemm, &c);
    rig_end_capture(stream);
    const tgl_plan *captured = rig.latest;
    assert_int_equal(cublasSetStream_v2(handle, NULL), CUBLAS_STATUS_SUCCESS);
    rig_forget();
    rig_answer.skips_run = true;
    rig.watched = captured;
    stderr_of(run_many, NULL);
    assert_false(rig.is_watched_gone); /* the graph needs it */
}

static void call_in_stream(const cublas_call *c, cudaStream_t stream)
{
    assert_int_equal(cublasSetStream_v2(handle, stream), CUBLAS_STATUS_SUCCESS);
    assert_served(row_of("cublasSgemm_v2"), c);
    assert_int_equal(cublasSetStream_v2(handle, NULL), CUBLAS_STATUS_SUCCESS);
}

/* A kind of product that begins in a capture may be measured later; its graphs share a plan. */
static void test_captured_plans(void **state)
{
    (void)state;
    cublas_call c = small_call();
    c.k = 1;
    c.lda = 77777; /* a kind of its own */
    const cudaStream_t stream = rig_captured_stream();
    rig_forget();
    rig_answer.skips_run = true;
    call_in_stream(&c, stream);
    assert_int_equal(rig.effort, TGL_EFFORT_ESTIMATE);
    const tgl_plan *estimate = rig.latest;
    call_in_stream(&c, stream);
    assert_ptr_equal(rig.latest, estimate);
    assert_int_equal(rig.created, 1);
    call_in_stream(&c, NULL);
    assert_int_equal(rig.created, 2);
    assert_int_equal(rig.effort, TGL_EFFORT_DEFAULT);
    const tgl_plan *measured = rig.latest;
    assert_ptr_not_equal(measured, estimate);
    call_in_stream(&c, stream);
    assert_ptr_equal(rig.latest, measured);
    rig_end_capture(stream);
    call_in_stream(&c, NULL);
    assert_ptr_equal(rig.latest, measured);
    assert_int_equal(rig.created, 2);
    assert_int_equal(rig.destroyed, 0);
}

static void *multiply_shared(void *unused)
{
    const cublas_call c = small_call();
    (void)unused;
    rig_use_context(0);
    for (int i = 0; i < 5; i++)
        if (row_of("cublasSgemm_v2")->call(&c) != CUBLAS_STATUS_SUCCESS) return "wrong";
    return NULL;
}

/* Threads that share a handle with a workspace of the caller enqueue one product after the other.
 */
static void test_shared_handle(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    rig_forget();
    rig_answer.skips_run = true;
    rig_answer.run_us = 2000;
    assert_int_equal(cublasSetWorkspace_v2(handle, workspace, sizeof workspace),
                     CUBLAS_STATUS_SUCCESS);
    assert_true(is_right_in_threads(THREADS, multiply_shared));
    assert_int_equal(rig.most_inside, 1);
    assert_int_equal(cublasSetStream_v2(handle, NULL), CUBLAS_STATUS_SUCCESS);
    assert_true(is_right_in_threads(THREADS, multiply_shared)); /* the arena has a lock itself */
    assert_in_range(rig.most_inside, 2, THREADS);
    rig_forget();
}

/* A driver error in the creation of a plan is an error of the device, not of the kind of product. A
 * new context at the same address has a device of its own. */
static void test_device_fails_in_creation(void **state)
{
    (void)state;
    const function_row *gemm = row_of("cublasSgemm_v2");
    cublas_call c = small_call();
    traced_call t = {.f = gemm, .c = &c};
    c.n = 7;
    rig_forget();
    rig_answer.create = TGL_DRIVER;
    const char *lines = stderr_of(run_traced, &t);
    assert_int_equal(t.status, RECORDED);
    assert_non_null(strstr(lines, "cuBLAS computes all further products.\n"));
    rig_answer.create = TGL_OK;
    rig_take();
    assert_passed(gemm, &c, "the device has failed");
    assert_int_equal(rig.created, 1);
    rig_reset_device(0);
    rig_use_context(0);
    assert_served(gemm, &c);
    assert_int_equal(rig.opened, 1);
    assert_int_equal(rig.created, 2);
}

/* Last: the device of this context is not used again. */
static void test_device_fails(void **state)
{
    (void)state;
    const function_row *gemm = row_of("cublasSgemm_v2");
    const cublas_call c = small_call();
    traced_call t = {.f = gemm, .c = &c};
    rig_forget();
    rig_answer.run = TGL_DEVICE_LOST;
    const char *lines = stderr_of(run_traced, &t);
    assert_int_equal(t.status, RECORDED);
    assert_non_null(strstr(lines, "cuBLAS computes all further products.\n"));
    rig_answer.run = TGL_OK;
    assert_passed(gemm, &c, "the device has failed");
    rig_use_context(1);
    assert_served(gemm, &c);
    rig_use_context(0);
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

/* A product whose run is skipped. */
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
    const char *const unaligned = (char *)A + 8;
    check_faster(CUDA_R_32F, CUBLAS_COMPUTE_32F, 1024, 1024, A, false);
    check_faster(CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC, 1024, 1024, A, false);
    check_faster(CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 1024, 1024, A, false);
    check_faster(CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 1024, 1026, A, false);
    check_faster(CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 600, 600, A, false);
    check_faster(CUDA_R_16F, CUBLAS_COMPUTE_32F, 1024, 1024, A, true);
    check_faster(CUDA_R_16F, CUBLAS_COMPUTE_32F, 1024, 1028, A, false);
    check_faster(CUDA_R_16F, CUBLAS_COMPUTE_32F, 1024, 1024, unaligned, false);
    check_faster(CUDA_R_16BF, CUBLAS_COMPUTE_32F, 4096, 4096, A, true);
    check_faster(CUDA_R_16BF, CUBLAS_COMPUTE_32F, 640, 640, A, false);
    check_faster(CUDA_R_64F, CUBLAS_COMPUTE_64F, 1024, 1024, A, true);
    check_faster(CUDA_R_64F, CUBLAS_COMPUTE_64F, 1024, 1025, A, false);
    check_faster(CUDA_R_64F, CUBLAS_COMPUTE_64F, 640, 640, A, false);
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
        c.m = c.n = c.k = c.ldb = c.ldc = 1024, c.lda = cases[i].lda, c.A = A;
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

/* TEGULA_CUBLAS_SERVE=measured: what cuBLAS is expected to compute faster, unless it was measured.
 */
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
        c.m = c.n = c.k = c.lda = c.ldb = c.ldc = 1024 + 16 * i, c.A = A; /* a plan of its own */
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
    /* What `tegula tune --trace` needs to know of a batch in IEEE arithmetic. */
    c = small_call();
    c.compute = CUBLAS_COMPUTE_32F_PEDANTIC, c.batch = 2;
    c.stride_a = 70, c.stride_b = 71, c.stride_c = 72;
    t.f = row_of("cublasGemmStridedBatchedEx");
    assert_non_null(strstr(stderr_of(run_traced, &t),
                           "batch=2 f32,f32,f32 compute=69 mode=ieee stride=70,71,72: tegula, "));
    rig_take();
}

static int set_up(void **state)
{
    (void)state;
    handle = rig_handle();
    return 0;
}

/* test_cublas_calls [no-tf32 | own-workspace | measured] */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pass_through),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_handle_modes),
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_workspace),
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_reentry),
        cmocka_unit_test(test_faster),
        cmocka_unit_test(test_faster_8_bits),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_captured_plans),
        cmocka_unit_test(test_many_plans),
        cmocka_unit_test(test_shared_handle),
        cmocka_unit_test(test_device_fails_in_creation),
        cmocka_unit_test(test_device_fails),
    };
    const struct CMUnitTest tests_no_tf32[] = {cmocka_unit_test(test_no_tf32)};
    const struct CMUnitTest tests_own[] = {cmocka_unit_test(test_own_workspace)};
    const struct CMUnitTest tests_measured[] = {cmocka_unit_test(test_measured)};
    setenv("TEGULA_CUBLAS_TRACE", "1", 1);
    setenv("TEGULA_CUBLAS_WORKSPACE", "0", 1);
    const int missing = rig_load(NULL);
    if (missing == 0 && argc > 1 && strcmp(argv[1], "own-workspace") == 0) {
        setenv("TEGULA_CUBLAS_WORKSPACE", "3", 1);
        return cmocka_run_group_tests_name("cuBLAS: own workspace", tests_own, set_up, NULL);
    }
    if (missing == 0 && argc > 1 && strcmp(argv[1], "no-tf32") == 0) {
        setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
        return cmocka_run_group_tests_name("cuBLAS: no TF32", tests_no_tf32, set_up, NULL);
    }
    if (missing == 0 && argc > 1 && strcmp(argv[1], "measured") == 0) {
        setenv("TEGULA_CUBLAS_SERVE", "measured", 1);
        return cmocka_run_group_tests_name("cuBLAS: measured", tests_measured, set_up, NULL);
    }
    return missing != 0 ? missing
                        : cmocka_run_group_tests_name("cuBLAS: calls", tests, set_up, NULL);
}
