/* SPDX-License-Identifier: Apache-2.0
 *
 * Epilogues and batches of pointers on the cpu, in all their combinations and under BLAS's rules;
 * and every wrong argument to them (src/problem/shape_epilogue.c, src/problem/operands.c,
 * src/cpu/run/cpu_epilogue.c).
 */
#include "support.h"

/* ---- Products -------------------------------------------------------------------------------- */

static tgl_epilogue random_epilogue(uint64_t *seed, const tgl_problem *p)
{
    const int64_t row = p->order == TGL_ROW_MAJOR ? p->n : p->m;
    const int64_t lines = p->order == TGL_ROW_MAJOR ? p->m : p->n;
    tgl_epilogue e = {
        .size = sizeof e,
        .bias = (tgl_bias)random_int(seed, TGL_BIAS_NONE, TGL_BIAS_COLUMN),
        .activation = (tgl_activation)random_int(seed, TGL_ACTIVATION_NONE, TGL_ACTIVATION_SILU),
        .residual = (int)random_int(seed, 0, 1)};
    if (random_int(seed, 0, 1) == 1) e.ld_residual = (row > 0 ? row : 1) + random_int(seed, 0, 5);
    if (random_int(seed, 0, 1) == 1) {
        const int64_t ld = e.ld_residual > 0 ? e.ld_residual : row;
        e.stride_bias = (e.bias == TGL_BIAS_ROW ? p->m : p->n) + random_int(seed, 0, 3);
        e.stride_residual = lines * ld + random_int(seed, 0, 3);
    }
    return e;
}

static void random_products(void **state)
{
    static const double scalars[] = {1, 1, 0, -0.5, (double)NAN};
    uint64_t seed = 11;
    for (int i = 0; i < 1500; i++) {
        gemm_case c = {.problem =
                           random_problem(&seed, i % 2 ? TGL_F32 : TGL_F64, i % 50 == 0 ? 150 : 30),
                       .alpha = scalars[random_int(&seed, 0, 4)],
                       .beta = scalars[random_int(&seed, 0, 4)],
                       .pointers = i % 3 == 0,
                       .fill = i % 5 == 0 ? NON_FINITE : UNIFORM_11,
                       .at_end = random_int(&seed, 0, 1) == 1,
                       .seed = random_bits(&seed)};
        if (i % 4 != 0) c.epilogue = random_epilogue(&seed, &c.problem);
        assert_true(check_case(*state, &c));
    }
}

/* Tests products whose K is divided among threads, which add their sums before the epilogue, and
 * products of one row and of one column. */
static void products_of_every_path(void **state)
{
    static const int64_t shapes[][3] = {{20, 30, 9000}, {1, 300, 70},    {300, 1, 70},
                                        {1, 1, 9},      {150, 170, 300}, {9, 9, 0}};
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        for (int order = TGL_ROW_MAJOR; order <= TGL_COL_MAJOR; order++) {
            gemm_case c = {
                .problem = problem_of(TGL_F32, shapes[i][0], shapes[i][1], shapes[i][2]),
                .alpha = 0.5,
                .beta = -1,
                .epilogue = {.size = sizeof c.epilogue,
                             .bias = order == TGL_ROW_MAJOR ? TGL_BIAS_ROW : TGL_BIAS_COLUMN,
                             .activation = (tgl_activation)(i % 4),
                             .residual = 1},
                .fill = UNIFORM_11,
                .seed = i};
            c.problem.order = (tgl_order)order;
            assert_true(check_case(*state, &c));
        }
}

