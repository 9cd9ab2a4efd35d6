/* SPDX-License-Identifier: Apache-2.0
 *
 * pdgemm_() and psgemm_() of ScaLAPACK's PBLAS, computed by libtegula_dist. Calls with a
 * replicated matrix, with matrices of different grids, or with illegal arguments, and calls for
 * which a plan or a device is missing, go to the ScaLAPACK that follows in the search order; it
 * reports the illegal arguments. All ranks of a grid
 * make the same choice, because tgl_dist_plan_create() returns the same status on all of them. A
 * failure in the middle of a product ends the program, as errors of BLACS do. With
 * TEGULA_SCALAPACK_TRACE=1, rank 0 of the grid prints a line for each call; all ranks print it if
 * the call goes to the next ScaLAPACK before the grid is known.
 */
#include "../../cli/common/unknown_settings.h"
#include "scalapack_grid.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A matrix argument of PBLAS: the submatrix that begins at row i and column j, counted from 1, of
 * the matrix with descriptor `desc`. */
typedef struct given_matrix {
    const int *desc;
    int64_t i, j;
    const char *memory; /* this rank's part of the whole matrix */
} given_matrix;

typedef struct given_product {
    tgl_type type;
    char trans_a, trans_b;
    int64_t m, n, k;
    double alpha, beta;
    given_matrix a, b, c;
} given_product;

/* ---- Descriptors ----------------------------------------------------------------------------- */

enum { BLOCK_CYCLIC_2D = 1, BLOCK_CYCLIC_2D_INB = 2 };

/* Sets *layout from a ScaLAPACK descriptor: BLOCK_CYCLIC_2D or BLOCK_CYCLIC_2D_INB. Only
 * BLOCK_CYCLIC_2D_INB has the sizes of the first blocks. */
static void read_descriptor(const int *desc, const scalapack_grid *grid, tgl_dist_layout *layout)
{
    const bool has_first = desc[0] == BLOCK_CYCLIC_2D_INB;
    const int *blocks = desc + (has_first ? 6 : 4), *first = desc + 4;
    *layout = (tgl_dist_layout){.size = sizeof *layout,
                                .rows = desc[2],
                                .columns = desc[3],
                                .block_rows = blocks[0],
                                .block_columns = blocks[1],
                                .first_rows = has_first ? first[0] : 0,
                                .first_columns = has_first ? first[1] : 0,
                                .source_row = blocks[2],
                                .source_column = blocks[3],
                                .grid_rows = grid->rows,
                                .grid_columns = grid->columns,
                                .grid_order = TGL_ROW_MAJOR,
                                .ld = blocks[4]};
}

/* *layout := the layout of a submatrix of rows x columns elements. Returns the address where the
 * submatrix begins in this rank's memory. If the submatrix is outside the matrix, sets layout->size
 * to 0, so that tgl_dist_plan_create() fails on all ranks. */
static const void *read_part(const given_matrix *x, const scalapack_grid *grid, tgl_type type,
                             int64_t rows, int64_t columns, tgl_dist_layout *layout)
{
    tgl_dist_layout whole;
    int64_t row, column;
    read_descriptor(x->desc, grid, &whole);
    if (tgl_dist_part(layout, &whole, x->i - 1, x->j - 1, rows, columns, grid->rank, &row,
                      &column) != TGL_OK) {
        layout->size = 0;
        return NULL;
    }
    return x->memory + (row + column * whole.ld) * (int64_t)tgl_type_size(type);
}

/* ---- Products -------------------------------------------------------------------------------- */

static bool is_known_kind(const int *desc)
{
    return desc[0] == BLOCK_CYCLIC_2D || desc[0] == BLOCK_CYCLIC_2D_INB;
}

static bool is_replicated(const int *desc)
{
    const int *source = desc + (desc[0] == BLOCK_CYCLIC_2D_INB ? 8 : 6);
    return source[0] < 0 || source[1] < 0;
}

/* Converts a letter of PBLAS to a transpose; for real elements 'C' is 'T'. An illegal letter gives
 * 0, with which tgl_dist_plan_create() fails. */
static tgl_transpose transpose_of(char letter)
{
    switch (letter) {
    case 'N':
    case 'n':
        return TGL_NO_TRANS;
    case 'T':
    case 't':
    case 'C':
    case 'c':
        return TGL_TRANS;
    default:
        return (tgl_transpose)0;
    }
}

static bool can_serve(const given_product *g)
{
    const given_matrix *all[] = {&g->a, &g->b, &g->c};
    for (int i = 0; i < 3; i++)
        if (!is_known_kind(all[i]->desc) || is_replicated(all[i]->desc) ||
            all[i]->desc[1] != g->a.desc[1])
            return false;
    return true;
}

/* Ends the program after a failure. The ScaLAPACK that follows in the search order cannot compute
 * the product, because C may have changed and ranks may disagree. */
static void end_program(const char *name, tgl_status status)
{
    char text[512];
    tgl_dist_last_error(text, sizeof text);
    fprintf(stderr, "tegula_scalapack: %s failed: %s: %s\n", name, tgl_status_name(status), text);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    abort();
}

/* Whether a run has failed on all ranks before it changed C, as it does with TGL_BAD_*. */
static bool is_refused(tgl_status status)
{
    return strncmp(tgl_status_name(status), "TGL_BAD_", strlen("TGL_BAD_")) == 0;
}

