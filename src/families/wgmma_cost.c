/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicts the time of the family wgmma, and lower bounds of it. A unit of work is a tile (or the
 * tiles of a cluster), or one split of it over K. A step of K is 128 bytes of K. A line is up to
 * 128 contiguous bytes of a tile, as TMA copies them.
 */
#include "families/cost.h"
#include "families/wgmma_geometry.h"
#include "problem/scales.h"

#include <math.h>

enum { SECTOR_BYTES = 32 /* a sector is the unit of reads from L2 */ };

/* Constants of the cost model, fitted to 8,600 times on an H200: 290 products of bf16, f16 and TF32
 * with about 25 kernels each, and the shapes of bench/suites. In geometric mean, the kernels that
 * this model chooses are 1.9 % slower than the fastest (docs/notes/2026-11-26-gpu-planner.md).
 * REDUCE_CYCLES, SUM_BYTES_A_CLOCK, TAIL_OF_TURN and SPILLED_STORES, and the shares of tiles whose
 * consumers alternate, of 64x128, 64x128_s8, 64x256 and 128x64 were fitted again to 54 products
 * with about 30 kernels each (docs/notes/2026-11-29-gpu.md).
 * Cycles are those of tgl_chip.clock_mhz. ..._A_CLOCK: bytes per clock of an SM. */
enum {
    SHARED_BYTES_A_CLOCK = 128, /* rate at which wgmma reads shared memory */
    TMA_BYTES_A_CLOCK = 86,     /* rate at which an SM receives tiles by TMA */
    L2_BYTES_A_CLOCK = 82,      /* rate at which an SM requests tiles from L2 */
    LATENCY_CYCLES = 1410, /* cycles from the release of a stage until its next tile has arrived */
    TILE_CYCLES = 1470,    /* cycles of a tile outside of its main loop, without stores */
    /* Rate of stores of sums in FP32, if rows of D begin at multiples of 16 bytes. */
    STORE_BYTES_A_CLOCK = 12,
    /* The same rate for other rows of D, which are stored 4 bytes at a time; fitted to 26 products
     * of TF32 (bench/fit/predictions.py). */
    SCALAR_STORE_BYTES_A_CLOCK = 8,
    PACKED_STORE_BYTES_A_CLOCK = 25, /* rate of stores of 16-bit results */
    TMA_STORE_BYTES_A_CLOCK = 30,    /* rate of stores of 16-bit results by TMA */
    /* Rate at which an SM adds a residual to packed results: 2 to 5 us for a tile of 128x256
     * (bench/results/h200/dist_phases.csv). */
    RESIDUAL_BYTES_A_CLOCK = 12,
    REDUCE_CYCLES = 2300,        /* cycles of a split tile for fences and its counter, without the
                                    exchange of sums */
    SUM_BYTES_A_CLOCK = 43,      /* rate at which an SM exchanges sums with the workspace */
    REDUCE_IN_CLUSTER = 288,     /* cycles of a tile split in a cluster: two barriers */
    CLUSTER_BYTES_A_CLOCK = 12,  /* rate at which an SM reads sums from other SMs */
    START_CYCLES = 2070,         /* cycles of a product before its first tile */
    CLUSTER_START_CYCLES = 1400, /* additional cycles of a product with clusters */
    /* Additional cycles of a product if wgmma takes its left operand from registers, into which
     * threads load it. */
    LEFT_START_CYCLES = 615,
    LEFT_CYCLES = 44, /* additional cycles of a step of K, if the left operand is in registers */
};
/* The part of a tail that the main loop of another consumer (TAIL_OF_TURN: consumers that
 * alternate) or of another block of the SM (TAIL_OF_BLOCK) does not hide. The last tail of an SM is
 * never hidden. */
static const double TAIL_OF_TURN = 0.7;
static const double TAIL_OF_BLOCK = 0.5;
/* Factor on the time of alternating consumers that store D^T, or rows that do not begin at
 * multiples of 16 bytes: these stores slow the main loop of the other consumer
 * (docs/notes/2026-11-29-gpu.md). */
static const double SLOW_TURN = 1.2;
/* Factor on the rates of stores if threads spill sums (wgmma_spills_sums()). */
static const double SPILLED_STORES = 0.45;
/* Factor on the rates of stores if the kernel computes tiles of D^T. */
static const double EXCHANGED_STORES = 0.85;
/* Additional time, as a fraction, to copy a tile in lines of 64 bytes instead of 128. */
static const double NARROW_LINES = 0.52;
/* Factor on the time to copy a tile in lines of 16 elements, if the tile has several boxes of such
 * lines. */
