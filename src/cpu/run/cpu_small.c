/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of at most CPU_SMALL rows, columns and steps of k, which are one register tile or a few;
 * and products of one row or column, which are as frequent.
 *
 * A and B are read in place, without blocks and without buffers from the pool: at 4 x 4 x 4 the
 * multiply-adds take a few nanoseconds, so that any other work would take a large part of the time.
 * Only a transposed B is packed, to the stack, because a tile reads whole rows of op(B).
 */
#include "cpu/run/cpu_small.h"
#include "cpu/kernels/shares.h"
#include "cpu/run/cpu_epilogue.h"
#include "cpu/run/cpu_state.h"
#include "cpu/run/cpu_vector.h"

/* Bytes of the stack buffer for a packed panel of a transposed B. It is small, because threads may
 * have small stacks. It must hold a panel of one vector, at most VECTOR_BYTES wide. */
enum { PACKED_BYTES = 8 << 10, VECTOR_BYTES = 64 };

/* A product with k > CPU_SMALL counts as small, too, if C has at most DEEP_ELEMENTS elements and k
 * is at most DEEP_STEPS: at 2 x 2 x 100, finding a plan takes longer than the product. */
enum { DEEP_ELEMENTS = 256, DEEP_STEPS = 128 };
_Static_assert(PACKED_BYTES >= DEEP_STEPS * VECTOR_BYTES, "a vector wide panel does not fit");

/* x / y for 0 <= x <= 128 and 1 <= y <= 32, by a multiplication, because a division takes as long
 * as several steps of k of a tile. x * reciprocals[y] >> 16 is exact, because x * y < 65536. */
static int quotient(int x, int y)
{
    /* element y: 65536 / y + 1 */
    static const int reciprocals[33] = {0,    65537, 32769, 21846, 16385, 13108, 10923, 9363, 8193,
                                        7282, 6554,  5958,  5462,  5042,  4682,  4370,  4097, 3856,
                                        3641, 3450,  3277,  3121,  2979,  2850,  2731,  2622, 2521,
                                        2428, 2341,  2260,  2185,  2115,  2049};
    if (y == 1) return x;
    if (x < 2 * y) return x >= y; /* a predicted branch is faster than the multiplication */
    return x * reciprocals[y] >> 16;
}

_Static_assert(CPU_SMALL_PANELS <= 32, "quotient() divides by the number of panels");

/* The number of vectors for n elements. The length of a vector is a power of two. */
static int vectors_of(const cpu_kernels *kernels, int n)
{
    return (n + kernels->vector - 1) >> __builtin_ctz((unsigned)kernels->vector);
}

/* The size of part `index` if `total` rows or columns are cut into `parts` nearly equal parts. */
static int cut(int total, int parts, int index)
{
    const int base = quotient(total, parts);
    return base + (index < total - base * parts);
}

/* ---- The next product of a batch ------------------------------------------------------------- */

/* A, B and C of the next product of a batch. Each tile of the present product prefetches a part of
 * one of these matrices: hardware prefetchers follow a row, but do not find the next matrix. */
typedef struct next_product {
    const char *at[3], *end[3];
    int matrix;   /* index of the matrix to prefetch next; 3: all have been prefetched */
    int64_t part; /* bytes that each tile prefetches */
} next_product;

/* Returns the part that the next tile prefetches, as rows of `width` bytes, and advances *next. */
static cpu_beside next_part(next_product *next, int64_t width)
{
    while (next->matrix < 3 && next->at[next->matrix] >= next->end[next->matrix])
        next->matrix++;
    if (next->matrix == 3) return (cpu_beside){.copy = NULL};
    const char **at = &next->at[next->matrix];
    const int64_t bytes = tgl_min64(next->part, next->end[next->matrix] - *at);
    const cpu_beside beside = {
        .ahead = *at, .ahead_step = width, .ahead_rows = cpu_ceil_div(bytes, width)};
    *at += bytes;
    return beside;
}

/* ---- One product ----------------------------------------------------------------------------- */

/* How full a last vector with this number of valid columns is. */
static cpu_tail tail_of(const cpu_kernels *kernels, int columns)
{
    return columns == kernels->vector       ? CPU_TAIL_WHOLE
           : 2 * columns <= kernels->vector ? CPU_TAIL_HALF
                                            : CPU_TAIL_PARTIAL;
}