/* A NaN stays NaN, and infinities give what the formula gives. */
static void activations_of_numbers_that_are_none(void **state)
{
    enum { COUNT = 3 };
    static const float before[COUNT] = {NAN, INFINITY, -INFINITY};
    static const float expected[][COUNT] = {
        {NAN, INFINITY, -INFINITY}, {NAN, INFINITY, 0}, {NAN, INFINITY, NAN}, {NAN, INFINITY, NAN}};
    const tgl_problem problem = problem_of(TGL_F32, 1, COUNT, 0);
    for (int a = TGL_ACTIVATION_NONE; a <= TGL_ACTIVATION_SILU; a++) {
        const tgl_epilogue e = {.size = sizeof e, .activation = (tgl_activation)a};
        const tgl_plan_options options = {.size = sizeof options, .epilogue = &e};
        float C[COUNT];
        tgl_plan *plan;
        memcpy(C, before, sizeof C);
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
        assert_status(tgl_plan_run(plan, 1, NULL, NULL, 1, C, NULL), TGL_OK);
        for (int i = 0; i < COUNT; i++)
            if (isnan(expected[a][i]) ? !isnan(C[i]) : C[i] != expected[a][i])
                fail_msg("activation %d of %g is %g", a, (double)before[i], (double)C[i]);
        tgl_plan_destroy(plan);
    }
}

static void one_shot_batches(void **state)
{
    const float a[] = {1, 2}, b[] = {3, 4};
    float c[] = {10, 20};
    const void *const A[] = {&a[0], &a[1]}, *const B[] = {&b[1], &b[1]};
    void *const C[] = {&c[1], &c[0]};
    tgl_problem problem = problem_of(TGL_F32, 1, 1, 1);
    problem.batch = 2;
    problem.batching = TGL_POINTERS;
    assert_status(tgl_gemm_batched(*state, &problem, 1, A, B, 1, C, NULL), TGL_OK);
    assert_true(c[0] == 18 && c[1] == 24);
    assert_status(tgl_gemm_batched(*state, &problem, 0, NULL, NULL, 0.5, C, NULL), TGL_OK);
    assert_true(c[0] == 9 && c[1] == 12);
    problem.batch = 0;
    assert_status(tgl_gemm_batched(*state, &problem, 1, NULL, NULL, 0, NULL, NULL), TGL_OK);
}

/* ---- Wrong arguments ------------------------------------------------------------------------- */

static const struct {
    tgl_epilogue epilogue;
    tgl_status status;
    const char *sentence;
} bad_epilogues[] = {
    {{.size = 8},
     TGL_BAD_ARGUMENT,
     "epilogue.size is 8; set epilogue.size = sizeof epilogue, which is 72 in this version of the "
     "library"},
    {{.bias = (tgl_bias)3}, TGL_BAD_EPILOGUE, "epilogue.bias is 3, which is not a tgl_bias"},
    {{.activation = (tgl_activation)4},
     TGL_BAD_EPILOGUE,
     "epilogue.activation is 4, which is not a tgl_activation"},
    {{.activation = (tgl_activation)-1},
     TGL_BAD_EPILOGUE,
     "epilogue.activation is -1, which is not a tgl_activation"},
    {{.bias = TGL_BIAS_ROW, .type_bias = (tgl_type)11},
     TGL_BAD_EPILOGUE,
     "epilogue.type_bias is 11, which is not a tgl_type"},
    {{.residual = 1, .type_residual = (tgl_type)-1},
     TGL_BAD_EPILOGUE,
     "epilogue.type_residual is -1, which is not a tgl_type"},
    {{.residual = 2}, TGL_BAD_EPILOGUE, "epilogue.residual is 2; it is 0 or 1"},
    {{.activation = TGL_ACTIVATION_RELU, .expression = "acc"},
     TGL_BAD_EPILOGUE,
     "epilogue has both an expression and an activation"},
    {{.expression = ""}, TGL_BAD_EPILOGUE, "epilogue.expression is empty"},
    {{.residual = 1, .ld_residual = 5},
     TGL_BAD_EPILOGUE,
     "epilogue.ld_residual is 5; it must be at least 6"},
    {{.ld_residual = -1}, TGL_BAD_EPILOGUE, "epilogue.ld_residual is -1; it must be at least 6"},
    {{.stride_bias = -1}, TGL_BAD_EPILOGUE, "epilogue.stride_bias is -1; it must not be negative"},
    {{.stride_residual = -2},
     TGL_BAD_EPILOGUE,
     "epilogue.stride_residual is -2; it must not be negative"},
    {{.residual = 1, .ld_residual = INT64_MAX / 4},
     TGL_TOO_LARGE,
     "the bytes of the residual do not fit in 63 bits"},
    {{.bias = TGL_BIAS_ROW, .stride_bias = INT64_MAX},
     TGL_TOO_LARGE,
     "the bytes of the bias do not fit in 63 bits"},
    {{.expression = "acc + c"},
     TGL_UNSUPPORTED,
     "the cpu device compiles no expressions: use bias, activation and residual, or the devices "
     "cuda and sim"},
};

