/* SPDX-License-Identifier: Apache-2.0
 *
 * From the sums of consumers to D: the sums of split tiles are added up, and each warp moves its
 * sums through shared memory of its own, so that it reads C and stores D in whole lines. With
 * TMA_STORES a consumer's memory holds that many boxes of 64 rows of results of 16 bits, which
 * TMA stores. A box is used again when TMA has read it. TMA stores a tile's last boxes while the
 * consumer multiplies its next tile.
 */
#ifndef TGL_WGMMA_STORE_H
#define TGL_WGMMA_STORE_H

#include "lib/cluster.h"
#include "lib/epilogue.h"
#include "lib/ldmatrix.h"
#include "lib/named_barrier.h"
#include "lib/wgmma_tiles.h"
#include "lib/wgmma_units.h"

#if TMA_STORES && (EXCHANGED || ALTERNATE || CLUSTER_SPLITS > 1 || BN % 32 != 0)
#error "TMA stores boxes of 64 or 32 columns, by consumers that have whole rows of a tile"
#endif
#if TMA_STORES && (RESIDUAL || (TYPE_D != TYPE_F16 && TYPE_D != TYPE_BF16))
#error "TMA stores results of 16 bits without a residual"
#endif
#if TMA_STORES && D_WORD != 16
#error "TMA stores rows that are multiples of 16 bytes long"
#endif

/* Barriers of consumers: of all of them, and of the threads of one. */
#define ALL_CONSUMERS_BARRIER() named_barrier(1, CONSUMER_THREADS)
#define CONSUMER_BARRIER()      named_barrier(2 + (int)threadIdx.x / 128, 128)

/* ---- Split-K --------------------------------------------------------------------------------- */

#define LAST_BLOCK_BARRIER() ALL_CONSUMERS_BARRIER()
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
    ALL_CONSUMERS_BARRIER(); /* the other consumer has read its last stage */
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

/* Whether a part of the tile has nothing that the unit stores: `lefts` rows from `left` on, and
 * `rights` columns from `right` on. */
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
#define CHUNK        (PART % 32 == 0 ? 32 : 16)
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

/* If D has 16 bits, and neither C nor a residual is read, the epilogue is applied in registers. The
 * results are packed and go through shared memory by stmatrix: SPAN columns of a warp's sums at a
 * time, as lines of D in pieces of 16 bytes. Pieces are swizzled so that stmatrix and loads of
 * pieces use all banks. Threads store words of D_WORD bytes. With TMA_STORES a span of all warps of
 * a consumer is a box whose swizzle is as wide as its lines, 128 or 64 bytes, which is the same.
 *
 * Long epilogues, and those of blocks with few free registers, are not unrolled over spans: a span,
 * which is then small if TMA does not store it, is copied to registers of its own first. */
#define HAS_SMALL_SPANS (ACTIVATION >= 2 || EXPRESSION || (MIN_BLOCKS > 1 && M_STEPS * ACC > 64))
#define HAS_PACKED      ((TYPE_D == TYPE_F16 || TYPE_D == TYPE_BF16) && !RESIDUAL)
#if TMA_STORES
#define SPAN (BN % 64 == 0 ? 64 : 32)
#elif HAS_SMALL_SPANS || PART % 32 != 0
#define SPAN 16
#else
#define SPAN (PART % 64 == 0 && !EXCHANGED ? 64 : 32)
#endif
#define SPANS      (BN / SPAN)
#define SPAN_LINES (EXCHANGED ? SPAN : 16)
#define PIECES     (EXCHANGED ? 2 : SPAN / 8) /* of a line */

/* Shared memory of a consumer: a chunk of each warp, or boxes of results. */
#define CHUNK_BYTES   (CHUNK_LINES * CHUNK_PITCH * 4)
#define BOX_BYTES     (64 * SPAN * 2) /* 64 rows of SPAN results */
#define BOXES_BYTES   (TMA_STORES * BOX_BYTES)
#define RESULTS_BYTES (BOXES_BYTES > 4 * CHUNK_BYTES ? BOXES_BYTES : 4 * CHUNK_BYTES)

#if HAS_PACKED

#if D_WORD == 16
typedef uint4 d_word;
#elif D_WORD == 8
typedef uint2 d_word;
#endif

