/* SPDX-License-Identifier: Apache-2.0
 *
 * From the sums of consumers to D: the sums of split tiles are added up, and each warp moves its
 * sums through shared memory of its own, so that it reads C and stores D in whole lines. With
 * BULK_STORES this memory holds all rows of the warp, and copies to D go on while the warp
 * multiplies its next tile.
 */
#ifndef TGL_WGMMA_STORE_H
#define TGL_WGMMA_STORE_H

#include "lib/cluster.h"
#include "lib/epilogue.h"
#include "lib/ldmatrix.h"
#include "lib/named_barrier.h"
#include "lib/wgmma_tiles.h"
#include "lib/wgmma_units.h"

/* ---- Split-K --------------------------------------------------------------------------------- */

#if BULK_STORES && (EXCHANGED || CLUSTER_SPLITS > 1)
#error "whole rows of D are stored in bulk"
#endif

#define LAST_BLOCK_BARRIER() named_barrier(1, CONSUMER_THREADS)
#include "lib/last_block.h"

/* Leaves the unit's sums in the workspace. True in the last unit of a tile: acc is then the sum of
 * all, in the order of K. */
static __device__ __forceinline__ bool
add_splits(float (*acc)[ACC], const struct tgl_gemm_args *args, const struct unit *u)
{
    float4 *sums =
        (float4 *)args->workspace + (long long)u->tile * u->splits * (BM * BN / 4) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < M_STEPS * ACC; i += 4) {
        const float *from = &acc[i / ACC][i % ACC];
        sums[(u->split * (M_STEPS * ACC / 4) + i / 4) * CONSUMER_THREADS] =
            make_float4(from[0], from[1], from[2], from[3]);
    }
    if (!is_last_block(&args->counters[u->tile], u->splits)) return false;
#pragma unroll
    for (int i = 0; i < M_STEPS * ACC; i++)
        acc[i / ACC][i % ACC] = 0.0f;
#pragma unroll 1
    for (int split = 0; split < u->splits; split++) {
        const float4 *from = &sums[split * (M_STEPS * ACC / 4) * CONSUMER_THREADS];
#pragma unroll
        for (int i = 0; i < M_STEPS * ACC; i += 4) {
            const float4 v = __ldcg(&from[i / 4 * CONSUMER_THREADS]);
            float *to = &acc[i / ACC][i % ACC];
            to[0] += v.x, to[1] += v.y, to[2] += v.z, to[3] += v.w;
        }
    }
    return true;
}

#if CLUSTER_SPLITS > 1

/* ---- Split-K in a cluster -------------------------------------------------------------------- */

/* The columns of the tile that a block of the cluster adds up and stores. */
#define PART (BN / CLUSTER_SPLITS)

#if PART % 32 != 0 && PART != 16
#error "a block of the cluster stores 16 columns or a multiple of 32"
#endif

/* acc := the sum of the cluster's sums, in the order of K, in this block's columns. sums: shared
 * memory of all sums of the block, which all blocks are free to overwrite. Each block leaves there
 * what the others need. */
static __device__ __forceinline__ void add_cluster(float (*acc)[ACC], float *sums, int rank)
{
    float *own = sums + threadIdx.x;
    named_barrier(1, CONSUMER_THREADS); /* the other consumer has read its last stage */
#pragma unroll
    for (int i = 0; i < M_STEPS * ACC; i++)
        if (i % ACC / (PART / 2) != rank) own[i * CONSUMER_THREADS] = acc[i / ACC][i % ACC];
    cluster_sync();
#pragma unroll
    for (int i = 0; i < M_STEPS * ACC; i++) {
        if (i % ACC / (PART / 2) != rank) continue;
        float sum = 0.0f;
#pragma unroll
        for (int split = 0; split < CLUSTER_SPLITS; split++)
            sum += split == rank ? acc[i / ACC][i % ACC]
                                 : cluster_load(&own[i * CONSUMER_THREADS], split);
        acc[i / ACC][i % ACC] = sum;
    }
}

/* Whether another block of the cluster stores this column of the tile. */
#define IS_OTHERS(column, u) ((column) / PART != (u)->split)
#else
#define PART                 BN
#define IS_OTHERS(column, u) false
#endif

/* ---- What a unit stores ---------------------------------------------------------------------- */

/* The first element of D that a unit stores. */
struct corner {
    int row, col;
};

static __device__ __forceinline__ struct corner corner_of(const struct unit *u)
{
    const struct corner corner = {EXCHANGED ? u->own_right : u->own_left,
                                  EXCHANGED ? u->own_left : u->own_right};
    return corner;
}

static __device__ __forceinline__ bool is_own_row(const struct tgl_gemm_args *args,
                                                  const struct corner *corner, int row)
{
    return row >= corner->row && row < args->m;
}

