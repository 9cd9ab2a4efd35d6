/* SPDX-License-Identifier: Apache-2.0
 *
 * Sample products, and the kernels that their plans launch.
 */
#include "cuda/archive_kernels.h"
#include "plan/planner.h"
#include "problem/shape.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* ---- Products -------------------------------------------------------------------------------- */

/* A random number in [0, 1), by Knuth's MMIX generator. */
static double next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 33) / 2147483648.0;
}

/* A random size between 2^low and 2^high, rounded down to a multiple of `step`, but at least
 * `step`. Its logarithm is uniformly distributed. */
static int64_t size_between(uint64_t *state, double low, double high, int64_t step)
{
    const int64_t size = (int64_t)exp2(low + (high - low) * next(state));
    return size < step ? step : size / step * step;
}

/* Classes of sample products, like those of the suites in bench/suites. Columns: the share of the
 * class in %; low and high of size_between() for m, n, k and the batch; the number of which m, n
 * and k are multiples (not m or n with a `high` of 6 or less). */
static const struct {
    int share;
    double m[2], n[2], k[2], batch[2];
    int64_t step;
} classes[] = {
    {22, {4, 13}, {7, 14}, {7, 14}, {0, 0}, 64}, /* layers of networks */
    {20, {5, 13}, {5, 13}, {5, 13}, {0, 0}, 8},  /* multiples of 8: rows of 16-bit types are
                                                    multiples of 16 bytes */
    {16, {4, 12}, {4, 12}, {4, 12}, {0, 0}, 1},  /* any size */
    {12, {0, 6}, {8, 15}, {8, 14}, {0, 0}, 8},   /* few rows */
    {4, {0, 6}, {8, 15}, {8, 14}, {0, 0}, 1},    /* few rows, any size */
    {4, {8, 15}, {0, 6}, {8, 14}, {0, 0}, 8},    /* few columns */
    {6, {4, 8}, {4, 8}, {12, 16}, {0, 0}, 1},    /* small D, large K */
    {8, {3, 9}, {3, 9}, {3, 9}, {2, 12}, 8},     /* batches */
    {8, {3, 8}, {3, 8}, {3, 8}, {4, 12}, 1},     /* batches, any size */
};

/* Kinds of products. Columns: the type of A and B, the type of C, the type of D (0: the same as C),
 * the compute mode, the scaling of A, of B and of D, the grouping, and the number of sample
 * products in % of the number for BF16. The last column is small for rare kinds, so that an archive
 * of 1400 kernels has room for the common ones: with 20 in place of 5 and 10, the archive contained
 * the kernels for only 74 % of the launches of F16 plans, instead of 76 %. */
typedef struct product_kind {
    tgl_type type, type_c, type_d;
    tgl_compute compute;
    tgl_scaling scaling_a, scaling_b, scaling_d;
    tgl_grouping grouping;
    int share;
} product_kind;

#define DEFAULT TGL_COMPUTE_DEFAULT
#define IEEE    TGL_COMPUTE_IEEE
#define NO      TGL_SCALING_NONE
#define ONE     TGL_SCALING_TENSOR
#define LINE    TGL_SCALING_LINE
#define BLOCK   TGL_SCALING_BLOCK
#define WHOLE   TGL_GROUPED_NONE