static void bad_epilogues_are_refused(void **state)
{
    for (size_t i = 0; i < COUNT_OF(bad_epilogues); i++) {
        tgl_problem problem = problem_of(TGL_F32, 5, 6, 7);
        problem.batch = 2;
        problem.stride_c = 30;
        tgl_epilogue e = bad_epilogues[i].epilogue;
        if (e.size == 0) e.size = sizeof e;
        const tgl_plan_options options = {.size = sizeof options, .epilogue = &e};
        tgl_plan *plan = (tgl_plan *)1;
        const tgl_status status = tgl_plan_create(*state, &problem, &options, &plan);
        assert_null(plan);
        assert_sentence(bad_epilogues[i].sentence);
        assert_status(status, bad_epilogues[i].status);
        if (bad_epilogues[i].status == TGL_UNSUPPORTED) continue;
        char text[200];
        size_t length;
        forget_error();
        assert_status(tgl_chip_explain("h200", &problem, &options, text, sizeof text, &length),
                      bad_epilogues[i].status);
        assert_sentence(bad_epilogues[i].sentence);
    }
}

/* A bias or residual of a type other than D's is valid. The cpu device has no kernel for it, and
 * GPUs have kernels for few rows or columns only. */
static void other_types_are_unsupported(void **state)
{
    static const char *const cpu_sentences[] = {
        "the bias is f16; the cpu device takes f16, bf16 and f32 for products of f16, bf16, 8-bit "
        "floating-point types and scaled i8, else the type of D only",
        "the residual is f16; the cpu device takes f16, bf16 and f32 for products of f16, bf16, "
        "8-bit "
        "floating-point types and scaled i8, else the type of D only"};
    for (int i = 0; i < 2; i++) {
        const tgl_problem problem = problem_of(TGL_F32, 5, 6, 7);
        tgl_problem large = problem_of(TGL_F32, 500, 600, 700);
        large.compute = TGL_COMPUTE_IEEE;
        tgl_epilogue e = {.size = sizeof e, .bias = TGL_BIAS_ROW, .residual = 1};
        *(i == 0 ? &e.type_bias : &e.type_residual) = TGL_F16;
        const tgl_plan_options options = {.size = sizeof options, .epilogue = &e};
        tgl_plan *plan;
        size_t length;
        forget_error();
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_UNSUPPORTED);
        assert_sentence(cpu_sentences[i]);
        assert_null(plan);
        assert_status(tgl_chip_explain("h200", &problem, &options, NULL, 0, &length), TGL_OK);
        assert_status(tgl_chip_explain("h200", &large, &options, NULL, 0, &length),
                      TGL_UNSUPPORTED);
        tgl_plan_options named = options;
        named.kernel = "simt_64x64x16";
        assert_status(tgl_chip_explain("h200", &large, &named, NULL, 0, &length), TGL_UNSUPPORTED);
        assert_sentence("simt_64x64x16 cannot serve f32, m=500 n=600 k=700: its bias and residual "
                        "are f32 only");
        *(i == 0 ? &e.type_bias : &e.type_residual) = TGL_F32; /* the default, as an argument */
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
        tgl_plan_destroy(plan);
    }
}

static float room[64]; /* not accessed */
static void *const rooms[] = {room, NULL};
static const void *const some[] = {room, room}, *const holes[] = {room, NULL},
                         *const odd[] = {room, (const char *)room + 2};

