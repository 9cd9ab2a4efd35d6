/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes rows and columns of a product in double precision, and compares results with them. A
 * line is a row or a column.
 */
#include "truth.h"
#include "elements.h"
#include "progress.h"
#include "random.h"
#include "reference.h"

#include "../../kernels/ladder/00_reference.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 8, TILE = 128 };
static const double whole_up_to = 1 << 30; /* up to this number of multiplications, every element is
                                              computed in double precision */

struct truth {
    int64_t m, n, k;
    tgl_type type; /* element type of the matrices */
    double bound;  /* maximum error e of an element (reference.h) */
    float *A, *B;  /* converted to float */
    float *C;      /* the result that is checked */
    bool is_whole;
    double seconds;

    /* The rows and columns of the product that are computed in double precision. If is_whole: all
     * rows and no columns; else some rows and some columns. */
    int64_t row_count, column_count;
    int64_t *rows, *columns;
    reference_element *row_elements, *column_elements; /* row_count x n and column_count x m
                                                          elements */

    /* peer, peer_c: name and elements of the first right result, with which later ones are compared
     * (NULL: there is none yet). length_a, length_b: Euclidean norms of the rows of A and of the
     * columns of B; by Cauchy-Schwarz their products are upper bounds of the elements of |A||B|. */
    const char *peer;
    float *peer_c;
    double *length_a, *length_b;
};

bool truth_is_whole(const truth *t)
{
    return t->is_whole;
}

const char *truth_peer(const truth *t)
{
    return t->peer;
}

double truth_seconds(const truth *t)
{
    return t->seconds;
}

/* ---- Lines in double precision --------------------------------------------------------------- */

/* Copies a row or column: out[i] gets the value sum[i*step] and the magnitude magnitude[i*step]. */
static void keep_line(const double *sum, const double *magnitude, int64_t step, int64_t count,
                      reference_element *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = (reference_element){sum[i * step], magnitude[i * step]};
}

/* Computes the rows in t->rows. room: scratch memory for 2*n doubles. */
static void compute_rows(truth *t, double *room)
{
    for (int64_t x = 0; x < t->row_count; x++) {
        const float *a = t->A + t->rows[x] * t->k;
        reference_product(1, t->n, t->k, a, t->k, t->B, t->n, room, room + t->n);
        keep_line(room, room + t->n, 1, t->n, t->row_elements + x * t->n);
    }
}

/* Computes the columns in t->columns as one product whose second factor is these columns of B, side
 * by side. room: scratch memory for 2*m doubles per column. gathered: scratch memory for the
 * columns of B. */
static void compute_columns(truth *t, double *room, float *gathered)
{
    const int64_t count = t->column_count;
    double *sum = room, *magnitude = room + t->m * count;
    for (int64_t p = 0; p < t->k; p++)
        for (int64_t x = 0; x < count; x++)
            gathered[p * count + x] = t->B[p * t->n + t->columns[x]];
    reference_product(t->m, count, t->k, t->A, t->k, gathered, count, sum, magnitude);
    for (int64_t x = 0; x < count; x++)
        keep_line(sum + x, magnitude + x, count, t->m, t->column_elements + x * t->m);
}

static bool compute_lines(truth *t)
{
    const size_t m = (size_t)t->m, n = (size_t)t->n, columns = (size_t)t->column_count;
    t->row_elements = malloc((size_t)t->row_count * n * sizeof *t->row_elements);
    t->column_elements = malloc(columns * m * sizeof *t->column_elements + 1);
    double *room = malloc(2 * (n + columns * m) * sizeof *room);
    float *gathered = malloc((size_t)t->k * columns * sizeof *gathered + 1);
    const bool ok =
        t->row_elements != NULL && t->column_elements != NULL && room != NULL && gathered != NULL;
    if (ok) {
        compute_rows(t, room);
        compute_columns(t, room, gathered);
    }
    free(room);
    free(gathered);
    return ok;
}

