/* SPDX-License-Identifier: Apache-2.0
 *
 * FP32 GEMM with IEEE arithmetic (FFMA), all transposes, any shape and alignment, sm_75 and later.
 *
 * As in rung 26 of the ladder (kernels/ladder/26_split_k.cu), a block computes a BM x BN tile of D,
 * a warp WM x WN of the tile, and a thread TM x TN. STAGES tiles of op(A) and op(B), BK deep, are
 * copied by cp.async. Every thread holds two fragments (values for one step along K) of each
 * operand: one is multiplied while the other is loaded (lib/simt_loop.h). This kernel has what the
 * kernels of the ladder lack:
 *
 *   transposes    Shared memory holds both operands as [BK][edge], MN-major. Tiles of a K-major
 *                 operand are transposed by scalar copies: lib/simt_copies.h.
 *   indices       Stages are numbered by their offset in bytes: to compute the offset from a number
 *                 would take an integer multiplication in the loop, and with it an issue slot of
 *                 the FFMA pipe.
 *   slices        With many results per thread, a small tile occupies only a few warps. With
 *                 slices, SLICES groups of warps compute the same tile. Each slice takes BK of
 *                 every BK * SLICES steps along K. At the end the sums are added through shared
 *                 memory.
 *   edges         A tile that would reach past the last row or column starts earlier, so that it
 *                 ends there. Elements that two blocks compute are stored by the block of the
 *                 preceding tile only. Warps without elements to store only copy. If the matrix is
 *                 smaller than a tile, existing rows and columns are copied in place of missing
 *                 ones. The K remainder comes first, padded with zeros.
 *   block order   Bands of `raster` rows of tiles, so that concurrent blocks share operands in L2.
 *                 Partial tiles of the last column and row come last: they have the least work,
 *                 which shortens the last wave.
 *   split-K       The tiles from number tiles_whole on are computed by `splits` blocks each. A
 *                 cluster of `cluster` blocks adds its sums through distributed shared memory
 *                 (lib/simt_results.h), other blocks through the workspace (lib/split_k.h, with
 *                 slices lib/simt_results.h). The order of additions is fixed, so results are
 *                 bitwise the same in every run. In the grid the first clusters of all tiles come
 *                 before the second clusters: if the first split is deeper than the others, blocks
 *                 with less K run last and fill the SMs at the end.
 *   unaligned     With UNALIGNED_D, which the host sets if ldd is not a multiple of 4 or if A or B
 *                 is unaligned, tiles of D are stored line by line (lib/simt_lines.h).
 *   batch         gridDim.z problems.
 *   pairs         The product computes a complex one (PAIRS of lib/complex_pairs.h). B stays
 *                 complex in shared memory and in registers: a fragment of B serves two steps along
 *                 K, which take its parts in another order and with other signs.
 *   bundles       A launch computes products of several sizes (BUNDLE): lib/bundle_tiles.h.
 *
 * Grid: x = tiles_whole + splits * (tiles - tiles_whole), y = 1, z = batch; clusters of `cluster`
 * blocks along x, of which tiles_whole and splits are multiples. lib/simt_tiles.h has the
 * parameters.
 */
#include "lib/bundle_tiles.h"
#include "lib/dynamic_shared.h"
#include "lib/group_tiles.h"
#include "lib/launch_order.h"
#include "lib/operands.h"
#include "lib/shuffle.h"
#include "lib/simt_lines.h"
#include "lib/simt_loop.h"
#include "lib/simt_results.h"
#include "lib/split_k.h"

/* *row, *col := the first row and column of tile number `tile`. The order of tiles: whole tiles, in
 * bands; then the tiles of a partial last column; then the tiles of a partial last row. */
