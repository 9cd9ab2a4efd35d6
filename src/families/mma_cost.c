/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicts the time of the family mma, and lower bounds of it. A step multiplies one tile of K:
 * bk_bytes (mma_geometry.h) of each row of op(A) and each column of op(B).
 */
#include "families/mma_geometry.h"
#include "problem/scales.h"

#include <math.h>

/* Constants of the cost model, fitted to times on an H200: m = n = k from 512 to 4096 in bf16 and
 * f64, and 340 products of random sizes in bf16, TF32 and f64
 * (docs/notes/2026-11-26-gpu-planner.md). Single stores and copies, sums of splits and memory: 156
 * products (docs/notes/2026-11-29-gpu.md). PLAIN_...: with copies through registers. ..._A_CLOCK:
 * bytes per clock of an SM. */
enum {
    /* Cycles of a tile outside of its main loop, without WARP_RESULT_CYCLES and stores. */
    TILE_CYCLES = 2900,
    PLAIN_TILE_CYCLES = 2500, /* additional cycles of a tile for each other block on the SM */
    WARP_RESULT_CYCLES = 1, /* cycles per result of a warp tile, which goes through shared memory */
    WAIT_CYCLES = 60,       /* cycles of waiting per tile of K: for its barrier and first
                               fragments */
    PLAIN_WAIT_CYCLES = 900,       /* as WAIT_CYCLES, with copies through registers */
    STORE_BYTES_A_CLOCK = 32,      /* rate of stores of D in aligned groups of four elements (f64:
                                      two) */
    SINGLE_STORES_A_CLOCK = 4,     /* stores of D as scalars of an SM, of any type */
    REDUCE_CYCLES = 2700,          /* cycles of a split tile for fences and its counter */
    SPLIT_CYCLES = 400,            /* cycles for each split of a tile, because splits add their sums
                                      in order */
    SPLIT_BYTES_A_CLOCK = 70,      /* rate at which a block exchanges sums with L2 */
    READ_BYTES_A_CLOCK = 128,      /* rate of reading fragments from shared memory */
    COPY_BYTES_A_CLOCK = 32,       /* rate of cp.async, during which shared memory is not read */
    COPY_F64_BYTES_A_CLOCK = 56,   /* cp.async of single elements of f64. Not a physical rate, which
                                      could not exceed that of aligned copies: it is fitted, and
                                      contains latencies */
    COPY_4_BYTES_A_CLOCK = 20,     /* cp.async of 4 bytes */
    PLAIN_BYTES_A_CLOCK = 14,      /* rate of copies through registers */
    SINGLE_COPY_BYTES_A_CLOCK = 7, /* copies of 8-bit elements one by one: an estimate */
};
/* Fraction of the rates of mma.sync, fragments and cp.async that the main loop reaches. F64_...: in
 * products of f64. */
static const double LOOP_SHARE = 0.95, F64_LOOP_SHARE = 0.88;
static const double MEMORY_SHARE = 0.64; /* fraction of tgl_chip.memory_rate */

/* Multiply-adds of an SM per clock by mma.sync. F64: the full rate of the tensor cores; 2 on chips
 * whose tensor cores do not support F64 (CUDA programming guide, throughput of arithmetic
 * instructions). Other types: about 62 % of wgmma's rate on compute capability 9.0, a quarter of
 * tcgen05's rate on 10.0 and 10.3, else the full rate. */
static double mma_rate(const tgl_chip *chip, tgl_type type)
{
    const double share = chip->capability == 90                               ? 0.62
                         : chip->capability == 100 || chip->capability == 103 ? 0.25
                                                                              : 1;
    const double half = share * chip->tensor_flops / 2, f64 = chip->tensor_f64_flops / 2.0;
    if (type == TGL_F64) return f64 > 0 ? f64 : 2;
    return type == TGL_F32  ? half / 2
           : type == TGL_I8 ? 2 * half
                            : half; /* e4m3 and e5m2 are multiplied as f16 */
}

/* Cycles of an SM to copy a tile of one operand. edge: rows or columns of the tile; vec: elements
 * in a copy. */
static double mma_copy_cycles(const mma_geometry *g, int edge, int vec)
{
    const double bytes = edge * g->row->bk_bytes;
    const int width = g->size * vec;
    if (g->size == 8 && vec == 1) return bytes / COPY_F64_BYTES_A_CLOCK;
    return bytes / (width > 4    ? COPY_BYTES_A_CLOCK
                    : width == 4 ? COPY_4_BYTES_A_CLOCK
                    : width == 1 ? SINGLE_COPY_BYTES_A_CLOCK
                                 : PLAIN_BYTES_A_CLOCK);
}

