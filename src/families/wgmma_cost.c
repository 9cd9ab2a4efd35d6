/* SPDX-License-Identifier: Apache-2.0
 *
 * The predicted time of the family wgmma.
 */
#include "families/cost.h"
#include "families/wgmma_geometry.h"

#include <math.h>

enum { SECTOR_BYTES = 32 /* of L2 */ };

/* Fitted to 8,600 times on an H200: 290 products of bf16, f16 and TF32 with about 25 kernels each,
 * and the shapes of bench/suites. The choices are 1.9 % slower than the best in geometric mean
 * (docs/notes/2026-11-26-gpu-planner.md). Cycles are those of the clock in the table of chips.
 * ..._A_CLOCK: bytes per clock of an SM. */
enum {
    SHARED_BYTES_A_CLOCK = 128, /* shared memory that wgmma reads */
    TMA_BYTES_A_CLOCK = 86,     /* tiles that an SM receives by TMA */
    L2_BYTES_A_CLOCK = 82,      /* tiles that an SM requests from L2 */
    LATENCY_CYCLES = 1410,      /* from the release of a stage until its next tile has arrived */
    TILE_CYCLES = 1470,         /* of a tile outside of its main loop, without stores */
    STORE_BYTES_A_CLOCK = 12,   /* rate of stores of sums in FP32 */
    PACKED_STORE_BYTES_A_CLOCK = 25, /* rate of stores of 16-bit results */
    TMA_STORE_BYTES_A_CLOCK = 30,    /* rate of stores of 16-bit results by TMA */
    REDUCE_CYCLES = 2800,    /* of a split tile: fences and the counter, without copies of sums */
    SUM_BYTES_A_CLOCK = 27,  /* sums that an SM exchanges with the workspace */
    REDUCE_IN_CLUSTER = 288, /* of a tile split in a cluster: two barriers */
    CLUSTER_BYTES_A_CLOCK = 12,  /* sums that an SM reads from other SMs */
    START_CYCLES = 2070,         /* of a product before its first tile */
    CLUSTER_START_CYCLES = 1400, /* additional cycles of a product with clusters */
    LEFT_START_CYCLES = 615,     /* additional cycles if left tiles go through registers */
    LEFT_CYCLES = 44,            /* additional cycles of each step of K in such a product */
};
/* If consumers alternate, a tile takes TURN times as long as its main loop and tail. */
static const double TURN = 1.10;
static const double EXCHANGED_STORES = 0.85; /* factor on the rates of stores for tiles of D^T */
static const double NARROW_LINES = 0.52;     /* additional time of a line of 32 elements, not 64 */
/* Factor on the time of a line of 16 elements, if a tile has several boxes of such lines. */
static const double LINES_OF_16 = 3.4;
static const double OVERLAP = 7.2;        /* exponent of overlapped() within an SM */
static const double MEMORY_OVERLAP = 3.0; /* exponent of overlapped() for SMs and memory */
/* Additional time of the requests of an operand, times its fraction of the bytes of A and B: the
 * larger operand misses L2 more often. */
static const double LARGER_OPERAND = 0.17;
static const double TWO_LINES = 1.10; /* additional time of a line that lies in two lines of L2 */
static const double HALF_SECTORS =
    0.66; /* added by straddling() if lines of the operand begin within a sector */
/* Fraction of tile loads that miss L2 if the operands are much larger than L2, because blocks that
 * share a tile do not load it at the same time. Fitted on an H100, whose memory is slower: times on
 * an H200 hardly depend on it. With 0.17 an H100 gets tiles of 128x128 for large squares, which
 * take up to twice the time there. */
static const double MISSES = 0.25;

/* The time of three parts that overlap: little more than the longest, more if two are equal. */
static double overlapped(double x, double y, double z, double exponent)
{
    const double longest = tgl_larger(x, tgl_larger(y, z));
    if (longest <= 0) return 0;
    return longest *
           pow(pow(x / longest, exponent) + pow(y / longest, exponent) + pow(z / longest, exponent),
               1 / exponent);
}

/* The fraction of an operand's lines (of `bytes` bytes) that lie in two lines of L2 (of 128 bytes).
 * Lines begin at all multiples of `unit` equally often; lines of copies begin at multiples of 128.
 * A line that begins within a sector (32 bytes of L2) reads one sector more. */
