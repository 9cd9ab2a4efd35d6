/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm/wgmma.cu: products of f16, bf16 and TF32 on Hopper's tensor cores. Operands that TMA cannot
 * read as they lie are repacked by a pre-pass.
 */
#include "families/gemm_launch.h"
#include "families/wgmma_geometry.h"

#include <limits.h>

/* ---- Configurations -------------------------------------------------------------------------- */

/* Name, BM, BN, CONSUMERS, ALTERNATE, STAGES, TMA_STORES, MIN_BLOCKS, registers, share. Two or
 * three consumers take all of an SM's registers. Of blocks with one consumer an SM holds two, if
 * their tile leaves room for enough stages: the epilogue of one then overlaps with the main loop of
 * the other. Where consumers alternate (_alt), it overlaps within a block. Where tiles are as few
 * as SMs, a block has all of an SM's shared memory for stages (_s8, _s12), because latency limits
 * it.
 */
// clang-format off
static const wgmma_row rows[] = {
    {"wgmma_128x256",     128, 256, 2, false, 4, 2, 1, 168, 0.84},
    {"wgmma_256x128",     256, 128, 2, false, 4, 2, 1, 168, 0.75},
    {"wgmma_256x144",     256, 144, 2, false, 4, 0, 1, 168, 0.78},
    {"wgmma_128x224",     128, 224, 2, false, 4, 4, 1, 168, 0.82},
    {"wgmma_128x144",     128, 144, 2, false, 6, 0, 1, 168, 0.78},
    {"wgmma_192x192",     192, 192, 3, false, 4, 1, 1, 128, 0.84},
    {"wgmma_128x192",     128, 192, 2, false, 5, 3, 1, 168, 0.83},
    {"wgmma_128x160",     128, 160, 2, false, 5, 5, 1, 168, 0.77},
    {"wgmma_128x128",     128, 128, 2, false, 6, 2, 1, 168, 0.81},
    {"wgmma_128x96",      128,  96, 2, false, 7, 3, 1, 168, 0.77},
    {"wgmma_128x192_alt", 128, 192, 2, true,  5, 0, 1, 168, 0.78},
    {"wgmma_128x160_alt", 128, 160, 2, true,  5, 0, 1, 168, 0.85},
    {"wgmma_128x128_alt", 128, 128, 2, true,  6, 0, 1, 168, 0.89},
    {"wgmma_64x256_alt",   64, 256, 2, true,  5, 0, 1, 168, 0.82},
    {"wgmma_128x64_s8",   128,  64, 2, false, 8, 1, 1, 168, 0.67},
    {"wgmma_64x128_s8",    64, 128, 1, false, 8, 2, 1, 168, 0.52},
    {"wgmma_64x64_s12",    64,  64, 1, false, 12, 1, 1, 120, 0.47},
    {"wgmma_64x48_s14",    64,  48, 1, false, 14, 0, 1, 120, 0.44},
    {"wgmma_64x80_s11",    64,  80, 1, false, 11, 0, 1, 120, 0.56},
    {"wgmma_64x224",       64, 224, 1, false, 5, 4, 1, 255, 0.63},
    {"wgmma_128x112",     128, 112, 2, false, 7, 0, 1, 168, 0.72},
    {"wgmma_128x80",      128,  80, 2, false, 8, 0, 1, 168, 0.72},
    {"wgmma_128x64",      128,  64, 1, false, 4, 0, 2, 168, 0.36},
    {"wgmma_64x256",       64, 256, 1, false, 5, 4, 1, 255, 0.60},
    {"wgmma_64x128",       64, 128, 1, false, 4, 0, 2, 168, 0.42},
    {"wgmma_64x64",        64,  64, 1, false, 6, 1, 2, 120, 0.34},
    {"wgmma_64x32",        64,  32, 1, false, 8, 0, 2, 80, 0.43},
    {"wgmma_64x16",        64,  16, 1, false, 9, 0, 2, 64, 0.43},
};
// clang-format on
enum { ROWS = sizeof rows / sizeof rows[0] };

/* splits: blocks that share the K of a tile. exchanged: 1: tiles are those of D^T. cluster,
 * columns: a cluster has `cluster` rows and `columns` columns of tiles, and a block for each tile.
 * The blocks of a column share their right tile, those of a row their left tile. whole: tiles of a
 * cluster, from the first on, that are not split. in_cluster: 1: the blocks that share a tile form
 * a cluster, and add up its sums there instead of in the workspace. raster: rows of clusters of
 * tiles in a band. left_registers: 1: a left operand of TF32 that is contiguous in its rows reaches
 * wgmma through registers, without a pre-pass: see lib/wgmma_left.h. */
