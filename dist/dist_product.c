/* SPDX-License-Identifier: Apache-2.0
 *
 * The products that a rank computes on its own device. The panels of a distributed product have
 * only a few different sizes, so that a short list of plans serves all of them.
 */
#include "dist_product.h"

#include "dist_error.h"

#include <stdlib.h>

struct planned_product {
    tgl_problem problem;
    bool has_epilogue, has_residual;
    tgl_plan *plan;
};

static bool problems_equal(const tgl_problem *x, const tgl_problem *y)
{
    return x->m == y->m && x->n == y->n && x->k == y->k && x->lda == y->lda && x->ldb == y->ldb &&
           x->ldc == y->ldc && x->ldd == y->ldd && x->type_c == y->type_c && x->type_d == y->type_d;
}

static tgl_status add_plan(dist_products *products, const dist_product *p, tgl_plan **plan)
{
    if (products->count == products->room) {
        const int room = products->room > 0 ? 2 * products->room : 8;
        planned_product *list = realloc(products->list, sizeof *list * (size_t)room);
        if (list == NULL) return dist_fail(TGL_NO_MEMORY, "no memory for a list of %d plans", room);
        products->list = list;
        products->room = room;
    }
    const tgl_epilogue none = {.size = sizeof none};
    tgl_epilogue epilogue = p->has_epilogue ? *products->epilogue : none;
    epilogue.residual = p->residual != NULL;
    epilogue.ld_residual = p->problem.ldc;
    epilogue.type_residual = p->problem.type_c;
    const bool is_needed = p->has_epilogue || p->residual != NULL;
    const tgl_plan_options options = {.size = sizeof options,
                                      .epilogue = is_needed ? &epilogue : NULL};
    const tgl_status status = tgl_plan_create(products->dev, &p->problem, &options, plan);
    if (status != TGL_OK) return dist_fail_local(status);
    products->list[products->count++] =
        (planned_product){p->problem, p->has_epilogue, p->residual != NULL, *plan};
    return TGL_OK;
}

static tgl_status find_plan(dist_products *products, const dist_product *p, tgl_plan **plan)
{
    for (int i = 0; i < products->count; i++) {
        const planned_product *planned = &products->list[i];
        if (planned->has_epilogue == p->has_epilogue &&
            planned->has_residual == (p->residual != NULL) &&
            problems_equal(&planned->problem, &p->problem)) {
            *plan = planned->plan;
            return TGL_OK;
        }
    }
    return add_plan(products, p, plan);
}

tgl_status dist_multiply(dist_products *products, const dist_product *p)
{
    if (p->problem.m == 0 || p->problem.n == 0) return TGL_OK;
    tgl_plan *plan = NULL;
    DIST_TRY(find_plan(products, p, &plan));
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = p->alpha,
                                   .beta = p->beta,
                                   .A = p->A,
                                   .B = p->B,
                                   .C = p->C,
                                   .D = p->D,
                                   .bias = p->bias,
                                   .residual = p->residual};
    const tgl_status status = tgl_plan_run_operands(plan, &operands, products->stream);
    return status == TGL_OK ? TGL_OK : dist_fail_local(status);
}

void dist_products_free(dist_products *products)
{
    for (int i = 0; i < products->count; i++)
        tgl_plan_destroy(products->list[i].plan);
    free(products->list);
    products->list = NULL;
    products->count = products->room = 0;
}
