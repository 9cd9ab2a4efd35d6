/* SPDX-License-Identifier: Apache-2.0
 *
 * A blocked right-looking LU factorisation. For each panel of BLOCK columns, the host factors the
 * panel and computes the rows of U beside it; then the device updates the rest of the matrix by a
 * product, C := C - A*B. FFMA in this file stands for products in compute mode ieee. All matrices
 * are row-major.
 */
#include "check_lu.h"
#include "cli.h"
#include "random.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 256,       /* number of columns of a panel, and k of the products */
    SMALL_SIZE = 512,  /* number of equations in a quick check */
    LARGE_SIZE = 2048, /* number of equations in a full check */
    STEPS_MAX = 30,    /* maximum number of steps of iterative refinement */
};
static const double max_residual = 16; /* limit of the scaled residual, as in the HPL benchmark */
static const double max_ratio = 2;     /* limit of (residual / residual with FFMA) */

typedef struct lu_system {
    tgl_device *dev;
    int64_t n;
    float *A, *lu;                                    /* n x n each; lu is a copy of A that the
                                                         factors L and U overwrite */
    float *left, *right, *update;                     /* A, B and C of one product, on the host */
    void *device_left, *device_right, *device_update; /* the same three matrices on the device */
    int64_t *pivots;
    double *b, *x, *residual; /* b is the start of one allocation for all three, A of one for A, lu,
                                 left, right and update */
} lu_system;

/* The quality of a pair of factors. */
typedef struct lu_quality {
    double residual; /* scaled residual of the first solution, before refinement */
    int steps;       /* number of steps of refinement; STEPS_MAX: it did not converge */
} lu_quality;

/* ---- Factors --------------------------------------------------------------------------------- */

static void swap_rows(lu_system *s, int64_t i, int64_t j)
{
    for (int64_t col = 0; col < s->n && i != j; col++) {
        const float x = s->lu[i * s->n + col];
        s->lu[i * s->n + col] = s->lu[j * s->n + col];
        s->lu[j * s->n + col] = x;
    }
}

static int64_t find_pivot(const lu_system *s, int64_t col)
{
    int64_t best = col;
    for (int64_t i = col + 1; i < s->n; i++)
        if (fabsf(s->lu[i * s->n + col]) > fabsf(s->lu[best * s->n + col])) best = i;
    return best;
}

/* row[j] -= factor * from[j] for first <= j < end. */
static void subtract_row(float *row, const float *from, float factor, int64_t first, int64_t end)
{
    for (int64_t j = first; j < end; j++)
        row[j] -= factor * from[j];
}

static void factor_panel(lu_system *s, int64_t first, int64_t end)
{
    for (int64_t col = first; col < end; col++) {
        s->pivots[col] = find_pivot(s, col);
        swap_rows(s, col, s->pivots[col]);
        const float *top = &s->lu[col * s->n];
        for (int64_t i = col + 1; i < s->n; i++) {
            float *row = &s->lu[i * s->n];
            row[col] /= top[col];
            subtract_row(row, top, row[col], col + 1, end);
        }
    }
}

/* Computes rows [first, end) of U to the right of the panel, by forward substitution with the
 * panel's unit lower triangle. */
static void solve_rows(lu_system *s, int64_t first, int64_t end)
{
    for (int64_t i = first + 1; i < end; i++)
        for (int64_t p = first; p < i; p++)
            subtract_row(&s->lu[i * s->n], &s->lu[p * s->n], s->lu[i * s->n + p], end, s->n);
}

/* Copies the block of `rows` x `cols` elements of lu at (row, col) to the contiguous matrix `tight`
 * or, if `back` is true, from `tight` to lu. */
static void copy_block(const lu_system *s, int64_t row, int64_t col, int64_t rows, int64_t cols,
                       float *tight, bool back)
{
    for (int64_t i = 0; i < rows; i++) {
        float *line = &s->lu[(row + i) * s->n + col];
        if (back)
            memcpy(line, &tight[i * cols], (size_t)cols * sizeof *line);
        else
            memcpy(&tight[i * cols], line, (size_t)cols * sizeof *line);
    }
}

static tgl_status update_rest(lu_system *s, int64_t first, int64_t end, tgl_compute compute,
                              const char *kernel)
{
    const int64_t depth = end - first, rest = s->n - end;
    const size_t panel = (size_t)(rest * depth) * sizeof(float);
    const size_t square = (size_t)(rest * rest) * sizeof(float);
    copy_block(s, end, first, rest, depth, s->left, false);
    copy_block(s, first, end, depth, rest, s->right, false);
    copy_block(s, end, end, rest, rest, s->update, false);
    CLI_TRY(tgl_upload(s->dev, s->device_left, s->left, panel, NULL));
    CLI_TRY(tgl_upload(s->dev, s->device_right, s->right, panel, NULL));
    CLI_TRY(tgl_upload(s->dev, s->device_update, s->update, square, NULL));
    tgl_problem p = cli_problem(TGL_F32, rest, rest, depth);
    p.compute = compute;
    CLI_TRY(
        cli_multiply(s->dev, &p, kernel, -1, s->device_left, s->device_right, 1, s->device_update));
    CLI_TRY(tgl_download(s->dev, s->update, s->device_update, square, NULL));
    copy_block(s, end, end, rest, rest, s->update, true);
    return TGL_OK;
}