static const char *const options[] = {"splits", "exchanged",      "cluster", "whole", "in_cluster",
                                      "raster", "left_registers", "columns", NULL};
enum { SPLITS, EXCHANGED, CLUSTER, WHOLE, IN_CLUSTER, RASTER, LEFT_REGISTERS, COLUMNS };

static const char *configuration(int index)
{
    return index >= 0 && index < ROWS ? rows[index].name : NULL;
}

/* ---- What it takes --------------------------------------------------------------------------- */

static bool has_types(const tgl_shape *s)
{
    const bool is_half = s->type_a == TGL_F16 || s->type_a == TGL_BF16;
    if (s->type_a != s->type_b || s->type_accumulate != TGL_F32) return false;
    return is_half || (wgmma_is_tf32(s) && s->compute == TGL_COMPUTE_TF32);
}

/* The strides of a tensor map are below 2^40 bytes (CUDA driver API, cuTensorMapEncodeTiled). */
static int64_t greatest_stride(tgl_type type)
{
    return ((int64_t)1 << 40) / (int64_t)tgl_type_size(type) - 1;
}

static bool has_small_strides(const tgl_shape *s)
{
    const int64_t most = greatest_stride(s->type_a);
    return s->lda <= most && s->ldb <= most && s->stride_a <= most && s->stride_b <= most;
}

static const char *unsupported_reason(const tgl_shape *s, const tgl_chip *chip)
{
    if (!has_types(s)) return "it multiplies f16, bf16, and FP32 as TF32";
    if ((chip->features & TGL_HAS_WGMMA) == 0) return "the chip has no wgmma";
    if ((chip->features & TGL_HAS_TMA) == 0) return "the chip or its driver has no TMA";
    if (s->pointers) return "tensor maps describe no batches of pointers";
    if (!has_small_strides(s)) return "TMA takes strides below 2^40 bytes";
    if (s->batch > TGL_EXTENT_MAX) return "it counts the problems of a batch in 31 bits";
    return tgl_gemm_unsupported_reason(s);
}

/* ---- Geometry -------------------------------------------------------------------------------- */

/* Blocks of a cluster that share operands, at most: 8 were not faster than 4. */
enum { CLUSTER_MAX = 4 };
enum { TMA_ALIGNMENT = 16 }; /* bytes */

/* Whether a consumer has enough registers to hold MN-major TF32: its sums, 16 for each 64 rows of
 * the left tiles of two stages, and 56 others. With 40 NVRTC 13.0 spilled some. */
static bool has_room_for_left(const wgmma_row *t)
{
    enum { LOADED = 2 * 16, OTHERS = 56 };
    static const int consumer_registers[] = {[2] = 232, [3] = 160}; /* of gemm/wgmma.cu */
    const int rows_of_consumer = t->bm / (t->alternates ? 1 : t->consumers);
    const int registers = t->consumers > 1 ? consumer_registers[t->consumers] : t->registers;
    return rows_of_consumer / 64 * (t->bn / 2 + LOADED) + OTHERS <= registers;
}

/* Distances that TMA can take: of lines, if there are several, and of matrices. in_registers: TF32
 * may be MN-major. */
static bool is_direct(const tgl_shape *s, const wgmma_side *x, bool in_registers)
{
    const int64_t size = (int64_t)tgl_type_size(s->type_a);
    const int64_t lines_of_x = x->along_k ? x->edge : x->k;
    if (wgmma_is_tf32(s) && !x->along_k && !in_registers) return x->k == 0;
    if (x->k == 0) return true; /* it is not read */
    if (s->unaligned) return false;
    return (lines_of_x == 1 || x->ld * size % TMA_ALIGNMENT == 0) &&
           (x->count == 1 || x->stride * size % TMA_ALIGNMENT == 0);
}

/* A sliver is an MN-major operand of few rows or columns: its lines in memory are short. Whether a
 * pre-pass should make it K-major: if it needs a pre-pass anyway, or if the product is so large
 * that this is worth 3 us: 28672x8x8192 NN takes 117 instead of 122 us on an H200. */
