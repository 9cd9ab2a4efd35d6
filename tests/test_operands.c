/* SPDX-License-Identifier: Apache-2.0
 *
 * Operands of a run besides A, B and C: a separate D, scalars in device memory, a workspace
 * (src/problem/operands.c, src/api/plan_handle.c). Every wrong argument, and the products.
 */
#include "support.h"

static const tgl_type types[] = {TGL_F32, TGL_F64};
static _Alignas(256) double room[64];
static void *const rooms[] = {room, room + 32};
static const void *const const_rooms[] = {room, room};

/* ---- Wrong arguments ------------------------------------------------------------------------- */

/* The problems for which operands are tested. */
enum { IN_PLACE = 0, SEPARATE = 1, DEVICE = 2, POINTERS = 4 };

#define MATRICES .A = room, .B = room, .C = room
#define ARRAYS   .A_array = const_rooms, .B_array = const_rooms, .C_array = rooms

static const struct {
    int problem;
    tgl_operands operands;
    tgl_status status;
    const char *sentence; /* NULL: success */
} cases[] = {
    {IN_PLACE, {.alpha = 1, MATRICES}, TGL_OK, NULL},
    {IN_PLACE,
     {.alpha = 1, MATRICES, .D = room},
     TGL_BAD_D,
     "D is given, and D is C (type_d is 0)"},
    {POINTERS,
     {.alpha = 1, ARRAYS, .D_array = rooms},
     TGL_BAD_D,
     "D_array is given, and D is C (type_d is 0)"},
    {POINTERS,
     {.alpha = 1, ARRAYS, .D = room},
     TGL_BAD_BATCHING,
     "a matrix is given, and batching is TGL_POINTERS: give arrays of pointers"},
    {IN_PLACE,
     {.alpha = 1, MATRICES, .D_array = rooms},
     TGL_BAD_BATCHING,
     "an array of pointers is given, and batching is TGL_STRIDED"},

    {SEPARATE, {.alpha = 1, MATRICES, .D = room + 32}, TGL_OK, NULL},
    {SEPARATE, {.alpha = 1, .beta = 1, MATRICES}, TGL_BAD_D, "D is NULL"},
    {SEPARATE, {.alpha = 0, .beta = 0}, TGL_BAD_D, "D is NULL"},
    {SEPARATE,
     {.alpha = 1, MATRICES, .D = (char *)room + 2},
     TGL_BAD_D,
     "D is not aligned to its element size"},
    {SEPARATE, {.alpha = 1, .A = room, .B = room, .D = room + 32}, TGL_OK, NULL}, /* beta is 0 */
    {SEPARATE,
     {.alpha = 1, .beta = 1, .A = room, .B = room, .D = room + 32},
     TGL_BAD_C,
     "C is NULL"},
    {SEPARATE,
     {.beta = 1, .C = (char *)room + 1, .D = room + 32},
     TGL_BAD_C,
     "C is not aligned to its element size"},
    {SEPARATE | POINTERS, {.alpha = 1, ARRAYS}, TGL_BAD_D, "D_array is NULL"},
    {SEPARATE | POINTERS, {.alpha = 1, ARRAYS, .D_array = rooms}, TGL_OK, NULL},

    {IN_PLACE,
     {.alpha = 1, .alpha_at = room, MATRICES},
     TGL_BAD_SCALAR,
     "alpha_at is given, and scalars is TGL_SCALARS_HOST"},
    {IN_PLACE,
     {.alpha = 1, .beta_at = room, MATRICES},
     TGL_BAD_SCALAR,
     "beta_at is given, and scalars is TGL_SCALARS_HOST"},
    {DEVICE, {MATRICES}, TGL_BAD_SCALAR, "alpha_at is NULL"},
    {DEVICE,
     {.alpha_at = (char *)room + 2, MATRICES},
     TGL_BAD_SCALAR,
     "alpha_at is not aligned to its element size"},
    {DEVICE,
     {.alpha_at = room, .beta_at = (char *)room + 1, MATRICES},
     TGL_BAD_SCALAR,
     "beta_at is not aligned to its element size"},
    {DEVICE, {.alpha_at = room, MATRICES}, TGL_OK, NULL},
    {DEVICE, {.alpha_at = room, .B = room, .C = room}, TGL_BAD_A, "A is NULL"},
    {DEVICE, {.alpha_at = room, .beta_at = room, .A = room, .B = room}, TGL_BAD_C, "C is NULL"},
    {DEVICE | SEPARATE,
     {.alpha_at = room, .beta_at = room, .A = room, .B = room, .D = room + 32},
     TGL_BAD_C,
     "C is NULL"},
    {DEVICE | SEPARATE,
     {.alpha_at = room, .A = room, .B = room, .D = room + 32},
     TGL_OK,
     NULL}, /* without a beta */

    {IN_PLACE,
     {.alpha = 1, MATRICES, .scale_a = room},
     TGL_BAD_SCALE,
     "scale_a is given, and the problem has none"},
    {IN_PLACE,
     {.alpha = 1, MATRICES, .scale_b = room},
     TGL_BAD_SCALE,
     "scale_b is given, and the problem has none"},
    {IN_PLACE,
     {.alpha = 1, MATRICES, .scale_d = room},
     TGL_BAD_SCALE,
     "scale_d is given, and the problem has none"},
};

