/* SPDX-License-Identifier: Apache-2.0
 *
 * What libtegula_cublas.so keeps between calls: the stream and the workspace of a handle, plans,
 * and devices, also those that have failed.
 */
#include "cublas_case.h"

#include <stdlib.h>
#include <string.h>

static _Alignas(256) char workspace[4096];

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

/* Checks the limit of the plan and the workspace that a run gets. The library itself may take none.
 */
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
    /* cublasSetStream() returns to the device's own workspace */
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

/* ---- Plans and devices ----------------------------------------------------------------------- */

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
    assert_int_equal(rig.opened, 0); /* an earlier test has opened it */
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
    rig_answer.create = TGL_UNSUPPORTED; /* the plan is not asked for again */
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

/* Calls with ever new sizes are all served, and the oldest plans are destroyed. */
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

/* A kind of product whose first call is captured may be measured later. Its graphs share a plan. */
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
    assert_int_equal(rig.max_inside, 1);
    assert_int_equal(cublasSetStream_v2(handle, NULL), CUBLAS_STATUS_SUCCESS);
    assert_true(is_right_in_threads(THREADS, multiply_shared)); /* the arena has a lock itself */
    assert_in_range(rig.max_inside, 2, THREADS);
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
/* A thread has too small a stack, or memory is exhausted for a moment. */
static void test_device_opens_later(void **state)
{
    (void)state;
    const function_row *gemm = row_of("cublasSgemm_v2");
    const cublas_call c = small_call();
    rig_reset_device(0);
    rig_use_context(0);
    rig_forget();
    rig_answer.open = TGL_NO_MEMORY;
    assert_passed(gemm, &c, "no memory, or too small a stack, for a device");
    rig_answer.open = TGL_OK;
    assert_served(gemm, &c);
    assert_int_equal(rig.opened, 2);
}

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

/* test_cublas_plans [own-workspace] */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_workspace),
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_captured_plans),
        cmocka_unit_test(test_many_plans),
        cmocka_unit_test(test_shared_handle),
        cmocka_unit_test(test_device_fails_in_creation),
        cmocka_unit_test(test_device_opens_later),
        cmocka_unit_test(test_device_fails),
    };
    const struct CMUnitTest tests_own[] = {cmocka_unit_test(test_own_workspace)};
    const int missing = load_with_trace();
    if (missing != 0) return missing;
    if (argc > 1 && strcmp(argv[1], "own-workspace") == 0) {
        setenv("TEGULA_CUBLAS_WORKSPACE", "3", 1);
        return cmocka_run_group_tests_name("cuBLAS: own workspace", tests_own, make_handle, NULL);
    }
    return cmocka_run_group_tests_name("cuBLAS: plans", tests, make_handle, NULL);
}