/* Whether nothing is stored of `lefts` rows and `rights` columns of the tile, from these on. */
static __device__ __forceinline__ bool is_foreign(const struct tgl_gemm_args *args,
                                                  const struct unit *u, int left, int lefts,
                                                  int right, int rights)
{
    return left + lefts <= u->own_left || left >= left_extent(args) ||
           right + rights <= u->own_right || right >= right_extent(args);
}

/* ---- Results of any type --------------------------------------------------------------------- */

/* A warp's 16 rows of sums, CHUNK columns at a time, as lines of D: rows of the tile, or columns if
 * it is one of D^T. The pitch lets a warp's stores of its fragments go to different banks. */
#define CHUNK        (PART < 32 ? PART : 32)
#define CHUNKS       (BN / CHUNK)
#define CHUNK_LINES  (EXCHANGED ? CHUNK : 16)
#define CHUNK_LENGTH (EXCHANGED ? 16 : CHUNK)
#define CHUNK_PITCH  (EXCHANGED ? 20 : CHUNK + 8)

/* Puts CHUNK columns of a warp's sums into shared memory, as lines of D. */
static __device__ __forceinline__ void put_chunk(float *chunk, const float *acc)
{
    const int lane = (int)threadIdx.x % 32, row = lane / 4, col = lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < CHUNK / 2; i += 2) {
        const int r = row + i / 2 % 2 * 8, c = col + i / 4 * 8;
        if (EXCHANGED) {
            chunk[c * CHUNK_PITCH + r] = acc[i];
            chunk[(c + 1) * CHUNK_PITCH + r] = acc[i + 1];
        } else {
            *(float2 *)&chunk[r * CHUNK_PITCH + c] = make_float2(acc[i], acc[i + 1]);
        }
    }
}

/* Stores a warp's chunk, whose first element is D[row][col]. */
static __device__ __forceinline__ void store_chunk(const struct tgl_gemm_args *args,
                                                   const struct epilogue_operands *with,
                                                   const struct corner *corner, const float *chunk,
                                                   int row, int col, bool aligned)
{
    const int lane = (int)threadIdx.x % 32;
    if (aligned) {
#pragma unroll
        for (int i = 0; i < CHUNK_LINES * CHUNK_LENGTH / 4; i += 32) {
            const int line = (lane + i) / (CHUNK_LENGTH / 4);
            const int at = (lane + i) % (CHUNK_LENGTH / 4) * 4;
            const float4 v = *(const float4 *)&chunk[line * CHUNK_PITCH + at];
            const float sums[4] = {v.x, v.y, v.z, v.w};
            if (is_own_row(args, corner, row + line))
                epilogue_store4(args, with, sums, row + line, col + at, corner->col - col - at,
                                args->n - col - at, true);
        }
    } else {
#pragma unroll 4
        for (int i = 0; i < CHUNK_LINES * CHUNK_LENGTH; i += 32) {
            const int line = (lane + i) / CHUNK_LENGTH, at = (lane + i) % CHUNK_LENGTH;
            if (is_own_row(args, corner, row + line) && col + at >= corner->col &&
                col + at < args->n)
                epilogue_store(args, with, chunk[line * CHUNK_PITCH + at], row + line, col + at);
        }
    }
}

/* Puts chunk number `number` of a consumer's sums into shared memory. Registers cannot be indexed,
 * so each chunk is selected by a comparison. The code that stores a chunk exists once. */
static __device__ __forceinline__ void put_numbered_chunk(float *chunk, float (*acc)[ACC],
                                                          int number)
{
#pragma unroll
    for (int i = 0; i < M_STEPS * CHUNKS; i++)
        if (i == number) put_chunk(chunk, &acc[i / CHUNKS][i % CHUNKS * (CHUNK / 2)]);
}

/* Stores a consumer's rows of a tile. */
static __device__ __forceinline__ void store_tile(const struct tgl_gemm_args *args,
                                                  const struct epilogue_operands *with,
                                                  float (*acc)[ACC], float *chunk,
                                                  const struct unit *u, int first_left)
{
    const bool aligned = ROWS_ARE_ON_16_BYTES(args, with);
    const struct corner corner = corner_of(u);
#pragma unroll 1
    for (int i = 0; i < M_STEPS * CHUNKS; i++) {
        const int left = first_left + i / CHUNKS * 64, right = u->right + i % CHUNKS * CHUNK;
        if (is_foreign(args, u, left, 16, right, CHUNK) || IS_OTHERS(i % CHUNKS * CHUNK, u))
            continue;
        put_numbered_chunk(chunk, acc, i);
        __syncwarp();
        store_chunk(args, with, &corner, chunk, EXCHANGED ? right : left, EXCHANGED ? left : right,
                    aligned);
        __syncwarp();
    }
}

/* ---- 16-bit results ----------------------------------------------- */

