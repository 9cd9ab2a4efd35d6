/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores the sums of wgmma as results of any type. Each warp moves its sums through shared memory
 * of its own, a chunk at a time, so that neighbouring lanes read neighbouring elements of C and
 * store neighbouring elements of D. left, right: the operands of wgmma (gemm/wgmma.cu); with
 * EXCHANGED the tile is one of D^T.
 */
#ifndef TGL_WGMMA_CHUNKS_H
#define TGL_WGMMA_CHUNKS_H

#include "lib/epilogue.h"
#include "lib/opaque.h"
#include "lib/wgmma_split_k.h"

/* The thread's number in the epilogue. With block scale factors a consumer has few registers: the
 * compiler shall not keep what it computes from the number during the main loop. */
#define STORING_THREAD                                                                             \
    (HAS_BLOCK_SCALES || STAGED_FACTORS ? opaque((int)threadIdx.x) : (int)threadIdx.x)

/* A chunk is CHUNK columns of a warp's 16 rows of sums. In shared memory its lines are lines of D:
 * rows of the tile, or with EXCHANGED its columns. CHUNK_PITCH, the elements from a line to the
 * next, lets a warp store its fragments without bank conflicts. */
#define CHUNK        (BLOCK_COLUMNS % 32 == 0 ? 32 : 16)
#define CHUNKS       (BN / CHUNK)
#define CHUNK_LINES  (EXCHANGED ? CHUNK : 16)
#define CHUNK_LENGTH (EXCHANGED ? 16 : CHUNK)
#define CHUNK_PITCH  (EXCHANGED ? 20 : CHUNK + 8)
#define CHUNK_BYTES  (CHUNK_LINES * CHUNK_PITCH * 4)

/* Two neighbouring sums. */
#if ACCUMULATE == TYPE_I32
typedef uint2 sum_pair;
#define MAKE_PAIR(x, y) make_uint2(x, y)
#else
typedef float2 sum_pair;
#define MAKE_PAIR(x, y) make_float2(x, y)
#endif

/* Puts CHUNK columns of a warp's sums into shared memory, as lines of D. */
static __device__ __forceinline__ void put_chunk(accumulate_t *chunk, const accumulate_t *acc)
{
    const int lane = STORING_THREAD % 32, row = lane / 4, col = lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < CHUNK / 2; i += 2) {
        const int r = row + i / 2 % 2 * 8, c = col + i / 4 * 8;
        if (EXCHANGED) {
            chunk[c * CHUNK_PITCH + r] = acc[i];
            chunk[(c + 1) * CHUNK_PITCH + r] = acc[i + 1];
        } else {
            *(sum_pair *)&chunk[r * CHUNK_PITCH + c] = MAKE_PAIR(acc[i], acc[i + 1]);
        }
    }
}

/* Stores a warp's chunk, whose first element is D[row][col]. corner: the first row and column of D
 * that the unit stores. aligned: ROWS_ARE_ON_16_BYTES(). */
static __device__ __forceinline__ void
store_chunk(const struct tgl_gemm_args *args, const struct epilogue_operands *with,
            const struct corner *corner, const accumulate_t *chunk, int row, int col, bool aligned)
{
    const int lane = STORING_THREAD % 32;
    if (aligned) {
#pragma unroll
        for (int i = 0; i < CHUNK_LINES * CHUNK_LENGTH / 4; i += 32) {
            const int line = (lane + i) / (CHUNK_LENGTH / 4);
            const int at = (lane + i) % (CHUNK_LENGTH / 4) * 4;
            const sum_vector v = *(const sum_vector *)&chunk[line * CHUNK_PITCH + at];
            const accumulate_t sums[4] = {v.x, v.y, v.z, v.w};
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

/* Puts chunk number `number` of a consumer's sums into shared memory. Registers cannot be indexed
 * by a variable, so a comparison selects the chunk. In return, the code that stores a chunk exists
 * only once. */
static __device__ __forceinline__ void put_numbered_chunk(accumulate_t *chunk,
                                                          accumulate_t (*acc)[ACC], int number)
{
#pragma unroll
    for (int i = 0; i < M_STEPS * CHUNKS; i++)
        if (i == number) put_chunk(chunk, &acc[i / CHUNKS][i % CHUNKS * (CHUNK / 2)]);
}

/* Stores a warp's rows of a tile. chunk: shared memory of the warp. first_left: the warp's first
 * row of left. */
static __device__ __forceinline__ void store_chunks(const struct tgl_gemm_args *args,
                                                    const struct epilogue_operands *with,
                                                    accumulate_t (*acc)[ACC], accumulate_t *chunk,
                                                    const struct unit *u, int first_left)
{
    const bool aligned = ROWS_ARE_ON_16_BYTES(args, with);
    const struct corner corner = corner_of(u);
#pragma unroll 1
    for (int i = 0; i < M_STEPS * CHUNKS; i++) {
        const int left = first_left + i / CHUNKS * PART_ROWS, right = u->right + i % CHUNKS * CHUNK;
        if (is_foreign(args, u, left, 16, right, CHUNK) ||
            IS_STORED_BY_OTHERS(i % CHUNKS * CHUNK, u))
            continue;
        put_numbered_chunk(chunk, acc, i);
        __syncwarp();
        store_chunk(args, with, &corner, chunk, EXCHANGED ? right : left, EXCHANGED ? left : right,
                    aligned);
        __syncwarp();
    }
}

#endif
