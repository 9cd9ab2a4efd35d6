/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the cost model that all families share. A product takes as long as the longest of
 * three times, plus the overhead of its launches: the SMs' arithmetic; the traffic of memory, where
 * each matrix is read or written once; and the traffic of L2, from which each block reads its
 * tiles.
 */
#include "families/cost.h"

#include <math.h>

enum {
    REGISTER_UNIT = 8,      /* unit in which registers of a thread are allocated (CUDA occupancy) */
    SHARED_RESERVED = 1024, /* bytes of shared memory that the system takes for each block (CUDA
                               programming guide, compute capability 8.0 and later) */
};
/* Latency of memory in seconds, which loads in flight must cover. */
static const double MEMORY_LATENCY = 1000e-9;
static const double STREAM_SHARE = 1.10; /* rate of only reading memory / rate of a copy */

const char tgl_grid_too_large[] = "its grid would be too large";

void tgl_reject(tgl_candidate *c, const char *why)
{
    c->rejected = why;
    c->rejected_status = why == tgl_grid_too_large ? TGL_GRID_TOO_LARGE : TGL_UNSUPPORTED;
}

tgl_shape tgl_example_shape(tgl_type type, int64_t m, int64_t n, bool trans_a, bool trans_b)
{
    const int64_t side = TGL_EXAMPLE_SIDE;
    const tgl_type sums = type == TGL_F64 ? TGL_F64 : type == TGL_I8 ? TGL_I32 : TGL_F32;
    const tgl_type result = type == TGL_I8 ? TGL_I32 : tgl_type_is_f8(type) ? TGL_BF16 : type;
    return (tgl_shape){
        .m = m,
        .n = n,
        .k = side,
        .trans_a = trans_a,
        .trans_b = trans_b,
        .in_place = true,
        .type_a = type,
        .type_b = type,
        .type_c = result,
        .type_d = result,
        .type_accumulate = sums,
        .lda = side,
        .ldb = side,
        .ldc = side,
        .ldd = side,
        .batch = 1,
        .type_scale = TGL_F32,
        .epilogue = {.type_bias = result, .type_residual = result},
    };
}

enum { COPY_BYTES_MAX = 16 };

double tgl_straddling(int64_t distance, int bytes)
{
    enum { L2_LINE_BYTES = 128 };
    const int64_t bits = distance | L2_LINE_BYTES, unit = bits & -bits;
    return bytes > unit ? (double)(bytes - unit) / L2_LINE_BYTES : 0;
}

tgl_rectangle tgl_whole(const tgl_shape *shape)
{
    return (tgl_rectangle){0, 0, shape->m, shape->n};
}

int tgl_copy_width(const tgl_shape *s, int64_t edge, int64_t ld, int64_t stride)
{
    const int64_t size = (int64_t)tgl_type_size(s->type_a);
    const int64_t promised = s->alignment / size;
    const int64_t distance = s->pointers    ? (promised > 0 ? promised : 1)
                             : s->batch > 1 ? stride
                                            : 0;
    /* A power of two divides `all` if it divides edge, ld and distance. */
    const int64_t all = edge | ld | distance;
    int64_t width = COPY_BYTES_MAX / size;
    while (all % width != 0)
        width /= 2;
    return (int)width;
}

int tgl_store_width(const tgl_shape *s)
{
    const int64_t widest = COPY_BYTES_MAX / (int64_t)tgl_type_size(s->type_d);
    return s->ldd % widest == 0 ? (int)widest : 1;
}

bool tgl_predict_occupancy(const tgl_chip *chip, int shared_bytes_unaligned, tgl_candidate *c)
{
    const int registers = (int)tgl_round_up(c->registers, REGISTER_UNIT);
    const bool fits = c->shared_bytes <= chip->shared_per_block &&
                      shared_bytes_unaligned <= chip->shared_per_block;
    const int by_shared = fits ? chip->shared_per_sm / (c->shared_bytes + SHARED_RESERVED) : 0;
    const int by_registers = chip->registers_per_sm / (registers * c->threads);
    const int by_threads = chip->threads_per_sm / c->threads;
    c->resident = (int)tgl_min64(tgl_min64(by_shared, by_registers),
                                 tgl_min64(by_threads, TGL_BLOCKS_PER_SM_MAX));
    if (c->resident == 0)
        tgl_reject(c, by_shared == 0 ? "its tiles do not fit shared memory"
                                     : "too many registers for a block");
    return c->resident > 0;
}

double tgl_fma_lanes(const tgl_chip *chip, tgl_type sums)
{
    if (sums != TGL_F64) return chip->fp32_lanes;
    switch (chip->capability) { /* CUDA programming guide, throughput of arithmetic instructions */
    case 60:
    case 70:
    case 80:
        return 32;
    case 90:
    case 100:
        return 64;
    default:
        return 2;
    }
}

double tgl_operand_bytes(const tgl_shape *s)
{
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k;
    const double elements_b = s->pairs_b != 0 ? k * n / 2 : k * n;
    return (double)s->batch * ((double)tgl_type_size(s->type_a) * (m * k + elements_b) +
                               (double)tgl_type_size(s->type_d) * m * n);
}

double tgl_overlapped(double x, double y, double z, double exponent)
{
    const double longest = tgl_larger(x, tgl_larger(y, z));
    if (longest <= 0) return 0;
    return longest *
           pow(pow(x / longest, exponent) + pow(y / longest, exponent) + pow(z / longest, exponent),
               1 / exponent);
}

double tgl_stream_rate(const tgl_chip *chip, double blocks, double in_flight)
{
    const double covered = blocks * in_flight / (chip->memory_rate * MEMORY_LATENCY);
    return STREAM_SHARE * chip->memory_rate * (covered < 1 ? covered : 1);
}

/* ---- Blocks of kernels/lib/wgmma_ring.h ------------------------------------------------------ */

double tgl_share_for_clusters(int cluster)
{
    enum { SMS = 132 };
    static const double filled[] = {0, 132, 132, 117, 120, 110, 102, 105, 120};
    _Static_assert(sizeof filled / sizeof filled[0] == TGL_CLUSTER_MAX + 1, "each size");
    return filled[cluster] / SMS;
}

int tgl_sms_for_clusters(const tgl_chip *chip, int cluster)
{
    const int sms = (int)(chip->sms * tgl_share_for_clusters(cluster)) / cluster * cluster;
    return sms > cluster ? sms : cluster;
}

int64_t tgl_persistent_blocks(const tgl_chip *chip, int resident, int cluster, int64_t blocks)
{
    return tgl_min64(blocks, (int64_t)tgl_sms_for_clusters(chip, cluster) * resident);
}

int tgl_square_raster(const tgl_chip *chip, int bm, int bn, int cluster, int64_t rows)
{
    const double side_of_square = sqrt((double)chip->sms * bm * bn);
    const int best = (int)(side_of_square / (bm * cluster) + 0.5);
    return (int)tgl_min64(best < 1 ? 1 : best, rows);
}
