/* SPDX-License-Identifier: Apache-2.0
 *
 * The main loop of gemm/simt.cu. Every thread holds two fragments of each operand: one is
 * multiplied while the other is loaded from shared memory. Copies of the next tile are issued in
 * between, at the points that the schedule of the configuration names (lib/simt_tiles.h).
 */
#ifndef TGL_SIMT_LOOP_H
#define TGL_SIMT_LOOP_H

#include "lib/block_barrier.h"
#include "lib/simt_copies.h"

/* After the last tile the loop loads fragments once more, which are not used: this is cheaper than
 * a condition. The simulator would report that they read uninitialised shared memory, so it leaves
 * these loads out. */
#ifdef TGL_SIM
#define LOADS_AHEAD(is_used) (is_used)
#else
#define LOADS_AHEAD(is_used) true
#endif

/* Loads four adjacent floats of row p, a constant: one LDS.128, with the swizzle undone. */
static __device__ __forceinline__ void load4(float *fragment, const float *at, const int p,
                                             const int order)
{
    const int r = (int)swizzle((unsigned)p, order);
    const float4 v = *(const float4 *)at;
    fragment[(4 - r) % 4] = v.x;
    fragment[(5 - r) % 4] = v.y;
    fragment[(6 - r) % 4] = v.z;
    fragment[(7 - r) % 4] = v.w;
}

/* A thread's rows of A and columns of B in a stage, at depth 0. source_of() does not use
 * in_stage(): ptxas would order the main loop differently, and the tuned schedules would not
 * apply. */
struct simt_source {
    const float *A, *B;
};

static __device__ __forceinline__ struct simt_source source_of(const struct stage *stages,
                                                               int stage, int row, int col)
{
    const struct simt_source source = {(const float *)((const char *)&stages->A[0][row] + stage),
                                       (const float *)((const char *)&stages->B[0][col] + stage)};
    return source;
}

/* The row of a tile of B in shared memory that has depth p. With PAIRS, it also has depth p ^ 1. */
#define B_ROW(p) (PAIRS ? (p) / 2 : (p))

/* Issues load number i of the fragments that a thread needs at depth p: first the loads of b, then
 * the loads of a. With PAIRS, an odd p needs the same b as p - 1, which is not loaded again. */
static __device__ __forceinline__ void simt_load_part(int i, float *a, float *b,
                                                      const struct simt_source *from, const int p)
{
    const int j = i * 4, k = (i - TN / 4) * 4;
    if (i >= TN / 4)
        load4(&a[k], &from->A[p * PITCH(BM, A_ORDER) + k * LANES_M], p, A_ORDER);
    else if (!PAIRS || p % 2 == 0)
        load4(&b[j], &from->B[B_ROW(p) * PITCH(BN, B_ORDER) + j * LANES_N], B_ROW(p), B_ORDER);
}

/* op(B)[p][j], j counted from the thread's first column. b: its fragment of B. With PAIRS,
 * acc[i][j] takes the real part of an element of B in one step, and the imaginary part in the
 * next. Both are in the same register bank, because they are two floats apart (pair_place()):
 * ptxas can then keep acc[i][j] in the other bank. */
static __device__ __forceinline__ float simt_element_b(const float *b, const int p, const int j)
{
    return PAIRS ? pair_element(b[pair_place(j / 2 * 2 + pair_part(p, j))], p, j) : b[j];
}

/* The schedule issues one copy before row number `from` of the FFMAs, and then one before every
 * `every`-th row. Returns the number of the copy to issue before row number `turn`; -1: none. For
 * loads of fragments, `turn`, `from` and `every` count single FFMAs in place of rows. */
static __device__ __forceinline__ int issue_at(int turn, const int from, const int every)
{
    return turn >= from && (turn - from) % every == 0 ? (turn - from) / every : -1;
}

/* Issues the copy of the next tile that the schedule places before row number `row` of a thread's
 * FFMAs, if there is one. row = p * TM + i for row i at depth p. */
static __device__ __forceinline__ void copy_at(int row, const struct simt_arrival *next)
{
#if COPY_EVERY > 0
    const int copy = issue_at(row, COPY_FROM, COPY_EVERY);
    if (copy >= 0 && copy < A_COPIES) copy_of_A(next, copy);
    if (copy >= A_COPIES && copy < A_COPIES + B_COPIES) copy_of_B(next, copy - A_COPIES);
#endif
}

/* acc += a * b^T at depth p of a tile. Between the FFMAs it loads the next fragments, from depth
 * `next_p` of `from`, and issues copies of the next tile. In odd rows of acc the columns come in
 * reverse order, so that consecutive FFMAs share a register. With the column order 0 2 1 3 in each
 * group of four, ptxas generates the fewest register bank conflicts in most configurations. */