static double straddling(const tgl_shape *s, const wgmma_side *x, int bytes)
{
    const int64_t distance = x->ld * (int64_t)tgl_type_size(s->type_a);
    const int64_t unit = (distance | WGMMA_LINE_BYTES) & -(distance | WGMMA_LINE_BYTES);
    if (!x->is_direct || bytes <= unit) return 0;
    return (double)(bytes - unit) / WGMMA_LINE_BYTES +
           (unit % SECTOR_BYTES != 0 ? HALF_SECTORS : 0);
}

/* Copies of an SM by TMA for a step of K, in lines of 128 bytes. */
typedef struct copies {
    double received;
    double requested; /* from L2; a line that lies in two lines of L2 counts more */
} copies;

/* Adds a tile of `lines` lines of an operand, or of all its lines if they are fewer. The `blocks`
 * blocks that share the tile share its requests. share: the operand's fraction of the bytes of A
 * and B. */
static void add_copies(const tgl_shape *s, const wgmma_side *x, int lines, int blocks, double share,
                       copies *c)
{
    const bool has_lines_of_k = x->is_k_major;
    const int box = has_lines_of_k ? 1 : wgmma_line_of(s, lines);
    const int bytes = has_lines_of_k ? WGMMA_LINE_BYTES : box * (int)tgl_type_size(s->type_a);
    const bool is_narrow = !has_lines_of_k && box == 16 && lines > box;
    const double narrow =
        is_narrow ? LINES_OF_16 : 1 + NARROW_LINES * ((double)WGMMA_LINE_BYTES / bytes - 1);
    const bool is_whole = has_lines_of_k && blocks > 1; /* parts have a fixed number of lines */
    const int64_t copied = is_whole ? lines : tgl_min64(lines, tgl_round_up(x->edge, box));
    c->received += (double)copied * narrow;
    const double again = 1 + TWO_LINES * straddling(s, x, bytes) + LARGER_OPERAND * share;
    c->requested += (double)copied * narrow * again / blocks;
}

static double wgmma_copy_cycles(const tgl_shape *s, const wgmma_geometry *g)
{
    copies c = {0, 0};
    const double left_share = (double)g->left.edge / (double)(g->left.edge + g->right.edge);
    add_copies(s, &g->left, g->row->bm, g->cluster_columns, left_share, &c);
    add_copies(s, &g->right, g->row->bn, g->cluster_rows, 1 - left_share, &c);
    return WGMMA_LINE_BYTES *
           tgl_larger(c.received / TMA_BYTES_A_CLOCK, c.requested / L2_BYTES_A_CLOCK);
}

/* Cycles of an SM to multiply a step of K of a tile. Both operands are in shared memory. */
static double product_cycles(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g)
{
    const wgmma_row *t = g->row;
    const double rate = wgmma_is_tf32(s) ? chip->tensor_flops / 2.0 : chip->tensor_flops;
    const double flops = 2.0 * t->bm * t->bn * g->bk;
    const int right_reads = t->bm / 64; /* each wgmma of 64 rows reads the right tile */
    const double bytes = WGMMA_LINE_BYTES * (t->bm + (double)t->bn * right_reads);
    return tgl_larger(flops / rate, bytes / SHARED_BYTES_A_CLOCK);
}

/* The number of steps of K of all units. */
static double all_steps(const tgl_shape *s, const wgmma_geometry *g)
{
    const double depth = ceil((double)s->k / g->bk), chunk = ceil((double)g->k_chunk / g->bk);
    return g->cluster_blocks * ((double)g->whole * depth + (double)(g->units - g->whole) * chunk);
}

/* Factor on the time of arithmetic: the power limit lowers the clock of long kernels. busy:
 * fraction of the SMs; cycles: of each. */
static double slowed_by_power(const tgl_chip *chip, double busy, double cycles)
{
    static const double MOST = 0.21; /* maximum additional time; half of it after HALF_SECONDS */
    static const double HALF_SECONDS = 1030e-6;
    const double seconds = cycles / (1e6 * chip->clock_mhz);
    return 1 + MOST * busy * seconds / (seconds + HALF_SECONDS);
}

static double wgmma_slowed(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g)
{
    const double sms = tgl_sms_for_clusters(chip, g->cluster_blocks);
    const double busy =
        fmin(sms, (double)g->units * g->cluster_blocks) / chip->sms; /* fraction of the SMs */
    const double cycles = all_steps(s, g) / (busy * chip->sms) * product_cycles(chip, s, g);
    return slowed_by_power(chip, busy, cycles);
}