/* A plan with or without pointers, bias and residual, and the operands of a run of it. */
static const struct {
    bool pointers, has_epilogue;
    tgl_operands operands;
    tgl_status status;
    const char *sentence;
} bad_operands[] = {
    {false,
     false,
     {.size = 7},
     TGL_BAD_ARGUMENT,
     "operands.size is 7; set operands.size = sizeof operands, which is 216 in this version of the "
     "library"},
    {false, false, {.B = room, .C = room}, TGL_BAD_A, "A is NULL"},
    {false, false, {.A = room, .C = room}, TGL_BAD_B, "B is NULL"},
    {false, false, {.A = room, .B = room}, TGL_BAD_C, "C is NULL"},
    {false,
     false,
     {.A = room, .B = room, .C = room, .bias = room},
     TGL_BAD_BIAS,
     "bias is given, and the plan's epilogue has none"},
    {false,
     false,
     {.A = room, .B = room, .C = room, .residual = room},
     TGL_BAD_RESIDUAL,
     "residual is given, and the plan's epilogue has none"},
    {false,
     true,
     {.A = room, .B = room, .C = room, .residual = room},
     TGL_BAD_BIAS,
     "bias is NULL"},
    {false,
     true,
     {.A = room, .B = room, .C = room, .bias = (char *)room + 1, .residual = room},
     TGL_BAD_BIAS,
     "bias is not aligned to its element size"},
    {false,
     true,
     {.A = room, .B = room, .C = room, .bias = room},
     TGL_BAD_RESIDUAL,
     "residual is NULL"},
    {false,
     true,
     {.A = room, .B = room, .C = room, .bias = room, .residual = (char *)room + 2},
     TGL_BAD_RESIDUAL,
     "residual is not aligned to its element size"},
    {false,
     false,
     {.A = room, .B_array = some, .C = room},
     TGL_BAD_BATCHING,
     "an array of pointers is given, and batching is TGL_STRIDED"},
    {true,
     false,
     {.A = room, .B_array = some, .C_array = rooms},
     TGL_BAD_BATCHING,
     "a matrix is given, and batching is TGL_POINTERS: give arrays of pointers"},
    {true, false, {.B_array = some, .C_array = rooms}, TGL_BAD_A, "A_array is NULL"},
    {true, false, {.A_array = some, .C_array = rooms}, TGL_BAD_B, "B_array is NULL"},
    {true, false, {.A_array = some, .B_array = some}, TGL_BAD_C, "C_array is NULL"},
    {true,
     false,
     {.A_array = (const void *const *)((const char *)some + 4), .B_array = some, .C_array = rooms},
     TGL_BAD_A,
     "A_array is not aligned to its element size"},
    {true, false, {.A_array = holes, .B_array = some, .C_array = rooms}, TGL_BAD_A, "A[1] is NULL"},
    {true,
     false,
     {.A_array = some, .B_array = odd, .C_array = rooms},
     TGL_BAD_B,
     "B[1] is not aligned to its element size"},
    {true, false, {.A_array = some, .B_array = some, .C_array = rooms}, TGL_BAD_C, "C[1] is NULL"},
};

static void bad_operands_are_refused(void **state)
{
    for (size_t i = 0; i < COUNT_OF(bad_operands); i++)
        for (int order = TGL_ROW_MAJOR; order <= TGL_COL_MAJOR; order++) {
            const tgl_epilogue e = {.size = sizeof e, .bias = TGL_BIAS_ROW, .residual = 1};
            const tgl_plan_options options = {.size = sizeof options,
                                              .epilogue = bad_operands[i].has_epilogue ? &e : NULL};
            tgl_problem problem = problem_of(TGL_F32, 1, 2, 3);
            problem.order = (tgl_order)order;
            problem.batch = 2;
            problem.stride_c = 2;
            problem.batching = bad_operands[i].pointers ? TGL_POINTERS : TGL_STRIDED;
            tgl_operands operands = bad_operands[i].operands;
            if (operands.size == 0) operands.size = sizeof operands;
            operands.alpha = 1;
            tgl_plan *plan;
            assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
            const tgl_status status = tgl_plan_run_operands(plan, &operands, NULL);
            assert_sentence(bad_operands[i].sentence);
            assert_status(status, bad_operands[i].status);
            tgl_plan_destroy(plan);
        }
    assert_status(tgl_plan_run_operands(NULL, NULL, NULL), TGL_BAD_ARGUMENT);
}

