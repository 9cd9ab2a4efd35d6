/* SPDX-License-Identifier: Apache-2.0
 *
 * Multiplies operands that pack_words_neon.c has packed, in register tiles of 8 x 8. A group is 4
 * or 8 bytes along k of each of 8 lines (rows of op(A) or columns of op(B)). The file that includes
 * this defines these macros, which are undefined at the end:
 *
 *     NAME(x)                  makes the names of functions unique
 *     T, V                     types: a sum, and a vector of 4 sums
 *     ELEMENT                  bytes of an element of A and B
 *     GROUP                    bytes of each line in a group: 4 or 8
 *     LOAD(p), STORE(p, v)     loads and stores a vector of sums, aligned only to T
 *     ADD(x, y), ZERO          the sum of two vectors of sums, and a vector of zeros
 *     MULTIPLY(sums, a, b)     adds the products of a group of 8 rows and one of 8 columns to sums
 *     ROW(sums, i, half)       the first or last 4 sums of row i of the tile
 */

enum { NAME(LINES) = CPU_NEON_LINES, NAME(BYTES) = CPU_NEON_LINES * GROUP };

/* Stores a row of up to 8 sums: C := sums, or C += sums if `add`. */
static inline void NAME(store_row)(T *c, V left, V right, int64_t columns, bool add)
{
    T row[CPU_NEON_LINES] = {0};
    const bool whole = columns >= NAME(LINES);
    T *at = whole ? c : row;
    if (add && !whole) memcpy(row, c, (size_t)columns * sizeof *c);
    if (add) {
        left = ADD(LOAD(at), left);
        right = ADD(LOAD(at + 4), right);
    }
    STORE(at, left);
    STORE(at + 4, right);
    if (!whole) memcpy(c, row, (size_t)columns * sizeof *c);
}

/* Multiplies a panel of A by a panel of B. groups: number of groups along k. rows, columns: what
 * remains of C from *c on; the tile covers at most 8 x 8 of these elements. */
static void NAME(tile)(int64_t groups, const int8_t *a, const int8_t *b, T *c, int64_t ldc,
                       int64_t rows, int64_t columns, bool add)
{
    V sums[16];
    UNROLL
    for (int i = 0; i < 16; i++)
        sums[i] = ZERO;
    for (; groups > 0; groups--, a += NAME(BYTES), b += NAME(BYTES))
        MULTIPLY(sums, a, b);
    UNROLL
    for (int i = 0; i < NAME(LINES); i++)
        if (i < rows) NAME(store_row)(c + i * ldc, ROW(sums, i, 0), ROW(sums, i, 1), columns, add);
}

/* Loop order: for CPU_WORDS_LINES rows of A, which stay in the L1 cache, each panel of B is read
 * once from L2. */
static void NAME(multiply)(const cpu_words_product *x)
{
    const int64_t m = x->a.lines, n = x->b.lines, ldc = x->ldc;
    const int64_t chunks = (x->a.k * ELEMENT + CPU_NEON_CHUNK - 1) / CPU_NEON_CHUNK;
    const int64_t groups = chunks * (CPU_NEON_CHUNK / GROUP), line = chunks * CPU_NEON_CHUNK;
    const int8_t *a = x->packed_a, *b = x->packed_b;
    T *c = x->c;
    for (int64_t i = 0; i < m; i += CPU_WORDS_LINES)
        for (int64_t j = 0; j < n; j += NAME(LINES))
            for (int64_t row = i; row < m && row < i + CPU_WORDS_LINES; row += NAME(LINES)) {
                T *to = c + row * ldc + j;
                NAME(tile)(groups, a + row * line, b + j * line, to, ldc, m - row, n - j, x->add);
            }
}

#undef NAME
#undef T
#undef V
#undef ELEMENT
#undef GROUP
#undef LOAD
#undef STORE
#undef ADD
#undef ZERO
#undef MULTIPLY
#undef ROW