/* The number of stages that are being copied. In a cluster a stage is free only when all blocks
 * that share one of its tiles have released it. */
static double stages_in_flight(const wgmma_geometry *g)
{
    return g->cluster_blocks > 1 ? tgl_larger(g->stages - 2.5, 1.5) : g->stages - 1;
}

/* Cycles of an SM with `resident` blocks for a step of K of a tile. */
static double wgmma_step_cycles(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g,
                                double resident)
{
    const wgmma_row *t = g->row;
    const double left = wgmma_left_in_registers(s, g) ? LEFT_CYCLES : 0;
    return overlapped(product_cycles(chip, s, g) / t->share * wgmma_slowed(chip, s, g) + left,
                      wgmma_copy_cycles(s, g), LATENCY_CYCLES / (resident * stages_in_flight(g)),
                      OVERLAP);
}

/* Bytes of sums that an SM stores per clock. */
static double store_rate(const tgl_shape *s, const wgmma_geometry *g)
{
    if (g->stores_by_tma) return TMA_STORE_BYTES_A_CLOCK;
    const bool is_packed = tgl_type_size(s->type_d) == 2 && !s->epilogue.residual;
    return (is_packed ? PACKED_STORE_BYTES_A_CLOCK : STORE_BYTES_A_CLOCK) *
           (g->exchanged ? EXCHANGED_STORES : 1);
}

/* Cycles from the end of the main loop of a unit to the next unit. */
static double wgmma_tail_cycles(const tgl_shape *s, const wgmma_geometry *g, bool is_split)
{
    const double sums = 4.0 * g->row->bm * g->row->bn;
    const double tail = TILE_CYCLES + sums / store_rate(s, g);
    if (!is_split) return tail;
    if (g->in_cluster) return tail + REDUCE_IN_CLUSTER + sums / CLUSTER_BYTES_A_CLOCK;
    return tail + REDUCE_CYCLES + (1 + g->splits) * sums / SUM_BYTES_A_CLOCK;
}

/* Cycles of a product before its first tile. */
static double start_cycles(const tgl_shape *s, const wgmma_geometry *g)
{
    return START_CYCLES + (g->cluster_blocks > 1 ? CLUSTER_START_CYCLES : 0) +
           (wgmma_left_in_registers(s, g) ? LEFT_START_CYCLES : 0);
}

/* The cycles of an SM with `resident` blocks for a step of K of a tile. */
typedef double step_cycles(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g,
                           double resident);

/* Cycles of the busiest SM for units that begin together, each with `depth` steps of K. */
static double wgmma_wave_cycles(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g,
                                int64_t units, double depth, bool is_split, step_cycles *step)
{
    const wgmma_row *t = g->row;
    const double waves =
        ceil((double)(units * g->cluster_blocks) / tgl_sms_for_clusters(chip, g->cluster_blocks));
    if (waves == 0) return 0;
    const bool overlaps = t->min_blocks > 1 && waves > 1; /* a tail with another block's loop */
    const double loop = depth * step(chip, s, g, overlaps ? t->min_blocks : 1);
    const double tail = wgmma_tail_cycles(s, g, is_split);
    if (t->alternates) return waves * TURN * (loop + tail) + tail;
    return waves * loop + (overlaps ? waves / 2 + 0.5 : waves) * tail;
}

/* Cycles of the busiest SM for all units. */
static double all_cycles(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g,
                         step_cycles *step)
{
    const double depth = ceil((double)s->k / g->bk), chunk = ceil((double)g->k_chunk / g->bk);
    return wgmma_wave_cycles(chip, s, g, g->whole, depth, false, step) +
           wgmma_wave_cycles(chip, s, g, g->units - g->whole, chunk, g->splits > 1, step);
}

/* Bytes that are read from memory or written to it. */
static double memory_bytes(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g)
{
    const wgmma_row *t = g->row;
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k, batch = (double)s->batch;
    const double operands = (double)tgl_type_size(s->type_a) * (m * k + k * n); /* of a problem */
    const double result = batch * (double)tgl_type_size(s->type_d) * m * n;
    const double beyond =
        operands > (double)chip->l2_bytes ? 1 - (double)chip->l2_bytes / operands : 0;
    const double tiles = all_steps(s, g) * WGMMA_LINE_BYTES * (t->bm + t->bn);
    return tgl_larger(batch * operands, MISSES * beyond * tiles) + result;
}

