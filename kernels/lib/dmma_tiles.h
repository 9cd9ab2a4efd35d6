/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters and tiles of gemm/dmma.cu: how TMA copies tiles, and how a lane reads its
 * fragments of them.
 *
 * A stage is BM x BK of op(A) and then BN x BK of op(B). BK is 16 doubles, 128 bytes. A line is 128
 * bytes, swizzled by TMA: the 16-byte chunk c of line r is at the position of chunk c ^ (r % 8). A
 * K-major tile is one box, with a line for each row or column. An MN-major tile is a box for every
 * 16 rows or columns, with a line for each k.
 *
 * A lane loads single doubles. The two doubles of a fragment that DMMA needs in neighbouring
 * registers are not neighbours in memory, so a 16-byte load cannot load them. To avoid bank
 * conflicts, the rows and columns of the instruction are permuted (lib/mma.h; g = lane / 4, t =
 * lane % 4): its row g is row ROW(g, half) of 16 rows of the tile, and its column g is column
 * COLUMN(g, j) of the warp.
 *
 * PAIRS not 0: op(B) is the real matrix B' of a complex B (lib/complex_pairs.h). The stage holds
 * the complex B as TMA reads it, and a lane computes the elements of B' from it. Half as many lines
 * are enough: a K-major line is a complex column, which serves two columns of B'; an MN-major line
 * is a complex row, which serves two k. A transposed A is also read as it is stored: a line of a
 * box has 8 complex elements of one stored row, that is, of one complex k, which is two k of the
 * real product.
 *
 * The two steps of a stage then multiply the same eight complex k. In one step a lane takes one
 * part of a complex element of A, and in the other step the other part (PAIR_K). A lane loads both
 * parts of its elements of B for the first step, where they belong to two columns. In the second
 * step they belong to each other's column, perhaps with other signs, so nothing is loaded.
 */
#ifndef TGL_DMMA_TILES_H
#define TGL_DMMA_TILES_H

#include "lib/complex_pairs.h"
#include "lib/element.h"
#include "lib/gemm_args.h"
#include "lib/stage_ring.h"
#include "lib/tma.h"

/* ---- Parameters ------------------------------------------------------------------------------ */

#ifndef BM
#define BM 128 /* rows of D that a block computes */
#endif
#ifndef BN
#define BN 128 /* columns */
#endif
#ifndef WM
#define WM 64 /* rows of D that a warp computes */
#endif
#ifndef SLICES
#define SLICES 1 /* groups of warps that divide the stages of a tile among them */
#endif
#ifndef AHEAD
#define AHEAD 1 /* how many groups of 16 rows of A a warp loads ahead of their multiplication */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1 /* minimum resident blocks of an SM, which limits the registers */
#endif
#ifndef EXCHANGED
#define EXCHANGED 0 /* 1: tiles of D^T: "op(A)" is the caller's op(B)^T, "op(B)" is op(A)^T */
#endif
#ifndef TRANS_A
#define TRANS_A 0 /* 0: A is m x k, or n x k if EXCHANGED; 1: k x m or k x n */
#endif
#ifndef TRANS_B
#define TRANS_B 0 /* 0: B is k x n, or k x m if EXCHANGED; 1: n x k or m x k */
#endif

#if PAIRS && EXCHANGED
#error "EXCHANGED: 0 with PAIRS"
#endif

#define WN 32 /* columns of D that a warp computes */
#define BK 16 /* depth of a stage */

#if TYPE_A != TYPE_F64 || TYPE_B != TYPE_F64 || ACCUMULATE != TYPE_F64
#error "TYPE_A, TYPE_B, ACCUMULATE: FP64"
#endif
#if TYPE_C != TYPE_F64 || TYPE_D != TYPE_F64
#error "TYPE_C, TYPE_D: FP64"
#endif
#if BM % WM || BN % WN || WM % 16
#error "BM: a multiple of WM; BN: of 32; WM: of 16"
#endif