static void operands_may_not_be_null(void **state)
{
    const tgl_problem problem = problem_of(TGL_F32, 1, 1, 1);
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_OK);
    assert_status(tgl_plan_run_operands(plan, NULL, NULL), TGL_BAD_ARGUMENT);
    assert_sentence("operands is NULL");
    tgl_plan_destroy(plan);
}

static void the_call_must_suit_the_batching(void **state)
{
    tgl_problem problem = problem_of(TGL_F32, 1, 1, 1);
    assert_status(tgl_gemm_batched(*state, &problem, 1, some, some, 0, rooms, NULL),
                  TGL_BAD_BATCHING);
    assert_sentence("batching is TGL_STRIDED; use tgl_gemm()");
    problem.batching = TGL_POINTERS;
    assert_status(tgl_gemm(*state, &problem, 1, room, room, 0, room, NULL), TGL_BAD_BATCHING);
    assert_sentence("batching is TGL_POINTERS; use tgl_gemm_batched()");
    assert_status(tgl_gemm_batched(NULL, &problem, 1, some, some, 0, rooms, NULL),
                  TGL_BAD_ARGUMENT);
}

/* The host checks the alignment that the problem guarantees for the pointers. */
static void a_broken_promise_is_told(void **state)
{
    float *memory = aligned_alloc(16, 64), c = 0;
    assert_non_null(memory);
    memset(memory, 0, 64);
    const void *const A[] = {memory}, *const B[] = {memory + 1};
    void *const C[] = {&c};
    tgl_problem problem = problem_of(TGL_F32, 1, 1, 1);
    problem.batching = TGL_POINTERS;
    problem.alignment = 16;
    assert_status(tgl_gemm_batched(*state, &problem, 1, A, A, 0, C, NULL), TGL_OK);
    assert_status(tgl_gemm_batched(*state, &problem, 1, A, B, 0, C, NULL), TGL_BAD_B);
    assert_sentence("B[0] is not aligned to the 16 bytes of problem.alignment");
    free(memory);
}

static void plans_say_what_they_do(void **state)
{
    const tgl_epilogue e = {
        .size = sizeof e, .bias = TGL_BIAS_ROW, .activation = TGL_ACTIVATION_GELU, .residual = 1};
    const tgl_plan_options options = {.size = sizeof options, .epilogue = &e};
    tgl_problem problem = problem_of(TGL_F32, 5, 6, 7);
    problem.order = TGL_COL_MAJOR;
    problem.batch = 3;
    problem.batching = TGL_POINTERS;
    char text[4096];
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
    tgl_plan_explain(plan, text, sizeof text);
    assert_non_null(strstr(text, "batch of 3 by pointers"));
    assert_non_null(strstr(text, "C := gelu(alpha*A*B + beta*C + bias[row]) + residual\n"));
    tgl_plan_destroy(plan);
    size_t length;
    assert_status(tgl_chip_explain("h200", &problem, &options, text, sizeof text, &length), TGL_OK);
    assert_non_null(strstr(text, "batch of 3 by pointers"));
    assert_non_null(strstr(text, "C := gelu(alpha*A*B + beta*C + bias[row]) + residual\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_products),
        cmocka_unit_test(products_of_every_path),
        cmocka_unit_test(activations_of_numbers_that_are_none),
        cmocka_unit_test(one_shot_batches),
        cmocka_unit_test(bad_epilogues_are_refused),
        cmocka_unit_test(other_types_are_unsupported),
        cmocka_unit_test(bad_operands_are_refused),
        cmocka_unit_test(operands_may_not_be_null),
        cmocka_unit_test(the_call_must_suit_the_batching),
        cmocka_unit_test(a_broken_promise_is_told),
        cmocka_unit_test(plans_say_what_they_do),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