/* Cycles of an SM to multiply one tile of K of a block, without waits. */
static double mma_busy_cycles(const tgl_chip *chip, const tgl_shape *s, const mma_geometry *g)
{
    enum {
        FP32_A_CLOCK = 128,
        SCALED = 3 /* instructions per result for the factor of a block of K: an estimate */
    };
    const mma_row *t = g->row;
    const double bk = (double)t->bk_bytes / g->size;
    const double factors = tgl_shape_has_blocked_scales(s)
                               ? t->bm * t->bn * bk / TGL_SCALE_BLOCK * SCALED / FP32_A_CLOCK
                               : 0;
    const double arithmetic = t->bm * t->bn * bk / mma_rate(chip, s->type_a) + factors;
    const double reads = ((double)t->bm * t->bn / t->wn + (double)t->bn * t->bm / t->wm) *
                         t->bk_bytes / READ_BYTES_A_CLOCK;
    const double copies =
        mma_copy_cycles(g, t->bm, g->step.vec_a) + mma_copy_cycles(g, t->bn, g->step.vec_b);
    return tgl_larger(arithmetic, reads + copies) / (t->is_f64 ? F64_LOOP_SHARE : LOOP_SHARE);
}

/* Cycles in which an SM multiplies one tile of K for each of its `blocks` resident blocks. busy:
 * mma_busy_cycles(). */
static double mma_step_cycles(const mma_geometry *g, double busy, double blocks)
{
    /* While a warp waits for its fragments and the barrier, warps of other blocks multiply. */
    const int wait =
        mma_copies_by_registers(g, g->step.vec_a, g->step.vec_b) ? PLAIN_WAIT_CYCLES : WAIT_CYCLES;
    return tgl_larger(blocks * busy, busy + wait);
}

/* Cycles of an SM with `blocks` resident blocks, each of which multiplies `depth` of K. */
static double block_cycles(const mma_geometry *g, double busy, double blocks, double depth)
{
    if (blocks == 0) return 0;
    const mma_row *t = g->row;
    const double steps = ceil(depth * g->size / t->bk_bytes);
    const double others = mma_copies_by_registers(g, g->step.vec_a, g->step.vec_b)
                              ? PLAIN_TILE_CYCLES * (blocks - 1)
                              : 0;
    return steps * mma_step_cycles(g, busy, blocks) + TILE_CYCLES + others +
           WARP_RESULT_CYCLES * t->wm * t->wn;
}

/* Cycles of an SM to store a tile. */
static double store_cycles(const tgl_shape *s, const mma_geometry *g)
{
    const double bytes = (double)tgl_type_size(s->type_d) * g->row->bm * g->row->bn;
    const int group = tgl_type_size(s->type_d) == 8 ? 2 : 4; /* results in a store */
    if (s->ldd % group == 0) return bytes / STORE_BYTES_A_CLOCK;
    return (double)g->row->bm * g->row->bn / SINGLE_STORES_A_CLOCK;
}

/* Cycles to add the sums of a split tile. at_once: SPLITS_AT_ONCE of kernels/lib/split_k.h: a
 * thread with few sums loads those of several splits together. */
static double reduce_cycles(const mma_geometry *g, int splits)
{
    const double bytes = (double)(g->row->is_f64 ? 8 : 4) * g->row->bm * g->row->bn;
    const int sums = g->row->wm * g->row->wn / 32, at_once = sums <= 8 ? 4 : sums <= 16 ? 2 : 1;
    return REDUCE_CYCLES +
           (SPLIT_CYCLES * splits + (1 + splits) * bytes / SPLIT_BYTES_A_CLOCK) / at_once;
}

/* Cycles of the busiest SM for `count` blocks: full waves, then a last wave that may leave SMs
 * idle. depth: K of a block; after: cycles that an SM spends on each block after its main loop. */
static double mma_wave_cycles(const tgl_chip *chip, const mma_geometry *g, double busy,
                              double count, int resident, double depth, double after)
{
    const double slots = (double)chip->sms * resident;
    const double full = floor(count / slots), rest = count - full * slots;
    const int last = (int)ceil(rest / chip->sms);
    return full * (block_cycles(g, busy, resident, depth) + resident * after) +
           block_cycles(g, busy, last, depth) + last * after;
}

/* Cycles of the busiest SM for `whole` tiles that are not split, and for `split` tiles of `splits`
 * blocks each. Each of these blocks multiplies `chunk` of K. */
static double all_cycles(const tgl_chip *chip, const tgl_shape *s, const mma_geometry *g,
                         double busy, int resident, double whole, double split, int splits,
                         int64_t chunk)
{
    const double store = store_cycles(s, g);
    double cycles = mma_wave_cycles(chip, g, busy, whole, resident, (double)s->k, store);
    if (splits > 1)
        cycles += mma_wave_cycles(chip, g, busy, split * splits, resident, (double)chunk, 0) +
                  reduce_cycles(g, splits) + store;
    return cycles;
}