#define A_K_MAJOR        (!TRANS_A)
#define B_K_MAJOR        TRANS_B
#define WARPS_M          (BM / WM)
#define SLICE_WARPS      (WARPS_M * (BN / WN))
#define SLICE_THREADS    (SLICE_WARPS * 32)
#define CONSUMERS        (SLICE_WARPS * SLICES) /* warps that multiply */
#define CONSUMER_THREADS (CONSUMERS * 32)
/* SETS_REGISTERS: whether warps change their number of registers. A thread starts with 168
 * registers if the block has 384 threads, and with 128 if it has 512 or two blocks of 256 threads
 * are resident. Warp tiles of 48 and 64 rows, and 12 consumer warps, need more. The producer is
 * then a whole warpgroup, because setmaxnreg acts on warpgroups, and gives up most of its
 * registers. */
#define SETS_REGISTERS     (WM > 32 || CONSUMERS == 12)
#define PRODUCER_REGISTERS (CONSUMERS == 8 ? 40 : 32)
#define CONSUMER_REGISTERS (CONSUMERS == 12 ? 160 : CONSUMERS == 8 ? 232 : 224)
/* ELECTS_PRODUCER: whether elect_lane() chooses the producer's thread, which makes copies faster.
 * If several blocks of warps that set their registers share an SM, NVRTC 13.0 then spills registers
 * of the consumers. The copies do not limit the tiles of these blocks. */
#define ELECTS_PRODUCER (!(SETS_REGISTERS && MIN_BLOCKS > 1))
#define THREADS         (CONSUMER_THREADS + (SETS_REGISTERS ? 128 : 32))
#define STEPS           (BK / 8)  /* mma_f64 instructions along K of a stage */
#define MT              (WM / 16) /* a warp's part of D: MT x NT results of mma_f64 */
#define NT              (WN / 8)
#define GROUPS          (STEPS * MT) /* 16-row fragments of A in a stage (16 x 8 each) */
#define A_SLOTS         (2 * AHEAD)
#define A_PAIRS         (PAIRS && TRANS_A)
#define A_BYTES         (BM * 128)
#define B_BYTES         (BN * 128 / (PAIRS ? 2 : 1))
#define STAGE_BYTES     (A_BYTES + B_BYTES)

#if STAGES % SLICES != 0
#error "STAGES: a multiple of SLICES, so that a stage always belongs to the same slice"
#endif
#if SETS_REGISTERS && CONSUMERS * MIN_BLOCKS != 8 && CONSUMERS * MIN_BLOCKS != 12
#error "CONSUMERS * MIN_BLOCKS: 8 or 12 if warps set their registers, which are chosen for these"
#endif
#if AHEAD > MT || GROUPS % A_SLOTS != 0
#error "AHEAD: at most a step, WM / 16; 2 * AHEAD divides the groups of a stage"
#endif

/* Macros that lib/wgmma_units.h needs. Blocks form no clusters. */
#define CLUSTER         1
#define CLUSTER_ROWS    1
#define CLUSTER_COLUMNS 1
#define CLUSTER_SPLITS  1

/* ---- Copies ---------------------------------------------------------------------------------- */

/* Where TMA finds a tile of an operand. */
struct dmma_source {
    const struct tgl_tensor_map *map;
    int edge; /* the first row or column of the tile */
    int z;    /* the number of the matrix in the batch */
};

/* Copies the tile of `edge` rows or columns that begins at depth p. lines: number of lines of a box
 * of an MN-major tile. */
static __device__ __forceinline__ void load_tile(unsigned char *to, const struct dmma_source *from,
                                                 int p, const int edge, const bool k_major,
                                                 const int lines, mbarrier *full)
{
    if (k_major) {
        tma_load_3d(to, from->map, p, from->edge, from->z, full);
    } else {
#pragma unroll(ELECTS_PRODUCER ? 4 : 16)
        for (int i = 0; i < edge; i += 16)
            tma_load_3d(to + i / 16 * lines * 128, from->map, from->edge + i, p, from->z, full);
    }
}

/* Copies the tile of op(A) that begins at depth p. */
static __device__ __forceinline__ void load_tile_a(unsigned char *to, struct dmma_source from,
                                                   int p, mbarrier *full)
{
    if (A_PAIRS) {
        from.edge *= 2;
        load_tile(to, &from, p / 2, 2 * BM, false, BK / 2, full);
    } else {
        load_tile(to, &from, p, BM, A_K_MAJOR, BK, full);
    }
}

