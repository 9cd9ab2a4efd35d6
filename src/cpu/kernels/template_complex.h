/* SPDX-License-Identifier: Apache-2.0
 *
 * Part of template.h: the kernels of complex elements, two numbers of type T each, the real part
 * first. The register tiles are those of real numbers, compiled again with PARTS = 2. They read A
 * as a real matrix whose row 2*i has the real parts of row i and whose row 2*i+1 has the imaginary
 * parts. They read B and C as they are in memory, as real matrices with twice as many columns. So a
 * tile has two rows of sums for each row of C:
 *
 *     x = sum of re(a) * (re(b), im(b)),   y = sum of im(a) * (re(b), im(b))
 *
 * At the end the two rows are combined:
 *
 *     a*b = (x.re - y.im, x.im + y.re)
 *     a*conj(b) = (x.re + y.im, y.re - x.im),   conj(a)*b = (x.re + y.im, x.im - y.re)
 *
 * Macros of the tier and the type, as in template.h: COMPLEX_NAME(x), COMPLEX_MR, COMPLEX_TILES,
 * COMPLEX_TALLEST_TILES, COMPLEX_ROWS, COMPLEX_WIDE_MR, PACK_PAIRS(x).
 */
#pragma push_macro("NAME")
#pragma push_macro("MR")
#pragma push_macro("FOR_TILES")
#pragma push_macro("FOR_TALLEST_TILES")
#pragma push_macro("FOR_ROWS")
#undef NAME
#undef MR
#undef FOR_TILES
#undef FOR_TALLEST_TILES
#undef FOR_ROWS
#undef PARTS
#define NAME(x)           COMPLEX_NAME(x)
#define MR                COMPLEX_MR
#define FOR_TILES         COMPLEX_TILES
#define FOR_TALLEST_TILES COMPLEX_TALLEST_TILES
#define FOR_ROWS          COMPLEX_ROWS
#define PARTS             2
#ifdef WIDE_MR
#pragma push_macro("WIDE_MR")
#undef WIDE_MR
#define WIDE_MR COMPLEX_WIDE_MR
#endif

INLINE int64_t NAME(least)(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* ---- The end of a tile ----------------------------------------------------------------------- */

#define VECTOR       V
#define LANES        VLEN
#define ON_VECTOR(x) NAME(x)
#define SET(x)       BROADCAST(x)
#define ADD(a, b, c) FMA(a, b, c)
#include "cpu/kernels/template_pairs.h"

/* How the sums of a tile become elements of C; the same for all tiles of a product. The signs are
 * those of the formulas for a*b at the head of this file: x_signs of x.re and x.im, y_signs of y.im
 * and y.re. A lane is 0 for plus and has only the sign bit for minus. */
typedef struct NAME(ending) {
    V x_signs, y_signs;
    T alpha, beta, alpha_imag, beta_imag;
    bool has_alpha, has_beta; /* alpha is not 1; beta is not 0 */
} NAME(ending);

INLINE NAME(ending) NAME(ending_of)(double alpha, double beta, const tgl_complex_part *z)
{
    const T a = z->conj_a ? -1 : 1, b = z->conj_b ? -1 : 1;
    const V plus = BROADCAST(1);
    NAME(ending)
    e = {.x_signs = NAME(inverted)(NAME(pairs)(1, b), plus),
         .y_signs = NAME(inverted)(NAME(pairs)(-a * b, a), plus),
         .alpha = (T)alpha,
         .beta = (T)beta,
         .alpha_imag = (T)z->alpha_imag,
         .beta_imag = (T)z->beta_imag};
    e.has_alpha = e.alpha != 1 || e.alpha_imag != 0;
    e.has_beta = e.beta != 0 || e.beta_imag != 0;
    return e;
}

/* acc[i] := row i of alpha*a*b + beta*c, for i < mr. */
INLINE void NAME(finish_tile)(const int mr, const int nv, const bool masked, MASK mask,
                              const T *restrict c, int64_t ldc, const NAME(ending) * e,
                              V acc[MR * PARTS][SMALL_NV])
{
    UNROLL
    for (int i = 0; i < mr; i++) {
        UNROLL
        for (int j = 0; j < nv; j++)
            acc[i][j] = NAME(joined)(acc[2 * i][j], acc[2 * i + 1][j], e->x_signs, e->y_signs);
    }
    if (e->has_alpha) {
        UNROLL
        for (int i = 0; i < mr; i++) {
            UNROLL
            for (int j = 0; j < nv; j++)
                acc[i][j] = NAME(scaled)(acc[i][j], e->alpha, e->alpha_imag);
        }
    }
    if (!e->has_beta) return;
    UNROLL
    for (int i = 0; i < mr; i++, c += ldc) {
        __asm__("" : "+r"(c)); /* hides the address, as in store_tile() */
        UNROLL
        for (int j = 0; j < nv; j++) {
            const T *at = c + j * VLEN;
            const V old = masked && j == nv - 1 ? LOAD_MASKED(at, mask) : LOAD(at);
            acc[i][j] = acc[i][j] + NAME(scaled)(old, e->beta, e->beta_imag);
        }
    }
}

#ifdef HALF_V
#define VECTOR       HALF_V
#define LANES        CPU_HALF(VLEN)
#define ON_VECTOR(x) NAME(x##_half)
#define SET(x)       HALF_BROADCAST(x)
#define ADD(a, b, c) HALF_FMA(a, b, c)
#include "cpu/kernels/template_pairs.h"

/* As finish_tile(), for the last vector of a tile if that is a half-width vector. */
INLINE void NAME(finish_half)(const int mr, MASK mask, const T *c, int64_t ldc,
                              const NAME(ending) * e, HALF_V acc[MR * PARTS])
{
    const HALF_V x_signs = HALF_OF(e->x_signs), y_signs = HALF_OF(e->y_signs);
    UNROLL
    for (int i = 0; i < mr; i++, c += ldc) {
        acc[i] = NAME(joined_half)(acc[2 * i], acc[2 * i + 1], x_signs, y_signs);
        if (e->has_alpha) acc[i] = NAME(scaled_half)(acc[i], e->alpha, e->alpha_imag);
        if (e->has_beta)
            acc[i] = acc[i] + NAME(scaled_half)(HALF_LOAD(c, mask), e->beta, e->beta_imag);
    }
}
#endif

#include "cpu/kernels/template_tile.h"

#include "cpu/kernels/template_sizes.h"

#include "cpu/kernels/template_small.h"

/* ---- Packing --------------------------------------------------------------------------------- */

#ifdef PACK_PAIRS
static cpu_pack_fn PACK_PAIRS(interleave), PACK_PAIRS(copy); /* defined by the tier for f64: an f64
                                                                has the size of two f32 */
#else
#define PACK_PAIRS(x) NAME(x)

/* One complex element, and two elements, at any address. */
typedef T NAME(pair) __attribute__((vector_size(2 * sizeof(T)), aligned(sizeof(T)), may_alias));
typedef T NAME(pairs_of_two)
    __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));

