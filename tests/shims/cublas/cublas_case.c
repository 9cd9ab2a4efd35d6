/* SPDX-License-Identifier: Apache-2.0 */
#include "cublas_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cublasHandle_t handle;
const float one = 1, zero = 0;
float small_a[160], small_b[160], small_c[160];

int load_with_trace(void)
{
    setenv("TEGULA_CUBLAS_TRACE", "1", 1);
    setenv("TEGULA_CUBLAS_WORKSPACE", "0", 1);
    return rig_load(NULL);
}

int make_handle(void **state)
{
    (void)state;
    handle = rig_handle();
    return 0;
}

cublas_call small_call(void)
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
                         .A = small_a,
                         .B = small_b,
                         .C = small_c,
                         .type_a = CUDA_R_32F,
                         .type_b = CUDA_R_32F,
                         .type_c = CUDA_R_32F,
                         .compute = CUBLAS_COMPUTE_32F,
                         .algo = CUBLAS_GEMM_DEFAULT};
}

const function_row *row_of(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(cublas_functions); i++)
        if (strcmp(cublas_functions[i].name, name) == 0) return &cublas_functions[i];
    fail_msg("no function %s", name);
    return NULL;
}

void assert_served(const function_row *f, const cublas_call *c)
{
    const cublasStatus_t status = f->call(c);
    const recorded_call passed = rig_take();
    if (status != CUBLAS_STATUS_SUCCESS || passed.function != NULL)
        fail_msg("%s returns %d", f->name, (int)status);
}

void run_traced(void *data)
{
    traced_call *t = data;
    t->status = t->f->call(t->c);
}

void assert_passed(const function_row *f, const cublas_call *c, const char *reason)
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