/* Multiplies op(A) by one panel of op(B), tile by tile; each tile prefetches a part of the next
 * product. b: the panel. c: the panel's first column of C. tail: valid columns of the panel's last
 * vector. */
static void multiply_fetching(const cpu_kernels *kernels, const tgl_small_product *x, const char *b,
                              int64_t ldb, int vectors, int tail, char *c, next_product *next)
{
    const int64_t element = (int64_t)kernels->element;
    const cpu_layout layout = x->trans_a ? CPU_A_COLS : CPU_A_ROWS;
    cpu_tile_fn *const *tile_of = kernels->tile[layout][tail < kernels->vector][vectors - 1];
    const int64_t a_row = (x->trans_a ? 1 : x->lda) * element, c_row = x->ldc * element;
    const int m = (int)x->m, tiles = quotient(m + kernels->mr - 1, kernels->mr);
    const char *a = x->A;
    for (int q = 0; q < tiles; q++) {
        const int rows = cut(m, tiles, q);
        cpu_beside part = next_part(next, vectors * kernels->vector * element);
        part.complex = x->complex;
        tile_of[rows - 1](x->k, a, x->lda, b, ldb, c, x->ldc, tail, x->alpha, x->beta, &part);
        a += rows * a_row;
        c += rows * c_row;
    }
}

/* Multiplies op(A) by one panel of op(B), with the parameters of multiply_fetching(). next: NULL to
 * prefetch nothing; one call of the kernel then computes all rows. */
static inline void multiply_small_panel(const cpu_kernels *kernels, const tgl_small_product *x,
                                        const char *b, int64_t ldb, int vectors, int tail, char *c,
                                        next_product *next)
{
    if (next != NULL)
        multiply_fetching(kernels, x, b, ldb, vectors, tail, c, next);
    else
        kernels->small[tail_of(kernels, tail)][vectors - 1](x, b, ldb, c, tail);
}

/* Multiplies op(A) by op(B), panel by panel. packed: a buffer of PACKED_BYTES for a panel if B is
 * transposed; else NULL. */
static inline void multiply_small_panels(const cpu_kernels *kernels, const tgl_small_product *x,
                                         char *packed, next_product *next)
{
    const int64_t element = (int64_t)kernels->element;
    const int n = (int)x->n, width = kernels->vector, vectors = vectors_of(kernels, n);
    int nv = next != NULL ? kernels->nv : kernels->small_nv;
    while (packed != NULL && nv * width * element * x->k > PACKED_BYTES)
        nv--;
    const int panels = quotient(vectors + nv - 1, nv);
    const char *b = x->B;
    char *c = x->C;
    for (int q = 0, left = n; q < panels; q++) {
        const int wide = cut(vectors, panels, q), whole = wide * width;
        const int columns = left < whole ? left : whole, tail = columns - (wide - 1) * width;
        if (packed != NULL) {
            kernels->interleave(packed, whole, b, x->ldb, columns, x->k);
            multiply_small_panel(kernels, x, packed, whole, wide, tail, c, next);
            b += columns * x->ldb * element;
        } else {
            multiply_small_panel(kernels, x, b, x->ldb, wide, tail, c, next);
            b += columns * element;
        }
        c += columns * element;
        left -= columns;
    }
}

/* Multiplies with a packed B. It is not inlined, because its buffer on the stack would slow down
 * calls that do not pack. */
static __attribute__((noinline)) void
multiply_small_packed(const cpu_kernels *kernels, const tgl_small_product *x, next_product *next)
{
    _Alignas(64) char packed[PACKED_BYTES];
    multiply_small_panels(kernels, x, packed, next);
}

/* Whether the kernels ignore alpha, so that scale_result() must follow: for real types if beta is 0
 * (cpu_small_fn). */
static bool has_alpha_alone(const cpu_kernels *kernels, const tgl_small_product *x)
{
    const bool f32 = kernels->element == sizeof(float);
    return x->alpha != 1 && kernels->parts == 1 && (f32 ? (float)x->beta == 0 : x->beta == 0);
}

