/* SPDX-License-Identifier: Apache-2.0
 *
 * cublasLtMatmul(): what is left to cuBLASLt, with its arguments and a reason in the trace.
 *
 *     test_cublas_lt_left [LIBRARY]
 *
 * LIBRARY: as for test_cublas_lt; the fake one also shows which arguments reach it.
 */
#include "lt_descriptors.h"

#include <stdio.h>
#include <string.h>

/* ---- What is left to cuBLASLt ---------------------------------------------------------------- */

static const float one = 1, zero = 0;
static _Alignas(256) float memory[3][64];
static _Alignas(256) char workspace[1024];

/* The arguments of a product of two 8 x 8 matrices of F32. Each test changes the argument that it
 * tests. */
typedef struct plain_call {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    const void *alpha;
    void *workspace;
    size_t workspace_bytes;
    cudaStream_t stream;
    cublasStatus_t status;
} plain_call;

static plain_call make_call(void)
{
    return (plain_call){.desc = make_desc(CUBLAS_COMPUTE_32F, CUDA_R_32F),
                        .a = make_layout(CUDA_R_32F, 8, 8, 8),
                        .b = make_layout(CUDA_R_32F, 8, 8, 8),
                        .c = make_layout(CUDA_R_32F, 8, 8, 8),
                        .alpha = &one};
}

static void run_call(void *data)
{
    static const cublasLtMatmulAlgo_t *algo = (const void *)memory;
    plain_call *p = data;
    p->status = cublasLtMatmul(lt_handle, p->desc, p->alpha, memory[0], p->a, memory[1], p->b,
                               &zero, memory[2], p->c, memory[2], p->c, algo, p->workspace,
                               p->workspace_bytes, p->stream);
}

static void drop_call(const plain_call *p)
{
    if (p->desc != NULL) drop_desc(p->desc);
    drop_layout(p->a), drop_layout(p->b), drop_layout(p->c);
}

/* Fails unless the call reaches cuBLASLt with its arguments, and the trace gives the reason. Frees
 * what *p has. */
static void assert_passed(plain_call *p, const char *reason)
{
    char end[200];
    rig_forget();
    memory[2][0] = 7;
    const char *line = stderr_of(run_call, p);
    snprintf(end, sizeof end, ": cuBLAS, %s\n", reason);
    const size_t length = strlen(line), wanted = strlen(end);
    if (length < wanted || strcmp(line + length - wanted, end) != 0)
        fail_msg("\"%s\" does not end in \"%s\"", line, end);
    assert_true(memory[2][0] == 7);
    assert_int_not_equal(p->status, CUBLAS_STATUS_SUCCESS);
    if (lt_is_recorded) {
        const long long expected[] = {
            (long long)lt_handle, (long long)p->desc,      (long long)p->alpha,
            (long long)memory[0], (long long)p->a,         (long long)memory[1],
            (long long)p->b,      (long long)&zero,        (long long)memory[2],
            (long long)p->c,      (long long)memory[2],    (long long)p->c,
            (long long)memory,    (long long)p->workspace, (long long)p->workspace_bytes,
            (long long)p->stream};
        const recorded_call passed = rig_take_lt();
        assert_int_equal(p->status, RECORDED);
        assert_int_equal(passed.count, COUNT_OF(expected));
        assert_memory_equal(passed.words, expected, sizeof expected);
    }
    drop_call(p);
}

/* Attributes that the library does not serve, by their numbers in cuBLASLt 13.1. */
static void test_desc_attributes(void **state)
{
    (void)state;
    static const struct {
        int number;
        size_t size;
    } attributes[] = {{5, 4},  {6, 4},  {11, 8}, {12, 8}, {13, 8}, {14, 8}, {15, 4}, {17, 8},
                      {18, 8}, {19, 8}, {20, 8}, {21, 8}, {22, 4}, {23, 8}, {24, 8}, {25, 1},
                      {31, 4}, {32, 4}, {33, 4}, {34, 4}, {35, 4}, {36, 8}, {37, 4}};
    for (size_t i = 0; i < COUNT_OF(attributes); i++) {
        const int64_t value = 1; /* no default */
        plain_call p = make_call();
        p.workspace = workspace, p.workspace_bytes = 7 + i, p.stream = (cudaStream_t)0x40;
        set_desc(p.desc, attributes[i].number, &value, attributes[i].size);
        assert_passed(&p, "the descriptor has an attribute that is not served");
    }
}

