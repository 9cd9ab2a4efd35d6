/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases with operands besides A, B and C.
 */
#include "operand_cases.h"

#include <math.h>

/* Columns: kernel, m, n, k, whether B is transposed. */
static const struct {
    const char *kernel; /* NULL: the planner's choice */
    int64_t m, n, k;
    bool trans_b;
} products[] = {
    {"simt_32x32x16:splits=1,strips=0", 37, 45, 70, false},
    {"simt_32x32x16:splits=3,strips=0", 37, 45, 150, true},
    {"simt_32x32x16:splits=11,strips=0", 33, 40, 200, false}, /* the splits add in the workspace */
    {"simt_32x32x16:splits=3,whole=2,depth=32,strips=0", 64, 70, 150, false},
    {"simt_32x32x16:splits=2,strips=1", 35, 65, 100, false},
    {"simt_32x32x16_s2:splits=1,strips=0", 40, 33, 100, true},
    {"skinny_4:splits=1", 3, 200, 300, false},
    {"skinny_4:splits=3", 200, 4, 700, true},
    {"gemv", 1, 75, 300, false},
    {"gemv", 75, 1, 300, true},
    {"gemv_2", 2, 130, 260, true},
    {"gemv_4", 3, 130, 260, false},
    {"small_batch_32x32", 29, 31, 40, false},
    {NULL, 17, 33, 700, false},
    {NULL, 9, 9, 0, false},
};
enum { PRODUCTS = sizeof products / sizeof products[0], WAYS = 8 };

/* Bits of `way`, a property of a case each. */
enum { SEPARATE_D = 1, DEVICE_SCALARS = 2, HAS_MORE = 4 };

static const double scalars[][2] = {{1, 0}, {0, -2}, {-0.5, 2}, {1, (double)NAN},
                                    {2, 1}, {0, 0},  {1.5, -1}};
enum { SCALARS = sizeof scalars / sizeof scalars[0] };

/* Adds a batch, strided or given by pointers, and an epilogue. */
static void add_more(int i, gemm_case *c)
{
    tgl_problem *p = &c->problem;
    p->batch = 2 + i % 2;
    p->stride_a = i % 3 == 0 ? 0 : p->m * p->k;
    p->stride_b = p->k * p->n + 1;
    p->stride_c = p->m * p->n;
    c->pointers = i % 3 == 2;
    if (i % 2 == 0) return;
    c->epilogue = (tgl_epilogue){.size = sizeof c->epilogue,
                                 .bias = i % 4 == 1 ? TGL_BIAS_ROW : TGL_BIAS_COLUMN,
                                 .activation = (tgl_activation)(i / 4 % 4),
                                 .residual = i / 2 % 2};
}

bool operand_case(int i, gemm_case *c)
{
    const int way = i % WAYS, number = i / WAYS;
    if (number >= PRODUCTS) return false;
    uint64_t seed = (uint64_t)i;
    *c = (gemm_case){
        .problem = problem_of(TGL_F32, products[number].m, products[number].n, products[number].k),
        .alpha = scalars[(i + number) % SCALARS][0],
        .beta = scalars[(i + number) % SCALARS][1],
        .kernel = products[number].kernel,
        .gives_workspace = i % 3 != 0,
        .fill = i % 11 == 4 ? NON_FINITE : UNIFORM_11,
        .at_end = i % 2 == 0,
        .seed = (uint64_t)i};
    if (products[number].trans_b) c->problem.trans_b = TGL_TRANS;
    if ((way & HAS_MORE) != 0) add_more(i, c);
    /* strips are not supported for arrays of pointers */
    if (c->kernel != NULL && number == 4) c->pointers = false;
    if ((way & SEPARATE_D) != 0) separate_d(&seed, &c->problem);
    if ((way & DEVICE_SCALARS) != 0) c->problem.scalars = TGL_SCALARS_DEVICE;
    return true;
}