static __device__ __forceinline__ char *piece_of(char *span, int line, int piece)
{
    return span + (line * PIECES + (piece ^ line / (8 / PIECES) % PIECES)) * 16;
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

/* Whether there are no old elements to read, and D's rows consist of words of D_WORD bytes. */
static __device__ __forceinline__ bool is_packed(const struct tgl_gemm_args *args,
                                                 const struct epilogue_operands *with)
{
    const bool words =
        D_WORD == 4 || ((unsigned long long)with->D % D_WORD == 0 && args->ldd % (D_WORD / 2) == 0);
    return BETA(args, with) == 0 && words;
}

/* Stores a warp's span, whose first element is D[row][col]. */
#if D_WORD > 4
static __device__ __forceinline__ void store_span(const struct tgl_gemm_args *args,
                                                  const struct corner *corner, element_d *D,
                                                  char *span, int row, int col)
{
    enum { LENGTH = D_WORD / 2, WORDS = PIECES * 8 / LENGTH /* of a line */ };
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < SPAN_LINES * WORDS; i += 32) {
        const int line = (lane + i) / WORDS, at = (lane + i) % WORDS * LENGTH;
        const int columns = args->n - col - at;
        const char *from = piece_of(span, line, at / 8) + at % 8 * 2;
        element_d *to = D + (row + line) * args->ldd + col + at;
        if (!is_own_row(args, corner, row + line) || col + at < corner->col) continue;
        if (columns >= LENGTH)
            *(d_word *)to = *(const d_word *)from;
        else if (!TMA_STORES) /* with them n is a multiple of 8 */
            for (int j = 0; j < columns; j++)
                to[j] = ((const element_d *)from)[j];
    }
}
#else
/* D's rows start anywhere. Where a line begins in the middle of a word, its last and its first
 * element are stored alone, and lanes take halves of words from each other. */
static __device__ __forceinline__ void store_span(const struct tgl_gemm_args *args,
                                                  const struct corner *corner, element_d *D,
                                                  char *span, int row, int col)
{
    enum { WORDS = PIECES * 4 }; /* of a line */
    const int lane = (int)threadIdx.x % 32, word = lane % WORDS;
    const int from = corner->col - col, to = args->n - col;
#pragma unroll 4
    for (int i = 0; i < SPAN_LINES; i += 32 / WORDS) {
        const int line = i + lane / WORDS;
        element_d *d = D + (row + line) * args->ldd + col;
        const int skip = (int)((unsigned long long)d / 2 % 2);
        const unsigned own = *(const unsigned *)(piece_of(span, line, word / 4) + word % 4 * 4);
        const unsigned before =
            __shfl_sync(0xffffffff, own, lane - word + (word + WORDS - 1) % WORDS);
        const unsigned pair = skip ? before >> 16 | own << 16 : own;
        const int first = (2 * word - skip) & (2 * WORDS - 1), second = 2 * word - skip + 1;
        if (!is_own_row(args, corner, row + line)) continue;
        if (first >= from && first < second && second < to) {
            *(unsigned *)(d + first) = pair;
        } else {
            if (first >= from && first < to) d[first].bits = (unsigned short)pair;
            if (second >= from && second < to) d[second].bits = (unsigned short)(pair >> 16);
        }
    }
}
#endif

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

#if TMA_STORES
/* By all threads of a consumer: waits until TMA still reads at most `pending` groups of its boxes,
 * a constant. Each store_boxes() is a group. */
#define WAIT_FOR_BOXES(pending)                                                                    \
    do {                                                                                           \
        if (threadIdx.x % 128 == 0) TMA_STORE_WAIT_READ(pending);                                  \
        __syncwarp();                                                                              \
        CONSUMER_BARRIER();                                                                        \
    } while (0)

/* Boxes of a consumer's rows of a tile, and how many of them are stored together: each time costs a
 * fence and a barrier, 500 cycles on an H200. */
#define ALL_BOXES     (M_STEPS * SPANS)
#define BOXES_AT_ONCE (TMA_STORES >= ALL_BOXES ? ALL_BOXES : 1)

/* By all threads of a consumer, which have written the boxes number `first` to first +
 * BOXES_AT_ONCE - 1 of its rows: TMA stores them to D. row, col: of the first of these rows in D.
 * Elements outside of D are not stored, because its rows are multiples of 16 bytes long. */
static __device__ __forceinline__ void store_boxes(const struct tgl_gemm_args *args,
                                                   const struct tgl_tensor_map *d_map,
                                                   const char *boxes, const int first, int row,
                                                   int col, int batch)
{
    fence_proxy_async(); /* what this thread has written is visible to TMA */
    CONSUMER_BARRIER();
    if (threadIdx.x % 128 == 0) {
#pragma unroll
        for (int i = first; i < first + BOXES_AT_ONCE; i++) {
            const int x = col + i % SPANS * SPAN, y = row + i / SPANS * 64;
            if (x < args->n && y < args->m)
                tma_store_3d(d_map, x, y, batch, boxes + i % TMA_STORES * BOX_BYTES);
        }
        tma_store_commit();
    }
    __syncwarp();
}
#endif