static bool is_sliver(const wgmma_side *x, int64_t other_edge)
{
    enum { SHORT = 16 /* elements: a sector of L2 */, LARGE = 1 << 26 /* elements of the other */ };
    const bool is_large = (double)x->k * (double)other_edge >= LARGE;
    return !x->along_k && x->edge < SHORT && (!x->is_direct || is_large);
}

static wgmma_side side_of(const tgl_shape *s, const tgl_rectangle *part, bool is_a,
                          bool in_registers)
{
    wgmma_side x = {
        .operand = is_a ? TGL_AT_A : TGL_AT_B,
        .along_k = is_a ? !s->trans_a : s->trans_b,
        .edge = is_a ? part->m : part->n,
        .k = s->k,
        .ld = is_a ? s->lda : s->ldb,
        .stride = is_a ? s->stride_a : s->stride_b,
        .offset = is_a ? tgl_gemm_offset_a(s, part) : tgl_gemm_offset_b(s, part),
    };
    x.count = x.stride == 0 ? 1 : s->batch;
    x.is_direct = is_direct(s, &x, in_registers);
    const bool becomes_k_major = !wgmma_is_tf32(s) && is_sliver(&x, is_a ? part->n : part->m);
    if (becomes_k_major) x.is_direct = false;
    x.is_k_major =
        x.along_k || becomes_k_major || (wgmma_is_tf32(s) && !(in_registers && x.is_direct));
    return x;
}

/* 16-bit operands keep their major dimension, but for slivers; TF32 becomes K-major, but for a left
 * operand that goes through registers. */
static tgl_repack repack_of(const tgl_shape *s, const wgmma_side *x)
{
    const bool becomes_k_major = x->is_k_major;
    return (tgl_repack){
        .operand = x->operand,
        .type = s->type_a,
        .transposes = becomes_k_major != x->along_k,
        .rounds_to_tf32 = wgmma_is_tf32(s),
        .offset = x->offset,
        .lines = becomes_k_major ? x->edge : x->k,
        .length = becomes_k_major ? x->k : x->edge,
        .ld = x->ld,
        .stride = x->stride,
        .count = x->count,
    };
}

static void add_repacks(const tgl_shape *s, wgmma_geometry *g)
{
    const wgmma_side *const sides[] = {&g->left, &g->right};
    for (int i = 0; i < 2; i++) {
        if (sides[i]->is_direct) continue;
        tgl_repack *r = &g->repacks[g->repack_count++];
        *r = repack_of(s, sides[i]);
        r->scratch = g->repacked_bytes;
        g->repacked_bytes += tgl_round_up(tgl_repack_bytes(r), TGL_WORKSPACE_ALIGNMENT);
    }
}

/* Whether the kernel has TMA_STORES, and TMA can take the distances in D. lib/tma.h says why rows
 * have to be multiples of 16 bytes long. */
static bool stores_by_tma(const tgl_shape *s, const wgmma_geometry *g)
{
    const int64_t most = greatest_stride(s->type_d);
    return g->row->boxes > 0 && !g->exchanged && !g->in_cluster && !s->unaligned &&
           tgl_type_size(s->type_d) == 2 && !s->epilogue.residual && s->ldd % 8 == 0 &&
           g->right.edge % 8 == 0 && s->ldd <= most &&
           (s->batch == 1 || (s->stride_d % 8 == 0 && s->stride_d <= most));
}

enum { BOX_ROWS = 64, RESULT_BYTES = 2 }; /* of a box of results, and of a result in it */

/* Columns of such a box: SPAN of the kernel. */
static int box_columns(const wgmma_row *t)
{
    return t->bn % 64 == 0 ? 64 : 32;
}

/* Shared memory of a consumer for its results: at least RESULTS_BYTES of the kernel. */
static int results_bytes(const wgmma_geometry *g)
{
    const wgmma_row *t = g->row;
    const int chunk = t->bn % 32 == 0 ? 32 : 16;
    const int chunk_bytes = (g->exchanged ? chunk * 20 : 16 * (chunk + 8)) * (int)sizeof(float);
    const int box_bytes =
        g->stores_by_tma ? t->boxes * BOX_ROWS * box_columns(t) * RESULT_BYTES : 0;
    return box_bytes > 4 * chunk_bytes ? box_bytes : 4 * chunk_bytes;
}