// clang-format off
static const product_kind kinds[] = {
    {TGL_BF16,    TGL_BF16, 0,        DEFAULT,              NO,    NO,    NO, WHOLE,              100},
    {TGL_F16,     TGL_F16,  0,        DEFAULT,              NO,    NO,    NO, WHOLE,              100},
    {TGL_F32,     TGL_F32,  0,        IEEE,                 NO,    NO,    NO, WHOLE,              100},
    {TGL_F32,     TGL_F32,  0,        TGL_COMPUTE_TF32,     NO,    NO,    NO, WHOLE,              100},
    {TGL_F32,     TGL_F32,  0,        TGL_COMPUTE_ACCURATE, NO,    NO,    NO, WHOLE,              100},
    {TGL_F64,     TGL_F64,  0,        DEFAULT,              NO,    NO,    NO, WHOLE,              100},
    /* int8 with int32 results; int8 with bf16 results and a scale factor for each row of A and each
     * column of B, as in layers of networks. */
    {TGL_I8,      TGL_I32,  0,        DEFAULT,              NO,    NO,    NO, WHOLE,               10},
    {TGL_I8,      TGL_BF16, 0,        DEFAULT,              LINE,  LINE,  NO, WHOLE,               10},
    /* FP8. One row for each kind of scaling: one scale factor for the whole matrix; one for each
     * row of A and each column of B; one for each block of 128 x 128 elements. */
    {TGL_F8_E4M3, TGL_BF16, 0,        DEFAULT,              ONE,   ONE,   NO, WHOLE,               10},
    {TGL_F8_E4M3, TGL_BF16, 0,        DEFAULT,              LINE,  LINE,  NO, WHOLE,               10},
    {TGL_F8_E4M3, TGL_BF16, 0,        DEFAULT,              BLOCK, BLOCK, NO, WHOLE,               10},
    {TGL_C64,     TGL_C64,  0,        IEEE,                 NO,    NO,    NO, WHOLE,                5},
    {TGL_C64,     TGL_C64,  0,        TGL_COMPUTE_ACCURATE, NO,    NO,    NO, WHOLE,                5},
    {TGL_C128,    TGL_C128, 0,        DEFAULT,              NO,    NO,    NO, WHOLE,                5},
    /* Mixtures of experts: two kinds with groups of rows, and one with groups of K, for the
     * gradients of the experts' weights. */
    {TGL_BF16,    TGL_BF16, 0,        DEFAULT,              NO,    NO,    NO, TGL_GROUPED_ROWS,    10},
    {TGL_BF16,    TGL_BF16, 0,        DEFAULT,              NO,    NO,    NO, TGL_GROUPED_MASKED,   5},
    {TGL_BF16,    TGL_BF16, TGL_F32,  DEFAULT,              NO,    NO,    NO, TGL_GROUPED_DEPTH,    5},
};
// clang-format on

/* Divides a product into at most 64 groups: about m/4 groups if the rows are grouped, about k/4 if
 * K is grouped. */
static void make_groups(tgl_problem *p, const product_kind *kind)
{
    enum { GROUPS_MAX = 64 };
    const bool is_depth = kind->grouping == TGL_GROUPED_DEPTH;
    const int64_t all = is_depth ? p->k : p->m, few = all / 4 + 1;
    p->grouping = kind->grouping;
    p->group_form = kind->grouping == TGL_GROUPED_MASKED ? TGL_GROUP_SIZES : TGL_GROUP_ENDS;
    p->batch = few < GROUPS_MAX ? few : GROUPS_MAX;
    p->trans_a = is_depth ? TGL_TRANS : TGL_NO_TRANS;
    if (is_depth) p->trans_b = TGL_NO_TRANS;
    p->stride_a = kind->grouping == TGL_GROUPED_MASKED ? p->m * p->k : 0;
    p->stride_b = is_depth ? 0 : p->k * p->n;
    p->stride_c = kind->grouping == TGL_GROUPED_ROWS ? 0 : p->m * p->n;
}

static tgl_problem problem_of(uint64_t *state, const product_kind *kind)
{
    int number = (int)(100 * next(state)), i = 0;
    while ((number -= classes[i].share) >= 0)
        i++;
    const int64_t step = classes[i].step;
    tgl_problem p = {.size = sizeof p,
                     .order = TGL_ROW_MAJOR,
                     .type_a = kind->type,
                     .type_b = kind->type,
                     .type_c = kind->type_c,
                     .type_d = kind->type_d,
                     .compute = kind->compute,
                     .scaling_a = kind->scaling_a,
                     .scaling_b = kind->scaling_b,
                     .scaling_d = kind->scaling_d};
    p.m = size_between(state, classes[i].m[0], classes[i].m[1], classes[i].m[1] > 6 ? step : 1);
    p.n = size_between(state, classes[i].n[0], classes[i].n[1], classes[i].n[1] > 6 ? step : 1);
    p.k = size_between(state, classes[i].k[0], classes[i].k[1], step);
    p.batch = size_between(state, classes[i].batch[0], classes[i].batch[1], 1);
    p.trans_a = next(state) < 0.35 ? TGL_TRANS : TGL_NO_TRANS;
    p.trans_b = next(state) < 0.45 ? TGL_TRANS : TGL_NO_TRANS;
    p.stride_a = p.m * p.k;
    p.stride_b = p.k * p.n;
    p.stride_c = p.m * p.n;
    if (kind->grouping != TGL_GROUPED_NONE) make_groups(&p, kind);
    if (kind->type_d != 0) p.stride_d = p.stride_c;
    return p;
}

/* ---- Kernels --------------------------------------------------------------------------------- */

static int compare_texts(const char *x, const char *y)
{
    return strcmp(x != NULL ? x : "", y != NULL ? y : "");
}

