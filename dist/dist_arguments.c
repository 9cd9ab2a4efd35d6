/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that all ranks gave the same arguments. Each rank writes its arguments into a list of
 * numbers; the ranks exchange the lists and compare them.
 */
#include "dist_arguments.h"

#include "dist_error.h"
#include "dist_task.h"

#include <string.h>

enum { NUMBERS = 64 };

/* This rank's arguments as numbers, in the order of the calls of add(). If number[i] is not equal
 * on all ranks, the status is status[i], and the error message names name[i] and of[i]. Example:
 * for "m of the problem", name is "m", of is "the problem", and status is TGL_BAD_M. */
typedef struct list {
    int64_t number[NUMBERS];
    const char *name[NUMBERS], *of[NUMBERS];
    tgl_status status[NUMBERS];
    int count;
} list;

static void add(list *l, const char *name, const char *of, tgl_status status, int64_t number)
{
    l->number[l->count] = number;
    l->name[l->count] = name;
    l->of[l->count] = of;
    l->status[l->count++] = status;
}

static void add_problem(list *l, const tgl_problem *p)
{
    static const char of[] = "the problem";
    add(l, "m", of, TGL_BAD_M, p->m);
    add(l, "n", of, TGL_BAD_N, p->n);
    add(l, "k", of, TGL_BAD_K, p->k);
    add(l, "order", of, TGL_BAD_ORDER, p->order);
    add(l, "trans_a", of, TGL_BAD_TRANS_A, dist_transpose(p->trans_a));
    add(l, "trans_b", of, TGL_BAD_TRANS_B, dist_transpose(p->trans_b));
    add(l, "type_a", of, TGL_BAD_TYPE, p->type_a);
    add(l, "type_b", of, TGL_BAD_TYPE, p->type_b);
    add(l, "type_c", of, TGL_BAD_TYPE, p->type_c);
    add(l, "compute", of, TGL_BAD_COMPUTE, p->compute);
}

static void add_layout(list *l, const char *of, const tgl_dist_layout *x)
{
    const struct {
        const char *name;
        int64_t number;
    } members[] = {{"rows", x->rows},
                   {"columns", x->columns},
                   {"block_rows", x->block_rows},
                   {"block_columns", x->block_columns},
                   {"first_rows", x->first_rows},
                   {"first_columns", x->first_columns},
                   {"grid_rows", x->grid_rows},
                   {"grid_columns", x->grid_columns},
                   {"source_row", x->source_row},
                   {"source_column", x->source_column},
                   {"grid_order", x->grid_order},
                   {"replicated", x->replicated}};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        add(l, members[i].name, of, TGL_BAD_ARGUMENT, members[i].number);
}

static void add_options(list *l, const tgl_dist_options *o)
{
    static const char of[] = "the options";
    add(l, "panel", of, TGL_BAD_ARGUMENT, o->panel);
    add(l, "parts_m", of, TGL_BAD_ARGUMENT, o->parts_m);
    add(l, "parts_n", of, TGL_BAD_ARGUMENT, o->parts_n);
    add(l, "parts_k", of, TGL_BAD_ARGUMENT, o->parts_k);
    const tgl_epilogue none = {.size = 0}, *e = o->epilogue != NULL ? o->epilogue : &none;
    add(l, "bias", of, TGL_BAD_EPILOGUE, e->bias);
    add(l, "activation", of, TGL_BAD_EPILOGUE, e->activation);
    add(l, "type_bias", of, TGL_BAD_EPILOGUE, e->type_bias);
}

static tgl_status compare(const list *mine, const int64_t *all, int ranks)
{
    for (int i = 0; i < mine->count; i++)
        for (int rank = 1; rank < ranks; rank++) {
            const int64_t here = all[rank * NUMBERS + i];
            if (here == all[i]) continue;
            return dist_fail(mine->status[i], "%s of %s is %lld on rank 0, and %lld on rank %d",
                             mine->name[i], mine->of[i], (long long)all[i], (long long)here, rank);
        }
    return TGL_OK;
}

tgl_status dist_arguments_agree(tgl_dist *dist, tgl_status status, const tgl_problem *problem,
                                const tgl_dist_layout *const layouts[3],
                                const tgl_dist_options *options)
{
    const void *all;
    const dist_call call = {.plan = 0, .status = status};
    DIST_TRY(dist_begin_call(dist, &call));
    list mine = {.count = 0};
    add_problem(&mine, problem);
    add_layout(&mine, "the layout of A", layouts[0]);
    add_layout(&mine, "the layout of B", layouts[1]);
    add_layout(&mine, "the layout of C", layouts[2]);
    const tgl_dist_options none = {.size = sizeof none};
    add_options(&mine, options != NULL ? options : &none);
    DIST_TRY(dist_gather(dist, mine.number, sizeof mine.number, &all));
    return compare(&mine, all, dist->transport.ranks);
}
