/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of products that the host gives. On a device with a chip, small products that have one
 * class (plan/bundle.h) are computed in bundles. A bundle is one launch for up to TGL_BUNDLE_MAX
 * products. All others run one after the other, as by tgl_plan_run_operands().
 *
 * Which products share a bundle depends only on the list and the chip, so that the same list has
 * the same results.
 */
#include "api/handles.h"
#include "base/integers.h"
#include "plan/bundle.h"
#include "plan/family.h"
#include "problem/struct_size.h"

#include <stdlib.h>

/* A product that may be computed in a bundle. */
typedef struct candidate {
    uint64_t class_of;
    int64_t index; /* index of the product in the list */
    struct tgl_bundle_member member;
} candidate;

typedef struct bundle {
    struct bundle *next;
    tgl_plan *plan;
    struct tgl_bundle_table table;
} bundle;

typedef struct product_list {
    tgl_device *dev;
    int64_t count;
    const tgl_problem *problems;
    const tgl_operands *operands;
    void *stream;
    tgl_plan **plans; /* the plan of each product that runs alone; NULL: the product is in a
                         bundle */
    candidate *candidates;
    int64_t candidate_count;
    bundle *bundles;
} product_list;

/* Element i of a caller's array of structs. The first member of each struct is its size, which may
 * be the size in an older version. */
static const void *element_at(const void *array, int64_t i)
{
    const size_t *first = array;
    return (const char *)array + (size_t)i * *first;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static bool has_prepared(const tgl_operands *o)
{
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): the size of a pointer is meant */
    return o->size >= TGL_SIZE_UP_TO(tgl_operands, prepared_b) &&
           (o->prepared_a != NULL || o->prepared_b != NULL);
}

/* Checks product i and its operands. */
static tgl_status check_product(const product_list *list, int64_t i, tgl_shape *shape, tgl_run *run)
{
    TGL_TRY(tgl_device_shape(list->dev, element_at(list->problems, i), true, shape));
    return tgl_run_make(shape, element_at(list->operands, i), run);
}

/* Checks product i. Makes it a candidate for a bundle, or finds its plan. */
static tgl_status add_product(product_list *list, int64_t i)
{
    tgl_shape shape;
    tgl_run run;
    const tgl_backend *backend = list->dev->backend;
    TGL_TRY(check_product(list, i, &shape, &run));
    if (backend->chip == NULL || has_prepared(element_at(list->operands, i)) ||
        !tgl_bundle_takes(backend->chip(list->dev), &shape, &run))
        return tgl_plan_find(list->dev, &shape, list->stream, &list->plans[i]);
    list->candidates[list->candidate_count++] =
        (candidate){tgl_bundle_class(&shape, &run), i, tgl_bundle_member_of(&shape, &run)};
    return TGL_OK;
}

/* ---- Bundles --------------------------------------------------------------------------------- */

/* Orders candidates by class. In a class the largest k comes first, so that the longest blocks
 * start first and products with similar k share a bundle. */
static int compare_candidates(const void *x, const void *y)
{
    const candidate *a = x, *b = y;
    if (a->class_of != b->class_of) return a->class_of < b->class_of ? -1 : 1;
    if (a->member.k != b->member.k) return a->member.k > b->member.k ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static tgl_status plan_alone(product_list *list, const candidate *products, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        tgl_shape shape;
        const int64_t index = products[i].index;
        TGL_TRY(tgl_device_shape(list->dev, element_at(list->problems, index), true, &shape));
        TGL_TRY(tgl_plan_find(list->dev, &shape, list->stream, &list->plans[index]));
    }
    return TGL_OK;
}

/* Fills in the table and finds the plan of a bundle. */
static tgl_status plan_bundle(const product_list *list, const candidate *products, int64_t count,
                              bundle *own)
{
    tgl_shape shape;
    tgl_run run;
    int bm, bn;
    TGL_TRY(check_product(list, products[0].index, &shape, &run));
    own->table.count = (int)count;
    for (int64_t i = 0; i < count; i++)
        own->table.members[i] = products[i].member;
    const tgl_shape typical = tgl_bundle_shape(&shape, &run, &own->table);
    TGL_TRY(tgl_plan_find_estimate(list->dev, &typical, &own->plan));
    const tgl_choice *choice = &own->plan->choice.choice;
    choice->family->tile(choice->configuration, &bm, &bn);
    tgl_bundle_number_tiles(&own->table, bm, bn);
    return TGL_OK;
}