/* Chooses LINES_MAX of `count` lines (rows or columns): the first line, the last line, the line
 * where the last tile starts, the line before it, and random lines. Some may be the same. */
static int64_t choose_lines(random_state *r, int64_t count, int64_t *lines)
{
    const int64_t last_tile = (count - 1) / TILE * TILE;
    const int64_t fixed[] = {0, count - 1, last_tile, last_tile > 0 ? last_tile - 1 : 0};
    for (int i = 0; i < LINES_MAX; i++)
        lines[i] = i < 4 ? fixed[i] : random_int(r, 0, count - 1);
    return LINES_MAX;
}

static bool choose(truth *t)
{
    t->is_whole = (double)t->m * (double)t->n * (double)t->k <= whole_up_to;
    const int64_t rows = t->is_whole ? t->m : LINES_MAX;
    t->rows = malloc((size_t)rows * sizeof *t->rows);
    t->columns = malloc(LINES_MAX * sizeof *t->columns);
    if (t->rows == NULL || t->columns == NULL) return false;
    random_state r;
    random_seed(&r, 3, 0);
    if (t->is_whole) {
        t->row_count = t->m;
        for (int64_t i = 0; i < t->m; i++)
            t->rows[i] = i;
    } else {
        t->row_count = choose_lines(&r, t->m, t->rows);
        t->column_count = choose_lines(&r, t->n, t->columns);
    }
    return true;
}

/* ---- The result that replaces the reference -------------------------------------------------- */

static bool compute_lengths(truth *t)
{
    t->length_a = calloc((size_t)t->m, sizeof *t->length_a);
    t->length_b = calloc((size_t)t->n, sizeof *t->length_b);
    if (t->length_a == NULL || t->length_b == NULL) return false;
    for (int64_t i = 0; i < t->m; i++)
        for (int64_t p = 0; p < t->k; p++)
            t->length_a[i] += (double)t->A[i * t->k + p] * t->A[i * t->k + p];
    for (int64_t p = 0; p < t->k; p++)
        for (int64_t j = 0; j < t->n; j++)
            t->length_b[j] += (double)t->B[p * t->n + j] * t->B[p * t->n + j];
    for (int64_t i = 0; i < t->m; i++)
        t->length_a[i] = sqrt(t->length_a[i]);
    for (int64_t j = 0; j < t->n; j++)
        t->length_b[j] = sqrt(t->length_b[j]);
    return true;
}

/* The elements converted to float, which the caller frees. NULL: out of memory. */
static float *floats_of(tgl_type type, const void *elements, int64_t count)
{
    float *to = calloc((size_t)count + 1, sizeof *to); /* + 1, so that the size is not 0 */
    for (int64_t i = 0; to != NULL && i < count; i++)
        to[i] = (float)element_get(type, elements, i);
    return to;
}

truth *truth_make(const operands *o)
{
    const tgl_problem *p = &o->problem;
    truth *t = calloc(1, sizeof *t);
    if (t == NULL) return NULL;
    *t = (truth){.m = p->m, .n = p->n, .k = p->k, .type = p->type_a};
    t->bound = error_bound(p->k) + error_of_rounded_inputs(p->type_a, p->compute);
    t->A = floats_of(p->type_a, o->host_a, p->m * p->k);
    t->B = floats_of(p->type_b, o->host_b, p->k * p->n);
    const double start = cli_clock();
    bool ok = t->A != NULL && t->B != NULL && choose(t) && compute_lines(t);
    t->seconds = cli_clock() - start;
    if (ok && !t->is_whole) ok = compute_lengths(t);
    if (ok) return t;
    truth_free(t);
    return NULL;
}

void truth_free(truth *t)
{
    if (t == NULL) return;
    free(t->A);
    free(t->B);
    free(t->C);
    free(t->rows);
    free(t->columns);
    free(t->row_elements);
    free(t->column_elements);
    free(t->peer_c);
    free(t->length_a);
    free(t->length_b);
    free(t);
}

