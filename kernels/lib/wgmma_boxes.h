/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores of 16-bit results to D by TMA, if TMA_STORES > 0. Each consumer (a warpgroup that
 * multiplies) has TMA_STORES boxes of shared memory, which it fills in turn. A box holds 64 rows of
 * SPAN results (lib/wgmma_spans.h). Before the consumer fills a box again, it waits until TMA has
 * read that box. TMA stores the last boxes of a tile while the consumer multiplies its next tile.
 */
#ifndef TGL_WGMMA_BOXES_H
#define TGL_WGMMA_BOXES_H

#include "lib/tma.h"
#include "lib/wgmma_spans.h"

#define BOX_BYTES (64 * SPAN * 2) /* 64 rows of SPAN results */

#if TMA_STORES

#if EXCHANGED || ALTERNATE || CLUSTER_SPLITS > 1 || BN % 32 != 0
#error "TMA stores boxes of 64 or 32 columns, by consumers that have whole rows of a tile"
#endif
#if !HAS_PACKED
#error "TMA stores results of 16 bits, with a residual of 16 bits or none"
#endif
#if D_WORD != 16
#error "TMA stores rows that are multiples of 16 bytes long"
#endif

/* Called by all threads of a consumer: waits until TMA has read all of the consumer's boxes except
 * those of the last `pending` groups. Each store_boxes() is a group. pending: a constant. */
#define WAIT_FOR_BOXES(pending)                                                                    \
    do {                                                                                           \
        if (threadIdx.x % 128 == 0) TMA_STORE_WAIT_READ(pending);                                  \
        __syncwarp();                                                                              \
        CONSUMER_BARRIER();                                                                        \
    } while (0)

/* ALL_BOXES: boxes of a consumer's part of a tile. BOXES_AT_ONCE: boxes of one store_boxes(): all
 * of them if there is room, because a call costs a fence and a barrier, 500 cycles on an H200. */
#define ALL_BOXES     (M_STEPS * SPANS)
#define BOXES_AT_ONCE (TMA_STORES >= ALL_BOXES ? ALL_BOXES : 1)

/* Where the rows end that boxes of the unit may store: the end of its group, or of D. */
static __device__ __forceinline__ int end_of_boxes(const struct tgl_gemm_args *args,
                                                   const struct unit *u)
{
#if GROUPED == 1
    return u->end;
#else
    (void)u;
    return args->m;
#endif
}

/* Whether TMA can store a consumer's rows: the tile does not overlap its neighbour, and each box
 * has either only rows of the unit's group or none of them. row: the first of the consumer's rows.
 */
static __device__ __forceinline__ bool has_whole_boxes(const struct unit *u, int row)
{
    bool are_whole = u->left == u->own_left && u->right == u->own_right;
#if GROUPED == 1
#pragma unroll
    for (int i = 0; i < M_STEPS; i++) {
        const int rows = u->end - (row + i * PART_ROWS); /* those from u->end on are of another
                                                            group */
        are_whole = are_whole && (rows >= 64 || rows <= 0);
    }
#else
    (void)row;
#endif
    return are_whole;
}

/* Lets TMA store BOXES_AT_ONCE boxes, from number `first` on, to D. All threads of the consumer
 * call it after they have written the boxes. row, col: where the consumer's rows begin in D. end:
 * end_of_boxes(). TMA does not store elements outside of D, because the rows of D are multiples of
 * 16 bytes long. */
static __device__ __forceinline__ void store_boxes(const struct tgl_gemm_args *args,
                                                   const struct tgl_tensor_map *d_map,
                                                   const char *boxes, const int first, int row,
                                                   int col, int end, int batch)
{
    fence_proxy_async(); /* makes this thread's writes visible to TMA */
    CONSUMER_BARRIER();
    if (threadIdx.x % 128 == 0) {
#pragma unroll
        for (int i = first; i < first + BOXES_AT_ONCE; i++) {
            const int x = col + i % SPANS * SPAN, y = row + i / SPANS * PART_ROWS;
            if (x < args->n && y < end)
                tma_store_3d(d_map, x, y, batch, boxes + i % TMA_STORES * BOX_BYTES);
        }
        tma_store_commit();
    }
    __syncwarp();
}

/* Stores a consumer's rows of a tile. boxes: the consumer's shared memory, which TMA has finished
 * reading. If the tile overlaps its neighbour, or a box has rows of another group, the threads
 * store the consumer's rows, because TMA cannot leave out rows or columns of a box. */
static __device__ __forceinline__ void store_by_tma(const struct tgl_gemm_args *args,
                                                    const struct epilogue_operands *with,
                                                    accumulate_t (*acc)[ACC], char *boxes,
                                                    const struct tgl_tensor_map *d_map,
                                                    const struct unit *u, int first_left)
{
    const int first_line = STORING_THREAD / 32 % 4 * 16; /* the warp's first line in a box */
    const struct corner corner = corner_of(u);
    const bool is_whole = has_whole_boxes(u, first_left - first_line);
    struct residual_span residual = load_residual(args, with, first_left, u->right);
    UNROLL_SPANS
    for (int i = 0; i < M_STEPS * SPANS; i++) {
        const int left = first_left + i / SPANS * PART_ROWS, right = u->right + i % SPANS * SPAN;
        char *lines = boxes + i % TMA_STORES * BOX_BYTES + first_line * (SPAN * 2);
        const bool is_left_out =
            TAKES_TURNS && !is_whole && is_foreign(args, u, left, 16, right, SPAN);
        if (i >= TMA_STORES && is_whole) WAIT_FOR_BOXES(TMA_STORES - 1);
        if (!is_left_out) put_residual(lines, &residual);
        residual = load_next_residual(args, with, first_left, u->right, i);
        if (is_left_out) continue;
        put_numbered_span(args, with, acc, lines, i, left, right);
        if (is_whole) {
            if ((i + 1) % BOXES_AT_ONCE == 0)
                store_boxes(args, d_map, boxes, i + 1 - BOXES_AT_ONCE, first_left - first_line,
                            u->right, end_of_boxes(args, u),
                            GROUPED && args->stride_d == 0 ? 0 : u->batch);
        } else {
            __syncwarp();
            store_span(args, &corner, with->D, lines, left, right);
            __syncwarp();
        }
    }
}

#endif

/* Called by all threads of a consumer: waits until TMA has read the consumer's results from shared
 * memory. */
static __device__ __forceinline__ void wait_until_results_are_read(void)
{
#if TMA_STORES
    WAIT_FOR_BOXES(0);
#endif
}

#endif
