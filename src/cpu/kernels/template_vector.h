/* SPDX-License-Identifier: Apache-2.0
 *
 * Part of template.h: matrix times vector. The elements of the matrix M have the type E and are
 * converted to T when they are loaded. x and y are of type T. template.h includes this file for
 * E = T, and template_short.h for the short types. Macros, which are undefined at the end:
 *
 *   E, OF(x)                element type, and x with a suffix for it
 *   WITHOUT_DOT             optional: do not define dot()
 *   FETCH_ROW(p)            optional: prefetches the element at p, which dot() reads later
 *   LOAD_E(p)               VLEN elements as V
 *   LOAD_FIRST_E(p, lanes)  optional: the first `lanes` elements, 1 to VLEN, as V; the other lanes
 *                           are 0, and their elements are not read
 */

#ifndef LOAD_FIRST_E
INLINE V OF(load_first)(const E *from, int lanes)
{
    E buffer[VLEN] = {0};
    memcpy(buffer, from, (size_t)lanes * sizeof *buffer);
    return LOAD_E(buffer);
}
#define LOAD_FIRST_E(p, lanes) OF(load_first)(p, lanes)
#endif
#ifndef FETCH_ROW
#define FETCH_ROW(p) (void)(p)
#endif

#ifndef WITHOUT_DOT
/* y[i] := dot product of row i of M and x, for i < rows; `rows` is a compile-time constant. ahead:
 * prefetch distance in elements. */
INLINE void OF(dot_rows)(const int rows, int64_t ahead, T *y, const E *M, int64_t ld, int64_t k,
                         const T *x)
{
    enum { CHAINS = 2 }; /* independent sums per row, to hide the latency of the multiply-add */
    V acc[4][CHAINS];
    UNROLL
    for (int i = 0; i < rows; i++)
        acc[i][0] = acc[i][1] = BROADCAST(0);
    int64_t p = 0;
    for (; p + CHAINS * VLEN <= k; p += CHAINS * VLEN) {
        UNROLL
        for (int q = 0; q < CHAINS; q++) {
            const V xs = LOAD(x + p + q * VLEN);
            UNROLL
            for (int i = 0; i < rows; i++) {
                acc[i][q] = FMA(LOAD_E(M + i * ld + p + q * VLEN), xs, acc[i][q]);
                FETCH_ROW(M + i * ld + p + q * VLEN + ahead);
            }
        }
    }
    for (; p < k; p += VLEN) {
        const int lanes = (int)NAME(least)(VLEN, k - p);
        const MASK mask = MASK_OF(lanes);
        const V xs = LOAD_MASKED(x + p, mask);
        UNROLL
        for (int i = 0; i < rows; i++)
            acc[i][0] = FMA(LOAD_FIRST_E(M + i * ld + p, lanes), xs, acc[i][0]);
    }
    UNROLL
    for (int i = 0; i < rows; i++)
        y[i] = NAME(sum_lanes)(acc[i][0] + acc[i][1]);
}

/* y := M*x. If M has a short type, FETCH_ROW prefetches the following rows. With AVX-512 only rows
 * of at most 4 KB are prefetched: without prefetching an Intel Xeon reads rows of 2 KB 30 % slower,
 * but longer rows 20 % faster. With AVX2 rows of any length are prefetched: it pays on Zen 4. */
static void OF(dot)(void *to, const void *from, int64_t ld, int64_t rows, int64_t k, const void *by)
{
    T *y = to;
    const E *M = from;
    const bool fetches = sizeof(V) < 64 || k * (int64_t)sizeof(E) <= 4096;
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4)
        OF(dot_rows)(4, fetches ? 4 * ld : 0, y + i, M + i * ld, ld, k, by);
    for (; i < rows; i++)
        OF(dot_rows)(1, 0, y + i, M + i * ld, ld, k, by);
}
#endif

/* sum := x[0]*M[0][j] + ... + x[rows-1]*M[rows-1][j], with M[p][j] = M[p*ld + j]. y[j] := sum if
 * `first`, else y[j] + sum, for j < n. `rows` and `first` are compile-time constants. */
INLINE void OF(combine_rows)(const int rows, const bool first, T *y, const E *M, int64_t ld,
                             int64_t n, const T *x)
{
    V xs[8];
    UNROLL
    for (int p = 0; p < rows; p++)
        xs[p] = BROADCAST(x[p]);
    int64_t j = 0;
    for (; j + VLEN <= n; j += VLEN) {
        V sum = first ? BROADCAST(0) : LOAD(y + j);
        UNROLL
        for (int p = 0; p < rows; p++)
            sum = FMA(xs[p], LOAD_E(M + p * ld + j), sum);
        STORE(y + j, sum);
    }
    if (j < n) {
        const int lanes = (int)(n - j);
        const MASK mask = MASK_OF(lanes);
        V sum = first ? BROADCAST(0) : LOAD_MASKED(y + j, mask);
        UNROLL
        for (int p = 0; p < rows; p++)
            sum = FMA(xs[p], LOAD_FIRST_E(M + p * ld + j, lanes), sum);
        STORE_MASKED(y + j, mask, sum);
    }
}

/* y := x*M, in parts of PIECE elements of y: a part stays in the L1 cache while all rows of M are
 * added to it, eight rows at a time. */
static void OF(combine)(void *to, const void *from, int64_t ld, int64_t n, int64_t k,
                        const void *by)
{
    enum { PIECE = 16384 / sizeof(T) };
    const T *x = by;
    for (int64_t j = 0; j < n; j += PIECE) {
        const int64_t width = NAME(least)(PIECE, n - j);
        T *y = (T *)to + j;
        const E *M = (const E *)from + j;
        int64_t p = 0;
        OF(combine_rows)(0, true, y, M, ld, width, x);
        for (; p < k % 8; p++)
            OF(combine_rows)(1, false, y, M + p * ld, ld, width, x + p);
        for (; p < k; p += 8)
            OF(combine_rows)(8, false, y, M + p * ld, ld, width, x + p);
    }
}

#undef E
#undef OF
#undef WITHOUT_DOT
#undef FETCH_ROW
#undef LOAD_E
#undef LOAD_FIRST_E