void tgl_wgmma_predict_time(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g,
                            tgl_candidate *c)
{
    const wgmma_row *t = g->row;
    const double cycles = all_cycles(chip, s, g, wgmma_step_cycles);
    const double start = tgl_repack_seconds(chip, g->repacks, g->repack_count) +
                         start_cycles(s, g) / (1e6 * chip->clock_mhz);
    const double memory = memory_bytes(chip, s, g) / chip->memory_rate;
    c->blocks = (double)g->step.blocks;
    c->is_uneven = g->whole > 0;
    c->compute = start + overlapped(cycles / (1e6 * chip->clock_mhz), memory, 0, MEMORY_OVERLAP);
    c->memory = start + memory;
    c->l2 = start + all_steps(s, g) * WGMMA_LINE_BYTES *
                        ((double)t->bm / g->cluster_columns + (double)t->bn / g->cluster_rows) /
                        chip->l2_rate;
}

/* At best, splits divide the steps of K evenly over the SMs. The tiles are those of D or of D^T,
 * whichever has fewer. */
double tgl_wgmma_least_seconds(const tgl_chip *chip, const tgl_shape *s, const tgl_choice *choice)
{
    enum { SPLITS_IN_CLUSTER_MAX = 4 };
    const wgmma_row *t = tgl_choice_row(choice);
    const wgmma_geometry g = {.row = t, .bk = WGMMA_LINE_BYTES / (int)tgl_type_size(s->type_a)};
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k, batch = (double)s->batch;
    const double tiles =
        batch * fmin(ceil(m / t->bm) * ceil(n / t->bn), ceil(n / t->bm) * ceil(m / t->bn));
    const double product = product_cycles(chip, s, &g), steps = tiles * ceil(k / g.bk);
    const double sms = fmin(tgl_sms_for_clusters(chip, SPLITS_IN_CLUSTER_MAX), tiles);
    const double busy = sms / chip->sms;
    const double slowed = slowed_by_power(chip, busy, steps / sms * product);
    const double cycles = START_CYCLES + TILE_CYCLES +
                          4.0 * t->bm * t->bn / TMA_STORE_BYTES_A_CLOCK +
                          steps / chip->sms * product / t->share * slowed;
    const double result = batch * (double)tgl_type_size(s->type_d) * m * n;
    const double operands = batch * (double)tgl_type_size(s->type_a) * (m * k + k * n);
    return tgl_larger(cycles / (1e6 * chip->clock_mhz),
                      START_CYCLES / (1e6 * chip->clock_mhz) +
                          (operands + result) / chip->memory_rate);
}

/* A lower bound of wgmma_step_cycles() for what tgl_wgmma_sketch() sets: the maximum of arithmetic,
 * copies and latency. No line that is copied lies in two lines of L2. */
static double least_step_cycles(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g,
                                double resident)
{
    const wgmma_row *t = g->row;
    const double left = (double)tgl_min64(t->bm, g->left.edge);
    const double right = (double)tgl_min64(t->bn, g->right.edge);
    const double copied =
        WGMMA_LINE_BYTES *
        tgl_larger((left + right) / TMA_BYTES_A_CLOCK,
                   (left / g->cluster_columns + right / g->cluster_rows) / L2_BYTES_A_CLOCK);
    return tgl_larger(product_cycles(chip, s, g) / t->share * wgmma_slowed(chip, s, g),
                      tgl_larger(copied, LATENCY_CYCLES / (resident * stages_in_flight(g))));
}

double tgl_wgmma_least_of_options(const tgl_chip *chip, const tgl_shape *s,
                                  const tgl_choice *choice)
{
    wgmma_geometry g;
    if (tgl_wgmma_sketch(chip, s, choice, &g) != NULL) return INFINITY;
    g.stores_by_tma =
        g.row->boxes > 0 && !g.exchanged && !g.in_cluster && tgl_type_size(s->type_d) == 2;
    const double clock = 1e6 * chip->clock_mhz;
    const double cycles = all_cycles(chip, s, &g, least_step_cycles);
    const double start = START_CYCLES + (g.cluster_blocks > 1 ? CLUSTER_START_CYCLES : 0);
    return start / clock +
           tgl_larger(cycles / clock, memory_bytes(chip, s, &g) / chip->memory_rate);
}