static tgl_status factor_matrix(lu_system *s, tgl_compute compute, const char *kernel)
{
    memcpy(s->lu, s->A, (size_t)(s->n * s->n) * sizeof(float));
    for (int64_t first = 0; first < s->n; first += BLOCK) {
        const int64_t end = first + BLOCK;
        factor_panel(s, first, end);
        if (end == s->n) break;
        solve_rows(s, first, end);
        CLI_TRY(update_rest(s, first, end, compute, kernel));
    }
    return TGL_OK;
}

/* ---- Solutions ------------------------------------------------------------------------------- */

/* x := x + y, where y is the solution of A*y = residual, computed with the factors L and U.
 * Overwrites the residual with y. */
static void add_solution(lu_system *s)
{
    double *r = s->residual;
    for (int64_t i = 0; i < s->n; i++) {
        const double x = r[i];
        r[i] = r[s->pivots[i]];
        r[s->pivots[i]] = x;
    }
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t p = 0; p < i; p++)
            r[i] -= (double)s->lu[i * s->n + p] * r[p];
    for (int64_t i = s->n - 1; i >= 0; i--) {
        for (int64_t p = i + 1; p < s->n; p++)
            r[i] -= (double)s->lu[i * s->n + p] * r[p];
        r[i] /= (double)s->lu[i * s->n + i];
        s->x[i] += r[i];
    }
}

/* Computes residual := b - A*x in F64. Returns its norm divided by unit * n * (||A|| ||x|| +
 * ||b||), all in maximum norms. */
static double find_residual(lu_system *s, double unit)
{
    double of_a = 0, of_x = 0, of_b = 0, of_r = 0;
    for (int64_t i = 0; i < s->n; i++) {
        double sum = 0, r = s->b[i];
        for (int64_t p = 0; p < s->n; p++) {
            r -= (double)s->A[i * s->n + p] * s->x[p];
            sum += (double)fabsf(s->A[i * s->n + p]);
        }
        s->residual[i] = r;
        of_a = fmax(of_a, sum);
        of_x = fmax(of_x, fabs(s->x[i]));
        of_b = fmax(of_b, fabs(s->b[i]));
        of_r = fmax(of_r, fabs(r));
    }
    return of_r / (unit * (double)s->n * (of_a * of_x + of_b));
}

static tgl_status solve_system(lu_system *s, tgl_compute compute, const char *kernel, lu_quality *q)
{
    CLI_TRY(factor_matrix(s, compute, kernel));
    memset(s->x, 0, (size_t)s->n * sizeof(double));
    find_residual(s, 1);
    add_solution(s);
    for (int64_t i = 0; i < s->n; i++)
        s->x[i] = (float)s->x[i]; /* as a solver in F32 would return it */
    q->residual = find_residual(s, 0x1p-24);
    for (q->steps = 0; q->steps < STEPS_MAX; q->steps++) {
        if (find_residual(s, 0x1p-53) < max_residual) break;
        add_solution(s);
    }
    return TGL_OK;
}

/* ---- The check ------------------------------------------------------------------------------- */

static tgl_status make_system(lu_system *s)
{
    const size_t square = (size_t)(s->n * s->n) * sizeof(float),
                 vector = (size_t)s->n * sizeof(double);
    random_state r;
    s->A = malloc(5 * square);
    s->b = malloc(3 * vector);
    s->pivots = malloc((size_t)s->n * sizeof *s->pivots);
    if (s->A == NULL || s->b == NULL || s->pivots == NULL) return TGL_NO_MEMORY;
    float **const squares[] = {&s->lu, &s->left, &s->right, &s->update};
    for (int i = 0; i < 4; i++)
        *squares[i] = s->A + (i + 1) * s->n * s->n;
    s->x = s->b + s->n;
    s->residual = s->x + s->n;
    random_seed(&r, 1, 1);
    for (int64_t i = 0; i < s->n * s->n; i++)
        s->A[i] = (float)(random_unit(&r) - 0.5);
    for (int64_t i = 0; i < s->n; i++)
        s->b[i] = random_unit(&r) - 0.5;
    CLI_TRY(tgl_alloc(s->dev, square, &s->device_left));
    CLI_TRY(tgl_alloc(s->dev, square, &s->device_right));
    return tgl_alloc(s->dev, square, &s->device_update);
}

static void free_system(lu_system *s)
{
    free(s->A);
    free(s->b);
    free(s->pivots);
    tgl_free(s->dev, s->device_left);
    tgl_free(s->dev, s->device_right);
    tgl_free(s->dev, s->device_update);
}

tgl_status check_lu(tgl_device *dev, tgl_compute compute, const char *kernel, bool small,
                    bool *passes)
{
    lu_system s = {.dev = dev, .n = small ? SMALL_SIZE : LARGE_SIZE};
    lu_quality ours = {0}, ffma = {0};
    tgl_status status = make_system(&s);
    if (status == TGL_OK) status = solve_system(&s, TGL_COMPUTE_IEEE, NULL, &ffma);
    if (status == TGL_OK) status = solve_system(&s, compute, kernel, &ours);
    free_system(&s);
    *passes = status == TGL_OK && ours.residual < max_residual &&
              ours.residual <= max_ratio * ffma.residual && ours.steps < STEPS_MAX &&
              ours.steps <= ffma.steps + 1;
    if (status == TGL_OK)
        printf("LU factors of %" PRId64
               " rows, blocks of %d: HPL residual %.4f, FFMA's %.4f (below "
               "%.0f passes); refined to f64 in %d steps, FFMA's in %d%s\n",
               s.n, BLOCK, ours.residual, ffma.residual, max_residual, ours.steps, ffma.steps,
               *passes ? "" : "  FAILS");
    return status;
}