static __device__ __forceinline__ void simt_place_tile(const struct tgl_gemm_args *args, int tile,
                                                       int *row, int *col)
{
    const int full_m = args->m / BM, full_n = args->n / BN;
    const int partial = args->n % BN > 0 ? full_m : 0; /* tiles of a partial last column */
    int tile_m, tile_n;
    if (tile < full_m * full_n) {
        const int band = tile / (args->raster * full_n);
        const int in_band = tile - band * args->raster * full_n;
        const int height = min(args->raster, full_m - band * args->raster);
        tile_m = band * args->raster + in_band % height;
        tile_n = in_band / height;
    } else if (tile - full_m * full_n < partial) {
        tile_m = tile - full_m * full_n;
        tile_n = full_n;
    } else {
        tile_m = full_m;
        tile_n = tile - full_m * full_n - partial;
    }
    *row = tile_m * BM;
    *col = tile_n * BN;
}

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS) sgemm_simt(GEMM_PARAMETERS)
{
    GEMM_ARGUMENTS;
    DYNAMIC_SHARED(struct stage, stages, SLICES * STAGES_HELD);
    wait_for_earlier_launches();
    if (args.overlaps) let_later_launches_start();

    int tile = FIRST_TILE, first = 0, k = args.k;
    const int item = tile - args.tiles_whole;
    int split_tiles = 0, split_tile = 0, split = 0;
    if (item >= 0) {
        const int cluster = item / args.cluster;
        split_tiles = ((int)gridDim.x - args.tiles_whole) / args.splits;
        split_tile = cluster % split_tiles;
        split = cluster / split_tiles * args.cluster + item % args.cluster;
        tile = args.tiles_whole + split_tile;
        k -= (args.splits - 1) * args.k_chunk; /* depth of the first split */
        if (split > 0) first = k + (split - 1) * args.k_chunk, k = args.k_chunk;
    }
    int block_row, block_col;
#if GROUPED == 1
    if (!group_rows(&args, tile)) return;
#endif
    simt_place_tile(&args, tile, &block_row, &block_col);
#if GROUPED == 1
    const int batch = group_of_rows(&args, &block_row);
#elif GROUPED == 2
    const struct tgl_group_span span = group_table(&args)->spans[blockIdx.z];
    const int batch = span.group;
    first = span.first;
    k = k > 0 ? span.end - span.first : 0;
#endif
    /* The first row and column that the block computes. A tile that would reach past the edge of D
     * starts earlier. */
    const int tile_row = max(0, min(block_row, args.m - BM));
    const int tile_col = max(0, min(block_col, args.n - BN));

#if !GROUPED
    const int batch = (int)blockIdx.z;
#endif
    const element_a *A = A_OF(&args, batch);
    const element_b *B = B_OF(&args, batch);
    element_d *D = D_OF(&args, batch);
    first += SLICE * BK;
    A += TRANS_A ? tile_row * LINE_K(A_ORDER) + first / LINE_K(A_ORDER) * args.lda
                 : tile_row * args.lda + first;
    B += TRANS_B ? tile_col / LINE_EDGE(B_ORDER) * args.ldb + first
                 : tile_col + first / LINE_K(B_ORDER) * args.ldb;

    /* Consecutive warps, which are on different schedulers, compute warp tiles one below the other.
     * If the last columns of the tile are outside of D, all schedulers therefore have equally less
     * work. uniform() tells the compiler that `warp` is equal in all lanes: barriers behind a
     * branch on it need no reconvergence. */
    const int warp = uniform((int)THREAD / 32), lane = (int)threadIdx.x % 32;
    const int warp_row = warp % WARPS_M * WM, warp_col = warp / WARPS_M * WN;
    const int lane_m = lane / 2 % LANES_M, lane_n = lane / (2 * LANES_M) * 2 + lane % 2;
    const int row = warp_row + lane_m * 4, col = warp_col + lane_n * 4; /* in the tile */
    const bool is_idle = tile_row + warp_row + WM <= block_row || tile_row + warp_row >= args.m ||
                         tile_col + warp_col + WN <= block_col || tile_col + warp_col >= args.n;

    float acc[TM][TN] = {{0.0f}};
    if (k > 0 && has_product(&args))
        simt_multiply_tiles(acc, stages + SLICE * STAGES, A, args.lda, B, args.ldb,
                            args.m - tile_row, args.n - tile_col, k, row, col, is_idle);
    const struct epilogue_operands with = epilogue_operands(&args, D, batch);
    const struct simt_place at = {
        with,      tile_row + row, tile_col + col,
        block_row, block_col,      ROWS_ARE_ON_16_BYTES(&args, &with) && tile_col % 4 == 0,
    };
    if (item >= 0) {
        const int shared_tile = batch * split_tiles + split_tile;
#if SLICES == 1
        if (args.cluster == 1 && !sum_over_blocks(&args, &acc[0][0], shared_tile, split, false))
            return;
        if (args.cluster > 1)
#endif
        {
            reduce_and_store(&args, &stages[0].A[0][0], acc, shared_tile, split, &at);
            return;
        }
    }
#if SLICES > 1
    add_slices_and_store(&args, &stages[0].A[0][0], acc, &at);
#elif UNALIGNED_D
    store_lines(&args, &stages[0].A[0][0], acc, &at, row, col);
#else
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            store4(&args, &at, &acc[i][j], i, j);
#endif
}
