/* SPDX-License-Identifier: Apache-2.0
 *
 * Part of template.h: one register tile, C := alpha*a*b + beta*C. What makes it fast, the most
 * important first:
 *
 *   1. A tile of C, mr rows times nv vectors, lives in registers while p runs over k.
 *   2. Each step p loads nv vectors of b once and multiplies them by mr broadcast elements of a, so
 *      that mr + nv loads feed mr * nv multiply-adds.
 *   3. An iteration of the loop over k has STEPS steps, which share one branch and the additions to
 *      addresses.
 *   4. Remaining columns are handled by masking lanes of the last vector.
 *   5. Prefetches of C and of the operands of the next tiles are spread over the loop.
 *
 * All functions are inlined into those of template_sizes.h, where mr, nv and the members of
 * NAME(kind) are constants.
 */

/* Prefetches nv vectors, whose first byte may lie anywhere in a cache line. write, where: the
 * constant arguments rw and locality of __builtin_prefetch(). */
#define PREFETCH_ROW(nv, from, write, where)                                                       \
    do {                                                                                           \
        UNROLL                                                                                     \
        for (int byte = 0; byte < (nv) * (int)sizeof(V); byte += 64)                               \
            __builtin_prefetch((const char *)(from) + byte, write, where);                         \
        __builtin_prefetch((const char *)(from) + (nv) * (int)sizeof(V) - 1, write, where);        \
    } while (0)

/* Prefetches rows of C, each `bytes` long. */
static __attribute__((noinline)) void NAME(fetch_rows)(const T *c, int64_t ldc, int rows, int bytes)
{
    for (int i = 0; i < rows; i++) {
        const char *row = (const char *)(c + i * ldc);
        for (int byte = 0; byte < bytes; byte += 64)
            __builtin_prefetch(row + byte, 1, 3);
        __builtin_prefetch(row + bytes - 1, 1, 3);
    }
}

/* The properties of a tile function. */
typedef struct NAME(kind) {
    int mr, nv; /* rows of C (each has PARTS rows of sums in registers), and vectors per row */
    cpu_layout layout;
    bool masked; /* the last vector is partial */
    cpu_use use;
    int group; /* steps of k in an iteration: STEPS. It is a member, because gcc 12 spills addresses
                  if the macro is used directly */
} NAME(kind);

INLINE NAME(kind) NAME(kind_of)(int mr, int nv, cpu_layout layout, bool masked, cpu_use use)
{
    return (NAME(kind)){mr, nv, layout, masked, use, STEPS};
}

/* The read positions of a register tile, and where it copies b to. A line of A is a row of op(A)
 * with CPU_A_ROWS, and a step of k with CPU_A_COLS. a1, a3, a5, a7: distances in bytes from `a` to
 * lines 1, 3, 5, 7 of A; b1, b3: distances from `b` to rows 1 and 3. Lines 2, 4 and 6 need no
 * register: x86 addressing modes compute 2 * a1, 4 * a1 and 2 * a3. */
typedef struct NAME(cursor) {
    const char *a, *b;
    T *copied;
    int64_t a1, a3, a5, a7, b1, b3;
} NAME(cursor);

/* Address of line i of A, as defined at the cursor. */
INLINE const T *NAME(line_of_a)(const NAME(kind) t, const int i, const NAME(cursor) * at)
{
    int64_t offset = i * at->a1;
    if (t.group > 1 && i == 3) offset = at->a3;
    if (t.group > 1 && i == 5) offset = at->a5;
    if (t.group > 1 && i == 6) offset = 2 * at->a3;
    if (t.group > 1 && i == 7) offset = at->a7;
    return (const T *)(const void *)(at->a + offset);
}

/* One step of k, a rank-1 update: acc[i][j] += a[i] * b[j]. u: number of the step in the iteration.
 * The real and the imaginary part of an element of A multiply b separately, like two rows of a real
 * matrix. */
INLINE void NAME(step)(const NAME(kind) t, const int u, MASK mask, NAME(cursor) * at,
                       V acc[MR * PARTS][SMALL_NV])
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
    for (int q = 0; q < t.mr * PARTS; q++) {
        const V x = BROADCAST(t.layout == CPU_A_ROWS
                                  ? NAME(line_of_a)(t, q / PARTS, at)[u * PARTS + q % PARTS]
                                  : NAME(line_of_a)(t, u, at)[q]);
        UNROLL
        for (int j = 0; j < t.nv; j++)
            ADD_PRODUCT(acc[q][j], x, row[j]);
    }
}

