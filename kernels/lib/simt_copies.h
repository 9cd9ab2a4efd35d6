/* SPDX-License-Identifier: Apache-2.0
 *
 * Of gemm/simt.cu: how tiles of op(A) and op(B) lie in shared memory, and this thread's copies that
 * bring them there. An operand is told by its edge (BM or BN), floats to a copy, and whether it
 * lies along k: constants, so that all that follows from them is constant too.
 */
#ifndef TGL_SIMT_COPIES_H
#define TGL_SIMT_COPIES_H

#define COPIES_MOST (A_COPIES > B_COPIES ? A_COPIES : B_COPIES)

/* Whether a warp makes narrow copies of an operand along its edge line by line: RUN of a thread's
 * copies are then from one line, constants apart, and one address serves them all. */
#define BY_LINES(edge, vec, along_k)                                                               \
    (INSIDE && !(along_k) && (vec) < 4 && (edge) % (32 * (vec)) == 0 &&                            \
     BK % (SLICE_THREADS / 32) == 0)
#define RUN(edge, vec) ((edge) / (32 * (vec)))
/* Whether each of a thread's copies, or runs of them, has an address in registers. */
#define FEW_ADDRESSES(edge, vec, along_k)                                                          \
    (!(along_k) && COPIES(edge, vec) / (BY_LINES(edge, vec, along_k) ? RUN(edge, vec) : 1) <= 4)

#if WIDE_OFFSETS
typedef long long tile_offset;
#else
typedef unsigned tile_offset;
#endif

struct stage {
    float A[BK][BM + PAD];
    float B[BK][BN + PAD];
};

/* A slice's shared memory in stages: partial sums take the place of the last tiles. */
#define STAGE_FLOATS (BK * (BM + BN + 2 * PAD))
#define STAGE_BYTES  (STAGE_FLOATS * 4)
#if BM * BN > STAGES * STAGE_FLOATS
#define STAGES_HELD ((BM * BN + STAGE_FLOATS - 1) / STAGE_FLOATS)
#else
#define STAGES_HELD STAGES
#endif

/* Stages take turns, and stand as their distances in bytes. */
static __device__ __forceinline__ int stage_after(int stage)
{
    return stage == (STAGES - 1) * STAGE_BYTES ? 0 : stage + STAGE_BYTES;
}

static __device__ __forceinline__ struct stage *in_stage(struct stage *stages, int stage)
{
    return (struct stage *)((char *)stages + stage);
}

/* Place of this thread's copy number i: the block's copies, each `vec` floats along the edge or one
 * float of an operand that lies along k, are dealt out line by line. The cases are one formula;
 * written so, all but the thread's first place are constants away from it. */
static __device__ __forceinline__ unsigned copy_line(int i, const unsigned per_line)
{
    if (SLICE_THREADS % per_line == 0) return THREAD / per_line + i * (SLICE_THREADS / per_line);
    if (per_line % SLICE_THREADS == 0) return i / (per_line / SLICE_THREADS);
    return (THREAD + i * SLICE_THREADS) / per_line;
}

static __device__ __forceinline__ unsigned copy_in_line(int i, const unsigned per_line)
{
    if (SLICE_THREADS % per_line == 0) return THREAD % per_line;
    if (per_line % SLICE_THREADS == 0)
        return THREAD + i % (per_line / SLICE_THREADS) * SLICE_THREADS;
    return (THREAD + i * SLICE_THREADS) % per_line;
}

static __device__ __forceinline__ unsigned copy_edge(int i, const int edge, const int vec,
                                                     const bool along_k)
{
    if (along_k) return copy_line(i, BK);
    if (BY_LINES(edge, vec, along_k)) return (THREAD % 32 + i % RUN(edge, vec) * 32) * vec;
    return copy_in_line(i, edge / vec) * vec;
}

static __device__ __forceinline__ unsigned copy_depth(int i, const int edge, const int vec,
                                                      const bool along_k)
{
    if (along_k) return copy_in_line(i, BK);
    if (BY_LINES(edge, vec, along_k))
        return THREAD / 32 + i / RUN(edge, vec) * (SLICE_THREADS / 32);
    return copy_line(i, edge / vec);
}

/* Where this thread's copies of an operand's tile come from: each at an address of its own, that
 * moves from tile to tile, if these are few; else at a distance in bytes from where the tile
 * begins, and only that moves. The copies of a RUN share an address. */
struct origin {
    const char *at[COPIES_MOST];
    const char *tile;
    tile_offset offsets[COPIES_MOST];
};

/* `inside`: rows or columns that exist from the tile's first on. For those beyond, others are
 * copied, all over the matrix: copies of a warp from one and the same address take their turns. */
static __device__ __forceinline__ void locate_copies(struct origin *from, const int copies,
                                                     const float *tile, long long ld, int inside,
                                                     const int edge, const int vec,
                                                     const bool along_k)
{
    const unsigned some = (1u << (31 - __clz(inside))) - 1; /* so many and one are inside */
    from->tile = (const char *)tile;
#pragma unroll
    for (int i = 0; i < copies; i++) {
        unsigned e = copy_edge(i, edge, vec, along_k);
        const unsigned p = copy_depth(i, edge, vec, along_k);
        if (!BY_LINES(edge, vec, along_k) && e >= (unsigned)inside) e &= some;
        from->offsets[i] = (tile_offset)(along_k ? e * ld + p : p * ld + e) * sizeof(float);
        from->at[i] = from->tile + from->offsets[i];
    }
}