static void NAME(copy)(void *to, int64_t width, const void *from, int64_t ld, int64_t count,
                       int64_t k)
{
    NAME(pair) *dst = to;
    const NAME(pair) *src = from;
    for (int64_t p = 0; p < k; p++, dst += width, src += ld) {
        int64_t i = 0;
        for (; i + 2 <= count; i += 2)
            *(NAME(pairs_of_two) *)(dst + i) = *(const NAME(pairs_of_two) *)(src + i);
        for (; i < count; i++)
            dst[i] = src[i];
        for (; i < width; i++)
            dst[i] = (NAME(pair)){0};
    }
}

/* Packs a part of two rows, dst[p*width + i] := src[i*ld + p] for i < 2 and p < k. */
INLINE void NAME(interleave_two)(NAME(pair) * dst, int64_t width, const NAME(pair) * src,
                                 int64_t ld, int64_t k)
{
    int64_t p = 0;
    for (; p + 2 <= k; p += 2) {
        const NAME(pairs_of_two) x = *(const NAME(pairs_of_two) *)(src + p);
        const NAME(pairs_of_two) y = *(const NAME(pairs_of_two) *)(src + ld + p);
        *(NAME(pairs_of_two) *)(dst + p * width) = __builtin_shufflevector(x, y, 0, 1, 4, 5);
        *(NAME(pairs_of_two) *)(dst + (p + 1) * width) = __builtin_shufflevector(x, y, 2, 3, 6, 7);
    }
    if (p < k) {
        dst[p * width] = src[p];
        dst[p * width + 1] = src[ld + p];
    }
}

/* Packs rows of complex elements, one cache line of each row at a time. */
static void NAME(interleave)(void *to, int64_t width, const void *from, int64_t ld, int64_t count,
                             int64_t k)
{
    enum { STEPS_OF_LINE = 64 / (2 * sizeof(T)) };
    NAME(pair) *dst = to;
    const NAME(pair) *src = from;
    for (int64_t p = 0; p < k; p += STEPS_OF_LINE) {
        const int64_t end = NAME(least)(p + STEPS_OF_LINE, k);
        int64_t i = 0;
        for (; i + 2 <= count; i += 2)
            NAME(interleave_two)(dst + p * width + i, width, src + i * ld + p, ld, end - p);
        for (; i < count; i++)
            for (int64_t q = p; q < end; q++)
                dst[q * width + i] = src[i * ld + q];
        for (; i < width; i++)
            for (int64_t q = p; q < end; q++)
                dst[q * width + i] = (NAME(pair)){0};
    }
}
#endif

