/* SPDX-License-Identifier: Apache-2.0
 *
 * Part of template.h: small products. A function multiplies all rows of op(A) by a panel of op(B),
 * tile after tile, so that one call replaces a call for each tile: at 8 x 8 x 8 half of the time is
 * spent on other work than multiply-adds. A and B are not prefetched, because they are usually in a
 * cache. C is prefetched if the product says that it is not in a cache (fetch_c).
 *
 * Optional macros of the tier:
 *   SMALL_NV        vectors of the widest panel; default NV. The hardware prefetches a B of one
 *                   panel as one stream: a batch of 32 x 32 x 32 in f64 takes 40 % less time than
 *                   with two panels (Zen 4)
 *   WIDE_MR         with SMALL_NV: the most rows of a tile with more than NV vectors
 *   HALF_V, HALF_LOAD(p, mask), HALF_STORE(p, mask, v), HALF_BROADCAST(x), HALF_FMA(a, b, c)
 *                   vectors of half the width, for a last vector with at most half of its lanes. A
 *                   processor that executes a vector in two halves (Zen 4) saves the empty half
 *   HALF_OF(v)      with HALF_V: the lower half of a whole vector
 */

_Static_assert(NV <= SMALL_NV && SMALL_NV <= CPU_MAX_SMALL_NV, "the table has no other panels");

/* The operands of one register tile of a small product. */
typedef struct NAME(small_operands) {
    const char *a, *b;
    int64_t a_row, a_step, b_step; /* bytes between two rows of op(A), and between two steps of k in
                                      op(A) and op(B) */
    int64_t k, ldc;
    T *c;
    MASK mask;
    int64_t fetch; /* bytes from a tile of C to a tile that is prefetched; 0: none is */
    bool has_beta; /* beta != 0. It is computed in advance, so that the branch need not wait for the
                      sums */
    /* Pointers, because the values would occupy registers that the sums of the largest tile
     * need. */
    const double *alpha, *beta;
#if PARTS == 2
    NAME(ending) ending;
#endif
} NAME(small_operands);

/* Prefetches the tile of C to the right of this one: the same rows, in the columns of the next
 * panel of op(B). */
INLINE void NAME(fetch_next)(const int mr, const int nv, const NAME(small_operands) * x)
{
    const char *row = (const char *)x->c + x->fetch;
    UNROLL
    for (int i = 0; i < mr; i++, row += x->ldc * (int64_t)sizeof(T))
        PREFETCH_ROW(nv, row, 1, 3);
}

/* Computes one register tile. mr, nv and tail are compile-time constants. */
INLINE void NAME(small_tile)(const int mr, const int nv, const cpu_tail tail,
                             const NAME(small_operands) * x)
{
#ifdef HALF_V
    const bool half = tail == CPU_TAIL_HALF;
    HALF_V half_acc[MR * PARTS];
    UNROLL
    for (int i = 0; i < mr * PARTS; i++)
        half_acc[i] = HALF_BROADCAST(0);
#else
    const bool half = false;
#endif
    const bool masked = tail == CPU_TAIL_PARTIAL;
    const int whole = half ? nv - 1 : nv;
    V acc[MR * PARTS][SMALL_NV];
    UNROLL
    for (int i = 0; i < mr * PARTS; i++) {
        UNROLL
        for (int j = 0; j < whole; j++)
            acc[i][j] = BROADCAST(0);
    }
    if (x->fetch != 0) NAME(fetch_next)(mr, nv, x);
    const char *a = x->a, *from = x->b;
    const MASK mask = x->mask;
    const int64_t a_step = x->a_step, b_step = x->b_step;
    int64_t a_row = x->a_row;
    /* This asm hides a_row. Without it the compiler computes 2*a_row, 3*a_row, ... for all tile
     * sizes before the first tile. */
    __asm__ volatile("" : "+r"(a_row));
    for (int64_t p = x->k; p > 0; p--, a += a_step, from += b_step) {
        const T *b = (const T *)(const void *)from;
        V row[SMALL_NV];
        UNROLL
        for (int j = 0; j < whole; j++)
            row[j] = masked && j == nv - 1 ? LOAD_MASKED(b + j * VLEN, mask) : LOAD(b + j * VLEN);
#ifdef HALF_V
        const HALF_V half_row = half ? HALF_LOAD(b + whole * VLEN, mask) : HALF_BROADCAST(0);
#endif
        UNROLL
        for (int q = 0; q < mr * PARTS; q++) {
            const T element = ((const T *)(const void *)(a + q / PARTS * a_row))[q % PARTS];
            const V broadcast = BROADCAST(element);
            UNROLL
            for (int j = 0; j < whole; j++)
                acc[q][j] = FMA(broadcast, row[j], acc[q][j]);
#ifdef HALF_V
            if (half) { /* if whole == 1, a second load of the element is 9 % faster than
                           HALF_OF() */
                const HALF_V element_half =
                    whole > 1 ? HALF_OF(broadcast) : HALF_BROADCAST(element);
                half_acc[q] = HALF_FMA(element_half, half_row, half_acc[q]);
            }
#endif
        }
    }
    T *c = x->c;
#if PARTS == 2
    NAME(finish_tile)(mr, whole, masked, mask, c, x->ldc, &x->ending, acc);
#ifdef HALF_V
    if (half) NAME(finish_half)(mr, mask, c + whole * VLEN, x->ldc, &x->ending, half_acc);
#endif
#endif
    if (PARTS == 1 && x->has_beta) {
        const T alpha = (T)*x->alpha, beta = (T)*x->beta;
        const V scale_new = BROADCAST(alpha), scale_old = BROADCAST(beta);
        UNROLL
        for (int i = 0; i < mr; i++, c += x->ldc) {
            __asm__("" : "+r"(c)); /* hides the address, as in store_tile() */
            UNROLL
            for (int j = 0; j < whole; j++) {
                const T *at = c + j * VLEN;
                const V old = masked && j == nv - 1 ? LOAD_MASKED(at, mask) : LOAD(at);
                acc[i][j] = FMA(scale_new, acc[i][j], scale_old * old);
            }
#ifdef HALF_V
            if (half)
                half_acc[i] = HALF_FMA(HALF_BROADCAST(alpha), half_acc[i],
                                       HALF_BROADCAST(beta) * HALF_LOAD(c + whole * VLEN, mask));
#endif
        }
        c = x->c;
    }
    UNROLL
    for (int i = 0; i < mr; i++, c += x->ldc) {
        __asm__("" : "+r"(c));
        UNROLL
        for (int j = 0; j < whole; j++)
            if (masked && j == nv - 1)
                STORE_MASKED(c + j * VLEN, mask, acc[i][j]);
            else
                STORE(c + j * VLEN, acc[i][j]);
#ifdef HALF_V
        if (half) HALF_STORE(c + whole * VLEN, mask, half_acc[i]);
#endif
    }
}