/* Copies the tile of op(B) that begins at depth p. */
static __device__ __forceinline__ void load_tile_b(unsigned char *to, struct dmma_source from,
                                                   int p, mbarrier *full)
{
    if (PAIRS && B_K_MAJOR) from.edge /= 2;
    load_tile(to, &from, PAIRS && !B_K_MAJOR ? p / 2 : p, BN, B_K_MAJOR, PAIRS ? BK / 2 : BK, full);
}

/* ---- Fragments ------------------------------------------------------------------------------- */

/* The rows and columns of the warp's part are permuted, so that loads have no bank conflicts.
 * ROW(g, half): of 16 rows of the tile, the row that mma_f64 gets as its row g (half 0) or g + 8
 * (half 1). COLUMN(g, j): of 32 columns of the tile, the column that instruction number j, 0 to 3,
 * gets as its column g.
 *
 * The hardware serves a load of doubles 16 lanes at a time: first g = 0 to 3, then g = 4 to 7. All
 * banks together are 128 bytes wide, as a line. The 16 lanes thus have no conflicts if their
 * doubles are at 16 different positions in their lines.
 *
 * K-major: a line is a row or column. Four lanes with the same g read chunks 2i and 2i + 1 of it.
 * The numbers of the lines of the four g differ in bits 1 and 2. The swizzle thus moves the two
 * chunks to a different pair of positions in each of these lines.
 *
 * MN-major: a line is a k. Four lanes with the same t read chunks c and c ^ 4 of it, both halves of
 * each chunk. The numbers of the lines of the four t differ in bits 0 and 1. The swizzle thus moves
 * the two chunks to different positions in each of these lines.
 *
 * PAIRS: a chunk is a complex element. Lanes with t = 0 and 1 read one half of their chunks, and
 * lanes with t = 2 and 3 the other half. A K-major line is a row or a complex column: four lanes
 * with the same g read four neighbouring chunks, and the numbers of the lines of the four g differ
 * in bits 1 and 2. An MN-major line is a complex k: the numbers of the lines of the four t differ
 * in bits 0 and 1, and the chunks that the four g read differ in bits 1 and 2. The swizzle thus
 * moves t = 0 and 1 of the four g to different positions, and t = 2 and 3 also. */
#define K_MAJOR_ROW(g, half)  ((g) % 4 * 2 + (g) / 4 + (half)*8)
#define MN_MAJOR_ROW(g, half) ((g) / 2 % 2 * 8 + (g) / 4 * 2 + (g) % 2 + (half)*4)
#define ROW(g, half)          (A_K_MAJOR || A_PAIRS ? K_MAJOR_ROW(g, half) : MN_MAJOR_ROW(g, half))
#define K_MAJOR_COLUMN(g, j)  (((g) % 2 * 2 + (j) / 2) * 8 + ((g) / 2 ^ (g) % 2 * 2) * 2 + (j) % 2)
#define MN_MAJOR_COLUMN(g, j) ((j) / 2 * 16 + MN_MAJOR_ROW(g, (j) % 2))
#define COMPLEX_COLUMN(g, j)  ((j) / 2 * 16 + (g) % 4 * 4 + (g) / 4 * 2 + (j) % 2)
#define COLUMN(g, j)                                                                               \
    (PAIRS ? COMPLEX_COLUMN(g, j) : B_K_MAJOR ? K_MAJOR_COLUMN(g, j) : MN_MAJOR_COLUMN(g, j))

/* PAIR_K(t, i, step): the k of a stage that element number i, 0 or 1, of lane t's fragments has in
 * step 0 or 1, with PAIRS. */
#define PAIR_K(t, i, step) (2 * ((t) + 4 * (i)) + ((t) / 2 ^ (step)))

/* Byte offsets in a stage at which a lane reads elements. The other elements that it reads are
 * constant numbers of lines (128 bytes) behind these. A K-major operand needs an offset for each
 * half of K of each step, and B also one for each j = 0 and 1. An MN-major operand needs an offset
 * for each half of a step's K: of A for each half of 16 rows, of B for each j = 0 and 1. With
 * PAIRS, A has the offsets of a K-major one, and B those of its first step. sign: the bits that
 * change the sign of an element of B' in each step, for j = 0 and 1. */