/* Runs `rounds` iterations of `steps` steps of k. steps: t.group, or 1 for the remainder of k.
 *
 * The empty asm hides the addresses from the optimiser. Otherwise gcc would compute the address of
 * each element of an iteration before the loop, and spill most of them. The asm also keeps the
 * loads of step u + 1 behind those of step u. It names only addresses that are used, because each
 * one that it names occupies a register. */
INLINE void NAME(steps)(const NAME(kind) t, const int steps, int64_t rounds, MASK mask,
                        NAME(cursor) * at, V acc[MR * PARTS][SMALL_NV])
{
    _Static_assert(STEPS == 1 || (MR <= 8 && STEPS <= 4),
                   "the cursor has distances to no other lines");
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
        at->a += steps * (t.layout == CPU_A_ROWS ? PARTS * (int64_t)sizeof(T) : at->a1);
        at->b += steps * at->b1;
    }
}

/* C := alpha*acc + beta*C. The empty asm hides each row's address from the optimiser. Otherwise gcc
 * would compute the addresses of all rows before the loop over k, and spill registers. */
INLINE void NAME(store_tile)(const int mr, const int nv, const bool masked, MASK mask, T *c,
                             int64_t ldc, T alpha, T beta, V acc[MR * PARTS][SMALL_NV])
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

/* Computes and stores one tile. The parameters are those of cpu_tile_fn (kernels.h); t: the tile's
 * constants. */
INLINE void NAME(tile)(const NAME(kind) t, int64_t k, const T *a, int64_t a_stride, const T *b,
                       int64_t ldb, T *c, int64_t ldc, int tail, T alpha, T beta,
                       const cpu_beside *beside)
{
    const int mr = t.mr, nv = t.nv, group = t.group;
    const int64_t row_step = PARTS * (t.layout == CPU_A_ROWS ? a_stride : 1);
    const MASK mask = MASK_OF(t.masked ? tail * PARTS : VLEN);
    const int64_t element = PARTS * (int64_t)sizeof(T), a1 = a_stride * element;
    const int64_t b1 = ldb * element;
    ldc *= PARTS;
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
    V acc[MR * PARTS][SMALL_NV];
    UNROLL
    for (int i = 0; i < mr * PARTS; i++) {
        UNROLL
        for (int j = 0; j < nv; j++)
            acc[i][j] = BROADCAST(0);
    }
    /* Prefetches are spread over the loop over k, because many at once would delay the loads of a
     * and b. The loop is divided into runs; the length of each run but the last is a multiple of
     * STEPS. Each run prefetches one row of C and some rows of beside->ahead. If k < LONG_K, all
     * rows of C are prefetched before the loop (if beside->fetch_c), and there is only one run if
     * beside->ahead_rows is 0 (docs/notes/2026-11-26-cpu-kernels.md). */
    enum { LONG_K = 128, SHORT_RUN = STEPS > 2 ? 16 : 4 };
    int64_t runs = mr, run = (k + mr * group - 1) / (mr * group) * group;
    if (k < LONG_K) {
        const bool is_divided = beside->ahead_rows > 0;
        runs = is_divided ? (int64_t)((uint64_t)(k + SHORT_RUN - 1) / SHORT_RUN) : 1;
        run = is_divided ? SHORT_RUN : k;
    }
    const T *next_a = t.layout == CPU_A_ROWS ? a + mr * row_step : a + mr * k * PARTS;
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
        const int64_t groups = (int64_t)((uint64_t)steps / (unsigned)group); /* compiles to a
                                                                                shift */
        NAME(steps)(t, group, groups, mask, &at, acc);
        p += steps;
    }
    if (group > 1) NAME(steps)(t, 1, (int64_t)((uint64_t)k % (unsigned)group), mask, &at, acc);
#if PARTS == 2
    const NAME(ending) ending = NAME(ending_of)(alpha, beta, beside->complex);
    NAME(finish_tile)(mr, nv, t.masked, mask, c, ldc, &ending, acc);
    beta = 0, alpha = 1;
#endif
    NAME(store_tile)(mr, nv, t.masked, mask, c, ldc, alpha, beta, acc);
}
