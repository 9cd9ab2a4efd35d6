/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the planner: products without padding, of FP32 except those of the tuned table, and
 * their candidates and launch lists. A candidate is a kernel with its options and predicted time.
 */
#ifndef PLAN_SHAPE_H
#define PLAN_SHAPE_H

#include "../kernels/lib/gemm_args.h"
#include "plan/measured_choice.h"
#include "plan/tuned.h"
#include "support.h"

#include <string.h>

static inline tgl_shape shape_of(int64_t m, int64_t n, int64_t k)
{
    return (tgl_shape){.m = m,
                       .n = n,
                       .k = k,
                       .in_place = true,
                       .type_a = TGL_F32,
                       .type_b = TGL_F32,
                       .type_c = TGL_F32,
                       .type_d = TGL_F32,
                       .type_accumulate = TGL_F32,
                       .lda = k,
                       .ldb = n,
                       .ldc = n,
                       .ldd = n,
                       .batch = 1,
                       .epilogue = {.type_bias = TGL_F32, .type_residual = TGL_F32},
                       .type_scale = TGL_F32};
}

/* Like shape_of(), with A or B transposed. */
static inline tgl_shape transposed_shape_of(int64_t m, int64_t n, int64_t k, bool trans_a,
                                            bool trans_b)
{
    tgl_shape s = shape_of(m, n, k);
    s.trans_a = trans_a;
    s.trans_b = trans_b;
    s.lda = trans_a ? m : k;
    s.ldb = trans_b ? k : n;
    return s;
}

/* Changes a product to a batch, whose matrices follow each other without gaps. */
static inline void make_batch(tgl_shape *s, int64_t count)
{
    s->batch = count;
    s->stride_a = s->m * s->k;
    s->stride_b = s->k * s->n;
    s->stride_c = s->stride_d = s->m * s->n;
}

/* The product of a row of the tuned table. */
static inline tgl_shape shape_of_row(const tgl_tuned *row)
{
    tgl_shape s =
        transposed_shape_of(row->m, row->n, row->k, row->layout[0] == 'T', row->layout[1] == 'T');
    if (row->batch > 1) make_batch(&s, row->batch);
    if (strcmp(row->type, "tf32") == 0)
        s.compute = TGL_COMPUTE_TF32;
    else if (strcmp(row->type, "bf16") == 0)
        s.type_a = s.type_b = s.type_c = s.type_d = TGL_BF16;
    else if (strcmp(row->type, "e4m3") == 0) {
        s.type_a = s.type_b = TGL_F8_E4M3;
        s.type_c = s.type_d = TGL_BF16;
    } else if (strcmp(row->type, "i8") == 0) {
        s.type_a = s.type_b = TGL_I8;
        s.type_c = s.type_d = s.type_accumulate = TGL_I32;
    } else if (strcmp(row->type, "f64") == 0)
        s.type_a = s.type_b = s.type_c = s.type_d = s.type_accumulate = TGL_F64;
    else
        assert_string_equal(row->type, "f32");
    return s;
}

static inline const tgl_chip *chip_of(const char *name)
{
    const tgl_chip *chip = tgl_chip_find(name);
    assert_non_null(chip);
    return chip;
}

static inline tgl_request request_of(const char *kernel)
{
    tgl_request request;
    assert_status(tgl_request_make(kernel, 0, &request), TGL_OK);
    return request;
}

/* The candidate of a kernel string on this chip, or the planner's choice (NULL). */
static inline tgl_candidate choose_on(const tgl_chip *chip, const tgl_shape *shape,
                                      const char *kernel)
{
    tgl_candidate choice;
    const tgl_request request = request_of(kernel);
    assert_status(tgl_planner_choose(chip, shape, &request, &choice), TGL_OK);
    assert_null(choice.rejected);
    assert_non_null(choice.choice.family);
    return choice;
}

/* The planner's choice. */
static inline tgl_candidate choose(const char *chip, const tgl_shape *shape)
{
    const tgl_candidate choice = choose_on(chip_of(chip), shape, NULL);
    assert_true(choice.seconds > 0);
    return choice;
}

static inline tgl_candidate choose_size(const char *chip, int64_t m, int64_t n, int64_t k)
{
    const tgl_shape shape = shape_of(m, n, k);
    return choose(chip, &shape);
}

/* The best candidate of the configuration and options of a kernel string, rejected or not. */
static inline tgl_candidate best_of(const tgl_chip *chip, const tgl_shape *shape,
                                    const char *kernel)
{
    const tgl_request request = request_of(kernel);
    tgl_candidate best;
    assert_true(request.is_named);
    tgl_planner_best_of(chip, shape, &request.choice, request.strips, request.workspace_max, &best);
    return best;
}

/* The launch list of a candidate; the caller frees it. */
static inline tgl_launch_list list_of(const tgl_chip *chip, const tgl_shape *shape,
                                      const tgl_candidate *candidate)
{
    tgl_launch_list list;
    assert_status(tgl_planner_list(chip, shape, candidate, &list), TGL_OK);
    assert_true(list.step_count > 0);
    return list;
}