static __attribute__((noinline)) void scale_result(const cpu_kernels *kernels,
                                                   const tgl_small_product *x)
{
    for (int64_t i = 0; i < x->m; i++)
        kernels->scale((char *)x->C + i * x->ldc * (int64_t)kernels->element, x->n, x->alpha, 0);
}

/* Not inlined, so that multiply_directly() need not save the registers that this function uses.
 * next: the product to prefetch; NULL: none. */
static __attribute__((noinline)) void multiply_small(const cpu_kernels *kernels,
                                                     const tgl_small_product *x, next_product *next)
{
    if (x->trans_b)
        multiply_small_packed(kernels, x, next);
    else
        multiply_small_panels(kernels, x, NULL, next);
    /* If `next` is not NULL, register tiles (cpu_tile_fn) have computed the result, and have
     * multiplied it by alpha. */
    if (next == NULL && has_alpha_alone(kernels, x)) scale_result(kernels, x);
}

void tgl_cpu_multiply_small(const cpu_kernels *kernels, const tgl_small_product *product)
{
    multiply_small(kernels, product, NULL);
}

/* Multiplies without the loop over panels if one panel suffices, B is not transposed and alpha is
 * 1, as in most products. */
static inline void multiply_directly(const cpu_kernels *kernels, const tgl_small_product *x)
{
    const int n = (int)x->n, vectors = vectors_of(kernels, n);
    if (x->trans_b || vectors > kernels->small_nv || x->alpha != 1) {
        multiply_small(kernels, x, NULL);
        return;
    }
    const int tail = n - (vectors - 1) * kernels->vector;
    kernels->small[tail_of(kernels, tail)][vectors - 1](x, x->B, x->ldb, x->C, tail);
}

/* Computes, by register tiles, a product whose C is one row or one column. turns: true computes the
 * transposed product, C^T = op(B)^T * op(A)^T, which requires a contiguous C. A transposed B with
 * one column is contiguous, and is not packed. */
static __attribute__((noinline)) void multiply_turned(const cpu_kernels *kernels,
                                                      const tgl_small_product *p, bool turns)
{
    const bool is_column = turns ? p->m == 1 : p->n == 1;
    const bool trans_b = turns ? !p->trans_a : p->trans_b;
    tgl_small_product x = {
        .trans_a = turns ? !p->trans_b : p->trans_a,
        .trans_b = trans_b && !is_column,
        .fetch_c = false,
        .m = turns ? p->n : p->m,
        .n = turns ? p->m : p->n,
        .k = p->k,
        .lda = turns ? p->ldb : p->lda,
        .ldb = trans_b && is_column ? 1
               : turns              ? p->lda
                                    : p->ldb,
        .ldc = turns ? p->m : p->ldc,
        .alpha = p->alpha,
        .beta = p->beta,
        .A = turns ? p->B : p->A,
        .B = turns ? p->A : p->B,
        .C = p->C,
        .complex = p->complex,
    };
    tgl_complex_part turned;
    if (turns && p->complex != NULL) {
        turned = *p->complex;
        turned.conj_a = p->complex->conj_b;
        turned.conj_b = p->complex->conj_a;
        x.complex = &turned;
    }
    multiply_directly(kernels, &x);
}

/* A product with one row or column. Tiles read whole rows of op(B). So the transposed product is
 * faster if C is a row and B is transposed, or C is a column and A is transposed. The product and
 * its transpose give the same bits. False: a GEMV that is too large for tgl_cpu_small_vector(). */
static bool multiply_line(const cpu_kernels *kernels, const tgl_small_product *p)
{
    if (cpu_is_vector(p->m, p->n, p->k)) return tgl_cpu_small_vector(kernels, p);
    const bool turns = p->m == 1 ? p->trans_b : p->trans_a && p->ldc == 1;
    if (turns || p->trans_b)
        multiply_turned(kernels, p, turns);
    else
        multiply_directly(kernels, p);
    return true;
}

/* Computes a product for which cpu_is_small() is false, if it is small in another way: C has one
 * row or column and multiply_line() accepts it, or k is at most DEEP_STEPS and C has few elements.
 * Returns false if it is not: the caller must then use a plan. */