static tgl_problem problem_for(int kind, int order)
{
    tgl_problem p = problem_of(TGL_F32, 1, 2, 3);
    p.order = (tgl_order)order;
    p.batch = 2;
    p.stride_c = 2;
    if (kind & SEPARATE) {
        p.type_d = TGL_F32;
        p.stride_d = 2;
    }
    if (kind & DEVICE) p.scalars = TGL_SCALARS_DEVICE;
    if (kind & POINTERS) p.batching = TGL_POINTERS;
    return p;
}

static void bad_operands_are_refused(void **state)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int order = TGL_ROW_MAJOR; order <= TGL_COL_MAJOR; order++) {
            const tgl_problem problem = problem_for(cases[i].problem, order);
            tgl_operands operands = cases[i].operands;
            operands.size = sizeof operands;
            tgl_plan *plan;
            assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_OK);
            memset(room, 0, sizeof room);
            forget_error();
            const tgl_status status = tgl_plan_run_operands(plan, &operands, NULL);
            assert_sentence(cases[i].sentence != NULL ? cases[i].sentence : "problem is NULL");
            assert_status(status, cases[i].status);
            tgl_plan_destroy(plan);
        }
}

/* Plans for which tgl_plan_run() is not enough. */
static void plans_that_need_operands(void **state)
{
    for (int kind = SEPARATE; kind <= DEVICE; kind++) {
        const tgl_problem problem = problem_for(kind, TGL_ROW_MAJOR);
        tgl_plan *plan;
        assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_OK);
        assert_status(tgl_plan_run(plan, 1, room, room, 0, room, NULL),
                      kind == SEPARATE ? TGL_BAD_D : TGL_BAD_SCALAR);
        tgl_plan_destroy(plan);
    }
}

/* Products of i8 with results of i32 have no scales. */
static void scaled_products_are_unsupported(void **state)
{
    for (int i = 0; i < 3; i++) {
        tgl_problem problem = problem_of(TGL_I8, 2, 2, 2);
        tgl_scaling *const scalings[] = {&problem.scaling_a, &problem.scaling_b,
                                         &problem.scaling_d};
        *scalings[i] = TGL_SCALING_TENSOR;
        tgl_plan *plan;
        forget_error();
        assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_UNSUPPORTED);
        assert_new_sentence();
        assert_null(plan);
    }
}

/* ---- Products -------------------------------------------------------------------------------- */

/* Everything at random: a separate D, device scalars, epilogues, pointers, all compute modes. */
static void random_products(void **state)
{
    static const double scalars[] = {1, 1, 0, -0.5, 2, (double)NAN};
    tgl_device *dev = *state;
    const char *kernel;
    for (int choice = 0; kernel_choice(dev, choice, &kernel); choice++) {
        uint64_t seed = 17;
        for (int i = 0; i < 800; i++) {
            gemm_case c = {.problem = random_problem(&seed, types[i % 2], i % 50 == 0 ? 150 : 30),
                           .alpha = scalars[random_int(&seed, 0, 5)],
                           .beta = scalars[random_int(&seed, 0, 5)],
                           .pointers = i % 3 == 0,
                           .kernel = kernel,
                           .fill = i % 5 == 0 ? NON_FINITE : UNIFORM_11,
                           .at_end = random_int(&seed, 0, 1) == 1,
                           .seed = random_bits(&seed)};
            c.problem.compute = (tgl_compute)random_int(&seed, 0, TGL_COMPUTE_FAST);
            vary_case(&seed, &c);
            if (i % 4 == 0)
                c.epilogue = (tgl_epilogue){
                    .size = sizeof c.epilogue,
                    .bias = (tgl_bias)random_int(&seed, 0, TGL_BIAS_COLUMN),
                    .activation = (tgl_activation)random_int(&seed, 0, TGL_ACTIVATION_SILU),
                    .residual = (int)random_int(&seed, 0, 1)};
            assert_true(check_case(dev, &c));
        }
    }
}

/* Products whose K threads divide, which add their sums before D is written, with one row, and with
 * one column. C is read once. */