/* As struct shared of the kernel has it. */
static int shared_bytes(const wgmma_geometry *g)
{
    enum { BARRIER = 8 }; /* bytes */
    const wgmma_row *t = g->row;
    return g->stages * ((t->bm + t->bn) * WGMMA_LINE_BYTES + 2 * BARRIER) +
           t->consumers * results_bytes(g) + (t->alternates ? t->consumers * BARRIER : 0);
}

static void split(const tgl_shape *s, const tgl_choice *choice, wgmma_geometry *g)
{
    const int64_t asked = tgl_min64(tgl_option(choice, SPLITS, 1), TGL_SPLITS_MAX);
    g->splits = 1;
    g->k_chunk = tgl_round_up(s->k, g->bk);
    if (asked < 2 || (s->k <= g->bk && !g->in_cluster)) return;
    g->k_chunk = tgl_round_up(tgl_ceil_div(s->k, asked), g->bk);
    if (g->in_cluster)
        g->splits = (int)asked;
    else if (g->k_chunk > 0)
        g->splits = (int)tgl_ceil_div(s->k, g->k_chunk);
}

/* Why the choice's clusters cannot be; NULL: they can. */
static const char *cluster_fault(const tgl_chip *chip, const tgl_choice *choice,
                                 const wgmma_geometry *g)
{
    enum { PART_MIN = 16, PART = 32 }; /* columns that a block of the cluster stores */
    enum { SWIZZLE_LINES = 8 };        /* after which the swizzle of a part repeats */
    const wgmma_row *t = g->row;
    const int64_t splits = tgl_option(choice, SPLITS, 1);
    const int64_t part = splits > 0 ? t->bn / splits : 0;
    if (g->cluster_rows < 1 || g->cluster_rows > CLUSTER_MAX || g->cluster_columns < 1 ||
        g->cluster_columns > CLUSTER_MAX ||
        CLUSTER_MAX % (g->cluster_rows * g->cluster_columns) != 0)
        return "a cluster has 1, 2 or 4 tiles";
    const int blocks = g->cluster_rows * g->cluster_columns;
    if (blocks > chip->cluster_max) return "the chip has no clusters";
    if (t->bn / g->cluster_rows % SWIZZLE_LINES != 0)
        return "the parts of a right tile have to be multiples of 8 columns";
    if (blocks > 1 && t->min_blocks > 1 && t->bm * t->bn > 64 * 128)
        return "with clusters it would spill registers";
    if (t->alternates && splits > 1) return "consumers that alternate split no tiles";
    if (!g->in_cluster) return NULL;
    if (blocks > 1) return "blocks that share a tile share operands with no other";
    if (splits < 2 || splits > chip->cluster_max) return "a cluster cannot have as many blocks";
    if (part * splits != t->bn || (part != PART_MIN && part % PART != 0))
        return "the blocks of a cluster cannot share the columns of a tile";
    return NULL;
}

/* Sets what is counted: tiles, units, blocks. */
static const char *count_units(const tgl_chip *chip, const tgl_shape *s, const tgl_choice *choice,
                               wgmma_geometry *g)
{
    enum { UNITS_MAX = (1 << 30) - 1 }; /* of lib/wgmma_units.h */
    const wgmma_row *t = g->row;
    g->tile_rows = tgl_ceil_div(g->left.edge, t->bm * g->cluster_rows);
    g->tile_columns = tgl_ceil_div(g->right.edge, t->bn * g->cluster_columns);
    if ((double)g->tile_rows * (double)g->tile_columns * (double)s->batch * g->splits > UNITS_MAX)
        return tgl_grid_too_large;
    g->tiles = g->tile_rows * g->tile_columns * s->batch;
    const bool is_split = g->splits > 1 && !g->in_cluster;
    g->whole = is_split ? tgl_min64(tgl_option(choice, WHOLE, 0), g->tiles) : 0;
    g->units = g->whole + (g->tiles - g->whole) * g->splits;
    g->blocks = g->in_cluster ? g->units
                              : tgl_persistent_blocks(chip, t->min_blocks, g->cluster_blocks,
                                                      g->units * g->cluster_blocks);
    if (is_split) {
        const int64_t tiles = (g->tiles - g->whole) * g->cluster_blocks;
        g->sums = tiles * g->splits * t->bm * t->bn * (int64_t)sizeof(float);
        g->counters = tiles * (int64_t)sizeof(unsigned);
    }
    return NULL;
}