struct dmma_lane_source {
    unsigned a[STEPS * 2], b[(PAIRS ? 1 : STEPS) * 2 * 2];
#if PAIRS
    unsigned sign[STEPS][2];
#endif
};

static __device__ __forceinline__ unsigned dmma_offset_of(int line, int element)
{
    return swizzle_128((unsigned)(line * 128 + element * 8));
}

/* The offset of element p of row ROW(g, half) of the tile, where p counts from the stage's first k.
 */
static __device__ __forceinline__ unsigned dmma_offset_of_a(int warp_row, int p, int g,
                                                            const int half)
{
    if (A_K_MAJOR) return dmma_offset_of(warp_row + ROW(g, half), p);
    const int line = A_PAIRS ? p / 2 : p,
              element = A_PAIRS ? 2 * ROW(g, half) + p % 2 : ROW(g, half);
    return (unsigned)warp_row * 128 + dmma_offset_of(line, element);
}

/* The offset of the double for element p of column COLUMN(g, j). */
static __device__ __forceinline__ unsigned dmma_offset_of_b(int warp_col, int p, int g, const int j)
{
    const int col = COLUMN(g, j), lines_of = PAIRS ? 2 : 1; /* columns or k of a line */
    if (B_K_MAJOR)
        return A_BYTES +
               dmma_offset_of((warp_col + col) / lines_of, PAIRS ? p ^ pair_part(0, col) : p);
    const int box = warp_col * 128 / lines_of;
    return A_BYTES + (unsigned)box +
           dmma_offset_of(p / lines_of, PAIRS ? col ^ pair_part(p, 0) : col);
}

#if PAIRS
/* Sets the signs of the first step, and those that the second step needs in addition. */
static __device__ __forceinline__ void set_signs(struct dmma_lane_source *from, int g, int t)
{
#pragma unroll
    for (int j = 0; j < 2; j++) {
        const int first = pair_is_negative(PAIR_K(t, 0, 0), COLUMN(g, j));
        const int other = pair_is_negative(PAIR_K(t, 0, 1), COLUMN(g, j ^ 1));
        from->sign[0][j] = (unsigned)first << 31;
        from->sign[1][j ^ 1] = (unsigned)(first ^ other) << 31;
    }
}
#endif

static __device__ __forceinline__ struct dmma_lane_source dmma_lane_source(int warp_row,
                                                                           int warp_col)
{
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
    struct dmma_lane_source from;
#if PAIRS
#pragma unroll
    for (int i = 0; i < STEPS * 2; i++)
        from.a[i] = dmma_offset_of_a(warp_row, PAIR_K(t, i % 2, i / 2), g, 0);
#pragma unroll
    for (int i = 0; i < 2 * 2; i++)
        from.b[i] = dmma_offset_of_b(warp_col, PAIR_K(t, i / 2, 0), g, i % 2);
    set_signs(&from, g, t);
#else
#pragma unroll
    for (int i = 0; i < STEPS * 2; i++)
        from.a[i] = A_K_MAJOR ? dmma_offset_of_a(warp_row, i * 4 + t, g, 0)
                              : dmma_offset_of_a(warp_row, i / 2 * 4 + t, g, i % 2);
#pragma unroll
    for (int i = 0; i < STEPS * 2 * 2; i++)
        from.b[i] = B_K_MAJOR ? dmma_offset_of_b(warp_col, i / 2 * 4 + t, g, i % 2)
                              : dmma_offset_of_b(warp_col, i / 2 % 2 * 4 + t, g, i % 2);
#endif
    return from;
}

/* The double that is `lines` lines (128 bytes each) behind offset `at` of the stage. */
static __device__ __forceinline__ double double_at(const unsigned char *stage, unsigned at,
                                                   const int lines)
{
    return *(const double *)(stage + at + lines * 128);
}

