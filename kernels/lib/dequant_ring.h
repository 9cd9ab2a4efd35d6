/* SPDX-License-Identifier: Apache-2.0
 *
 * The producer of gemm/dequant.cu: a warp that copies weights by TMA, and everything else by
 * cp.async (unaligned zero points by plain stores), to the ring of stages that the other warps
 * multiply. In the main loop the other warps wait for the producer only, not for each other.
 */
#ifndef TGL_DEQUANT_RING_H
#define TGL_DEQUANT_RING_H

#include "lib/dequant_copies.h"
#include "lib/launch_order.h"
#include "lib/stage_ring.h"
#include "lib/tma.h"

/* The number of steps whose cp.async copies the producer leaves unfinished. It is STAGES - 2, not
 * STAGES - 1: the other warps may then release a stage one step late without delaying the
 * producer's arrival at `full` of the next stage. */
#define UNFINISHED (STAGES - 2)

/* Initialises the mbarriers. Two arrivals fill a stage: one for the weights, one for the other
 * copies. */
static __device__ __forceinline__ void make_barriers(struct ring *ring)
{
    if (threadIdx.x == 0) make_ring(ring, 2, WARPS);
    __syncthreads();
}

static __device__ __forceinline__ int batch_of_map(const struct tgl_gemm_args *args)
{
    return args->stride_b != 0 ? (int)blockIdx.z : 0;
}

/* Prefetches the first steps of weights to L2, one step a lane. */
static __device__ __forceinline__ void prefetch_weights(const struct tgl_gemm_args *args,
                                                        const struct tgl_tensor_map *map,
                                                        int first_row, int from, int to)
{
    const int ahead = copier() * STEP;
    if (copier() < STAGES && ahead < to - from)
        tma_prefetch_3d(map, (from + ahead) / (8 / BITS), first_row, batch_of_map(args));
}

/* Starts the copy of a step of weights, which begins at byte `x` of rows from `first_row` on. Rows
 * and bytes outside of the matrix are zeros. */
static __device__ __forceinline__ void load_weights(char *stage, const struct tgl_gemm_args *args,
                                                    const struct tgl_tensor_map *map, int x,
                                                    int first_row, mbarrier *full)
{
    mbarrier_arrive_and_expect(full, TILE * LINE);
    tma_load_3d(stage, map, x, first_row, batch_of_map(args), full);
}

/* Copies the k in [from, to) of the block's operands. Called by all lanes of a warp. */
static __device__ __forceinline__ void dequant_produce(const struct tgl_gemm_args *args,
                                                       const struct tgl_tensor_map *map,
                                                       const struct block_operands *o,
                                                       struct ring *ring, char *stages,
                                                       int first_row, int from, int to)
{
    struct copies copies = first_copies(args, o, from);
    struct ring_place at = {0, 0}, filled = {0, 0};
    const int steps = to > from ? (to - from - 1) / STEP + 1 : 0;
#pragma unroll 1
    for (int i = 0; i < steps + UNFINISHED; i++) {
        if (i < steps) {
            const int k = from + i * STEP;
            char *stage = stages + at.stage * STAGE_BYTES;
            mbarrier_wait(&ring->empty[at.stage], at.parity ^ 1);
            if (copier() == 0)
                load_weights(stage, args, map, k / (8 / BITS), first_row, &ring->full[at.stage]);
            copy_step(stage, args, o, &copies);
            advance(&at);
        }
        async_commit();
        if (i < UNFINISHED) continue;
        ASYNC_WAIT(UNFINISHED);
        __syncwarp(); /* the copies of all lanes have arrived */
        if (copier() == 0) mbarrier_arrive(&ring->full[filled.stage]);
        advance(&filled);
    }
    /* Not earlier, because the weights that the next launch prefetches would take the room of this
     * launch's weights in L2. */
    if (args->overlaps) let_later_launches_start();
}

#endif
