/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the cost model that all families share. A product takes as long as the slowest of
 * three: the SMs' arithmetic, memory that must be read and written once, and what the blocks read
 * through L2; and an overhead on top. Constants that are no property of a chip are fitted to
 * measurements on an H200.
 */
#include "families/cost.h"

enum {
    REGISTER_UNIT = 8,      /* registers of a thread are allocated in units of 8: CUDA occupancy */
    SHARED_RESERVED = 1024, /* bytes of shared memory that the system takes for each block: CUDA
                               programming guide, compute capability 8.0 and later */
};
static const double MEMORY_LATENCY = 1000e-9; /* seconds, which loads in flight must cover */
static const double STREAM_SHARE = 1.10;      /* of a copy's rate, that reading alone reaches */

const char tgl_grid_too_large[] = "its grid would be too large";

void tgl_reject(tgl_candidate *c, const char *why)
{
    c->rejected = why;
    c->rejected_status = why == tgl_grid_too_large ? TGL_GRID_TOO_LARGE : TGL_UNSUPPORTED;
}

tgl_shape tgl_example_shape(int64_t m, int64_t n, bool trans_a, bool trans_b)
{
    const int64_t side = TGL_EXAMPLE_SIDE;
    return (tgl_shape){
        .m = m,
        .n = n,
        .k = side,
        .trans_a = trans_a,
        .trans_b = trans_b,
        .in_place = true,
        .type_a = TGL_F32,
        .type_b = TGL_F32,
        .type_c = TGL_F32,
        .type_d = TGL_F32,
        .type_accumulate = TGL_F32,
        .lda = side,
        .ldb = side,
        .ldc = side,
        .ldd = side,
        .batch = 1,
        .type_scale = TGL_F32,
        .epilogue = {.type_bias = TGL_F32, .type_residual = TGL_F32},
    };
}

enum { COPY_BYTES_MAX = 16 };

int tgl_copy_width(const tgl_shape *s, int64_t edge, int64_t ld, int64_t stride)
{
    const int64_t size = (int64_t)tgl_type_size(s->type_a);
    const int64_t promised = s->alignment / size;
    const int64_t distance = s->pointers    ? (promised > 0 ? promised : 1)
                             : s->batch > 1 ? stride
                                            : 0;
    const int64_t all = edge | ld | distance; /* a power of two divides this if it divides each */
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

static int least(int x, int y)
{
    return x < y ? x : y;
}

bool tgl_predict_occupancy(const tgl_chip *chip, int shared_bytes_unaligned, tgl_candidate *c)
{
    const int registers = (int)tgl_round_up(c->registers, REGISTER_UNIT);
    const bool fits = c->shared_bytes <= chip->shared_per_block &&
                      shared_bytes_unaligned <= chip->shared_per_block;
    const int by_shared = fits ? chip->shared_per_sm / (c->shared_bytes + SHARED_RESERVED) : 0;
    const int by_registers = chip->registers_per_sm / (registers * c->threads);
    const int by_threads = chip->threads_per_sm / c->threads;
    c->resident = least(least(by_shared, by_registers), least(by_threads, TGL_BLOCKS_PER_SM_MAX));
    if (c->resident == 0)
        tgl_reject(c, by_shared == 0 ? "its tiles do not fit shared memory"
                                     : "too many registers for a block");
    return c->resident > 0;
}

double tgl_stream_rate(const tgl_chip *chip, double blocks, double in_flight)
{
    const double covered = blocks * in_flight / (chip->memory_rate * MEMORY_LATENCY);
    return STREAM_SHARE * chip->memory_rate * (covered < 1 ? covered : 1);
}