void tgl_mma_predict_time(const tgl_chip *chip, const tgl_shape *s, const mma_geometry *g,
                          tgl_candidate *c)
{
    const struct tgl_gemm_args *args = &g->step.args;
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k, batch = (double)s->batch;
    const double tiles = batch * (double)g->step.tiles, size = g->size;
    const double size_d = (double)tgl_type_size(s->type_d);
    const double whole = batch * args->tiles_whole, split = tiles - whole;
    const double cycles = all_cycles(chip, s, g, mma_busy_cycles(chip, s, g), c->resident, whole,
                                     split, args->splits, args->k_chunk);
    c->blocks = whole + split * args->splits;
    c->compute = cycles / (1e6 * chip->clock_mhz);
    if (c->blocks > chip->sms) c->compute += TGL_LATE_LAUNCH_SECONDS;
    c->memory =
        batch * (size * (m * k + k * n) + size_d * m * n) / (MEMORY_SHARE * chip->memory_rate);
    c->l2 = (size * tiles * (g->row->bm + g->row->bn) * k + size_d * batch * m * n +
             2.0 * (double)g->step.scratch_bytes) /
            chip->l2_rate;
}

/* ---- Lower bounds ---------------------------------------------------------------------------- */

void tgl_mma_bound_start(const tgl_chip *chip, const tgl_shape *s, const mma_geometry *g,
                         int resident, mma_bound *b)
{
    *b = (mma_bound){.chip = chip,
                     .shape = s,
                     .g = g,
                     .resident = resident,
                     .tiles = (double)s->batch * (double)g->step.tiles,
                     .busy = mma_busy_cycles(chip, s, g)};
}

/* Seconds of a candidate with `blocks` blocks that keeps an SM busy for `cycles`. */
static double least_with(const mma_bound *b, double cycles, double blocks)
{
    const double late = blocks > b->chip->sms ? TGL_LATE_LAUNCH_SECONDS : 0;
    return TGL_LAUNCH_SECONDS + late + cycles / (1e6 * b->chip->clock_mhz);
}

/* The number of splits if each split has `chunk` elements of K. */
static int splits_of(const mma_bound *b, int64_t chunk)
{
    return chunk > 0 ? (int)tgl_ceil_div(b->shape->k, chunk) : 1;
}

double tgl_mma_least_of_options(const mma_bound *b, int splits, int64_t whole)
{
    const double split = b->tiles - (double)whole;
    const int64_t chunk = mma_chunk_of(b->shape, b->g, splits);
    const int used = splits_of(b, chunk);
    return least_with(b,
                      all_cycles(b->chip, b->shape, b->g, b->busy, b->resident, (double)whole,
                                 split, used, chunk),
                      (double)whole + split * (double)used);
}

/* A lower bound of the cycles of an SM: an even share of all steps of K, and the part of one tile
 * outside its main loop. */
static double least_even_cycles(const mma_bound *b)
{
    const mma_row *t = b->g->row;
    const double steps = b->tiles * ceil((double)b->shape->k * b->g->size / t->bk_bytes);
    return steps * b->busy / b->chip->sms + TILE_CYCLES + WARP_RESULT_CYCLES * t->wm * t->wn +
           store_cycles(b->shape, b->g);
}

double tgl_mma_least_of_splits(const mma_bound *b, int splits)
{
    const int used = splits_of(b, mma_chunk_of(b->shape, b->g, splits));
    return least_with(b, least_even_cycles(b) + reduce_cycles(b->g, used), b->tiles);
}

/* A bound for whole tiles or one for split tiles, whichever is smaller. Whole tiles: a block has
 * all of K, and at best all blocks of an SM are resident. Split tiles: at best all SMs have the
 * same number of steps. */
double tgl_mma_least_of_all(const mma_bound *b)
{
    const tgl_shape *s = b->shape;
    const mma_geometry *g = b->g;
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k, batch = (double)s->batch;
    const double size_d = (double)tgl_type_size(s->type_d), of_sm = ceil(b->tiles / b->chip->sms);
    const double whole = block_cycles(g, b->busy, of_sm, k) + of_sm * store_cycles(s, g);
    const double split = least_even_cycles(b) + reduce_cycles(g, 2);
    const double memory = batch * (g->size * (m * k + k * n) + size_d * m * n) /
                          (MEMORY_SHARE * b->chip->memory_rate);
    return tgl_larger(least_with(b, whole < split ? whole : split, b->tiles),
                      TGL_LAUNCH_SECONDS + memory);
}