static const double LINES_OF_16 = 3.4;
static const double OVERLAP = 7.2;        /* exponent of tgl_overlapped() within an SM */
static const double MEMORY_OVERLAP = 3.0; /* exponent of tgl_overlapped() for SMs and memory */
/* The requests of an operand take 1 + LARGER_OPERAND * share times as long, where share is the
 * operand's fraction of the bytes of A and B: the larger operand misses L2 more often. */
static const double LARGER_OPERAND = 0.17;
/* A line of an operand that lies in two lines of L2 takes 1 + TWO_LINES times as long to
 * request. */
static const double TWO_LINES = 1.10;
/* straddling() adds this if lines begin within a sector. */
static const double HALF_SECTORS = 0.66;
/* tgl_straddling() of an operand whose lines in a tile have `bytes` bytes, at least a sector. Lines
 * of repacked copies begin at multiples of 128. If lines begin within a sector (32 bytes of L2),
 * HALF_SECTORS is added to the fraction, because each line then reads one sector more. */
static double straddling(const tgl_shape *s, const wgmma_side *x, int bytes)
{
    const int64_t distance = x->ld * (int64_t)tgl_type_size(s->type_a);
    if (!x->is_direct) return 0;
    return tgl_straddling(distance, bytes) + (distance % SECTOR_BYTES != 0 ? HALF_SECTORS : 0);
}

/* Lines that TMA copies and requests for a tile of `lines` rows or columns of an operand.
 * is_shared: blocks of a cluster share the tile. share: the operand's fraction of the bytes of A
 * and B. */
static wgmma_copies copies_of(const tgl_shape *s, const wgmma_side *x, int lines, bool is_shared,
                              double share)
{
    const bool has_lines_of_k = x->is_k_major;
    const int box = has_lines_of_k ? 1 : wgmma_line_of(s, lines);
    const int bytes = has_lines_of_k ? WGMMA_LINE_BYTES : box * (int)tgl_type_size(s->type_a);
    const bool is_narrow = !has_lines_of_k && box == 16 && lines > box;
    const double narrow =
        is_narrow ? LINES_OF_16 : 1 + NARROW_LINES * ((double)WGMMA_LINE_BYTES / bytes - 1);
    /* Each block of a cluster copies a fixed number of lines. */
    const bool is_whole = has_lines_of_k && is_shared;
    const int64_t copied = is_whole ? lines : tgl_min64(lines, tgl_round_up(x->edge, box));
    const double again = 1 + TWO_LINES * straddling(s, x, bytes) + LARGER_OPERAND * share;
    return (wgmma_copies){(double)copied * narrow, (double)copied * narrow * again};
}

/* Cycles of an SM to copy the tiles of both operands for a step of K. Blocks of a cluster that
 * share a tile each request a part of it. */
static double copy_cycles(const wgmma_copies *left, const wgmma_copies *right,
                          const wgmma_geometry *g)
{
    const double requested =
        left->requested / g->cluster_columns + right->requested / g->cluster_rows;
    return WGMMA_LINE_BYTES * tgl_larger((left->received + right->received) / TMA_BYTES_A_CLOCK,
                                         requested / L2_BYTES_A_CLOCK);
}

static double wgmma_copy_cycles(const tgl_shape *s, const wgmma_geometry *g)
{
    const double share = tgl_wgmma_left_share(g);
    const wgmma_copies left = copies_of(s, &g->left, g->row->bm, g->cluster_columns > 1, share);
    const wgmma_copies right = copies_of(s, &g->right, g->row->bn, g->cluster_rows > 1, 1 - share);
    return copy_cycles(&left, &right, g);
}

/* Cycles of an SM to multiply a step of K of a tile, with both operands in shared memory. */
static double product_cycles(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g)
{
    const wgmma_row *t = g->row;
    const int size = (int)tgl_type_size(s->type_a); /* 8-bit types: twice the rate of 16 bits */
    const double rate = chip->tensor_flops * 2.0 / size;
    const double flops = 2.0 * t->bm * t->bn * g->bk;
    const int right_reads = t->bm / 64; /* each wgmma of 64 rows reads the right tile */
    const double bytes = WGMMA_LINE_BYTES * (t->bm + (double)t->bn * right_reads);
    return tgl_larger(flops / rate, bytes / SHARED_BYTES_A_CLOCK);
}