static __device__ __forceinline__ void
simt_multiply_step(float (*acc)[TN], const float *a, const float *b, const int p, bool loads,
                   float *next_a, float *next_b, const struct simt_source *from, const int next_p,
                   const struct simt_arrival *next)
{
#pragma unroll
    for (int i = 0; i < TM; i++) {
        copy_at(p * TM + i, next);
#pragma unroll
        for (int t = 0; t < TN; t++) {
            const int turn = i % 2 ? TN - 1 - t : t;
            const int j = COLUMN_ORDER == 1 ? turn
                          : turn % 4 == 1   ? turn + 1
                          : turn % 4 == 2   ? turn - 1
                                            : turn;
            const int load = issue_at(i * TN + t, LOAD_FROM, LOAD_EVERY);
            if (load >= 0 && load < LOADS && loads)
                simt_load_part(load, next_a, next_b, from, next_p);
            acc[i][j] += simt_element_b(b, p, j) * a[i];
        }
    }
}

/* Commits the group of copies. Returns when the next tile to multiply has arrived and all threads
 * have read the previous one. */
static __device__ __forceinline__ void await_tile(void)
{
    async_commit();
    ASYNC_WAIT(STAGES - 2);
    block_barrier();
}

/* acc += op(A) * op(B) over k. A, B: the first elements of the block's first tiles. rows, cols: how
 * many rows and columns of D exist from the block's first ones on. row, col: the thread's first row
 * and column in the block's tile. is_idle: the warp has no results to store, and only copies. */
static __device__ __forceinline__ void simt_multiply_tiles(float (*acc)[TN], struct stage *stages,
                                                           const float *A, long long lda,
                                                           const float *B, long long ldb, int rows,
                                                           int cols, int k, int row, int col,
                                                           bool is_idle)
{
    const int tiles = (k + STEP - 1) / STEP, depth = k - (tiles - 1) * STEP; /* of tile 0 */
    struct simt_origin from_A, from_B;
    locate_copies(&from_A, A_COPIES, A, lda, rows, BM, VEC_A, A_ORDER);
    locate_copies(&from_B, B_COPIES, B, ldb, cols, BN, VEC_B, B_ORDER);

    const int own_depth = depth - SLICE * BK;
    copy_first_tile(&stages[0].A[0][0], &from_A, A_COPIES, BM, VEC_A, A_ORDER, own_depth);
    copy_first_tile(&stages[0].B[0][0], &from_B, B_COPIES, BN, VEC_B, B_ORDER, own_depth);
    async_commit();
    /* Bytes in memory from one k to the next. */
    const long long a_line = A_ALONG_K ? 4 : lda * (4 / LINE_K(A_ORDER));
    const long long b_line = B_ALONG_K ? 4 : ldb * (4 / LINE_K(B_ORDER));
    /* Tile 0 has only the remainder of K: `depth`, 1 to STEP. After this correction each tile
     * begins STEP behind the previous one. */
    move_copies(&from_A, A_COPIES, (depth - STEP) * a_line);
    move_copies(&from_B, B_COPIES, (depth - STEP) * b_line);
#pragma unroll
    for (int s = 1; s < STAGES - 1; s++) {
        const struct simt_arrival next = {stages, s * STAGE_BYTES, &from_A, &from_B, s < tiles};
        move_copies(&from_A, A_COPIES, STEP * a_line);
        move_copies(&from_B, B_COPIES, STEP * b_line);
        simt_copy_tile(&next);
        async_commit();
    }
    ASYNC_WAIT(STAGES - 2);
    __syncthreads();

    int read = 0, write = (STAGES - 1) * STAGE_BYTES;
    if (is_idle) {
        for (int left = tiles; left > 0; left--) {
            const struct simt_arrival next = {stages, write, &from_A, &from_B, left >= STAGES};
            move_copies(&from_A, A_COPIES, STEP * a_line);
            move_copies(&from_B, B_COPIES, STEP * b_line);
            simt_copy_tile(&next);
            await_tile();
            write = stage_after(write);
        }
        return;
    }

    float a[2][TM], b[2][TN]; /* fragments: one is multiplied, the other loaded */
    struct simt_source from = source_of(stages, read, row, col);
#pragma unroll
    for (int i = 0; i < LOADS; i++)
        simt_load_part(i, a[0], b[0], &from, 0);
    for (int left = tiles; left > 0; left--) {
        const struct simt_arrival next = {stages, write, &from_A, &from_B, left >= STAGES};
        move_copies(&from_A, A_COPIES, STEP * a_line);
        move_copies(&from_B, B_COPIES, STEP * b_line);
#pragma unroll
        for (int p = 0; p < BK; p++) {
            if (p == BK - 1) {
                await_tile();
                write = read;
                read = stage_after(read);
                from = source_of(stages, read, row, col);
            }
#if COPY_EVERY == 0
            if (p == COPY_FROM / TM) simt_copy_tile(&next);
#endif
            simt_multiply_step(acc, a[p % 2], b[B_ROW(p) % 2], p,
                               LOADS_AHEAD(p < BK - 1 || left > 1), a[(p + 1) % 2],
                               b[B_ROW(p + 1) % 2], &from, (p + 1) % BK, &next);
        }
    }
}

#endif