/* NULL, or why the choice cannot serve. */
static const char *make_geometry(const tgl_chip *chip, const tgl_shape *s,
                                 const tgl_rectangle *part, const tgl_choice *choice,
                                 wgmma_geometry *g)
{
    const wgmma_row *t = &rows[choice->configuration];
    *g = (wgmma_geometry){.row = t, .exchanged = tgl_option(choice, EXCHANGED, 0) != 0};
    g->cluster_rows = (int)tgl_min64(tgl_option(choice, CLUSTER, 1), INT_MAX);
    g->cluster_columns = (int)tgl_min64(tgl_option(choice, COLUMNS, 1), INT_MAX);
    g->in_cluster = tgl_option(choice, IN_CLUSTER, 0) != 0;
    const char *fault = cluster_fault(chip, choice, g);
    if (fault != NULL) return fault;
    g->cluster_blocks = g->cluster_rows * g->cluster_columns;
    const bool in_registers = tgl_option(choice, LEFT_REGISTERS, 0) != 0;
    if (in_registers && !(wgmma_is_tf32(s) && has_room_for_left(t)))
        return "left_registers=1 is for TF32 and tiles that leave enough registers";
    g->left = side_of(s, part, !g->exchanged, in_registers);
    if (in_registers && g->left.is_k_major)
        return "left_registers=1 is for a left operand that TMA can read and that is contiguous in "
               "its rows";
    g->right = side_of(s, part, g->exchanged, false);
    g->bk = WGMMA_LINE_BYTES / (int)tgl_type_size(s->type_a);
    split(s, choice, g);
    fault = count_units(chip, s, choice, g);
    if (fault != NULL) return fault;
    const int64_t raster = tgl_option(choice, RASTER, 0);
    g->raster = raster > 0 ? (int)tgl_min64(raster, g->tile_rows)
                           : tgl_square_raster(chip, t->bm, t->bn, g->cluster_rows, g->tile_rows);
    g->threads = tgl_ring_threads(t->consumers);
    g->stores_by_tma = stores_by_tma(s, g);
    g->stages = t->stages;
    const int most = chip->shared_per_block / t->min_blocks - TGL_RING_STATIC_SHARED;
    while (g->stages > 1 && shared_bytes(g) > most)
        g->stages--; /* boxes of results may leave room for fewer */
    g->shared = shared_bytes(g);
    add_repacks(s, g);
    return tgl_repack_fault(g->repacks, g->repack_count);
}

/* ---- Predicted time -------------------------------------------------------------------------- */

static void predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    wgmma_geometry g;
    const tgl_rectangle part = tgl_whole(s);
    const char *why = make_geometry(chip, s, &part, &c->choice, &g);
    if (why != NULL) {
        tgl_reject(c, why);
        return;
    }
    c->threads = g.threads;
    c->registers = g.row->registers;
    c->shared_bytes = g.shared + TGL_RING_STATIC_SHARED;
    c->splits = g.splits;
    c->workspace_bytes = g.repacked_bytes + g.sums + g.counters;
    c->repacked_bytes = g.repacked_bytes;
    c->launches = 1 + (g.repack_count > 0);
    c->is_predicted = true;
    if (tgl_predict_occupancy(chip, 0, c)) tgl_wgmma_predict_time(chip, s, &g, c);
}

/* ---- Search ---------------------------------------------------------------------------------- */

enum {
    DEPTH_MIN = 4, /* K steps that a block is worth */
    IN_CLUSTER_MAX =
        2, /* splits: clusters of 4 took 105 us where the workspace took 58 (256x4096x14336
              NT in bf16 on an H200), since not all of them fit the chip at once */
};

/* Splits worth a try: all up to 8, then in steps of about a quarter. */
static int next_splits(int splits)
{
    return splits < 8 ? splits + 1 : splits + splits / 4;
}

/* One way to serve the shape: options, of which those that are 0 are left to their defaults. */
typedef struct way {
    int64_t splits, exchanged, rows, columns, whole, in_cluster;
} way;

static int64_t asked_or_unset(int64_t value)
{
    return value > 0 ? value : TGL_UNSET;
}