static __attribute__((noinline)) bool multiply_unusual(const cpu_kernels *kernels,
                                                       const tgl_small_product *p)
{
    if (p->m < 1 || p->n < 1 || p->k < 1) return false;
    if (p->m == 1 || p->n == 1) return multiply_line(kernels, p);
    if (p->m > CPU_SMALL || p->n > CPU_SMALL || p->m * p->n > DEEP_ELEMENTS || p->k > DEEP_STEPS)
        return false;
    multiply_directly(kernels, p);
    return true;
}

/* The result has the same bits as one that is computed with a plan. */
bool tgl_cpu_run_small(const tgl_device *dev, const tgl_small_product *x)
{
    const cpu_tier *tier = ((const cpu_device *)dev->state)->tiers[0];
    const cpu_kernels *kernels = tgl_cpu_kernels_of(tier, x->type);
    if (!cpu_is_small(x->m, x->n, x->k)) return multiply_unusual(kernels, x);
    multiply_directly(kernels, x);
    return true;
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* Bytes from the first to the last element of a matrix. */
static int64_t extent(int64_t rows, int64_t columns, int64_t ld, int64_t element)
{
    return ((rows - 1) * ld + columns) * element;
}

/* Locates the matrices of product i + 1, which the tiles of product i prefetch. */
static next_product next_in_batch(const cpu_product *job, int64_t i)
{
    const tgl_shape *s = job->shape;
    const cpu_kernels *kernels = job->plan->kernels;
    const int64_t element = (int64_t)kernels->element;
    const int64_t width = (int64_t)kernels->nv * kernels->vector;
    const int64_t tiles = (1 + (s->m - 1) / kernels->mr) * (1 + (s->n - 1) / width);
    const int64_t bytes[3] = {
        extent(s->trans_a ? s->k : s->m, s->trans_a ? s->m : s->k, s->lda, element),
        extent(s->trans_b ? s->n : s->k, s->trans_b ? s->k : s->n, s->ldb, element),
        extent(s->m, s->n, s->ldd, element)};
    next_product next = {.at = {tgl_cpu_a_of(s, job->run, i + 1, element),
                                tgl_cpu_b_of(s, job->run, i + 1, element),
                                tgl_cpu_d_of(s, job->run, i + 1, element)}};
    for (int q = 0; q < 3; q++)
        next.end[q] = next.at[q] + bytes[q];
    /* Divides by tiles - 2, not tiles: the last part of each matrix may be short, so that there are
     * up to 2 parts more. */
    next.part = (bytes[0] + bytes[1] + bytes[2]) / (tiles > 2 ? tiles - 2 : 1);
    return next;
}

static void multiply_part_of_batch(void *context, int thread, int team)
{
    const cpu_product *job = context;
    const tgl_shape *s = job->shape;
    const cpu_kernels *kernels = job->plan->kernels;
    const int64_t element = (int64_t)kernels->element;
    const cpu_range rows = {0, s->m}, columns = {0, s->n};
    const bool is_plain = tgl_epilogue_is_none(&s->epilogue);
    tgl_small_product x = tgl_small_product_of(s);
    x.alpha = job->run->alpha;
    x.beta = job->run->beta;
    tgl_complex_part complex = tgl_cpu_complex_part(s, job->run);
    x.complex = &complex;
    const int64_t end = cpu_share(s->batch, team, thread + 1);
    for (int64_t i = cpu_share(s->batch, team, thread); i < end; i++) {
        x.A = tgl_cpu_a_of(s, job->run, i, element);
        x.B = tgl_cpu_b_of(s, job->run, i, element);
        x.C = tgl_cpu_d_of(s, job->run, i, element);
        if (job->plan->fetch && i + 1 < end) {
            next_product next = next_in_batch(job, i);
            multiply_small(kernels, &x, &next);
        } else {
            multiply_small(kernels, &x, NULL);
        }
        if (!is_plain) tgl_cpu_epilogue(job, i, rows, columns);
    }
}

void tgl_cpu_small_run(const cpu_product *product)
{
    cpu_product job = *product;
    tgl_cpu_run_team(product, multiply_part_of_batch, &job, sizeof job);
}
