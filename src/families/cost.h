/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions with which all families describe and predict a launch: options, widths of copies,
 * occupancy, and memory rate. Constants that are not properties of a chip are fitted to
 * measurements on an H200.
 */
#ifndef TGL_COST_H
#define TGL_COST_H

#include "base/integers.h"
#include "plan/family.h"

enum { TGL_SCHEDULERS = 4 }; /* warp schedulers of an SM, compute capability 7.0 and later */

/* Additional time before the start of a launch that has more blocks than the chip has SMs, because
 * such a launch does not overlap with the previous one (gemm_launch.c). */
static const double TGL_LATE_LAUNCH_SECONDS = 2.25e-6;

/* Bytes that a thread may spill in kernels whose registers are limited, for example to make one
 * more block resident. */
enum { TGL_SPILL_MAX = 64 };

/* ---- Options --------------------------------------------------------------------------------- */

/* The value of an option, or its default if it is not set. */
static inline int64_t tgl_option(const tgl_choice *choice, int index, int64_t otherwise)
{
    return choice->option[index] != TGL_UNSET ? choice->option[index] : otherwise;
}

/* The next number of splits to try: one more up to 8, then about a quarter more. */
static inline int tgl_next_splits(int splits)
{
    return splits < 8 ? splits + 1 : splits + splits / 4;
}

/* ---- Rejections ------------------------------------------------------------------------------ */

/* Text for tgl_reject(): gives a candidate the status TGL_GRID_TOO_LARGE. Other texts give it
 * TGL_UNSUPPORTED. */
extern const char tgl_grid_too_large[];

/* Rejects a candidate. why: static text. */
void tgl_reject(tgl_candidate *c, const char *why);

/* ---- Operands -------------------------------------------------------------------------------- */

/* For tgl_family.example: A and B of this type, with k = 4096 and all leading dimensions 4096. C
 * and D have the type, too, but I32 for I8 and BF16 for 8-bit floating-point types. */
enum { TGL_EXAMPLE_SIDE = 4096 };
tgl_shape tgl_example_shape(tgl_type type, int64_t m, int64_t n, bool trans_a, bool trans_b);

/* The number of elements of A or B that one copy can move, at most 16 bytes: the largest power of
 * two that divides edge, ld, and the stride of the batch. edge: number of rows or columns of the
 * matrix along its contiguous dimension; 0: edge is ignored. For arrays of pointers, the alignment
 * that the caller guarantees replaces the stride. The matrices must also begin at a multiple of the
 * copy's width. */
int tgl_copy_width(const tgl_shape *shape, int64_t edge, int64_t ld, int64_t stride);

/* The number of elements of D that one store can write: 16 bytes of elements, or 1 element if ldd
 * does not allow stores of 16 bytes. */
int tgl_store_width(const tgl_shape *shape);

/* The fraction of lines of `bytes` bytes that lie in two lines of L2, which have 128 bytes. The
 * lines begin at each multiple of the greatest power of two that divides `distance`, the bytes from
 * one line to the next. */
double tgl_straddling(int64_t distance, int bytes);

/* The rectangle that is all of D. */
tgl_rectangle tgl_whole(const tgl_shape *shape);

/* ---- Time ------------------------------------------------------------------------------------ */

static inline double tgl_larger(double x, double y)
{
    return x > y ? x : y;
}

/* Sets c->resident, the resident blocks per SM, from threads, registers and shared_bytes of *c.
 * Returns false if it has rejected *c. shared_bytes_unaligned: shared memory of the unaligned
 * kernel, which must fit as well. */
bool tgl_predict_occupancy(const tgl_chip *chip, int shared_bytes_unaligned, tgl_candidate *c);

/* FMAs of the CUDA cores of an SM per clock, with sums of this type. */
double tgl_fma_lanes(const tgl_chip *chip, tgl_type sums);

/* The time of three parts that overlap, (x^p + y^p + z^p)^(1/p), p = exponent: little more than the
 * longest part, unless another part is about as long. */
double tgl_overlapped(double x, double y, double z, double exponent);

/* Bytes of A and B of all problems, and of D. */
double tgl_operand_bytes(const tgl_shape *shape);

/* Bytes/s that `blocks` resident blocks read from memory, if each has `in_flight` bytes of loads in
 * flight. */
double tgl_stream_rate(const tgl_chip *chip, double blocks, double in_flight);

/* ---- Blocks of kernels/lib/wgmma_ring.h ------------------------------------------------------ */

enum { TGL_RING_STATIC_SHARED = 1024 }; /* bytes, with the padding that aligns the stages */

/* Threads of a block: the consumer warpgroups, and the producer, which is a warpgroup if there are
 * several consumers, and a warp if there is one. To blocks with one consumer the family wgmma adds
 * a warp that copies block scale factors. */
static inline int tgl_ring_threads(int consumers)
{
    return consumers * 128 + (consumers > 1 ? 128 : 32);
}

/* tgl_share_for_clusters(): the fraction of the SMs that clusters of `cluster` blocks (1 to
 * TGL_CLUSTER_MAX) fill, one block per SM. The fraction may be below 1, because a cluster lies
 * within a GPC, and GPCs differ in their number of SMs. The fractions are those of an H200 and an
 * H100 (cuOccupancyMaxActiveClusters()). tgl_sms_for_clusters(): the number of these SMs. */
double tgl_share_for_clusters(int cluster);
int tgl_sms_for_clusters(const tgl_chip *chip, int cluster);

/* gridDim.x of a persistent grid of clusters for the work of `blocks` blocks: at most the number
 * that is resident at once. resident: resident blocks per SM. */
int64_t tgl_persistent_blocks(const tgl_chip *chip, int resident, int cluster, int64_t blocks);

/* The member `raster` of gemm_args.h: blocks compute D in bands of this many rows of clusters of
 * tiles, at most `rows`. The number is chosen so that the tiles of bm x bn that run at once cover
 * about as many rows as columns of D. */
int tgl_square_raster(const tgl_chip *chip, int bm, int bn, int cluster, int64_t rows);

#endif