/* Where the left operand may go through registers, it is tried both ways. */
static void try_way(tgl_search *in, way w)
{
    const tgl_shape *s = in->shape;
    const bool is_left_along_k = w.exchanged ? s->trans_b : !s->trans_a;
    int64_t values[] = {[SPLITS] = w.splits > 0 ? w.splits : 1,
                        [EXCHANGED] = w.exchanged,
                        [CLUSTER] = w.rows > 0 ? w.rows : 1,
                        [WHOLE] = asked_or_unset(w.whole),
                        [IN_CLUSTER] = asked_or_unset(w.in_cluster),
                        [RASTER] = TGL_UNSET,
                        [LEFT_REGISTERS] = TGL_UNSET,
                        [COLUMNS] = w.columns > 1 ? w.columns : TGL_UNSET};
    tgl_search_try(in, SPLITS, COLUMNS + 1, values);
    if (!wgmma_is_tf32(s) || is_left_along_k) return;
    if (!has_room_for_left(&rows[in->asked.configuration])) return;
    values[LEFT_REGISTERS] = 1;
    tgl_search_try(in, SPLITS, COLUMNS + 1, values);
}

/* All clusters whose rows and columns are less than twice those of the tiles. */
static void try_clusters(tgl_search *in, int64_t exchanged, int64_t tile_rows, int64_t tile_columns)
{
    for (int high = 1; high <= CLUSTER_MAX; high *= 2)
        for (int wide = 1; high * wide <= CLUSTER_MAX; wide *= 2)
            if (high < 2 * tile_rows && wide < 2 * tile_columns)
                try_way(in, (way){.exchanged = exchanged, .rows = high, .columns = wide});
}

/* All tiles split, in the workspace or in clusters. most: splits. */
static void try_splits(tgl_search *in, int64_t exchanged, double tiles, int most)
{
    for (int i = 2; i <= most && tiles * (i - 1) < 2 * in->chip->sms; i = next_splits(i)) {
        try_way(in, (way){.splits = i, .exchanged = exchanged});
        if (i <= IN_CLUSTER_MAX)
            try_way(in, (way){.splits = i, .exchanged = exchanged, .in_cluster = 1});
    }
}

/* The tiles of the last wave split, if they fill no more than half of it. */
static void try_tail(tgl_search *in, int64_t exchanged, double tiles, int most)
{
    const int64_t slots = (int64_t)in->chip->sms * rows[in->asked.configuration].min_blocks;
    if (tiles <= (double)slots || tiles > INT_MAX) return;
    const int64_t whole = (int64_t)tiles / slots * slots, rest = (int64_t)tiles - whole;
    for (int64_t i = 2; rest > 0 && i <= most && i * rest <= slots; i++)
        try_way(in, (way){.splits = i, .exchanged = exchanged, .whole = whole});
}

static void search(tgl_search *in)
{
    const tgl_shape *s = in->shape;
    const int bk = WGMMA_LINE_BYTES / (int)tgl_type_size(s->type_a);
    const wgmma_row *t = &rows[in->asked.configuration];
    const int most = (int)tgl_min64(s->k / (DEPTH_MIN * bk), TGL_SPLITS_MAX);
    for (int exchanged = 0; exchanged < 2; exchanged++) {
        const int64_t left = exchanged ? s->n : s->m, right = exchanged ? s->m : s->n;
        const int64_t tile_rows = tgl_ceil_div(left, t->bm);
        const int64_t tile_columns = tgl_ceil_div(right, t->bn);
        const double tiles = (double)tile_rows * (double)tile_columns * (double)s->batch;
        try_clusters(in, exchanged, tile_rows, tile_columns);
        try_splits(in, exchanged, tiles, most);
        try_tail(in, exchanged, tiles, most);
    }
}

/* ---- Launches -------------------------------------------------------------------------------- */

/* The map of an operand. parts: blocks of a cluster that load a part of the tile each. A K-major
 * box has no more lines than the operand: copied_lines() of the kernel. */