/* ---- Rows of C ------------------------------------------------------------------------------- */

/* z := (re + i*im) * z. If im is 0, each part is only multiplied by re. */
INLINE void NAME(multiply_by)(T z[2], T re, T im)
{
    const T x = z[0], y = z[1];
    z[0] = re * x;
    z[1] = re * y;
    if (im == 0) return;
    z[0] -= im * y;
    z[1] += im * x;
}

static void NAME(scale)(void *to, int64_t n, double beta, double beta_imag)
{
    T *c = to;
    const T re = (T)beta, im = (T)beta_imag;
    if (re == 0 && im == 0)
        memset(c, 0, (size_t)n * 2 * sizeof *c);
    else
        for (int64_t j = 0; j < n; j++)
            NAME(multiply_by)(c + 2 * j, re, im);
}

static void NAME(reduce)(void *to, int64_t c_stride, int64_t n, const void *from,
                         int64_t part_stride, int64_t count, double alpha, double beta,
                         const tgl_complex_part *z)
{
    T *c = to;
    const T *part = from;
    const T alpha_imag = (T)z->alpha_imag, beta_imag = (T)z->beta_imag;
    for (int64_t j = 0; j < n; j++) {
        T sum[2] = {part[2 * j], part[2 * j + 1]};
        for (int64_t q = 1; q < count; q++) {
            sum[0] += part[2 * (q * part_stride + j)];
            sum[1] += part[2 * (q * part_stride + j) + 1];
        }
        if (z->conj_a) sum[1] = -sum[1];
        NAME(multiply_by)(sum, (T)alpha, alpha_imag);
        T *result = c + 2 * j * c_stride;
        if ((T)beta != 0 || beta_imag != 0) {
            T old[2] = {result[0], result[1]};
            NAME(multiply_by)(old, (T)beta, beta_imag);
            sum[0] += old[0];
            sum[1] += old[1];
        }
        result[0] = sum[0];
        result[1] = sum[1];
    }
}

static void NAME(finish)(void *c, int64_t n, const void *bias, int64_t bias_step,
                         tgl_activation activation, const void *residual)
{
    T *restrict x = c;
    const T *b = bias, *r = residual;
    (void)activation; /* complex types have none */
    for (int64_t j = 0; b != NULL && j < n; j++) {
        x[2 * j] += b[2 * j * bias_step];
        x[2 * j + 1] += b[2 * j * bias_step + 1];
    }
    for (int64_t j = 0; r != NULL && j < 2 * n; j++)
        x[j] += r[j];
}

static void NAME(conjugate)(void *to, const void *from, int64_t step, int64_t k)
{
    T *x = to;
    const T *y = from;
    for (int64_t p = 0; p < k; p++, x += 2, y += 2 * step) {
        x[0] = y[0];
        x[1] = -y[1];
    }
}

/* ---- Matrix times vector --------------------------------------------------------------------- */

/* y[i] := dot product of row i of M and x, for i < rows; `rows` is a compile-time constant. */
INLINE void NAME(dot_rows)(const int rows, T *y, const T *M, int64_t ld, int64_t k, const T *x)
{
    V straight[4], crossed[4]; /* sums of (re*re, im*im) and of (re*im, im*re) */
    UNROLL
    for (int i = 0; i < rows; i++)
        straight[i] = crossed[i] = BROADCAST(0);
    int64_t p = 0;
    for (; p + VLEN <= 2 * k; p += VLEN) {
        const V xs = LOAD(x + p), exchanged = NAME(exchanged)(xs);
        UNROLL
        for (int i = 0; i < rows; i++) {
            const V m = LOAD(M + 2 * i * ld + p);
            straight[i] = FMA(m, xs, straight[i]);
            crossed[i] = FMA(m, exchanged, crossed[i]);
        }
    }
    if (p < 2 * k) {
        const MASK mask = MASK_OF((int)(2 * k - p));
        const V xs = LOAD_MASKED(x + p, mask), exchanged = NAME(exchanged)(xs);
        UNROLL
        for (int i = 0; i < rows; i++) {
            const V m = LOAD_MASKED(M + 2 * i * ld + p, mask);
            straight[i] = FMA(m, xs, straight[i]);
            crossed[i] = FMA(m, exchanged, crossed[i]);
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        T lanes[VLEN], across[VLEN];
        STORE(lanes, straight[i]);
        STORE(across, crossed[i]);
        for (int width = VLEN / 2; width > 1; width /= 2)
            for (int j = 0; j < width; j++) {
                lanes[j] += lanes[j + width];
                across[j] += across[j + width];
            }
        y[2 * i] = lanes[0] - lanes[1];
        y[2 * i + 1] = across[0] + across[1];
    }
}

static void NAME(dot)(void *to, const void *from, int64_t ld, int64_t rows, int64_t k,
                      const void *by)
{
    T *y = to;
    const T *M = from;
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4)
        NAME(dot_rows)(4, y + 2 * i, M + 2 * i * ld, ld, k, by);
    for (; i < rows; i++)
        NAME(dot_rows)(1, y + 2 * i, M + 2 * i * ld, ld, k, by);
}