/* Makes a bundle of these products. Makes a plan for each product if no kernel takes them as a
 * bundle, or if there is no compiler, because the archive of compiled kernels may still have
 * kernels of single products. */
static tgl_status add_bundle(product_list *list, const candidate *products, int64_t count)
{
    bundle *own = malloc(sizeof *own);
    if (own == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for a bundle of products");
    const tgl_status status = plan_bundle(list, products, count, own);
    if (status == TGL_OK) {
        own->next = list->bundles;
        list->bundles = own;
        return TGL_OK;
    }
    free(own);
    return status == TGL_UNSUPPORTED || status == TGL_NO_COMPILER
               ? plan_alone(list, products, count)
               : status;
}

/* Divides `count` products of one class into bundles of about equal size. */
static tgl_status divide_class(product_list *list, const candidate *products, int64_t count)
{
    if (count == 1) return plan_alone(list, products, 1);
    const int64_t bundles = tgl_ceil_div(count, TGL_BUNDLE_MAX);
    for (int64_t i = 0; i < bundles; i++) {
        const int64_t first = count * i / bundles, end = count * (i + 1) / bundles;
        TGL_TRY(add_bundle(list, products + first, end - first));
    }
    return TGL_OK;
}

static tgl_status divide_candidates(product_list *list)
{
    const candidate *all = list->candidates;
    qsort(list->candidates, (size_t)list->candidate_count, sizeof *all, compare_candidates);
    for (int64_t first = 0, end; first < list->candidate_count; first = end) {
        end = first + 1;
        while (end < list->candidate_count && all[end].class_of == all[first].class_of)
            end++;
        TGL_TRY(divide_class(list, all + first, end - first));
    }
    return TGL_OK;
}

/* ---- The call -------------------------------------------------------------------------------- */

static tgl_status plan_list(product_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        TGL_TRY(add_product(list, i));
    return divide_candidates(list);
}

/* Runs the products that are in no bundle first, because their runs may find further errors. */
static tgl_status run_list(const product_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        if (list->plans[i] != NULL)
            TGL_TRY(
                tgl_plan_run_operands(list->plans[i], element_at(list->operands, i), list->stream));
    for (const bundle *b = list->bundles; b != NULL; b = b->next) {
        const tgl_run run = {.alpha = 1, .beta = 1, .has_product = true, .bundle = &b->table};
        TGL_TRY(list->dev->backend->run(b->plan, &run, list->stream));
    }
    return TGL_OK;
}

static void free_list(product_list *list)
{
    for (int64_t i = 0; i < list->count && list->plans != NULL; i++)
        tgl_plan_release(list->plans[i]);
    for (bundle *b = list->bundles, *next; b != NULL; b = next) {
        next = b->next;
        tgl_plan_release(b->plan);
        free(b);
    }
    free(list->plans);
    free(list->candidates);
}

tgl_status tgl_grouped_list(tgl_device *dev, int64_t count, const tgl_problem *problems,
                            const tgl_operands *operands, void *stream)
{
    if (dev == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "the device is NULL");
    if (count < 0) return tgl_fail(TGL_BAD_ARGUMENT, "count is %lld", (long long)count);
    if (count == 0) return TGL_OK;
    if (problems == NULL || operands == NULL)
        return tgl_fail(TGL_BAD_ARGUMENT, "%s is NULL", problems == NULL ? "problems" : "operands");
    product_list list = {.dev = dev,
                         .count = count,
                         .problems = problems,
                         .operands = operands,
                         .stream = stream,
                         .plans = calloc((size_t)count, sizeof(tgl_plan *)),
                         .candidates = calloc((size_t)count, sizeof(candidate))};
    tgl_status status =
        list.plans != NULL && list.candidates != NULL
            ? plan_list(&list)
            : tgl_fail(TGL_NO_MEMORY, "no memory for %lld products", (long long)count);
    if (status == TGL_OK) status = run_list(&list);
    free_list(&list);
    return status;
}