/* ---- Checking results ------------------------------------------------------------------------ */

/* Compares element (i, j) with its reference *e. False: it is wrong, and v->why says how. */
static bool judge_element(const truth *t, error_summary *summary, const float *C, int64_t i,
                          int64_t j, const reference_element *e, verdict *v)
{
    double error;
    const double c = C[i * t->n + j];
    if (error_add(summary, t->type, c, e, t->bound, &error)) return true;
    snprintf(v->why, sizeof v->why,
             "C(%" PRId64 ", %" PRId64 ") is %.9g, the reference %.9Lg: error %.3g", i, j, c,
             e->value, error);
    return false;
}

static bool judge_lines(const truth *t, const float *C, verdict *v)
{
    error_summary summary = {0};
    for (int64_t x = 0; x < t->row_count; x++)
        for (int64_t j = 0; j < t->n; j++)
            if (!judge_element(t, &summary, C, t->rows[x], j, &t->row_elements[x * t->n + j], v))
                return false;
    for (int64_t x = 0; x < t->column_count; x++)
        for (int64_t i = 0; i < t->m; i++)
            if (!judge_element(t, &summary, C, i, t->columns[x], &t->column_elements[x * t->m + i],
                               v))
                return false;
    v->exact = t->row_count * t->n + t->column_count * t->m;
    v->max_error = summary.max;
    v->rms_error = error_rms(&summary);
    return true;
}

/* Compares all elements with those of the first right result. Each of the two may differ from the
 * exact product by the bound and by the rounding to their type. The comparison is written so that a
 * NaN fails it. */
static bool judge_all(const truth *t, const float *C, verdict *v)
{
    const double unit = 2 * t->bound * 0x1p-24;
    for (int64_t i = 0; i < t->m; i++)
        for (int64_t j = 0; j < t->n; j++) {
            const float c = C[i * t->n + j], peer = t->peer_c[i * t->n + j];
            const double rounding =
                t->type == TGL_F32 ? 0
                                   : 2 * element_half_ulp(t->type, fmaxf(fabsf(c), fabsf(peer)));
            if (fabs((double)c - peer) <= unit * t->length_a[i] * t->length_b[j] + rounding)
                continue;
            snprintf(v->why, sizeof v->why,
                     "C(%" PRId64 ", %" PRId64 ") is %.9g, in the result of %s %.9g", i, j, c,
                     t->peer, peer);
            return false;
        }
    return true;
}

/* Keeps a result, with which later results are compared. False: an element is not finite, and *v
 * says so, or out of memory. */
static bool become_peer(truth *t, const char *name, const float *C, verdict *v)
{
    const size_t count = (size_t)(t->m * t->n);
    for (size_t x = 0; x < count; x++)
        if (!isfinite(C[x])) {
            snprintf(v->why, sizeof v->why, "element %zu of C is not finite", x);
            return false;
        }
    t->peer_c = malloc(count * sizeof *t->peer_c + 1); /* + 1, so that the size is not 0 */
    if (t->peer_c == NULL) {
        snprintf(v->why, sizeof v->why, "no memory to compare results in");
        return false;
    }
    memcpy(t->peer_c, C, count * sizeof *t->peer_c);
    t->peer = name;
    return true;
}

verdict truth_judge(truth *t, const char *name, const void *result)
{
    verdict v = {0};
    free(t->C);
    t->C = floats_of(t->type, result, t->m * t->n);
    const float *C = t->C;
    if (C == NULL) {
        snprintf(v.why, sizeof v.why, "no memory to check the result in");
        return v;
    }
    if (!judge_lines(t, C, &v)) return v;
    if (t->is_whole)
        v.right = true;
    else
        v.right = t->peer != NULL ? judge_all(t, C, &v) : become_peer(t, name, C, &v);
    return v;
}