/* One vector of y: sum + (sum over p < rows of x[p] * row p of M). `rows` is a compile-time
 * constant. */
INLINE V NAME(combined)(const int rows, bool masked, MASK mask, V sum, const T *M, int64_t ld,
                        const T *x)
{
    V crossed = BROADCAST(0);
    UNROLL
    for (int p = 0; p < rows; p++) {
        const T *at = M + 2 * p * ld;
        const V m = masked ? LOAD_MASKED(at, mask) : LOAD(at);
        sum = FMA(BROADCAST(x[2 * p]), m, sum);
        crossed = FMA(BROADCAST(x[2 * p + 1]), m, crossed);
    }
    return FMA(NAME(pairs)(-1, 1), NAME(exchanged)(crossed), sum);
}

/* sum := x[0]*M[0][j] + ... + x[rows-1]*M[rows-1][j], with M[p][j] = M[p*ld + j]. y[j] := sum if
 * `first`, else y[j] + sum, for j < n. `rows` and `first` are compile-time constants. */
INLINE void NAME(combine_rows)(const int rows, const bool first, T *y, const T *M, int64_t ld,
                               int64_t n, const T *x)
{
    int64_t j = 0;
    for (; j + VLEN <= 2 * n; j += VLEN) {
        const V old = first ? BROADCAST(0) : LOAD(y + j);
        STORE(y + j, NAME(combined)(rows, false, MASK_OF(VLEN), old, M + j, ld, x));
    }
    if (j < 2 * n) {
        const MASK mask = MASK_OF((int)(2 * n - j));
        const V old = first ? BROADCAST(0) : LOAD_MASKED(y + j, mask);
        STORE_MASKED(y + j, mask, NAME(combined)(rows, true, mask, old, M + j, ld, x));
    }
}

/* combine() of template_vector.h for complex elements; adds four rows of M at a time. */
static void NAME(combine)(void *to, const void *from, int64_t ld, int64_t n, int64_t k,
                          const void *by)
{
    enum { PIECE = 16384 / (2 * sizeof(T)) };
    const T *x = by;
    for (int64_t j = 0; j < n; j += PIECE) {
        const int64_t width = NAME(least)(PIECE, n - j);
        T *y = (T *)to + 2 * j;
        const T *M = (const T *)from + 2 * j;
        int64_t p = 0;
        NAME(combine_rows)(0, true, y, M, ld, width, x);
        for (; p < k % 4; p++)
            NAME(combine_rows)(1, false, y, M + 2 * p * ld, ld, width, x + 2 * p);
        for (; p < k; p += 4)
            NAME(combine_rows)(4, false, y, M + 2 * p * ld, ld, width, x + 2 * p);
    }
}

const cpu_kernels NAME(tgl_cpu_kernels) = {
    .element = 2 * sizeof(T),
    .parts = 2,
    .vector = VLEN / 2,
    .mr = MR,
    .nv = NV,
    .small_nv = SMALL_NV,
    .kc = KC,
    FOR_TILES(TILE_ENTRIES) FOR_TALLEST_TILES(TALLEST_ENTRIES) FOR_VECTORS(SMALL_ENTRIES)
        .interleave = PACK_PAIRS(interleave),
    .copy = PACK_PAIRS(copy),
    .scale = NAME(scale),
    .reduce = NAME(reduce),
    .finish = NAME(finish),
    .dot = NAME(dot),
    .conjugate = NAME(conjugate),
    .combine = NAME(combine),
};

#pragma pop_macro("NAME")
#pragma pop_macro("MR")
#pragma pop_macro("FOR_TILES")
#pragma pop_macro("FOR_TALLEST_TILES")
#pragma pop_macro("FOR_ROWS")
#ifdef WIDE_MR
#pragma pop_macro("WIDE_MR")
#endif