static tgl_tensor tensor_of(const tgl_shape *s, const wgmma_geometry *g, const wgmma_side *x,
                            int edge, int parts)
{
    const int64_t size = (int64_t)tgl_type_size(s->type_a);
    int64_t ld = x->ld, stride = x->stride, base = x->offset * size;
    const bool along_k = x->is_k_major;
    for (int i = 0; i < g->repack_count; i++) {
        const tgl_repack *r = &g->repacks[i];
        if (r->operand != x->operand) continue;
        ld = tgl_repack_pitch(r);
        stride = tgl_repack_stride(r);
        base = r->scratch;
    }
    const int64_t edge_size = x->edge > 0 ? x->edge : 1, k_size = x->k > 0 ? x->k : 1;
    const int lines = parts > 1 ? edge : (int)tgl_min64(edge, edge_size);
    return (tgl_tensor){
        .base = x->is_direct ? TGL_VALUE_OPERAND : TGL_VALUE_SCRATCH,
        .operand = (int)x->operand,
        .offset = base,
        .type = s->type_a,
        .round_to_tf32 = wgmma_is_tf32(s) && x->is_direct,
        .rank = 3,
        .size = {along_k ? k_size : edge_size, along_k ? edge_size : k_size, x->count},
        /* Of a single line or matrix, or if k is 0, the distance does not matter, but has to be
         * legal. */
        .stride = {size, tgl_round_up(ld * size, TMA_ALIGNMENT),
                   x->count > 1 ? tgl_round_up(stride * size, TMA_ALIGNMENT) : TMA_ALIGNMENT},
        .box = {along_k ? g->bk : wgmma_line_of(s, edge), (along_k ? lines : g->bk) / parts, 1},
        .swizzle_bytes = along_k ? WGMMA_LINE_BYTES : wgmma_line_of(s, edge) * (int)size,
    };
}

/* The map of D, in boxes of 64 rows and `columns` columns. Threads store a D that begins unaligned.
 */
static tgl_tensor tensor_of_d(const tgl_shape *s, const tgl_rectangle *part, int columns)
{
    const int64_t size = (int64_t)tgl_type_size(s->type_d);
    return (tgl_tensor){
        .base = TGL_VALUE_OPERAND,
        .operand = TGL_AT_D,
        .offset = (part->row * s->ldd + part->col) * size,
        .type = s->type_d,
        .rank = 3,
        .size = {part->n, part->m, s->batch},
        .stride = {size, s->ldd * size, s->batch > 1 ? s->stride_d * size : TMA_ALIGNMENT},
        .box = {columns, BOX_ROWS, 1},
        .swizzle_bytes = columns * RESULT_BYTES,
        .is_optional = true,
    };
}

/* D_WORD of the kernel: bytes of the words that rows of D consist of, if D begins with one. It
 * matters to results of 16 bits. */
static int word_of_d(const tgl_shape *s)
{
    const int64_t stride = s->batch > 1 ? s->stride_d : 0;
    if (tgl_type_size(s->type_d) != 2) return 16;
    if (s->unaligned) return 4;
    if (s->ldd % 8 == 0 && stride % 8 == 0) return 16;
    return s->ldd % 4 == 0 && stride % 4 == 0 ? 8 : 4;
}

static void add_macros(const tgl_shape *s, const wgmma_geometry *g, tgl_list_builder *builder)
{
    const wgmma_row *t = g->row;
    const tgl_macro macros[] = {{"BM", t->bm},
                                {"BN", t->bn},
                                {"STAGES", g->stages},
                                {"CONSUMERS", t->consumers},
                                {"ALTERNATE", t->alternates},
                                {"TMA_STORES", g->stores_by_tma ? t->boxes : 0},
                                {"D_WORD", word_of_d(s)},
                                {"MIN_BLOCKS", t->min_blocks},
                                {"CLUSTER_ROWS", g->cluster_rows},
                                {"CLUSTER_COLUMNS", g->cluster_columns},
                                {"CLUSTER_SPLITS", g->in_cluster ? g->splits : 1},
                                {"EXCHANGED", g->exchanged},
                                {"LEFT_ALONG_K", g->left.is_k_major},
                                {"RIGHT_ALONG_K", g->right.is_k_major}};
    tgl_add_macros(builder, macros, sizeof macros / sizeof macros[0]);
}

/* Bytes of local memory of a thread, which it uses once a tile: where the tile's sums leave few
 * registers, or meet those of other blocks. */
static int spill_limit(const wgmma_geometry *g)
{
    enum { REGISTERS_MAX = 255 /* of a thread: CUDA programming guide, compute capabilities */ };
    const wgmma_row *t = g->row;
    /* A consumer of 128x192_alt has 192 sums a thread: NVRTC 13.0 spills 104 bytes. */
    if (t->alternates && t->bm * t->bn >= 128 * 192) return 2 * TGL_SPILL_MAX;
    const bool is_full = t->registers == REGISTERS_MAX || (t->alternates && !g->left.is_k_major);
    return g->in_cluster || is_full ? TGL_SPILL_MAX : 0;
}

