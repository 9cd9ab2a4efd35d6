/* SPDX-License-Identifier: Apache-2.0
 *
 * The shared memory of gemm/wgmma.cu, and the lines of its stages: how many of them TMA copies, and
 * what the kernel sets to 0 instead.
 */
#ifndef TGL_WGMMA_STAGE_H
#define TGL_WGMMA_STAGE_H

#include "lib/wgmma_queue.h"
#include "lib/wgmma_ring.h"
#include "lib/wgmma_scales.h"
#include "lib/wgmma_store.h"
#include "lib/wgmma_turns.h"
#include "lib/wgmma_units.h"

#if TMA_STORES && (STAGE_BYTES % 1024 != 0 || RESULTS_BYTES % 1024 != 0)
#error "TMA_STORES: stages and results begin at multiples of 1024 bytes, for the swizzle"
#endif

struct wgmma_shared {
    unsigned char stages[STAGES][STAGE_BYTES];            /* a left tile, then a right tile */
    __align__(16) char results[CONSUMERS][RESULTS_BYTES]; /* results before their store to D */
    struct ring ring;
#if ALTERNATE
    struct turns turns;
#endif
#if HAS_QUEUE
    struct unit_queue queue;
#endif
#if HAS_BLOCK_SCALES
    struct stage_factors factors[STAGES];
#endif
#if STAGED_FACTORS
    struct line_factors line_factors[CONSUMERS];
#endif
};

/* ---- Lines of a stage ------------------------------------------------------------------------ */

/* The number of rows of the left tile that TMA copies: those that exist, rounded up to whole boxes.
 * If the blocks of a cluster need the same K-major tile, each copies a fixed part of it to all of
 * them, and the result is BM. */
static __device__ __forceinline__ int left_lines(const struct tgl_gemm_args *args)
{
    const int box = !LEFT_ALONG_K ? LINE(BM) : CLUSTER_COLUMNS > 1 ? BM : 1;
    return copied_lines(BM, box, left_extent(args));
}

/* The number of columns of the right tile that TMA copies, computed like left_lines(). */
static __device__ __forceinline__ int right_lines(const struct tgl_gemm_args *args)
{
    const int box = !RIGHT_ALONG_K ? LINE(BN) : CLUSTER_ROWS > 1 ? BN : 1;
    return copied_lines(BN, box, right_extent(args));
}

#if LEFT_BOX < BM
/* As left_lines(), for a tile with rows of a group: only boxes with rows of the group are copied.
 */
static __device__ __forceinline__ int group_lines(const struct tgl_gemm_args *args,
                                                  const struct unit *u)
{
    const int extent = left_extent(args);
    return copied_lines(BM, extent < LEFT_BOX ? extent : LEFT_BOX, u->end - u->left);
}
#endif

/* Called by all threads, before a barrier: sets the rows and columns of all stages that TMA does
 * not fill to 0. wgmma reads them, although no stored result depends on them. */
static __device__ __forceinline__ void clear_other_lines(const struct tgl_gemm_args *args,
                                                         struct wgmma_shared *shared)
{
    const int left_end = left_lines(args) * 128, right_end = LEFT_BYTES + right_lines(args) * 128;
    const uint4 zeros = make_uint4(0, 0, 0, 0);
    if (left_end == LEFT_BYTES && right_end == STAGE_BYTES) return;
    for (int stage = 0; stage < STAGES; stage++) {
        for (int i = left_end + (int)threadIdx.x * 16; i < LEFT_BYTES; i += THREADS * 16)
            *(uint4 *)&shared->stages[stage][i] = zeros;
        for (int i = right_end + (int)threadIdx.x * 16; i < STAGE_BYTES; i += THREADS * 16)
            *(uint4 *)&shared->stages[stage][i] = zeros;
    }
    fence_proxy_async();
}

#if GROUPED == 2
#if LEFT_ALONG_K || RIGHT_ALONG_K
#error "GROUPED: groups along K need operands that are contiguous in their rows and columns"
#endif
#define FIRST_K(u)    ((u)->k)
#define CLEAR_THREADS (ALTERNATE ? 128 : CONSUMER_THREADS) /* threads that clear a stage */

/* Sets the elements of an MN-major tile with k >= first to 0. edge: the tile's rows or columns, BM
 * or BN. The tile consists of edge / LINE(edge) columns (lib/wgmma_tiles.h). A column has BK lines,
 * one for each k, of LINE(edge) 16-bit elements. */
static __device__ __forceinline__ void clear_after(unsigned char *tile, const int edge, int first)
{
    const int column = LINE(edge) * 128, from = first * LINE(edge) * 2, each = column - from;
    const uint4 zeros = make_uint4(0, 0, 0, 0);
    for (int i = (int)threadIdx.x % CLEAR_THREADS * 16; i < edge / LINE(edge) * each;
         i += CLEAR_THREADS * 16)
        *(uint4 *)&tile[i / each * column + from + i % each] = zeros;
}

/* Called by the consumers when a stage has arrived. If the K of the group ends within this stage,
 * sets the rest of the left tile and of the right tile to 0, because its elements do not belong to
 * the group. To set only one of the two tiles to 0 would not suffice: if the other tile has an Inf
 * or a NaN there, its product with 0 is NaN. */
static __device__ __forceinline__ void clear_other_groups(unsigned char *stage,
                                                          const struct unit *u, int step)
{
    if (step + 1 < u->steps || u->last == BK) return;
    clear_after(stage, BM, u->last);
    clear_after(stage + LEFT_BYTES, BN, u->last);
    fence_proxy_async();
    named_barrier(ALTERNATE ? 2 + (int)threadIdx.x / 128 : 1, CLEAR_THREADS);
}
#else
#define FIRST_K(u) 0
#endif

#endif
