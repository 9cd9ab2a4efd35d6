/* SPDX-License-Identifier: Apache-2.0
 *
 * The microkernels of all tiers. A tier's file defines the macros below and includes this file once
 * for each element type. What makes the tiles fast, the most important first:
 *
 *   1. A tile of C, mr rows times nv vectors, lives in registers while p runs over k.
 *   2. Each step p loads nv vectors of b once and multiplies them by mr broadcast elements of a, so
 *      that mr + nv loads feed mr * nv multiply-adds.
 *   3. Each tile size from 1 x 1 to MR x NV is a separate function, so that remaining rows need no
 *      padding.
 *   4. Remaining columns are handled by masking lanes of the last vector.
 *
 * Macros that the tier defines before the inclusion, and that this file undefines at its end:
 *   T                      element type, float or double
 *   V, VLEN                vector type and its elements
 *   MR, NV                 the largest register tile; it uses MR*NV + NV + 1 registers
 *   KC                     steps of k between two visits to a tile of C, found by measurement
 *   NAME(x)                x with the tier's and type's suffix
 *   MASK, MASK_OF(lanes)   a mask type, and the mask of the first `lanes` lanes, 1 .. VLEN
 *   LOAD(p), LOAD_MASKED(p, mask)          unaligned; masked lanes read nothing and give 0
 *   STORE(p, v), STORE_MASKED(p, mask, v)  unaligned; masked lanes write nothing
 *   BROADCAST(x), FMA(a, b, c)             a*b + c
 *   TRANSPOSE(x)           transposes V x[VLEN] in place
 * with f32, too:
 *   LOAD_F16(p), LOAD_BF16(p), LOAD_I8(p)  V from VLEN elements of a short type
 * and, optionally:
 *   SHORT_TILES_ARE_MASKED tiles with fewer than MR rows have no functions for whole vectors: for
 *                          AVX-512, whose masks cost one instruction of Intel's in a step
 *   SMALL_NV, HALF_V and others            for small products (template_small.h)
 *   STEPS                  steps of k in one iteration of the main loop of most tiles; 1
 *   IS_RARE(mr, masked, use)               whether a tile's loop has one step all the same, to save
 *                          code; masked tiles with fewer than MR - 1 rows
 *   ADD_PRODUCT(sum, a, b) sum += a*b, rounded as FMA(), in a loop of several steps
 */
#ifndef SMALL_NV
#define SMALL_NV NV
#endif
#ifndef STEPS
#define STEPS 1
#endif
#ifndef IS_RARE
#define IS_RARE(mr, masked, use) ((masked) && (mr) < MR - 1)
#endif
#ifndef ADD_PRODUCT
#define ADD_PRODUCT(sum, a, b) (sum) = FMA(a, b, sum)
#endif

#define INLINE static inline __attribute__((always_inline))