static void test_desc_values(void **state)
{
    (void)state;
    static const int epilogues[] = {130, 134, 136, 152, 160, 164, 192, 208, 256, 512};
    for (size_t i = 0; i < COUNT_OF(epilogues); i++) {
        char reason[40];
        plain_call p = make_call();
        set_int(p.desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogues[i]);
        snprintf(reason, sizeof reason, "epilogue %d", epilogues[i]);
        assert_passed(&p, reason);
    }
    for (int mode = 2; mode <= 4; mode++) {
        char reason[40];
        plain_call p = make_call();
        set_int(p.desc, CUBLASLT_MATMUL_DESC_POINTER_MODE, mode);
        snprintf(reason, sizeof reason, "pointer mode %d", mode);
        assert_passed(&p, reason);
    }
    plain_call p = make_call();
    p.alpha = NULL;
    assert_passed(&p, "alpha or beta is NULL");
    p = make_call();
    drop_desc(p.desc);
    p.desc = NULL;
    assert_passed(&p, "a descriptor is NULL");
    p = make_call();
    const void *const bias = memory[0];
    set_int(p.desc, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    assert_passed(&p, "bias is NULL");
    p = make_call();
    set_int(p.desc, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set_desc(p.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    set_int(p.desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 28); /* CUDA_R_8F_E4M3 */
    assert_passed(&p, "a bias of type 28");
}

/* Attributes of products of FP8 that are not served. */
static void test_f8_attributes(void **state)
{
    (void)state;
    static const struct {
        int number;
        size_t size;
        int64_t value;
        const char *reason;
    } attributes[] = {
        {19, 8, 8, "the descriptor has an attribute that is not served"}, /* scale of C */
        {21, 8, 8, "a scale or amax of D, which is not FP8"},
        {34, 4, 3, "the descriptor has an attribute that is not served"}, /* mode of D's scale */
        {20, 8, 8, "a scale or amax of D, which is not FP8"},
        {31, 4, 2, "scales of mode 2"}, /* VEC32_UE8M0 */
        {31, 4, 6, "scales of mode 6"}, /* of a later version */
        {31, 4, 3, "scale_a is NULL"},
        {31, 4, 4, "scaling_a is for blocks, and scaling_b is not: both or none must be"},
        {32, 4, 5, "scaling_b is for blocks, and scaling_a is not: both or none must be"},
    };
    const uint32_t type = CUDA_R_8F_E4M3;
    for (size_t i = 0; i < COUNT_OF(attributes); i++) {
        plain_call p = make_call();
        set_layout(p.a, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type);
        set_layout(p.b, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type);
        set_desc(p.desc, attributes[i].number, &attributes[i].value, attributes[i].size);
        assert_passed(&p, attributes[i].reason);
    }
    plain_call p = make_call(); /* of F32: FP8 alone has these attributes */
    const int8_t fast = 1;
    set_desc(p.desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
    assert_passed(&p, "the descriptor has an attribute that is not served");
    p = make_call();
    set_layout(p.a, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type);
    assert_passed(&p, "compute type 68, math mode 0 and these types");
}

/* A product of e4m3 with factors at `factors`, of these modes. */
static plain_call make_scaled_call(int mode_a, int mode_b, const void *factors)
{
    const uint32_t type = CUDA_R_8F_E4M3;
    plain_call p = make_call();
    set_layout(p.a, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type);
    set_layout(p.b, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type);
    set_int(p.desc, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode_a);
    set_int(p.desc, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode_b);
    set_desc(p.desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &factors, sizeof factors);
    set_desc(p.desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &factors, sizeof factors);
    return p;
}

/* Modes of scales that are not served together or with a batch, and their names in the trace. */
static void test_scale_modes(void **state)
{
    (void)state;
    enum {
        LINES = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F,
        VECTORS = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
        BLOCKS = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F
    };
    static float factors[8];
    const int32_t count = 2;
    const uint64_t rows = 7;
    plain_call p = make_scaled_call(VECTORS, LINES, factors);
    assert_passed(&p, "scaling_a is for blocks, and scaling_b is not: both or none must be");
    p = make_scaled_call(LINES, BLOCKS, factors);
    assert_passed(&p, "scaling_b is for blocks, and scaling_a is not: both or none must be");
    p = make_scaled_call(BLOCKS, VECTORS, NULL);
    assert_passed(&p, "scale_a is NULL");
    p = make_scaled_call(VECTORS, BLOCKS, factors);
    set_layout(p.a, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows);
    set_layout(p.c, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows);
    assert_passed(&p, "1x128 scales, and a number of lines that 4 does not divide");
    p = make_scaled_call(BLOCKS, VECTORS, factors);
    set_layout(p.a, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    set_layout(p.b, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    set_layout(p.c, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    assert_passed(&p, "scales of blocks of a batch");
    p = make_scaled_call(BLOCKS, VECTORS, factors);
    assert_non_null(strstr(stderr_of(run_call, &p), " scales=128x128,1x128,none: tegula, "));
    assert_int_equal(p.status, CUBLAS_STATUS_SUCCESS);
    drop_call(&p);
}

static void test_layouts(void **state)
{
    (void)state;
    const int32_t row_order = 1, count = 2;
    const int64_t offset = 64;
    const uint32_t mode = 1, type = 8; /* pointers; CUDA_R_8U */
    plain_call p = make_call();
    set_layout(p.a, CUBLASLT_MATRIX_LAYOUT_ORDER, &row_order, sizeof row_order);
    assert_passed(&p, "a layout of order 1");
    p = make_call();
    set_layout(p.b, 7, &offset, sizeof offset);
    assert_passed(&p, "a layout has an attribute that is not served");
    p = make_call();
    set_layout(p.c, 8, &mode, sizeof mode);
    assert_passed(&p, "a layout has an attribute that is not served");
    p = make_call();
    set_layout(p.a, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type);
    assert_passed(&p, "these types");
    p = make_call();
    set_layout(p.b, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    assert_passed(&p, "batches that do not match");
    p = make_call();
    drop_layout(p.b);
    p.b = make_layout(CUDA_R_32F, 9, 8, 9);
    assert_passed(&p, "sizes that do not match");
    p = make_call();
    drop_layout(p.a);
    p.a = make_layout(CUDA_R_32F, 7, 8, 8);
    assert_passed(&p, "sizes that do not match");
}

/* D at the address of C. If beta is 0, C does not matter. */
static void test_overlap(void **state)
{
    (void)state;
    float A[4] = {1, 2, 3, 4}, B[4] = {1, 0, 0, 1}, C[8] = {0};
    cublasLtMatmulDesc_t desc = make_desc(CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatrixLayout_t tight = make_layout(CUDA_R_32F, 2, 2, 2);
    cublasLtMatrixLayout_t wide = make_layout(CUDA_R_32F, 2, 2, 4);
    rig_forget();
    assert_int_not_equal(cublasLtMatmul(lt_handle, desc, &one, A, tight, B, tight, &one, C, wide, C,
                                        tight, NULL, NULL, 0, NULL),
                         CUBLAS_STATUS_SUCCESS);
    assert_int_equal(rig.ran, 0);
    assert_int_equal(cublasLtMatmul(lt_handle, desc, &one, A, tight, B, tight, &zero, C, wide, C,
                                    tight, NULL, NULL, 0, NULL),
                     CUBLAS_STATUS_SUCCESS);
    assert_int_equal(rig.ran, 1);
    assert_memory_equal(C, A, sizeof A);
    drop_desc(desc), drop_layout(tight), drop_layout(wide);
}

/* ---- The workspace and the stream of the call ------------------------------------------------ */

static void test_workspace(void **state)
{
    (void)state;
    plain_call p = make_call();
    rig_forget();
    p.workspace = workspace, p.workspace_bytes = 512, p.stream = (cudaStream_t)0x50;
    run_call(&p);
    assert_int_equal(p.status, CUBLAS_STATUS_SUCCESS);
    assert_int_equal(rig.workspace_limit, 512);
    assert_ptr_equal(rig.operands.workspace, workspace);
    assert_int_equal(rig.operands.workspace_bytes, 512);
    assert_ptr_equal(rig.stream, (void *)0x50);
    p.workspace_bytes = 0;
    run_call(&p);
    assert_int_equal(p.status, CUBLAS_STATUS_SUCCESS);
    assert_int_equal(rig.workspace_limit, -1);
    assert_null(rig.operands.workspace);
    drop_call(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_desc_attributes), cmocka_unit_test(test_desc_values),
        cmocka_unit_test(test_f8_attributes),   cmocka_unit_test(test_scale_modes),
        cmocka_unit_test(test_layouts),         cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_workspace),
    };
    const int missing = lt_load(argc, argv);
    if (missing != 0) return missing;
    return cmocka_run_group_tests_name("cuBLASLt", tests, lt_make_handle, NULL);
}