/* Puts span number i of a consumer's sums into shared memory. left, right: of its first element. */
static __device__ __forceinline__ void put_numbered_span(const struct tgl_gemm_args *args,
                                                         const struct epilogue_operands *with,
                                                         float (*acc)[ACC], char *span, int i,
                                                         int left, int right)
{
#if HAS_SMALL_SPANS
    float own[SPAN / 2];
    take_span(own, acc, i);
    put_span(args, with, span, own, left, right);
#else
    put_span(args, with, span, &acc[i / SPANS][i % SPANS * (SPAN / 2)], left, right);
#endif
}

#if HAS_SMALL_SPANS
#define UNROLL_SPANS _Pragma("unroll 1")
#else
#define UNROLL_SPANS _Pragma("unroll")
#endif

#if TMA_STORES
/* Stores a consumer's rows of a tile. boxes: its shared memory, which TMA has finished reading.
 * Threads store a tile that overlaps the tile before, because TMA would store the overlap again. */
static __device__ __forceinline__ void store_packed_tile(const struct tgl_gemm_args *args,
                                                         const struct epilogue_operands *with,
                                                         float (*acc)[ACC], char *boxes,
                                                         const struct tgl_tensor_map *d_map,
                                                         const struct unit *u, int first_left)
{
    const int first_line = (int)threadIdx.x / 32 % 4 * 16; /* of the warp in a box */
    const struct corner corner = corner_of(u);
    const bool is_whole = u->left == u->own_left && u->right == u->own_right;
    UNROLL_SPANS
    for (int i = 0; i < M_STEPS * SPANS; i++) {
        const int left = first_left + i / SPANS * 64, right = u->right + i % SPANS * SPAN;
        char *lines = boxes + i % TMA_STORES * BOX_BYTES + first_line * (SPAN * 2);
        if (i >= TMA_STORES && is_whole) WAIT_FOR_BOXES(TMA_STORES - 1);
        put_numbered_span(args, with, acc, lines, i, left, right);
        if (is_whole) {
            if ((i + 1) % BOXES_AT_ONCE == 0)
                store_boxes(args, d_map, boxes, i + 1 - BOXES_AT_ONCE, first_left - first_line,
                            u->right, u->batch);
        } else {
            __syncwarp();
            store_span(args, &corner, with->D, lines, left, right);
            __syncwarp();
        }
    }
}
#else
/* Each warp stores its rows through shared memory of its own. */
static __device__ __forceinline__ void store_packed_tile(const struct tgl_gemm_args *args,
                                                         const struct epilogue_operands *with,
                                                         float (*acc)[ACC], char *results,
                                                         const struct tgl_tensor_map *d_map,
                                                         const struct unit *u, int first_left)
{
    char *span = results + (int)threadIdx.x / 32 % 4 * CHUNK_BYTES;
    const struct corner corner = corner_of(u);
    (void)d_map;
    UNROLL_SPANS
    for (int i = 0; i < M_STEPS * SPANS; i++) {
        const int left = first_left + i / SPANS * 64, right = u->right + i % SPANS * SPAN;
        if (is_foreign(args, u, left, 16, right, SPAN) || IS_OTHERS(i % SPANS * SPAN, u)) continue;
        put_numbered_span(args, with, acc, span, i, left, right);
        __syncwarp();
        store_span(args, &corner, with->D, span, EXCHANGED ? right : left,
                   EXCHANGED ? left : right);
        __syncwarp();
    }
}
#endif

#endif

/* By all threads of a consumer: waits until TMA has read its results from shared memory. */
static __device__ __forceinline__ void wait_until_results_are_read(void)
{
#if TMA_STORES
    WAIT_FOR_BOXES(0);
#endif
}

/* ---- A consumer's sums ----------------------------------------------------------------------- */

/* Stores the sums of consumer number `group`. results: RESULTS_BYTES of shared memory. d_map: of D,
 * with TMA_STORES. */
static __device__ __forceinline__ void store_sums(const struct tgl_gemm_args *args,
                                                  float (*acc)[ACC], char *results,
                                                  const struct tgl_tensor_map *d_map,
                                                  const struct unit *u, int group)
{
    wait_until_results_are_read();
    const struct epilogue_operands with = epilogue_operands(args, D_OF(args, u->batch), u->batch);
    const int warp = (int)threadIdx.x / 32 % 4;
    const int first_left = u->left + group * WM + warp * 16;
#if HAS_PACKED
    if (is_packed(args, &with)) {
        store_packed_tile(args, &with, acc, results, d_map, u, first_left);
        return;
    }
#endif
    (void)d_map;
    store_tile(args, &with, acc, (float *)(results + warp * CHUNK_BYTES), u, first_left);
}

#endif