/* Multiplies all rows of op(A) by a panel of op(B). Tiles have the maximum number of rows, except
 * the last two, which have nearly equal heights. */
INLINE void NAME(small_panel)(const int nv, const cpu_tail tail, const tgl_small_product *product,
                              const void *b, int64_t ldb, void *c, int columns)
{
    const int64_t element = PARTS * sizeof(T);
    NAME(small_operands)
    x = {
        .a = product->A,
        .b = b,
        .a_row = (product->trans_a ? 1 : product->lda) * element,
        .a_step = (product->trans_a ? product->lda : 1) * element,
        .b_step = ldb * element,
        .k = product->k,
        .ldc = product->ldc * PARTS,
        .c = c,
        .mask = MASK_OF(tail == CPU_TAIL_WHOLE ? VLEN : columns * PARTS),
        .fetch = product->fetch_c ? nv * (int64_t)sizeof(V) : 0,
        .has_beta = (T)product->beta != 0,
        .alpha = &product->alpha,
        .beta = &product->beta,
#if PARTS == 2
        .ending = NAME(ending_of)(product->alpha, product->beta, product->complex),
#endif
    };
#ifdef WIDE_MR
    const int rows_max = nv > NV ? WIDE_MR : MR;
#else
    const int rows_max = MR;
#endif
    for (int64_t left = product->m, rows; left > 0; left -= rows) {
        rows = left >= 2 * rows_max ? rows_max : left > rows_max ? (left + 1) / 2 : left;
        switch (rows) {
#define SMALL_CASE(mr, nv)                                                                         \
    case mr:                                                                                       \
        if (mr <= rows_max) NAME(small_tile)(mr, nv, tail, &x);                                    \
        break;
            FOR_ROWS(SMALL_CASE, nv)
        default:
            __builtin_unreachable(); /* 1 <= rows <= rows_max */
        }
        __asm__ volatile(""
                         : "+r"(rows)); /* hides `rows` from the compiler: see a_row in
                                           small_tile() */
        x.a += rows * x.a_row;
        x.c += rows * x.ldc;
    }
}

#define SMALL_PANEL(nv, tail, suffix)                                                              \
    static void NAME(small_##nv##suffix)(const tgl_small_product *x, const void *b, int64_t ldb,   \
                                         void *c, int columns)                                     \
    {                                                                                              \
        NAME(small_panel)(nv, tail, x, b, ldb, c, columns);                                        \
    }

/* Defines the functions for panels of `nv` vectors, one for each cpu_tail. Without HALF_V, the
 * function for CPU_TAIL_PARTIAL also serves CPU_TAIL_HALF. */
#ifdef HALF_V
#define SMALL_HALF(nv)    SMALL_PANEL(nv, CPU_TAIL_HALF, _half)
#define SMALL_OF_HALF(nv) NAME(small_##nv##_half)
#else
#define SMALL_HALF(nv)
#define SMALL_OF_HALF(nv) NAME(small_##nv##_partial)
#endif
#define SMALL_PANELS(nv)                                                                           \
    SMALL_PANEL(nv, CPU_TAIL_WHOLE, _whole)                                                        \
    SMALL_PANEL(nv, CPU_TAIL_PARTIAL, _partial)                                                    \
    SMALL_HALF(nv)
#define SMALL_ENTRIES(nv)                                                                          \
    .small[CPU_TAIL_WHOLE][(nv)-1] = NAME(small_##nv##_whole),                                     \
    .small[CPU_TAIL_PARTIAL][(nv)-1] = NAME(small_##nv##_partial),                                 \
    .small[CPU_TAIL_HALF][(nv)-1] = SMALL_OF_HALF(nv),

FOR_VECTORS(SMALL_PANELS)

#undef PREFETCH_ROW
#undef SMALL_CASE
#undef SMALL_PANEL
#undef SMALL_PANELS
#undef SMALL_HALF