/* The launch list of a kernel string. */
static inline tgl_launch_list list_of_kernel(const tgl_chip *chip, const tgl_shape *shape,
                                             const char *kernel)
{
    const tgl_candidate candidate = choose_on(chip, shape, kernel);
    return list_of(chip, shape, &candidate);
}

/* The value of a macro in "BM=128 BN=128"; fails the test if it is not there. */
static inline long macro_of(const tgl_kernel *kernel, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = kernel->macros; (at = strstr(at, name)) != NULL; at += length)
        if ((at == kernel->macros || at[-1] == ' ') && at[length] == '=')
            return strtol(at + length + 1, NULL, 10);
    fail_msg("%s is not in \"%s\"", name, kernel->macros);
    return -1;
}

static inline bool has_macro(const tgl_kernel *kernel, const char *name)
{
    char text[64];
    const int length = snprintf(text, sizeof text, "%s=", name);
    const char *at = strstr(kernel->macros, text);
    assert_in_range(length, 2, 60);
    return at != NULL && (at == kernel->macros || at[-1] == ' ');
}

/* A pointer to this address, which no test accesses. */
static inline void *address(uintptr_t at)
{
    return (void *)at; /* NOLINT(performance-no-int-to-ptr) */
}

/* A run whose matrices all have addresses that are a multiple of 4096 plus `misaligned_by` bytes.
 */
static inline tgl_run run_of(bool has_product, int misaligned_by)
{
    tgl_run run = {.alpha = has_product ? 1 : 0, .beta = 1, .has_product = has_product};
    for (int i = 0; i < TGL_OPERANDS; i++)
        run.at[i] = address((uintptr_t)4096 * (uintptr_t)(i + 1) + (uintptr_t)misaligned_by);
    return run;
}

/* The launch of a step for a run with a product and aligned matrices. */
static inline const tgl_launch *launch_of(const tgl_launch_list *list, int step)
{
    const tgl_run run = run_of(true, 0);
    assert_in_range(step, 0, list->step_count - 1);
    const tgl_launch *launch = tgl_step_choose(&list->steps[step], &run);
    assert_non_null(launch);
    return launch;
}

/* The arguments of a launch of a production kernel. Those that a run fills in are not set. */
static inline struct tgl_gemm_args args_of(const tgl_launch *launch)
{
    struct tgl_gemm_args args;
    assert_int_equal(launch->argument_bytes, sizeof args);
    memcpy(&args, launch->arguments, sizeof args);
    return args;
}

/* The candidate, list and first launch of a kernel string for a shape. */
typedef struct made {
    tgl_candidate candidate;
    tgl_launch_list list; /* the caller frees it */
    const tgl_launch *launch;
    const tgl_kernel *kernel;
    struct tgl_gemm_args args;
} made;

static inline made make_of(const tgl_chip *chip, const tgl_shape *shape,
                           const tgl_candidate *candidate)
{
    made m = {.candidate = *candidate, .list = list_of(chip, shape, candidate)};
    m.launch = launch_of(&m.list, 0);
    m.kernel = m.launch->kernel;
    m.args = args_of(m.launch);
    return m;
}

static inline made make(const tgl_chip *chip, const tgl_shape *shape, const char *kernel)
{
    const tgl_candidate candidate = choose_on(chip, shape, kernel);
    return make_of(chip, shape, &candidate);
}

/* Like make() for a kernel string that is formatted as by printf(). */
static inline made make_with(const tgl_chip *chip, const tgl_shape *shape, const char *format, ...)
{
    char kernel[TGL_KERNEL_STRING_SIZE];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(kernel, sizeof kernel, format, args);
    va_end(args);
    assert_in_range(length, 1, sizeof kernel - 1);
    return make(chip, shape, kernel);
}

/* The chip without thread block clusters. */
static inline tgl_chip without_clusters(const char *name)
{
    tgl_chip chip = *chip_of(name);
    chip.features &= ~(unsigned)TGL_HAS_CLUSTERS;
    chip.cluster_max = 1;
    return chip;
}

static inline bool is_of_family(const tgl_choice *choice, const char *family)
{
    return strcmp(choice->family->name, family) == 0;
}

/* The maximum number of rows or columns of a product that the chosen configuration supports; 0: any
 * number. */
static inline int lines_of(const tgl_choice *choice)
{
    return tgl_choice_lines(choice);
}

static inline int64_t ceil_div(int64_t x, int64_t y)
{
    return x / y + (x % y != 0);
}

/* The number of bytes that a launch list reserves for a region of this size. */
static inline int64_t as_reserved(int64_t bytes)
{
    return ceil_div(bytes, TGL_WORKSPACE_ALIGNMENT) * TGL_WORKSPACE_ALIGNMENT;
}

#endif