INLINE int64_t NAME(least)(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* ---- Register tiles -------------------------------------------------------------------------- */

/* Prefetches nv vectors, which need not begin with a cache line. write, where: constants, of
 * __builtin_prefetch(). */
#define PREFETCH_ROW(nv, from, write, where)                                                       \
    do {                                                                                           \
        UNROLL                                                                                     \
        for (int byte = 0; byte < (nv) * (int)sizeof(V); byte += 64)                               \
            __builtin_prefetch((const char *)(from) + byte, write, where);                         \
        __builtin_prefetch((const char *)(from) + (nv) * (int)sizeof(V) - 1, write, where);        \
    } while (0)

/* Prefetches rows of C, each `bytes` long. Not inlined, because there are many tiles. */
static __attribute__((noinline)) void NAME(fetch_rows)(const T *c, int64_t ldc, int rows, int bytes)
{
    for (int i = 0; i < rows; i++) {
        const char *row = (const char *)(c + i * ldc);
        for (int byte = 0; byte < bytes; byte += 64)
            __builtin_prefetch(row + byte, 1, 3);
        __builtin_prefetch(row + bytes - 1, 1, 3);
    }
}

/* The properties of a tile function, constants where the functions below are inlined. group: steps
 * of k in one iteration of its main loop. */
typedef struct NAME(kind) {
    int mr, nv;
    cpu_layout layout;
    bool masked; /* the last vector is partial */
    cpu_use use;
    int group;
} NAME(kind);

INLINE int NAME(steps_of)(const bool is_rare)
{
    int steps = STEPS;
    if (is_rare) steps = 1;
    return steps;
}

/* Where a tile reads its operands and copies b to. a1, a3, a5, a7: bytes from `a` to these lines of
 * A, b1 and b3 from b. Lines 2 and 4 are 2 * a1 and 4 * a1 away, line 6 is 2 * a3 away: an address
 * of x86 can contain these factors. */
typedef struct NAME(cursor) {
    const char *a, *b;
    T *copied;
    int64_t a1, a3, a5, a7, b1, b3;
} NAME(cursor);

/* Line i of A, which is a row of op(A) in CPU_A_ROWS and a step of k in CPU_A_COLS. */
INLINE const T *NAME(line_of_a)(const NAME(kind) t, const int i, const NAME(cursor) * at)
{
    int64_t offset = i * at->a1;
    if (t.group > 1 && i == 3) offset = at->a3;
    if (t.group > 1 && i == 5) offset = at->a5;
    if (t.group > 1 && i == 6) offset = 2 * at->a3;
    if (t.group > 1 && i == 7) offset = at->a7;
    return (const T *)(const void *)(at->a + offset);
}

/* Step u of a group, a rank-1 update: acc[i][j] += a[i] * b[j]. */
INLINE void NAME(step)(const NAME(kind) t, const int u, MASK mask, NAME(cursor) * at,
                       V acc[MR][SMALL_NV])
{
    V row[NV];
    const char *from = at->b + (t.group > 1 && u == 3 ? at->b3 : u * at->b1);
    const T *b = (const T *)(const void *)from;
    UNROLL
    for (int j = 0; j < t.nv; j++)
        row[j] = t.masked && j == t.nv - 1 ? LOAD_MASKED(b + j * VLEN, mask) : LOAD(b + j * VLEN);
    if (t.use == CPU_B_FETCH) {
        UNROLL
        for (int byte = 64; byte <= t.nv * (int)sizeof(V); byte += 64)
            __builtin_prefetch(from + t.nv * (int)sizeof(V) + byte - 1, 0, 2);
    }
    if (t.use == CPU_B_COPY) {
        UNROLL
        for (int j = 0; j < t.nv; j++)
            STORE(at->copied + j * VLEN, row[j]);
        at->copied += t.nv * VLEN;
    }
    UNROLL
    for (int q = 0; q < t.mr; q++) {
        const V x = BROADCAST(t.layout == CPU_A_ROWS ? NAME(line_of_a)(t, q, at)[u]
                                                     : NAME(line_of_a)(t, u, at)[q]);
        UNROLL
        for (int j = 0; j < t.nv; j++)
            if (t.group > 1)
                ADD_PRODUCT(acc[q][j], x, row[j]);
            else
                acc[q][j] = FMA(x, row[j], acc[q][j]);
    }
}

/* Runs `rounds` iterations of `steps` steps each; `steps` is t.group or 1. An iteration adds once
 * to the addresses of a and b. The empty asm hides addresses from the optimiser, which would
 * compute the address of each element of a group before the loop and spill most of them, and keeps
 * the loads of a step behind those of the step before. Addresses that no step uses are not named,
 * because each would take a register. */
INLINE void NAME(steps)(const NAME(kind) t, const int steps, int64_t rounds, MASK mask,
                        NAME(cursor) * at, V acc[MR][SMALL_NV])
{
    _Static_assert(STEPS == 1 || (MR <= 8 && STEPS <= 4), "the cursor has no other lines");
    const int lines_of_a = t.layout == CPU_A_ROWS ? t.mr : t.group;
    for (; rounds > 0; rounds--) {
        UNROLL
        for (int u = 0; u < steps; u++) {
            if (t.group > 1) {
                __asm__("" : "+r"(at->a), "+r"(at->b), "+r"(at->a1), "+r"(at->b1) : : "memory");
                if (lines_of_a > 3) __asm__("" : "+r"(at->a3));
                if (lines_of_a > 5) __asm__("" : "+r"(at->a5));
                if (lines_of_a > 7) __asm__("" : "+r"(at->a7));
                if (t.group > 3) __asm__("" : "+r"(at->b3));
            }
            NAME(step)(t, u, mask, at, acc);
        }
        at->a += steps * (t.layout == CPU_A_ROWS ? (int64_t)sizeof(T) : at->a1);
        at->b += steps * at->b1;
    }
}

/* C := alpha*acc + beta*C. The empty asm hides the address of each row from the optimiser, which
 * would compute those of all rows before the loop over k and spill registers to keep them. */
INLINE void NAME(store_tile)(const int mr, const int nv, const bool masked, MASK mask, T *c,
                             int64_t ldc, T alpha, T beta, V acc[MR][SMALL_NV])
{
    const V scale_new = BROADCAST(alpha), scale_old = BROADCAST(beta);
    T *row = c;
    if (beta != 0) {
        UNROLL
        for (int i = 0; i < mr; i++, row += ldc) {
            __asm__("" : "+r"(row));
            UNROLL
            for (int j = 0; j < nv; j++) {
                const T *from = row + j * VLEN;
                const V old = masked && j == nv - 1 ? LOAD_MASKED(from, mask) : LOAD(from);
                acc[i][j] = FMA(scale_new, acc[i][j], scale_old * old);
            }
        }
        row = c;
    } else if (alpha != 1) {
        UNROLL
        for (int i = 0; i < mr; i++) {
            UNROLL
            for (int j = 0; j < nv; j++)
                acc[i][j] = scale_new * acc[i][j];
        }
    }
    UNROLL
    for (int i = 0; i < mr; i++, row += ldc) {
        __asm__("" : "+r"(row));
        UNROLL
        for (int j = 0; j < nv; j++)
            if (masked && j == nv - 1)
                STORE_MASKED(row + j * VLEN, mask, acc[i][j]);
            else
                STORE(row + j * VLEN, acc[i][j]);
    }
}

/* Multiplies and stores one tile. */
INLINE void NAME(tile)(const NAME(kind) t, int64_t k, const T *a, int64_t a_stride, const T *b,
                       int64_t ldb, T *c, int64_t ldc, int tail, T alpha, T beta,
                       const cpu_beside *beside)
{
    const int mr = t.mr, nv = t.nv, group = t.group;
    const int64_t row_step = t.layout == CPU_A_ROWS ? a_stride : 1;
    const MASK mask = MASK_OF(t.masked ? tail : VLEN);
    const int64_t a1 = a_stride * (int64_t)sizeof(T), b1 = ldb * (int64_t)sizeof(T);
    NAME(cursor)
    at = {.a = (const char *)a,
          .b = (const char *)b,
          .copied = t.use == CPU_B_COPY ? beside->copy : NULL,
          .a1 = a1,
          .a3 = 3 * a1,
          .a5 = 5 * a1,
          .a7 = 7 * a1,
          .b1 = b1,
          .b3 = 3 * b1};
    V acc[MR][SMALL_NV];
    UNROLL
    for (int i = 0; i < mr; i++) {
        UNROLL
        for (int j = 0; j < nv; j++)
            acc[i][j] = BROADCAST(0);
    }
    /* Prefetches all at once would delay the loads of a and b. The steps of k are therefore divided
     * into runs, multiples of `group`, and each run prefetches one row of C and a few rows of
     * beside->ahead. */
    enum { LONG_K = 128, SHORT_RUN = STEPS > 2 ? 16 : 4 }; /* docs/notes, cpu-microkernels */
    int64_t runs = mr, run = (k + mr * group - 1) / (mr * group) * group;
    if (k < LONG_K) {
        const bool is_divided = beside->ahead_rows > 0;
        runs = is_divided ? (int64_t)((uint64_t)(k + SHORT_RUN - 1) / SHORT_RUN) : 1;
        run = is_divided ? SHORT_RUN : k;
    }
    const T *next_a = t.layout == CPU_A_ROWS ? a + mr * row_step : a + mr * k;
    if (k < LONG_K && beside->fetch_c) NAME(fetch_rows)(c + ldc, ldc, mr - 1, nv * (int)sizeof(V));
    for (int64_t i = 0, p = 0; p < k; i++) {
        PREFETCH_ROW(nv, c + i * ldc, 1, 3);
        if (t.layout == CPU_A_ROWS) {
            __builtin_prefetch(next_a + i * row_step);
            __builtin_prefetch(next_a + i * row_step + 64 / sizeof(T));
        }
        for (int64_t r = i; r < beside->ahead_rows; r += runs) {
            PREFETCH_ROW(nv, beside->ahead + r * beside->ahead_step, 0, 2);
        }
        const int64_t steps = NAME(least)(run, k - p);
        const int64_t groups = (int64_t)((uint64_t)steps / (unsigned)group); /* a shift */
        NAME(steps)(t, group, groups, mask, &at, acc);
        p += steps;
    }
    if (group > 1) NAME(steps)(t, 1, (int64_t)((uint64_t)k % (unsigned)group), mask, &at, acc);
    NAME(store_tile)(mr, nv, t.masked, mask, c, ldc, alpha, beta, acc);
}

/* One tile as a function. */
#define TILE(mr, nv, layout, masked, use, suffix)                                                  \
    static void NAME(tile_##mr##x##nv##suffix)(                                                    \
        int64_t k, const void *a, int64_t a_stride, const void *b, int64_t ldb, void *c,           \
        int64_t ldc, int tail, double alpha, double beta, const cpu_beside *beside)                \
    {                                                                                              \
        const NAME(kind)                                                                           \
            t = {mr, nv, layout, masked, use, NAME(steps_of)(IS_RARE(mr, masked, use))};           \
        NAME(tile)(t, k, a, a_stride, b, ldb, c, ldc, tail, (T)alpha, (T)beta, beside);            \
    }

/* The functions of one number of rows and vectors, for both layouts: whole, and with a partial
 * vector. */
#define WHOLE_TILES(mr, nv)                                                                        \
    TILE(mr, nv, CPU_A_ROWS, false, CPU_B_READ, _rows)                                             \
    TILE(mr, nv, CPU_A_COLS, false, CPU_B_READ, _cols)
#define MASKED_TILES(mr, nv)                                                                       \
    TILE(mr, nv, CPU_A_ROWS, true, CPU_B_READ, _rows_masked)                                       \
    TILE(mr, nv, CPU_A_COLS, true, CPU_B_READ, _cols_masked)

/* Tiles of MR rows that prefetch the next panel of b, and those that copy b. */
#define TALLEST_TILES(mr, nv)                                                                      \
    TILE(mr, nv, CPU_A_ROWS, false, CPU_B_FETCH, _rows_fetching)                                   \
    TILE(mr, nv, CPU_A_ROWS, false, CPU_B_COPY, _rows_copying)                                     \
    TILE(mr, nv, CPU_A_COLS, false, CPU_B_COPY, _cols_copying)

#ifndef SHORT_TILES_ARE_MASKED
FOR_SHORTER_TILES(WHOLE_TILES)
#endif
FOR_SHORTER_TILES(MASKED_TILES)
FOR_TALLEST_TILES(WHOLE_TILES)
FOR_TALLEST_TILES(MASKED_TILES)
FOR_TALLEST_TILES(TALLEST_TILES)

#include "cpu/kernels/template_small.h"

/* ---- Packing --------------------------------------------------------------------------------- */

/* Stores up to VLEN lanes; lanes <= 0: none. */
INLINE void NAME(store_lanes)(T *to, int64_t lanes, V x)
{
    if (lanes >= VLEN)
        STORE(to, x);
    else if (lanes > 0)
        STORE_MASKED(to, MASK_OF((int)lanes), x);
}

static void NAME(copy)(void *to, int64_t width, const void *from, int64_t ld, int64_t count,
                       int64_t k)
{
    T *dst = to;
    const T *src = from;
    if (width <= VLEN) { /* bands of A: one vector a step */
        const MASK in = MASK_OF((int)count), out = MASK_OF((int)width);
        int64_t p = 0;
        /* Whole vectors, whose surplus lanes the next steps overwrite: a masked store of AVX2 takes
         * 12 cycles on AMD's Zen. */
        for (; p * width + VLEN <= k * width; p++)
            STORE(dst + p * width, LOAD_MASKED(src + p * ld, in));
        for (; p < k; p++)
            STORE_MASKED(dst + p * width, out, LOAD_MASKED(src + p * ld, in));
        return;
    }
    if (width < 2 * VLEN && width == count) { /* bands wider than a vector: two that overlap */
        const int64_t second = width - VLEN;
        for (int64_t p = 0; p < k; p++, dst += width, src += ld) {
            const V low = LOAD(src), high = LOAD(src + second);
            STORE(dst, low);
            STORE(dst + second, high);
        }
        return;
    }
    for (int64_t p = 0; p < k; p++, dst += width, src += ld) {
        int64_t i = 0;
        for (; i + VLEN <= count; i += VLEN)
            STORE(dst + i, LOAD(src + i));
        if (i < count) {
            const MASK mask = MASK_OF((int)(count - i));
            NAME(store_lanes)(dst + i, width - i, LOAD_MASKED(src + i, mask));
            i += VLEN;
        }
        for (; i < width; i += VLEN)
            NAME(store_lanes)(dst + i, width - i, BROADCAST(0));
    }
}

/* Transposes VLEN x VLEN blocks in registers. A last vector with fewer lanes is stored whole,
 * because a masked store of AVX2 takes 12 cycles on AMD's Zen: the next step overwrites its surplus
 * lanes, or, from the second vector of a step on, the vectors before, which are stored later. */
static void NAME(interleave)(void *to, int64_t width, const void *from, int64_t ld, int64_t count,
                             int64_t k)
{
    T *dst = to;
    const T *src = from;
    for (int64_t i = (width - 1) / VLEN * VLEN; i >= 0; i -= VLEN) {
        for (int64_t p = 0; p < k; p += VLEN) {
            const int64_t steps = NAME(least)(VLEN, k - p);
            const MASK mask = MASK_OF((int)steps);
            V x[VLEN];
            UNROLL
            for (int r = 0; r < VLEN; r++)
                x[r] = i + r < count ? LOAD_MASKED(src + (i + r) * ld + p, mask) : BROADCAST(0);
            TRANSPOSE(x);
            if (steps == VLEN && (p + VLEN - 1) * width + i + VLEN <= k * width) {
                UNROLL
                for (int r = 0; r < VLEN; r++)
                    STORE(dst + (p + r) * width + i, x[r]);
            } else {
                UNROLL
                for (int r = 0; r < VLEN; r++)
                    if (r < steps) NAME(store_lanes)(dst + (p + r) * width + i, width - i, x[r]);
            }
        }
    }
}

/* ---- Finishing ------------------------------------------------------------------------------- */

static void NAME(scale)(void *to, int64_t n, double beta)
{
    T *c = to;
    const T factor = (T)beta;
    if (factor == 0)
        memset(c, 0, (size_t)n * sizeof *c);
    else
        for (int64_t j = 0; j < n; j++)
            c[j] *= factor;
}

static void NAME(reduce)(void *to, int64_t c_stride, int64_t n, const void *from,
                         int64_t part_stride, int64_t count, double alpha, double beta)
{
    T *c = to;
    const T *part = from;
    for (int64_t j = 0; j < n; j++) {
        T sum = part[j];
        for (int64_t q = 1; q < count; q++)
            sum += part[q * part_stride + j];
        T *result = c + j * c_stride;
        *result = beta == 0 ? (T)alpha * sum : (T)alpha * sum + (T)beta * *result;
    }
}

/* ---- Matrix times vector --------------------------------------------------------------------- */

INLINE T NAME(sum_lanes)(V x)
{
    T lanes[VLEN];
    memcpy(lanes, &x, sizeof lanes);
    for (int width = VLEN / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lanes[i] += lanes[i + width];
    return lanes[0];
}

#define E                      T
#define OF(x)                  NAME(x)
#define LOAD_E(p)              LOAD(p)
#define LOAD_FIRST_E(p, lanes) LOAD_MASKED(p, MASK_OF(lanes))
#include "cpu/kernels/template_vector.h"

#ifdef LOAD_BF16
/* The first lanes, by way of a buffer: there are no masks for short elements. */
INLINE V NAME(load_first_f16)(const uint16_t *from, int lanes)
{
    uint16_t buffer[VLEN] = {0};
    memcpy(buffer, from, (size_t)lanes * sizeof *buffer);
    return LOAD_F16(buffer);
}

INLINE V NAME(load_first_bf16)(const uint16_t *from, int lanes)
{
    uint16_t buffer[VLEN] = {0};
    memcpy(buffer, from, (size_t)lanes * sizeof *buffer);
    return LOAD_BF16(buffer);
}

INLINE V NAME(load_first_i8)(const int8_t *from, int lanes)
{
    int8_t buffer[VLEN] = {0};
    memcpy(buffer, from, (size_t)lanes * sizeof *buffer);
    return LOAD_I8(buffer);
}

/* Short rows reach the end of a page, where hardware prefetchers stop, sooner: FETCH_ROW. */
#define E                      uint16_t
#define OF(x)                  NAME(x##_of_f16)
#define LOAD_E(p)              LOAD_F16(p)
#define LOAD_FIRST_E(p, lanes) NAME(load_first_f16)(p, lanes)
#define FETCH_ROW(p)           __builtin_prefetch(p)
#include "cpu/kernels/template_vector.h"

#define E                      uint16_t
#define OF(x)                  NAME(x##_of_bf16)
#define LOAD_E(p)              LOAD_BF16(p)
#define LOAD_FIRST_E(p, lanes) NAME(load_first_bf16)(p, lanes)
#define FETCH_ROW(p)           __builtin_prefetch(p)
#include "cpu/kernels/template_vector.h"

/* Four dot products of int8, modulo 2^32: a loop that gcc vectorises, on x86 by VPMADDWD. */
static void NAME(dot_4_of_i8)(uint32_t y[4], const int8_t *const M[4], int64_t k, const int16_t *x)
{
    const int8_t *const a = M[0], *const b = M[1], *const c = M[2], *const d = M[3];
    uint32_t sum_a = 0, sum_b = 0, sum_c = 0, sum_d = 0;
    for (int64_t p = 0; p < k; p++) {
        sum_a += (uint32_t)(a[p] * x[p]);
        sum_b += (uint32_t)(b[p] * x[p]);
        sum_c += (uint32_t)(c[p] * x[p]);
        sum_d += (uint32_t)(d[p] * x[p]);
    }
    y[0] = sum_a, y[1] = sum_b, y[2] = sum_c, y[3] = sum_d;
}

static void NAME(dot_of_i8)(void *to, const void *from, int64_t ld, int64_t rows, int64_t k,
                            const void *by)
{
    uint32_t *y = to, sums[4];
    const int8_t *M = from;
    const T *x = by;
    int16_t integers[CPU_VECTOR_STEPS];
    for (int64_t p = 0; p < k; p++)
        integers[p] = (int16_t)x[p];
    for (int64_t i = 0; i < rows; i += 4) { /* behind the last row it is repeated */
        const int8_t *four[4];
        for (int q = 0; q < 4; q++)
            four[q] = M + NAME(least)(i + q, rows - 1) * ld;
        NAME(dot_4_of_i8)(sums, four, k, integers);
        memcpy(y + i, sums, (size_t)NAME(least)(4, rows - i) * sizeof *y);
    }
}

/* Sums of up to 1024 products of int8 are exact in f32: at most 2^10 * 2^14. */
#define WITHOUT_DOT
#define E                      int8_t
#define OF(x)                  NAME(x##_of_i8)
#define LOAD_E(p)              LOAD_I8(p)
#define LOAD_FIRST_E(p, lanes) NAME(load_first_i8)(p, lanes)
#include "cpu/kernels/template_vector.h"
#endif

/* ---- Epilogues: loops that the compiler vectorises ------------------------------------------- */

/* The activation of activate.h for elements of this type. */
#define SIZED(activation, x)                                                                       \
    (sizeof(T) == sizeof(float) ? (T)activation##_f32((float)(x))                                  \
                                : (T)activation##_f64((double)(x)))

static void NAME(finish)(void *c, int64_t n, const void *bias, int64_t bias_step,
                         tgl_activation activation, const void *residual)
{
    T *restrict x = c;
    const T *b = bias, *r = residual;
    if (b != NULL && bias_step == 0)
        for (int64_t j = 0; j < n; j++)
            x[j] += *b;
    else if (b != NULL)
        for (int64_t j = 0; j < n; j++)
            x[j] += b[j];
    if (activation == TGL_ACTIVATION_RELU)
        for (int64_t j = 0; j < n; j++)
            x[j] = x[j] < 0 ? 0 : x[j];
    else if (activation == TGL_ACTIVATION_GELU)
        for (int64_t j = 0; j < n; j++)
            x[j] = SIZED(cpu_gelu, x[j]);
    else if (activation == TGL_ACTIVATION_SILU)
        for (int64_t j = 0; j < n; j++)
            x[j] = SIZED(cpu_silu, x[j]);
    for (int64_t j = 0; r != NULL && j < n; j++)
        x[j] += r[j];
}

/* ---- The ceiling ----------------------------------------------------------------------------- */

static double NAME(fma_loop)(int64_t rounds, double *sink)
{
    enum { CHAINS = MR * NV < 10 ? MR * NV : 10, REPEATS = 8 };
    V acc[CHAINS];
    /* The compiler does not know x; a factor of 0.5 keeps the sums finite. */
    const V x = BROADCAST((T)*sink), y = BROADCAST((T)0.5);
    UNROLL
    for (int i = 0; i < CHAINS; i++)
        acc[i] = BROADCAST((T)i);
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL
        for (int q = 0; q < REPEATS; q++) {
            UNROLL
            for (int i = 0; i < CHAINS; i++)
                acc[i] = FMA(acc[i], y, x);
        }
    }
    V sum = BROADCAST(0);
    UNROLL
    for (int i = 0; i < CHAINS; i++)
        sum = sum + acc[i];
    *sink = (double)NAME(sum_lanes)(sum);
    return 2.0 * VLEN * CHAINS * REPEATS * (double)rounds;
}

/* ---- The table ------------------------------------------------------------------------------- */

/* whole: the suffix of the functions for whole vectors, or _masked. */
#define TILE_ENTRIES(mr, nv, whole)                                                                \
    .tile[CPU_A_ROWS][0][nv - 1][mr - 1] = NAME(tile_##mr##x##nv##_rows##whole),                   \
                                      .tile[CPU_A_ROWS][1][nv - 1][mr - 1] =                       \
                                          NAME(tile_##mr##x##nv##_rows_masked),                    \
                                      .tile[CPU_A_COLS][0][nv - 1][mr - 1] =                       \
                                          NAME(tile_##mr##x##nv##_cols##whole),                    \
                                      .tile[CPU_A_COLS][1][nv - 1][mr - 1] =                       \
                                          NAME(tile_##mr##x##nv##_cols_masked),
#ifdef SHORT_TILES_ARE_MASKED
#define SHORTER_ENTRIES(mr, nv) TILE_ENTRIES(mr, nv, _masked)
#else
#define SHORTER_ENTRIES(mr, nv) TILE_ENTRIES(mr, nv, )
#endif

#define TALLEST_ENTRIES(mr, nv)                                                                    \
    TILE_ENTRIES(mr, nv, ).tallest_tile[CPU_B_FETCH][CPU_A_ROWS]                                   \
                                       [nv - 1] = NAME(tile_##mr##x##nv##_rows_fetching),          \
                                             .tallest_tile[CPU_B_COPY][CPU_A_ROWS][nv - 1] =       \
                                                 NAME(tile_##mr##x##nv##_rows_copying),            \
                                             .tallest_tile[CPU_B_COPY][CPU_A_COLS][nv - 1] =       \
                                                 NAME(tile_##mr##x##nv##_cols_copying),

const cpu_kernels NAME(tgl_cpu_kernels) = {
    .element = sizeof(T),
    .vector = VLEN,
    .mr = MR,
    .nv = NV,
    .small_nv = SMALL_NV,
    .kc = KC,
    FOR_SHORTER_TILES(SHORTER_ENTRIES) FOR_TALLEST_TILES(TALLEST_ENTRIES) FOR_VECTORS(SMALL_ENTRIES)
        .interleave = NAME(interleave),
    .copy = NAME(copy),
    .scale = NAME(scale),
    .reduce = NAME(reduce),
    .finish = NAME(finish),
    .dot = NAME(dot),
    .combine = NAME(combine),
#ifdef LOAD_BF16
    .short_dot = {NAME(dot_of_f16), NAME(dot_of_bf16), NAME(dot_of_i8)},
    .short_combine = {NAME(combine_of_f16), NAME(combine_of_bf16), NAME(combine_of_i8)},
#endif
    .fma_loop = NAME(fma_loop),
};

#undef T
#undef V
#undef VLEN
#undef NAME
#undef KC
#undef MASK
#undef MASK_OF
#undef LOAD
#undef LOAD_MASKED
#undef STORE
#undef STORE_MASKED
#undef BROADCAST
#undef FMA
#undef ADD_PRODUCT
#undef TRANSPOSE
#undef LOAD_F16
#undef LOAD_BF16
#undef LOAD_I8
#undef SIZED
#undef INLINE
#undef TILE
#undef PREFETCH_ROW
#undef WHOLE_TILES
#undef MASKED_TILES
#undef TILE_ENTRIES
#undef SHORTER_ENTRIES
#undef TALLEST_TILES
#undef TALLEST_ENTRIES
#undef SMALL_ENTRIES
#undef SMALL_OF_HALF