static void products_of_every_path(void **state)
{
    static const int64_t shapes[][3] = {{20, 30, 9000},  {1, 300, 700}, {300, 1, 700}, {1, 1, 9},
                                        {150, 170, 300}, {9, 9, 0},     {200, 130, 40}};
    uint64_t seed = 18;
    for (size_t i = 0; i < 8 * COUNT_OF(shapes); i++) {
        const int64_t *size = shapes[i / 8];
        gemm_case c = {.problem = problem_of(types[i % 2], size[0], size[1], size[2]),
                       .alpha = 0.5,
                       .beta = i % 8 < 4 ? -1 : 0,
                       .gives_workspace = true,
                       .fill = UNIFORM_11,
                       .at_end = i % 3 == 0,
                       .seed = i};
        c.problem.order = i & 2 ? TGL_COL_MAJOR : TGL_ROW_MAJOR;
        c.problem.trans_b = i & 4 ? TGL_TRANS : TGL_NO_TRANS;
        c.problem.scalars = i & 1 ? TGL_SCALARS_DEVICE : TGL_SCALARS_HOST;
        separate_d(&seed, &c.problem);
        assert_true(check_case(*state, &c));
    }
}

/* ---- Scalars of the device ------------------------------------------------------------------- */

static void set(void *to, tgl_type type, double value)
{
    if (type == TGL_F32)
        *(float *)to = (float)value;
    else
        *(double *)to = value;
}

static double get(const void *from, tgl_type type)
{
    return type == TGL_F32 ? (double)*(const float *)from : *(const double *)from;
}

/* Device scalars are read when the product runs: the plan must work for all values. An alpha of 0
 * reads neither A nor B, and a beta of 0 does not read C, although the host does not know the
 * values. */
static void scalars_are_looked_at_by_the_run(void **state)
{
    static const double alphas[] = {0, 2, -0.0, 1, 0, (double)NAN}, betas[] = {1, 0, 0, -3, 0, 0};
    tgl_device *dev = *state;
    const char *kernel;
    for (int i = 0; kernel_choice(dev, i, &kernel); i++)
        for (size_t t = 0; t < COUNT_OF(types); t++) {
            const tgl_type type = types[t];
            tgl_problem problem = problem_of(type, 1, 1, 1);
            const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
            double alpha, beta, a, b, c;
            tgl_plan *plan;
            problem.scalars = TGL_SCALARS_DEVICE;
            assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
            const tgl_operands operands = {.size = sizeof operands,
                                           .alpha = 77, /* ignored */
                                           .beta = 77,
                                           .alpha_at = &alpha,
                                           .beta_at = &beta,
                                           .A = &a,
                                           .B = &b,
                                           .C = &c};
            for (size_t j = 0; j < COUNT_OF(alphas); j++) {
                const bool has_product = alphas[j] != 0;
                set(&alpha, type, alphas[j]);
                set(&beta, type, betas[j]);
                set(&a, type, has_product ? 5 : (double)NAN);
                set(&b, type, has_product ? 7 : (double)INFINITY);
                set(&c, type, betas[j] != 0 ? 10 : (double)NAN);
                assert_status(tgl_plan_run_operands(plan, &operands, NULL), TGL_OK);
                const double expected =
                    (has_product ? alphas[j] * 35 : 0) + (betas[j] != 0 ? betas[j] * 10 : 0);
                const double found = get(&c, type);
                assert_true(isnan(expected) ? isnan(found) : found == expected);
            }
            tgl_plan_destroy(plan);
        }
}

/* ---- Sizes of structs ------------------------------------------------------------------------ */

/* A tgl_operands of a later version is accepted if the additional bytes are zero. */
static void larger_operands_are_accepted_if_they_ask_for_nothing(void **state)
{
    struct {
        tgl_operands known;
        char unknown[40];
    } later = {.known = {.size = sizeof later, .alpha = 1}};
    const tgl_problem problem = problem_of(TGL_F32, 1, 1, 1);
    float a = 2, b = 3, c = 0;
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_OK);
    later.known.A = &a;
    later.known.B = &b;
    later.known.C = &c;
    assert_status(tgl_plan_run_operands(plan, &later.known, NULL), TGL_OK);
    assert_true(c == 6);
    later.unknown[39] = 1;
    forget_error();
    assert_status(tgl_plan_run_operands(plan, &later.known, NULL), TGL_BAD_ARGUMENT);
    assert_new_sentence();
    tgl_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_operands_are_refused),
        cmocka_unit_test(plans_that_need_operands),
        cmocka_unit_test(scaled_products_are_unsupported),
        cmocka_unit_test(random_products),
        cmocka_unit_test(products_of_every_path),
        cmocka_unit_test(scalars_are_looked_at_by_the_run),
        cmocka_unit_test(larger_operands_are_accepted_if_they_ask_for_nothing),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