static bool serve(const char *name, const given_product *g, const scalapack_grid *grid)
{
    tgl_problem problem;
    tgl_dist_layout a, b, c;
    tgl_dist_plan *plan;
    if (tgl_problem_init(&problem, sizeof problem, g->type, g->m, g->n, g->k) != TGL_OK)
        return false;
    problem.order = TGL_COL_MAJOR;
    problem.trans_a = transpose_of(g->trans_a);
    problem.trans_b = transpose_of(g->trans_b);
    const bool ta = problem.trans_a == TGL_TRANS, tb = problem.trans_b == TGL_TRANS;
    const void *A = read_part(&g->a, grid, g->type, ta ? g->k : g->m, ta ? g->m : g->k, &a);
    const void *B = read_part(&g->b, grid, g->type, tb ? g->n : g->k, tb ? g->k : g->n, &b);
    const void *C = read_part(&g->c, grid, g->type, g->m, g->n, &c);
    tgl_status status = tgl_dist_plan_create(grid->dist, &problem, &a, &b, &c, NULL, &plan);
    if (status == TGL_COMMUNICATION) end_program(name, status);
    if (status != TGL_OK) return false;
    status = tgl_dist_plan_run(plan, g->alpha, A, B, g->beta, (void *)C, NULL);
    if (status != TGL_OK && !is_refused(status)) end_program(name, status);
    tgl_dist_plan_destroy(plan);
    return status == TGL_OK;
}

/* Prints the environment variables that begin with TEGULA_SCALAPACK_ and that this library does not
 * know. They may be misspelt. */
static void report_unknown_settings(void)
{
    static const char *const known[] = {"TEGULA_SCALAPACK_TRACE", NULL};
    char **at = environ;
    const char *name;
    for (int length;
         (name = next_unknown_setting(&at, "TEGULA_SCALAPACK_", known, &length)) != NULL;)
        fprintf(stderr, "tegula_scalapack: there is no setting %.*s. It is ignored.\n", length,
                name);
}

static void trace(const char *name, const given_product *g, int rank, bool served)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *wanted = getenv("TEGULA_SCALAPACK_TRACE");
    if (rank == 0) pthread_once(&once, report_unknown_settings);
    if (rank != 0 || wanted == NULL || wanted[0] != '1') return;
    fprintf(stderr, "tegula_scalapack: %s %c%c %lld x %lld x %lld: %s\n", name, g->trans_a,
            g->trans_b, (long long)g->m, (long long)g->n, (long long)g->k,
            served ? "tegula" : "next ScaLAPACK");
}

static bool multiply(const char *name, const given_product *g)
{
    scalapack_grid grid = {.rank = 0};
    const bool served =
        can_serve(g) && scalapack_grid_of(g->a.desc[1], &grid) && serve(name, g, &grid);
    trace(name, g, grid.rank, served);
    return served;
}

/* ---- The functions of PBLAS ------------------------------------------------------------------ */

#define PGEMM(function, name, T, number)                                                           \
    void function(const char *trans_a, const char *trans_b, const int *m, const int *n,            \
                  const int *k, const T *alpha, const T *A, const int *ia, const int *ja,          \
                  const int *desc_a, const T *B, const int *ib, const int *jb, const int *desc_b,  \
                  const T *beta, T *C, const int *ic, const int *jc, const int *desc_c)            \
    {                                                                                              \
        const given_product g = {.type = (number),                                                 \
                                 .trans_a = *trans_a,                                              \
                                 .trans_b = *trans_b,                                              \
                                 .m = *m,                                                          \
                                 .n = *n,                                                          \
                                 .k = *k,                                                          \
                                 .alpha = (double)*alpha,                                          \
                                 .beta = (double)*beta,                                            \
                                 .a = {desc_a, *ia, *ja, (const char *)A},                         \
                                 .b = {desc_b, *ib, *jb, (const char *)B},                         \
                                 .c = {desc_c, *ic, *jc, (const char *)C}};                        \
        typedef void pgemm(const char *, const char *, const int *, const int *, const int *,      \
                           const T *, const T *, const int *, const int *, const int *, const T *, \
                           const int *, const int *, const int *, const T *, T *, const int *,     \
                           const int *, const int *);                                              \
        if (multiply(name, &g)) return;                                                            \
        pgemm *next = (pgemm *)dlsym(RTLD_NEXT, #function);                                        \
        if (next == NULL) {                                                                        \
            fprintf(stderr, "tegula_scalapack: there is no ScaLAPACK for %s\n", name);             \
            abort();                                                                               \
        }                                                                                          \
        next(trans_a, trans_b, m, n, k, alpha, A, ia, ja, desc_a, B, ib, jb, desc_b, beta, C, ic,  \
             jc, desc_c);                                                                          \
    }

__attribute__((visibility("default"))) void
pdgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
        const double *, const int *, const int *, const int *, const double *, const int *,
        const int *, const int *, const double *, double *, const int *, const int *, const int *);
__attribute__((visibility("default"))) void
psgemm_(const char *, const char *, const int *, const int *, const int *, const float *,
        const float *, const int *, const int *, const int *, const float *, const int *,
        const int *, const int *, const float *, float *, const int *, const int *, const int *);

PGEMM(pdgemm_, "pdgemm", double, TGL_F64)
PGEMM(psgemm_, "psgemm", float, TGL_F32)