/* The number of steps of K of all units. */
static double all_steps(const wgmma_geometry *g)
{
    return g->cluster_blocks *
           ((double)g->whole * (double)g->depth + (double)(g->units - g->whole) * (double)g->chunk);
}

/* Factor on the time of arithmetic: long kernels reach the power limit, which lowers the clock.
 * busy: fraction of the SMs that work; cycles: arithmetic of each of these SMs at full clock. */
static double slowed_by_power(const tgl_chip *chip, double busy, double cycles)
{
    /* Maximum additional time, as a fraction; half of it is reached at HALF_SECONDS. */
    static const double SLOWDOWN_MAX = 0.21;
    static const double HALF_SECONDS = 1030e-6;
    const double seconds = cycles / (1e6 * chip->clock_mhz);
    return 1 + SLOWDOWN_MAX * busy * seconds / (seconds + HALF_SECONDS);
}

/* slowed_by_power() for the main loops of a product. product: cycles of a step of K of a tile. */
static double wgmma_slowed(const tgl_chip *chip, const wgmma_geometry *g, double product)
{
    const double sms = tgl_sms_for_clusters(chip, g->cluster_blocks);
    const double busy =
        fmin(sms, (double)g->units * g->cluster_blocks) / chip->sms; /* fraction of the SMs */
    const double cycles = all_steps(g) / (busy * chip->sms) * product;
    return slowed_by_power(chip, busy, cycles);
}

/* The number of stages whose copies are under way. In a cluster a stage is free only when all
 * blocks that share one of its tiles have released it. */
static double stages_in_flight(const wgmma_geometry *g)
{
    return g->cluster_blocks > 1 ? tgl_larger(g->stages - 2.5, 1.5) : g->stages - 1;
}

/* The parts of the time of a step of K of a tile that overlap, in cycles of an SM. */
typedef struct step_parts {
    double multiply, copy;
    double stages; /* number of stages of a block whose copies are under way */
} step_parts;

/* Whether the right operand has a scale factor for each column and each 128 elements of K. */
static bool has_column_factors(const tgl_shape *s, const wgmma_geometry *g)
{
    return (g->exchanged ? s->scaling_a : s->scaling_b) == TGL_SCALING_LINE_128;
}

/* Cycles of a step of K to apply block scale factors. STEP: cycles, and COLUMN: FP32 instructions
 * per sum, are fitted to 12 times of wgmma_128x96, wgmma_128x128 and wgmma_256x128 on an H200.
 * Factors per column are read from shared memory while other consumers' wgmmas read their operands
 * there. SELECTED: instructions per sum, an estimate. Factors per block of 128 columns must be
 * selected for each column if the columns of a tile can lie in two blocks. SHARED: cycles that
 * clusters save in which two blocks share the right tile: 2 % of 8192 cubed by wgmma_256x128 on an
 * H200 (docs/notes/2026-11-28-gpu.md). */
static double factor_cycles(const tgl_shape *s, const wgmma_geometry *g)
{
    enum { FP32_A_CLOCK = 128 /* of an SM: CUDA programming guide, arithmetic instructions */ };
    static const double STEP = 150, COLUMN = 4, SELECTED = 1.5, SHARED = 30;
    const wgmma_row *t = g->row;
    if (!tgl_shape_has_blocked_scales(s)) return 0;
    const double each = has_column_factors(s, g)       ? COLUMN
                        : TGL_SCALE_BLOCK % t->bn != 0 ? SELECTED
                                                       : 0;
    return STEP - (g->cluster_rows == 2 ? SHARED : 0) +
           each * t->bm * t->bn / FP32_A_CLOCK / t->consumers;
}

static step_parts parts_of_step(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g)
{
    const double product = product_cycles(chip, s, g);
    const double left = wgmma_left_in_registers(s, g) ? LEFT_CYCLES : 0;
    return (step_parts){product / g->row->share * wgmma_slowed(chip, g, product) + left +
                            factor_cycles(s, g),
                        wgmma_copy_cycles(s, g), stages_in_flight(g)};
}

/* A function that predicts the cycles of an SM with `resident` blocks for a step of K of a tile. */
typedef double step_cycles(const step_parts *parts, double resident);

static double wgmma_step_cycles(const step_parts *p, double resident)
{
    return tgl_overlapped(p->multiply, p->copy, LATENCY_CYCLES / (resident * p->stages), OVERLAP);
}