/* For tsearch(): an order of kernels, in which kernels with the same code are equal. */
static int compare_kernels(const void *x, const void *y)
{
    const tgl_kernel *a = ((const tgl_sampled *)x)->kernel, *b = ((const tgl_sampled *)y)->kernel;
    int order = compare_texts(a->macros, b->macros);
    if (order == 0) order = compare_texts(a->symbol, b->symbol);
    return order != 0 ? order : compare_texts(a->file, b->file);
}

static int compare_use(const void *x, const void *y)
{
    const tgl_sampled *a = x, *b = y;
    if (a->products != b->products) return a->products < b->products ? 1 : -1;
    return compare_kernels(x, y);
}

/* Counts one launch of this kernel. Returns false if there is no memory. */
static bool count_kernel(tgl_samples *samples, void **tree, const tgl_kernel *kernel)
{
    enum { ROOM = 1 << 14 };
    if (samples->kernels == NULL) samples->kernels = calloc(ROOM, sizeof *samples->kernels);
    if (samples->kernels == NULL) return false;
    /* This does not happen: there are only some thousands of kernels. */
    if (samples->count == ROOM) return true;
    tgl_sampled *last = &samples->kernels[samples->count];
    last->kernel = (tgl_kernel *)kernel;
    tgl_sampled **found = tsearch(last, tree, compare_kernels);
    if (found == NULL) return false;
    if (*found == last) {
        last->kernel = tgl_kernel_copy(kernel);
        if (last->kernel == NULL) return false;
        samples->count++;
    }
    (*found)->products++;
    return true;
}

/* Counts the kernels of this list that a run with aligned operands launches. */
static bool count_list(tgl_samples *samples, void **tree, const tgl_launch_list *list)
{
    for (int i = 0; i < list->step_count; i++) {
        const tgl_launch *launch = tgl_step_choose_aligned(&list->steps[i]);
        if (launch != NULL && !count_kernel(samples, tree, launch->kernel)) return false;
    }
    return true;
}

/* Plans one product, and counts the kernels of its plan. Skips a product that the chip cannot
 * compute. */
static tgl_status add_product(tgl_samples *samples, void **tree, const tgl_chip *chip,
                              const tgl_problem *problem)
{
    tgl_shape shape;
    tgl_request any;
    tgl_candidate choice;
    tgl_launch_list list;
    TGL_TRY(tgl_shape_make(problem, true, &shape));
    TGL_TRY(tgl_request_make(NULL, 0, &any));
    if (tgl_planner_estimate(chip, &shape, &any, &choice) != TGL_OK) return TGL_OK;
    TGL_TRY(tgl_planner_list(chip, &shape, &choice, &list));
    const bool done = count_list(samples, tree, &list);
    tgl_list_free(&list);
    samples->products++;
    return done ? TGL_OK : tgl_fail(TGL_NO_MEMORY, "no memory for the list of kernels");
}

/* ---- Samples --------------------------------------------------------------------------------- */

static void keep(void *node)
{
    (void)node; /* the nodes point into samples->kernels, which the caller frees */
}

tgl_status tgl_samples_add(tgl_samples *samples, const tgl_chip *chip, tgl_type type, int products,
                           unsigned seed)
{
    void *tree = NULL;
    tgl_status status = TGL_OK;
    for (int i = 0; i < samples->count && status == TGL_OK; i++)
        if (tsearch(&samples->kernels[i], &tree, compare_kernels) == NULL)
            status = tgl_fail(TGL_NO_MEMORY, "no memory for the list of kernels");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        uint64_t state = seed + 1;
        if (type != 0 && type != kinds[i].type) continue;
        for (int j = 0; j < products * kinds[i].share / 100 && status == TGL_OK; j++) {
            const tgl_problem p = problem_of(&state, &kinds[i]);
            status = add_product(samples, &tree, chip, &p);
        }
    }
    tdestroy(tree, keep);
    return status;
}

void tgl_samples_types(tgl_text *out)
{
    tgl_type last = 0; /* kinds of one type without groups are adjacent in the table */
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const tgl_type type = kinds[i].type;
        const bool is_whole = kinds[i].grouping == TGL_GROUPED_NONE;
        if (type == last || !is_whole) continue;
        tgl_text_add(out, "%s%s", last != 0 ? ", " : "", tgl_type_name(type));
        last = type;
    }
}

void tgl_samples_sort(tgl_samples *samples)
{
    if (samples->count > 0)
        qsort(samples->kernels, (size_t)samples->count, sizeof *samples->kernels, compare_use);
}

void tgl_samples_free(tgl_samples *samples)
{
    for (int i = 0; i < samples->count; i++)
        free(samples->kernels[i].kernel);
    free(samples->kernels);
    *samples = (tgl_samples){.count = 0};
}