static void launch(const tgl_partition *of, tgl_list_builder *builder)
{
    wgmma_geometry g;
    const char *why = make_geometry(of->chip, of->shape, &of->part, &of->choice, &g);
    if (why != NULL) {
        tgl_gemm_fail(why, builder);
        return;
    }
    const int64_t scratch = tgl_list_scratch(builder, g.repacked_bytes);
    for (int i = 0; i < g.repack_count; i++)
        g.repacks[i].scratch += scratch;
    if (g.repack_count > 0) tgl_repack_add_step(of, g.repacks, g.repack_count, builder);
    const tgl_tensor maps[] = {tensor_of(of->shape, &g, &g.left, g.row->bm, g.cluster_columns),
                               tensor_of(of->shape, &g, &g.right, g.row->bn, g.cluster_rows),
                               tensor_of_d(of->shape, &of->part, box_columns(g.row))};
    const int cluster = g.in_cluster ? g.splits : g.cluster_blocks;
    tgl_gemm_step step = {
        .of = of,
        .name = g.row->name,
        .file = "gemm/wgmma.cu",
        .symbol = "gemm_wgmma",
        .needs = TGL_HAS_WGMMA | TGL_HAS_TMA | (cluster > 1 ? TGL_HAS_CLUSTERS : 0),
        .local_bytes = spill_limit(&g),
        .threads = g.threads,
        .dynamic_shared = g.shared,
        .vec_a = 1,
        .vec_b = 1,
        .blocks = g.blocks,
        .batch_step = (int)of->shape->batch,
        .loops_over_batch = true,
        .is_persistent = true,
        .has_whole_grid = g.in_cluster,
        .maps = maps,
        .map_count = g.stores_by_tma ? 3 : 2,
        .scratch_bytes = g.sums,
        .counter_bytes = g.counters,
        .args = {.raster = g.raster,
                 .tiles_whole = (int)g.whole,
                 .splits = g.splits,
                 .cluster = cluster,
                 .k_chunk = (int)g.k_chunk},
    };
    add_macros(of->shape, &g, builder);
    step.aligned = tgl_gemm_kernel(&step, builder);
    tgl_gemm_add_step(&step, builder);
}

/* ---- Text and examples ----------------------------------------------------------------------- */

static void explain(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                    tgl_text *out)
{
    wgmma_geometry g;
    const tgl_rectangle part = tgl_whole(shape);
    if (make_geometry(chip, shape, &part, choice, &g) != NULL) return;
    tgl_text_add(out, "tiles       %lld x %lld%s, clusters of %d x %d, bands of %d rows\n",
                 (long long)g.tile_rows * g.cluster_rows,
                 (long long)g.tile_columns * g.cluster_columns,
                 g.exchanged ? " of the transposed D" : "", g.cluster_rows, g.cluster_columns,
                 g.raster * g.cluster_rows);
    if (wgmma_left_in_registers(shape, &g)) tgl_text_add(out, "left        through registers\n");
    if (g.whole > 0)
        tgl_text_add(out, "whole       %lld tiles, the others split\n", (long long)g.whole);
    if (g.splits > 1 && g.in_cluster)
        tgl_text_add(out, "split       k %d ways, %lld deep, added up in clusters\n", g.splits,
                     (long long)g.k_chunk);
    else if (g.splits > 1)
        tgl_gemm_explain_split(g.splits, g.k_chunk, g.sums, out);
    for (int i = 0; i < g.repack_count; i++)
        tgl_text_add(out, "repack      %s, %.2f MB%s\n",
                     g.repacks[i].operand == TGL_AT_A ? "A" : "B",
                     1e-6 * (double)tgl_repack_bytes(&g.repacks[i]),
                     g.repacks[i].transposes ? ", transposed" : "");
}

static bool example(int index, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape)
{
    (void)index;
    *shape = tgl_example_shape(type, TGL_EXAMPLE_SIDE, TGL_EXAMPLE_SIDE, trans_a, trans_b);
    if (type == TGL_F32) {
        shape->compute = TGL_COMPUTE_TF32;
        return !trans_a && trans_b; /* other layouts become this one */
    }
    return type == TGL_F16 || type == TGL_BF16;
}

const tgl_family tgl_family_wgmma = {
    .name = "wgmma",
    .summary = "f16, bf16 and TF32 on the tensor cores of sm_90a",
    .options = options,
    .configuration = configuration,
    .unsupported_reason = unsupported_reason,
    .search = search,
    .predict = predict,
    .launch = launch,
    .explain = explain,
    .example = example,
};