/* If D has 16 bits and is aligned, and neither C nor a residual is read, the epilogue is applied in
 * registers. The results are packed and go through shared memory by stmatrix: SPAN columns of a
 * warp's sums at a time, as lines of D in pieces of 16 bytes. Pieces are swizzled so that stmatrix
 * and loads of pieces use all banks. With BULK_STORES lines are as long as a row of the tile, and
 * their pitch does the same. */
/* Long epilogues, and those of blocks with few free registers, are not unrolled over spans: a small
 * span is copied to registers of its own first. */
#define HAS_SMALL_SPANS (ACTIVATION >= 2 || EXPRESSION || (MIN_BLOCKS > 1 && M_STEPS * ACC > 64))
#define HAS_PACKED      ((TYPE_D == TYPE_F16 || TYPE_D == TYPE_BF16) && !RESIDUAL)
#define SPAN            (HAS_SMALL_SPANS || PART % 32 != 0 ? 16 : PART % 64 == 0 && !EXCHANGED ? 64 : 32)
#define SPANS           (BN / SPAN)
#define SPAN_LINES      (EXCHANGED ? SPAN : 16)
#define PIECES          (EXCHANGED ? 2 : SPAN / 8) /* of a line */
#define LINE_PITCH      (BN * 2 + 16)              /* bytes; with BULK_STORES */

/* Shared memory of a warp: a chunk, or all of its results of 16 bits. */
#define CHUNK_BYTES (CHUNK_LINES * CHUNK_PITCH * 4)
#define LINES_BYTES (BULK_STORES ? M_STEPS * 16 * LINE_PITCH : 0)
#define WARP_BYTES  (LINES_BYTES > CHUNK_BYTES ? LINES_BYTES : CHUNK_BYTES)

#if HAS_PACKED

static __device__ __forceinline__ char *piece_of(char *span, int line, int piece)
{
#if BULK_STORES
    return span + line * LINE_PITCH + piece * 16;
#else
    return span + (line * PIECES + (piece ^ line / (8 / PIECES) % PIECES)) * 16;
#endif
}

/* Two finished neighbours of a register pair; the first in the low half. Rows and columns outside
 * are not stored, but bias is read for them. */
static __device__ __forceinline__ unsigned finished_pair(const struct tgl_gemm_args *args,
                                                         const struct epilogue_operands *with,
                                                         const float *sums, int left, int right)
{
    float v[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = EXCHANGED ? right + i : left, col = EXCHANGED ? left : right + i;
        v[i] = epilogue(args, with, sums[i], 0, row < args->m ? row : args->m - 1,
                        col < args->n ? col : args->n - 1);
    }
    return TYPE_D == TYPE_F16 ? floats_to_f16(v[0], v[1]) : floats_to_bf16(v[0], v[1]);
}

/* Puts SPAN columns of a warp's sums, which belong to these rows and columns, into shared memory.
 */
static __device__ __forceinline__ void put_span(const struct tgl_gemm_args *args,
                                                const struct epilogue_operands *with, char *span,
                                                const float *acc, int left, int right)
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < SPAN; i += 16) { /* 16 x 16 elements: four matrices */
        unsigned matrices[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            matrices[j] =
                finished_pair(args, with, &acc[i / 2 + j * 2], left + lane / 4 + j % 2 * 8,
                              right + i + j / 2 * 8 + lane % 4 * 2);
        if (EXCHANGED)
            stmatrix_x4_trans(piece_of(span, i + lane / 16 * 8 + lane % 8, lane / 8 % 2), matrices);
        else
            stmatrix_x4(piece_of(span, lane % 16, i / 8 + lane / 16), matrices);
    }
}

#if !BULK_STORES
/* Stores a warp's span, whose first element is D[row][col]. */
static __device__ __forceinline__ void store_span(const struct tgl_gemm_args *args,
                                                  const struct corner *corner, element_d *D,
                                                  char *span, int row, int col)
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < SPAN_LINES * PIECES; i += 32) {
        const int line = (lane + i) / PIECES, piece = (lane + i) % PIECES;
        const int columns = args->n - col - piece * 8;
        const uint4 *from = (const uint4 *)piece_of(span, line, piece);
        element_d *to = D + (row + line) * args->ldd + col + piece * 8;
        if (!is_own_row(args, corner, row + line) || col + piece * 8 < corner->col) continue;
        if (columns >= 8)
            *(uint4 *)to = *from;
        else
            for (int j = 0; j < columns; j++)
                to[j] = ((const element_d *)from)[j];
    }
}
#endif

static __device__ __forceinline__ bool is_packed(const struct tgl_gemm_args *args,
                                                 const struct epilogue_operands *with)
{
    return BETA(args, with) == 0 && (unsigned long long)with->D % 16 == 0 && args->ldd % 8 == 0;
}

