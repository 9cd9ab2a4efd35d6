/* SPDX-License-Identifier: Apache-2.0
 *
 * Part of template.h: a function for each size and variant of a register tile, and the entries of
 * these functions in the table. Each size from 1 x 1 to MR x NV has functions of its own, so that
 * remaining rows need no padding.
 */

/* The variants of one tile size. Columns: rows, vectors, layout of a, whether the last vector is
 * partial, use of b, suffix of the function's name. */
#define TILE_VARIANTS(X, mr, nv)                                                                   \
    X(mr, nv, CPU_A_ROWS, false, CPU_B_READ, _rows)                                                \
    X(mr, nv, CPU_A_COLS, false, CPU_B_READ, _cols)                                                \
    X(mr, nv, CPU_A_ROWS, true, CPU_B_READ, _rows_masked)                                          \
    X(mr, nv, CPU_A_COLS, true, CPU_B_READ, _cols_masked)

/* The additional variants of tiles of MR rows: they prefetch the next panel of b, or copy b. */
#define TALLEST_VARIANTS(X, mr, nv)                                                                \
    X(mr, nv, CPU_A_ROWS, false, CPU_B_FETCH, _rows_fetching)                                      \
    X(mr, nv, CPU_A_ROWS, false, CPU_B_COPY, _rows_copying)                                        \
    X(mr, nv, CPU_A_COLS, false, CPU_B_COPY, _cols_copying)                                        \
    X(mr, nv, CPU_A_ROWS, true, CPU_B_COPY, _rows_masked_copying)                                  \
    X(mr, nv, CPU_A_COLS, true, CPU_B_COPY, _cols_masked_copying)

#define TILE(mr, nv, layout, masked, use, suffix)                                                  \
    static void NAME(tile_##mr##x##nv##suffix)(                                                    \
        int64_t k, const void *a, int64_t a_stride, const void *b, int64_t ldb, void *c,           \
        int64_t ldc, int tail, double alpha, double beta, const cpu_beside *beside)                \
    {                                                                                              \
        const NAME(kind) t = NAME(kind_of)(mr, nv, layout, masked, use);                           \
        NAME(tile)(t, k, a, a_stride, b, ldb, c, ldc, tail, (T)alpha, (T)beta, beside);            \
    }
#define TILES(mr, nv)         TILE_VARIANTS(TILE, mr, nv)
#define TALLEST_TILES(mr, nv) TALLEST_VARIANTS(TILE, mr, nv)
FOR_TILES(TILES)
FOR_TALLEST_TILES(TALLEST_TILES)

#define TILE_ENTRY(mr, nv, layout, masked, use, suffix)                                            \
    .tile[layout][masked][(nv)-1][(mr)-1] = NAME(tile_##mr##x##nv##suffix),
#define TALLEST_ENTRY(mr, nv, layout, masked, use, suffix)                                         \
    .tallest_tile[use][layout][masked][(nv)-1] = NAME(tile_##mr##x##nv##suffix),
#define TILE_ENTRIES(mr, nv)    TILE_VARIANTS(TILE_ENTRY, mr, nv)
#define TALLEST_ENTRIES(mr, nv) TALLEST_VARIANTS(TALLEST_ENTRY, mr, nv)