/* Bytes of sums that an SM stores per clock. */
static double store_rate(const tgl_shape *s, const wgmma_geometry *g)
{
    if (g->stores_by_tma) return TMA_STORE_BYTES_A_CLOCK;
    /* If this is true, the macro ROWS_ARE_ON_16_BYTES() of the kernel is false. */
    const bool is_scalar = tgl_type_size(s->type_d) == 4 && s->ldd % 4 != 0;
    return (wgmma_packs_results(s, g) ? PACKED_STORE_BYTES_A_CLOCK
            : is_scalar               ? SCALAR_STORE_BYTES_A_CLOCK
                                      : STORE_BYTES_A_CLOCK) *
           (g->exchanged ? EXCHANGED_STORES : 1) * (wgmma_spills_sums(g->row) ? SPILLED_STORES : 1);
}

/* Cycles from the end of the main loop of a unit to the next unit. */
static double wgmma_tail_cycles(const tgl_shape *s, const wgmma_geometry *g, bool is_split)
{
    const double sums = 4.0 * g->row->bm * g->row->bn;
    const double residual =
        s->epilogue.residual && wgmma_packs_results(s, g) ? sums / 2 / RESIDUAL_BYTES_A_CLOCK : 0;
    const double tail = TILE_CYCLES + sums / store_rate(s, g) + residual;
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

/* How many of the tails of an SM's `waves` units add to the SM's time. Main loops of another
 * consumer or block hide a part of each tail except the last one. */
static double exposed_tails(const wgmma_row *t, double waves)
{
    const double of_each = t->alternates ? TAIL_OF_TURN : t->min_blocks > 1 ? TAIL_OF_BLOCK : 1;
    return waves * of_each + 1 - of_each;
}

static bool is_slow_turn(const tgl_shape *s, const wgmma_geometry *g)
{
    return g->row->alternates && (g->exchanged || tgl_store_width(s) == 1);
}

/* Cycles of the busiest SM for units that begin together, each with `depth` steps of K. is_split:
 * they are splits of tiles. */
static double wgmma_wave_cycles(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g,
                                int64_t units, int64_t depth, bool is_split,
                                const step_parts *parts, step_cycles *step)
{
    const wgmma_row *t = g->row;
    if (units == 0) return 0;
    const double waves =
        ceil((double)(units * g->cluster_blocks) / tgl_sms_for_clusters(chip, g->cluster_blocks));
    const bool overlaps = t->min_blocks > 1 && waves > 1;
    const double loop = (double)depth * step(parts, overlaps ? t->min_blocks : 1);
    const double tail = wgmma_tail_cycles(s, g, is_split);
    return (waves * loop + exposed_tails(t, waves) * tail) * (is_slow_turn(s, g) ? SLOW_TURN : 1);
}

/* Cycles of the busiest SM for all units. */
static double all_cycles(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g,
                         const step_parts *parts, step_cycles *step)
{
    return wgmma_wave_cycles(chip, s, g, g->whole, g->depth, false, parts, step) +
           wgmma_wave_cycles(chip, s, g, g->units - g->whole, g->chunk, g->splits > 1, parts, step);
}

/* Bytes of tiles that the SMs request from L2. Blocks of a cluster share them. */
static double requested_bytes(const wgmma_geometry *g)
{
    return all_steps(g) * WGMMA_LINE_BYTES *
           ((double)g->row->bm / g->cluster_columns + (double)g->row->bn / g->cluster_rows);
}

void tgl_wgmma_predict_time(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g,
                            tgl_candidate *c)
{
    const double clock = 1e6 * chip->clock_mhz;
    const step_parts parts = parts_of_step(chip, s, g);
    const double busy = all_cycles(chip, s, g, &parts, wgmma_step_cycles) / clock;
    const double start =
        tgl_repack_seconds(chip, g->repacks, g->repack_count) + start_cycles(s, g) / clock;
    const wgmma_traffic traffic = tgl_wgmma_traffic(chip, s, g->row);
    const double memory =
        tgl_wgmma_memory_bytes(&traffic, all_steps(g), tgl_wgmma_repeated_bytes(s, g)) /
        chip->memory_rate;
    c->blocks = (double)g->step.blocks;
    c->is_uneven = g->whole > 0;
    c->compute = start + tgl_overlapped(busy, memory, 0, MEMORY_OVERLAP);
    c->memory = start + memory;
    c->l2 = start + requested_bytes(g) / chip->l2_rate;
}

/* ---- Lower bounds ---------------------------------------------------------------------------- */

/* Lower bounds of wgmma_step_cycles() and of tgl_overlapped() for two parts. They need no pow().
 *
 * Let the longest part be 1, and x and y the others. tgl_overlapped() is S^(1/p) with S = 1 + x^p +
 * y^p. Let e = x^q + y^q with q >= p. As x, y <= 1, S is at least 1 + e, and e is at most 2. The
 * root is concave, so on [0, 2] the function (1 + e)^(1/p) lies above its chord: S^(1/p) >= 1 +
 * SLOPE * e with SLOPE = (3^(1/p) - 1) / 2. Here q = 8. For two parts y = 0: e is at most 1, SLOPE
 * = 2^(1/p) - 1, and q = 3. */
static double least_step_cycles(const step_parts *p, double resident)
{
    static const double SLOPE = 0.0824; /* (3^(1/OVERLAP) - 1) / 2 */
    const double wait = LATENCY_CYCLES / (resident * p->stages);
    const double longest = tgl_larger(p->multiply, tgl_larger(p->copy, wait));
    const double parts[] = {p->multiply / longest, p->copy / longest, wait / longest};
    double excess = -1;
    for (int i = 0; i < 3; i++) {
        const double square = parts[i] * parts[i];
        excess += square * square * square * square;
    }
    return longest * (1 + SLOPE * excess);
}

static double least_overlapped(double x, double y)
{
    static const double SLOPE = 0.2599; /* 2^(1/MEMORY_OVERLAP) - 1 */
    const double longest = tgl_larger(x, y), part = (x < y ? x : y) / longest;
    return longest * (1 + SLOPE * part * part * part);
}

const char *tgl_wgmma_bound_start(const tgl_chip *chip, const tgl_shape *s,
                                  const tgl_choice *choice, wgmma_bound *b)
{
    const tgl_rectangle all = tgl_whole(s);
    b->chip = chip;
    b->shape = s;
    const char *fault = tgl_wgmma_set_operands(s, &all, choice, &b->g);
    if (fault != NULL) return fault;
    const wgmma_geometry *g = &b->g;
    b->g.cluster_rows = b->g.cluster_columns = b->g.cluster_blocks = b->g.splits = 1;
    b->g.in_cluster = false;
    b->stores_by_tma = b->g.stores_by_tma = tgl_wgmma_stores_by_tma(s, g);
    b->tiles = (double)tgl_ceil_div(g->left.edge, g->row->bm) *
               (double)tgl_ceil_div(g->right.edge, g->row->bn) * (double)s->batch;
    b->product = product_cycles(chip, s, g);
    const double share = tgl_wgmma_left_share(g);
    b->left = copies_of(s, &g->left, g->row->bm, false, share);
    b->right = copies_of(s, &g->right, g->row->bn, false, 1 - share);
    b->traffic = tgl_wgmma_traffic(chip, s, g->row);
    b->tail = wgmma_tail_cycles(s, g, false);
    b->of_left = wgmma_left_in_registers(s, g) ? LEFT_CYCLES : 0;
    b->start = TGL_LAUNCH_SECONDS * (g->repack_count > 0 ? 2 : 1) +
               tgl_repack_seconds(chip, g->repacks, g->repack_count);
    return NULL;
}

/* A lower bound of the seconds of a candidate with the options in b->g. cycles: from the
 * candidate's start to its end; steps: steps of K of all its units together; repeated: as of
 * tgl_wgmma_memory_bytes(). */
static double least_with(const wgmma_bound *b, double cycles, double steps, double repeated)
{
    const double clock = 1e6 * b->chip->clock_mhz;
    const double memory =
        tgl_wgmma_memory_bytes(&b->traffic, steps, repeated) / b->chip->memory_rate;
    return b->start + start_cycles(b->shape, &b->g) / clock +
           least_overlapped(cycles / clock, memory);
}

double tgl_wgmma_least_of_options(wgmma_bound *b, const tgl_choice *choice)
{
    wgmma_geometry *g = &b->g;
    if (tgl_wgmma_set_options(b->chip, b->shape, choice, g) != NULL) return INFINITY;
    g->stores_by_tma = b->stores_by_tma && !g->in_cluster;
    const step_parts parts = {b->product / g->row->share * wgmma_slowed(b->chip, g, b->product) +
                                  b->of_left,
                              copy_cycles(&b->left, &b->right, g), stages_in_flight(g)};
    return least_with(b, all_cycles(b->chip, b->shape, g, &parts, least_step_cycles), all_steps(g),
                      tgl_wgmma_repeated_bytes(b->shape, g));
}

/* A lower bound of the cycles of an SM for an even share of all steps of K. copy: cycles to copy
 * the tiles of a step. */
static double even_cycles(const wgmma_bound *b, double copy)
{
    const wgmma_row *t = b->g.row;
    const step_parts parts = {b->product / t->share + b->of_left, copy, t->stages - 1};
    return b->tiles * (double)b->g.depth / b->chip->sms * least_step_cycles(&parts, t->min_blocks);
}

/* Sets the cluster of the geometry to `rows` x `columns`, and returns the cycles of an SM to copy
 * the tiles of a step. */
static double copy_cycles_in(wgmma_bound *b, int rows, int columns)
{
    b->g.cluster_rows = rows;
    b->g.cluster_columns = columns;
    b->g.cluster_blocks = rows * columns;
    return copy_cycles(&b->left, &b->right, &b->g);
}

double tgl_wgmma_least_of_splits(wgmma_bound *b, int splits)
{
    wgmma_geometry *g = &b->g;
    const bool has_rows = g->left.edge > g->row->bm, has_columns = g->right.edge > g->row->bn;
    /* The clusters that the search tries: 1 x 1, and 2 x 1 or 1 x 2 if D has two such tiles. */
    double copy = copy_cycles_in(b, 1, 1);
    if (has_rows) copy = fmin(copy, copy_cycles_in(b, 2, 1));
    if (has_columns) copy = fmin(copy, copy_cycles_in(b, 1, 2));
    copy_cycles_in(b, 1, 1);
    g->in_cluster = false;
    g->splits = (int)tgl_ceil_div(g->depth, tgl_ceil_div(g->depth, splits));
    g->stores_by_tma = b->stores_by_tma;
    return least_with(b, even_cycles(b, copy) + wgmma_tail_cycles(b->shape, g, true),
                      b->tiles * (double)g->depth, 0);
}

/* ---- The bound of all choices ---------------------------------------------------------------- */

/* A bound for whole tiles or one for split tiles, whichever is smaller. Whole tiles: a block has
 * all of K. Split tiles: at best all SMs have the same number of steps, and each tile has two
 * splits. In both cases requests to L2 are not counted, because clusters may share them. */
double tgl_wgmma_least_of_all(const wgmma_bound *b)
{
    const wgmma_geometry *g = &b->g;
    const wgmma_row *t = g->row;
    const double copy =
        WGMMA_LINE_BYTES * (b->left.received + b->right.received) / TMA_BYTES_A_CLOCK;
    const step_parts parts = {b->product / t->share + b->of_left, copy, t->stages - 1};
    const double waves = ceil(b->tiles / b->chip->sms);
    const double whole =
        waves * (double)g->depth * least_step_cycles(&parts, waves > 1 ? t->min_blocks : 1) +
        exposed_tails(t, waves) * b->tail;
    const double sums = 4.0 * t->bm * t->bn;
    const double add = fmin(REDUCE_IN_CLUSTER + sums / CLUSTER_BYTES_A_CLOCK,
                            REDUCE_CYCLES + 3 * sums / SUM_BYTES_A_CLOCK);
    const double split = even_cycles(b, copy) + b->tail + add;
    const bool splits = !t->alternates && g->depth >= 2 * WGMMA_SPLIT_DEPTH_MIN;
    return least_with(b, splits && split < whole ? split : whole, b->tiles * (double)g->depth, 0);
}

double tgl_wgmma_least_seconds(const tgl_chip *chip, const tgl_shape *s, const tgl_choice *choice)
{
    double least = INFINITY;
    wgmma_bound b;
    for (int exchanged = 0; exchanged < 2; exchanged++) {
        const int registers_max = wgmma_tries_registers(s, choice, exchanged) ? 1 : 0;
        for (int registers = 0; registers <= registers_max; registers++) {
            tgl_choice one = *choice;
            one.option[WGMMA_EXCHANGED] = exchanged;
            one.option[WGMMA_LEFT_REGISTERS] = registers > 0 ? 1 : TGL_UNSET;
            if (tgl_wgmma_bound_start(chip, s, &one, &b) == NULL)
                least = fmin(least, tgl_wgmma_least_of_all(&b));
        }
    }
    return least;
}