/* to[] := the fragment of A for 16 rows and one step (8 of K). group: 0 for the first 16 rows of
 * the warp tile, 1 for the next 16, ... */
static __device__ __forceinline__ void dmma_load_a(double *to, const unsigned char *stage,
                                                   const struct dmma_lane_source *from,
                                                   const int step, const int group)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = A_K_MAJOR || A_PAIRS
                    ? double_at(stage, from->a[step * 2 + i / 2], group * 16 + i % 2 * 8)
                    : double_at(stage, from->a[i], group * 16 + step * 8);
}

/* Element number i, 0 or 1, of the fragment of B for instruction number j, 0 to 3. */
static __device__ __forceinline__ double dmma_element_b(const unsigned char *stage,
                                                        const struct dmma_lane_source *from,
                                                        const int step, const int i, const int j)
{
#if PAIRS
    return double_at(stage, from->b[i * 2 + j % 2], j / 2 * 8);
#else
    return B_K_MAJOR ? double_at(stage, from->b[(step * 2 + i) * 2 + j % 2], j / 2 * 8)
                     : double_at(stage, from->b[i * 2 + j % 2], j / 2 * 16 + step * 8);
#endif
}

/* Loads the fragments of B for all columns of the warp. PAIRS: they have no signs yet, and the
 * second step needs no loads. */
static __device__ __forceinline__ void dmma_load_b(double (*to)[2], const unsigned char *stage,
                                                   const struct dmma_lane_source *from,
                                                   const int step)
{
#pragma unroll
    for (int j = 0; j < NT; j++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            to[j][i] = dmma_element_b(stage, from, step, i, j);
}

#if PAIRS
/* x, or -x if sign is 1 << 31. In PTX, because the compiler would see that the signs of the first
 * step are taken back in the second, and keep x for it in other registers. */
static __device__ __forceinline__ double with_sign(double x, unsigned sign)
{
#ifdef TGL_SIM
    return sign != 0 ? -x : x;
#else
    double y;
    asm("{ .reg .b32 low, high; mov.b64 {low, high}, %1; xor.b32 high, high, %2; "
        "mov.b64 %0, {low, high}; }"
        : "=d"(y)
        : "d"(x), "r"(sign));
    return y;
#endif
}

/* Gives the loaded fragments of B the signs of the first step. If neither matrix is conjugated, odd
 * columns of B' have no negative elements. */
static __device__ __forceinline__ void dmma_set_signs(double (*b)[2],
                                                      const struct dmma_lane_source *from)
{
#pragma unroll
    for (int j = 0; j < NT; j++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (j % 2 == 0 || PAIRS != 1) b[j][i] = with_sign(b[j][i], from->sign[0][j % 2]);
}

/* to[] := the fragments of B of the second step, from those of the first. */
static __device__ __forceinline__ void dmma_exchange_parts(double (*to)[2], double (*first)[2],
                                                           const struct dmma_lane_source *from)
{
#pragma unroll
    for (int j = 0; j < NT; j++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            to[j][i] = with_sign(first[j ^ 1][i], from->sign[1][j % 2]);
}
#endif

/* ---- Sums ------------------------------------------------------------------------------------ */

/* Of 16 rows, a lane has the sums of rows ROW(g, 0) and ROW(g, 1): four pairs of adjacent columns
 * in each row. Four lanes share a row. Their pairs with the same number together cover 64
 * contiguous bytes, or two ranges of 32 bytes. PAIR_COLUMN: the first column of pair `number` of
 * lane t. */
#define PAIR_COLUMN(t, number)                                                                     \
    (B_K_MAJOR || PAIRS ? COLUMN(2 * (t) + (number) / 2, (number) % 2 * 2)                         \
                        : COLUMN(2 * (t), number))

/* Takes pair number `number` of row ROW(g, half) from the sums of 16 rows. */
static __device__ __forceinline__ void take_pair(double *pair, double (*acc)[4], const int half,
                                                 const int number)
{
#pragma unroll
    for (int i = 0; i < 2; i++)
        pair[i] = B_K_MAJOR || PAIRS ? acc[number % 2 * 2 + i][half * 2 + number / 2]
                                     : acc[number][half * 2 + i];
}

#endif