#if HAS_SMALL_SPANS
static __device__ __forceinline__ void take_span(float *own, float (*acc)[ACC], int number)
{
#pragma unroll
    for (int i = 0; i < M_STEPS * SPANS; i++)
#pragma unroll
        for (int j = 0; j < SPAN / 2; j++)
            if (i == number) own[j] = acc[i / SPANS][i % SPANS * (SPAN / 2) + j];
}
#endif

#if BULK_STORES
#define LINES (M_STEPS * 16)

/* The row of D that belongs to a warp's line: 16 rows from `row` on, then 16 from 64 rows below on.
 */
static __device__ __forceinline__ int row_of_line(int row, int line)
{
    return row + line / 16 * 64 + line % 16;
}

/* Copies a warp's lines to D[row][col] and so on. TMA takes multiples of 16 bytes; threads store
 * the rest of a row. One lane issues the copies, because the instruction has its operands in
 * registers that a warp shares. */
static __device__ __forceinline__ void store_lines(const struct tgl_gemm_args *args,
                                                   const struct corner *corner, element_d *D,
                                                   const char *lines, int row, int col)
{
    const int lane = (int)threadIdx.x % 32;
    const int end = args->n - col < BN ? args->n - col : BN, first = corner->col - col;
    const int by_tma = (end - first) / 8 * 8; /* columns */
    fence_proxy_async();                      /* what this thread has written is visible to TMA */
    __syncwarp();
    if (lane == 0 && by_tma > 0) {
#pragma unroll 1
        for (int i = 0; i < LINES; i++)
            if (is_own_row(args, corner, row_of_line(row, i)))
                bulk_store(D + row_of_line(row, i) * args->ldd + corner->col,
                           lines + i * LINE_PITCH + first * 2, (unsigned)by_tma * 2);
        tma_store_commit();
    }
    __syncwarp();
    if (lane >= LINES || !is_own_row(args, corner, row_of_line(row, lane))) return;
    for (int j = first + by_tma; j < end; j++)
        D[row_of_line(row, lane) * args->ldd + col + j] =
            ((const element_d *)(lines + lane * LINE_PITCH))[j];
}
#endif

static __device__ __forceinline__ void store_packed_tile(const struct tgl_gemm_args *args,
                                                         const struct epilogue_operands *with,
                                                         float (*acc)[ACC], char *memory,
                                                         const struct unit *u, int first_left)
{
    const struct corner corner = corner_of(u);
#if HAS_SMALL_SPANS
#pragma unroll 1
#else
#pragma unroll
#endif
    for (int i = 0; i < M_STEPS * SPANS; i++) {
        const int left = first_left + i / SPANS * 64, right = u->right + i % SPANS * SPAN;
        if (is_foreign(args, u, left, 16, right, SPAN) || IS_OTHERS(i % SPANS * SPAN, u)) continue;
        char *span =
            memory + (BULK_STORES ? i / SPANS * 16 * LINE_PITCH + i % SPANS * SPAN * 2 : 0);
#if HAS_SMALL_SPANS
        float own[SPAN / 2];
        take_span(own, acc, i);
        put_span(args, with, span, own, left, right);
#else
        put_span(args, with, span, &acc[i / SPANS][i % SPANS * (SPAN / 2)], left, right);
#endif
#if !BULK_STORES
        __syncwarp();
        store_span(args, &corner, with->D, span, EXCHANGED ? right : left,
                   EXCHANGED ? left : right);
        __syncwarp();
#endif
    }
#if BULK_STORES
    store_lines(args, &corner, with->D, memory, first_left, u->right);
#endif
}

#endif

/* By all lanes of a warp: waits until its memory may be written again, or given back. */
static __device__ __forceinline__ void wait_for_stores(void)
{
#if BULK_STORES
    if (threadIdx.x % 32 == 0) TMA_STORE_WAIT_READ(0);
    __syncwarp();
#endif
}

/* ---- A consumer's sums ----------------------------------------------------------------------- */

/* Stores the sums of consumer number `group`. memory: WARP_BYTES of shared memory of its warp. */
static __device__ __forceinline__ void store_sums(const struct tgl_gemm_args *args,
                                                  float (*acc)[ACC], char *memory,
                                                  const struct unit *u, int group)
{
    wait_for_stores(); /* TMA has read the lines of the tile before */
    const struct epilogue_operands with = epilogue_operands(args, D_OF(args, u->batch), u->batch);
    const int first_left = u->left + group * WM + (int)threadIdx.x / 32 % 4 * 16;
#if HAS_PACKED
    if (is_packed(args, &with)) {
        store_packed_tile(args, &with, acc, memory, u, first_left);
        return;
    }
#endif
    store_tile(args, &with, acc, (float *)memory, u, first_left);
}

#endif