/* From where copy number i comes. */
static __device__ __forceinline__ const float *
copy_from(int i, const struct origin *from, const int edge, const int vec, const bool along_k)
{
    const int in_run = BY_LINES(edge, vec, along_k) ? i % RUN(edge, vec) : 0;
    const int first = i - in_run;
    return (const float *)(FEW_ADDRESSES(edge, vec, along_k) ? from->at[first]
                                                             : from->tile + from->offsets[first]) +
           in_run * 32 * vec;
}

/* On to a tile that is so many bytes away. */
static __device__ __forceinline__ void move_copies(struct origin *from, const int copies,
                                                   long long bytes)
{
    from->tile += bytes;
#pragma unroll
    for (int i = 0; i < copies; i++)
        from->at[i] += bytes;
}

/* How far a group of four neighbours at depth p is rotated, if the operand lies along k. A warp's
 * copy is 32 / BK lines deep BK: depths p and p + 8 would meet in the same banks. */
static __device__ __forceinline__ unsigned rotation(unsigned p, const bool along_k)
{
    return along_k ? p / 8 * (BK <= 16 ? 2 : 1) % 4 : 0;
}

/* A thread's copies are constants apart in shared memory, if lines and threads divide one another;
 * LDGSTS has room for the constant. This is the first of those that copy number i is one of. */
static __device__ __forceinline__ int first_of(int i, const int edge, const int vec,
                                               const bool along_k)
{
    const int lines = SLICE_THREADS / BK, per_line = edge / vec;
    if (along_k) return i % (lines % 4 == 0 ? 1 : lines % 2 == 0 ? 2 : 4); /* by rotation() */
    if (BY_LINES(edge, vec, along_k)) return 0;
    return SLICE_THREADS % per_line == 0 || per_line % SLICE_THREADS == 0 ? 0 : i;
}

/* How far copy number i is from there, in floats. */
static __device__ __forceinline__ int from_first(int i, const int edge, const int vec,
                                                 const bool along_k)
{
    const int per_line = edge / vec, pitch = edge + PAD;
    if (along_k) return (i - first_of(i, edge, vec, along_k)) * (SLICE_THREADS / BK);
    if (BY_LINES(edge, vec, along_k))
        return i / RUN(edge, vec) * (SLICE_THREADS / 32) * pitch + i % RUN(edge, vec) * 32 * vec;
    if (SLICE_THREADS % per_line == 0) return i * (SLICE_THREADS / per_line) * pitch;
    if (per_line % SLICE_THREADS == 0)
        return i / (per_line / SLICE_THREADS) * pitch +
               i % (per_line / SLICE_THREADS) * SLICE_THREADS * vec;
    return 0;
}

/* Where copy number i goes in a tile in shared memory. */
static __device__ __forceinline__ float *copy_to(float *tile, int i, const int edge, const int vec,
                                                 const bool along_k)
{
    const int first = first_of(i, edge, vec, along_k);
    const unsigned e = copy_edge(first, edge, vec, along_k);
    const unsigned p = copy_depth(first, edge, vec, along_k);
    const unsigned rotated = along_k ? e / 4 * 4 + (e + rotation(p, along_k)) % 4 : e;
    return &tile[p * (edge + PAD) + rotated] + from_first(i, edge, vec, along_k);
}

/* Whether copy number i is this thread's: the last may not be everybody's. */
static __device__ __forceinline__ bool has_copy(int i, const int edge, const int vec)
{
    return (i + 1) * SLICE_THREADS * vec <= BK * edge ||
           (THREAD + i * SLICE_THREADS) * vec < BK * edge;
}

/* A tile on its way: to which stage, and where this thread's copies come from. */
struct arrival {
    struct stage *stages;
    int to;
    const struct origin *from_A, *from_B;
    bool active; /* false: there is none, and zeros are copied */
};

/* This thread's copies number i of A and of B. */
static __device__ __forceinline__ void copy_of_A(const struct arrival *next, int i)
{
    if (has_copy(i, BM, VEC_A))
        async_copy_or_zero(
            copy_to(&in_stage(next->stages, next->to)->A[0][0], i, BM, VEC_A, A_ALONG_K),
            copy_from(i, next->from_A, BM, VEC_A, A_ALONG_K), VEC_A, next->active);
}

static __device__ __forceinline__ void copy_of_B(const struct arrival *next, int i)
{
    if (has_copy(i, BN, VEC_B))
        async_copy_or_zero(
            copy_to(&in_stage(next->stages, next->to)->B[0][0], i, BN, VEC_B, B_ALONG_K),
            copy_from(i, next->from_B, BN, VEC_B, B_ALONG_K), VEC_B, next->active);
}

static __device__ __forceinline__ void copy_tile(const struct arrival *next)
{
#pragma unroll
    for (int i = 0; i < A_COPIES; i++)
        copy_of_A(next, i);
#pragma unroll
    for (int i = 0; i < B_COPIES; i++)
        copy_of_B(next, i);
}

/* This thread's copies of an operand's first tile of k, which is `depth` deep, the rest zeros. */
static __device__ __forceinline__ void copy_first_tile(float *shared, const struct origin *from,
                                                       const int copies, const int edge,
                                                       const int vec, const bool along_k, int depth)
{
#pragma unroll
    for (int i = 0; i < copies; i++) {
        if (has_copy(i, edge, vec))
            async_copy_or_zero(copy_to(shared, i, edge, vec, along_k),
                               copy_from(i, from, edge, vec, along_k), vec,
                               (int)copy_depth(i, edge, vec, along_k) < depth);
    }
}

#endif
