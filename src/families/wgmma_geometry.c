/* SPDX-License-Identifier: Apache-2.0
 *
 * How a configuration of the family wgmma computes a product: how TMA reads the operands, and which
 * clusters, splits over K and shared memory the launch has.
 */
#include "families/wgmma_geometry.h"
#include "families/gemm_arguments.h"
#include "families/groups.h"
#include "families/unsupported.h"

#include <limits.h>

/* ---- Operands -------------------------------------------------------------------------------- */

/* Whether a consumer's registers hold its sums, the left fragments of two stages, and OTHERS
 * registers for everything else. With OTHERS = 40 instead of 56, NVRTC 13.0 spilled some
 * registers. */
bool tgl_wgmma_has_room_for_left(const wgmma_row *t)
{
    enum {
        LOADED = 2 * 16, /* registers of the left fragments: two stages, 64 rows */
        OTHERS = 56
    };
    static const int consumer_registers[] = {
        [2] = 232, [3] = 160}; /* CONSUMER_REGISTERS of the kernel */
    const int rows_of_consumer = t->bm / (t->alternates ? 1 : t->consumers);
    const int registers = t->consumers > 1 ? consumer_registers[t->consumers] : t->registers;
    return rows_of_consumer / 64 * (t->bn / 2 + LOADED) + OTHERS <= registers;
}

/* Registers of a consumer's thread that remain beside its sums and the sums of a stage. Only for
 * kernels that add the sums of each stage in FP32 (wgmma_promotes()). */
static int room_to_promote(const tgl_shape *s, const wgmma_geometry *g)
{
    /* Registers of a single consumer, by its launch bounds. */
    enum { MAX = 255, MAX_OF_TWO_BLOCKS = 168 };
    static const int consumer_registers[] = {
        [2] = 232, [3] = 160}; /* CONSUMER_REGISTERS of the kernel */
    const wgmma_row *t = g->row;
    const int bound = t->min_blocks > 1 ? MAX_OF_TWO_BLOCKS : MAX;
    const int lone = tgl_shape_has_blocked_scales(s) ? bound : t->registers;
    const int registers = t->consumers > 1 ? consumer_registers[t->consumers] : lone;
    const int sums = t->bm / t->consumers / 64 * (t->bn / 2);
    return registers - sums - t->bn / 2;
}

/* Whether room_to_promote() is enough. OTHERS: the registers that must remain for everything else.
 * Consumers that alternate would not overlap the additions with wgmmas. */
static bool has_room_to_promote(const tgl_shape *s, const wgmma_geometry *g)
{
    enum { OTHERS = 40 };
    return !g->row->alternates && room_to_promote(s, g) >= OTHERS;
}

/* Whether TMA can read the operand as it lies in memory. The stride between lines, and between
 * matrices if there are several, must be a multiple of 16 bytes. wgmma also needs 8-bit types to be
 * K-major, and TF32 to be K-major or a left operand that wgmma takes from registers. */
static bool is_direct(const tgl_shape *s, const wgmma_side *x, bool in_registers)
{
    const int64_t size = (int64_t)tgl_type_size(s->type_a);
    const int64_t lines_of_x = x->along_k ? x->edge : x->k;
    if (wgmma_is_k_major_only(s) && !x->along_k && !in_registers) return x->k == 0;
    if (x->k == 0) return true; /* the kernel does not read it */
    if (s->unaligned) return false;
    return (lines_of_x == 1 || x->ld * size % TGL_MAP_ALIGNMENT == 0) &&
           (x->count == 1 || x->stride * size % TGL_MAP_ALIGNMENT == 0);
}

/* Whether a pre-pass should make a sliver K-major: if the operand needs a pre-pass anyway, or if
 * the product is so large that its short lines cost more than the 3 us of a pre-pass (28672x8x8192
 * NN: docs/notes/2026-11-26-gpu-planner.md). A sliver is an MN-major operand of few rows or
 * columns, so its lines in memory are short. */
static bool should_be_k_major(const wgmma_side *x, int64_t other_edge)
{
    enum {
        SHORT = 16,     /* elements of 16 bits in a sector of L2 (32 bytes) */
        LARGE = 1 << 26 /* elements of the other operand */
    };
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
    const bool becomes_k_major = !wgmma_is_k_major_only(s) && s->grouping != TGL_GROUPED_DEPTH &&
                                 should_be_k_major(&x, is_a ? part->n : part->m);
    if (becomes_k_major) x.is_direct = false;
    x.is_k_major = x.along_k || becomes_k_major ||
                   (wgmma_is_k_major_only(s) && !(in_registers && x.is_direct));
    return x;
}

/* The pre-pass of an operand. The copy of an operand of TF32 or of an 8-bit type is K-major. The
 * copy of a 16-bit operand keeps its major dimension; but slivers (should_be_k_major()) become
 * K-major. */
static tgl_repack repack_of(const tgl_shape *s, const wgmma_side *x)
{
    return (tgl_repack){
        .operand = x->operand,
        .type = s->type_a,
        .transposes = x->is_k_major != x->along_k,
        .rounds_to_tf32 = wgmma_is_tf32(s),
        .offset = x->offset,
        .lines = x->is_k_major ? x->edge : x->k,
        .length = x->is_k_major ? x->k : x->edge,
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

/* ---- Shared memory --------------------------------------------------------------------------- */

/* The length of a row of D must be a multiple of 16 bytes, because TMA writes up to the next such
 * multiple (lib/tma.h). */
bool tgl_wgmma_stores_by_tma(const tgl_shape *s, const wgmma_geometry *g)
{
    const int64_t stride_max = tgl_map_stride_max(s->type_d);
    return g->row->boxes > 0 && !g->exchanged && !g->in_cluster && !s->unaligned &&
           wgmma_packs_results(s, g) && s->ldd % 8 == 0 && g->right.edge % 8 == 0 &&
           s->ldd <= stride_max &&
           (s->batch == 1 || (s->stride_d % 8 == 0 && s->stride_d <= stride_max));
}

/* Bytes of a consumer's shared memory for results: at least RESULTS_BYTES of the kernel. */
static int results_bytes(const wgmma_geometry *g)
{
    const wgmma_row *t = g->row;
    const int chunk = t->bn % 32 == 0 ? 32 : 16;
    const int chunk_bytes = (g->exchanged ? chunk * 20 : 16 * (chunk + 8)) * (int)sizeof(float);
    const int box_bytes =
        g->stores_by_tma ? g->boxes * WGMMA_BOX_ROWS * wgmma_box_columns(t) * WGMMA_RESULT_BYTES
                         : 0;
    return box_bytes > 4 * chunk_bytes ? box_bytes : 4 * chunk_bytes;
}

/* Block scale factors of a tile's rows or columns in a stage: at least FACTORS_OF() of the kernel,
 * where SHIFT_MAX is 0 without groups of rows. */
static int factors_of(tgl_scaling scaling, int edge)
{
    enum { BLOCKS_MAX = 4, SHIFT_MAX = 4 }; /* as in lib/wgmma_scales.h */
    return scaling == TGL_SCALING_LINE_128 ? edge + SHIFT_MAX : BLOCKS_MAX;
}

/* Bytes of the block scale factors of a stage. */
static int factor_bytes(const tgl_shape *s, const wgmma_geometry *g)
{
    if (!tgl_shape_has_blocked_scales(s)) return 0;
    const int rows = g->exchanged ? g->row->bn : g->row->bm;
    const int columns = g->exchanged ? g->row->bm : g->row->bn;
    return (factors_of(s->scaling_a, rows) + factors_of(s->scaling_b, columns)) *
           (int)sizeof(float);
}

/* Bytes of the queue of units: those of struct unit_queue of lib/wgmma_queue.h. */
static int queue_bytes(const tgl_shape *s, const wgmma_geometry *g)
{
    enum {
        QUEUE_UNITS = 4,         /* as in lib/wgmma_queue.h */
        UNIT = 13 * sizeof(int), /* struct unit of lib/wgmma_units.h */
        BARRIERS = 2 * 8         /* two mbarriers */
    };
    const bool has_queue = s->grouping != TGL_GROUPED_NONE && g->cluster_blocks == 1 &&
                           !tgl_shape_has_blocked_scales(s);
    return has_queue ? QUEUE_UNITS * (UNIT + BARRIERS) : 0;
}

/* Bytes of a consumer's factors of rows and columns: struct line_factors of the kernel. */
static int line_factor_bytes(const tgl_shape *s, const wgmma_geometry *g)
{
    const wgmma_row *t = g->row;
    const bool is_line = s->scaling_a == TGL_SCALING_LINE || s->scaling_b == TGL_SCALING_LINE;
    const bool has_all_rows =
        t->alternates || (tgl_has_groups_of_rows(s) && !g->exchanged && wgmma_promotes(s));
    if (!is_line) return 0;
    return ((has_all_rows ? t->bm : t->bm / t->consumers) + t->bn) * (int)sizeof(float);
}

/* Bytes of a block's shared memory: at least those of struct wgmma_shared of the kernel. */
static int wgmma_shared_bytes(const tgl_shape *s, const wgmma_geometry *g)
{
    enum { BARRIER = 8 }; /* bytes of an mbarrier */
    const wgmma_row *t = g->row;
    return g->stages * ((t->bm + t->bn) * WGMMA_LINE_BYTES + 2 * BARRIER + factor_bytes(s, g)) +
           t->consumers * (results_bytes(g) + line_factor_bytes(s, g)) +
           (t->alternates ? t->consumers * BARRIER : 0) + queue_bytes(s, g);
}

/* Reduces the number of stages until the block fits into `bytes_max` bytes: boxes of results that
 * TMA stores, and block scale factors, may leave room for fewer stages than the configuration has.
 * With block scale factors a consumer has boxes for all of its results, if three stages remain:
 * with one box it waits four times for TMA in each tile of 256x128. Otherwise boxes are reduced
 * first. */
static void fit_into_shared(const tgl_shape *s, int bytes_max, wgmma_geometry *g)
{
    enum { STAGES_MIN = 3 };
    const wgmma_row *t = g->row;
    const bool is_blocked = tgl_shape_has_blocked_scales(s) && g->stores_by_tma;
    if (is_blocked)
        g->boxes = t->bm / t->consumers / WGMMA_BOX_ROWS * (t->bn / wgmma_box_columns(t));
    while (g->stages > STAGES_MIN && wgmma_shared_bytes(s, g) > bytes_max)
        g->stages--;
    while (is_blocked && g->boxes > 1 && wgmma_shared_bytes(s, g) > bytes_max)
        g->boxes--;
    while (g->stages > 1 && wgmma_shared_bytes(s, g) > bytes_max)
        g->stages--;
}

/* ---- Tiles and blocks ------------------------------------------------------------------------ */

/* Divides the K steps of a tile into splits: sets g->splits and g->chunk, the steps of a split. */
static void wgmma_split(const tgl_choice *choice, wgmma_geometry *g)
{
    const int64_t asked = tgl_min64(tgl_option(choice, WGMMA_SPLITS, 1), TGL_SPLITS_MAX);
    g->splits = 1;
    g->chunk = g->depth;
    if (asked >= 2 && (g->depth > 1 || g->in_cluster)) {
        g->chunk = tgl_ceil_div(g->depth, asked);
        if (g->in_cluster)
            g->splits = (int)asked;
        else if (g->chunk > 0)
            g->splits = (int)tgl_ceil_div(g->depth, g->chunk);
    }
    g->k_chunk = g->chunk * g->bk;
}

/* Returns NULL, or why the choice's clusters are impossible. */
static const char *cluster_fault(const tgl_chip *chip, const tgl_choice *choice,
                                 const wgmma_geometry *g)
{
    /* Columns that each block stores, if the blocks of a cluster share a tile. */
    enum { PART_MIN = 16, PART = 32 };
    enum { SWIZZLE_LINES = 8 }; /* the swizzle of a tile repeats after 8 lines */
    const wgmma_row *t = g->row;
    const int64_t splits = tgl_option(choice, WGMMA_SPLITS, 1);
    if (g->cluster_rows < 1 || g->cluster_rows > WGMMA_CLUSTER_MAX || g->cluster_columns < 1 ||
        g->cluster_columns > WGMMA_CLUSTER_MAX ||
        WGMMA_CLUSTER_MAX % (g->cluster_rows * g->cluster_columns) != 0)
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
    const int64_t part = t->bn / splits;
    if (part * splits != t->bn || (part != PART_MIN && part % PART != 0))
        return "the blocks of a cluster cannot share the columns of a tile";
    return NULL;
}

/* Returns NULL, or why the choice does not compute grouped products. */
static const char *group_fault(const tgl_shape *s, const tgl_choice *choice,
                               const wgmma_geometry *g)
{
    const wgmma_side *rows = g->exchanged ? &g->right : &g->left;
    if (s->grouping == TGL_GROUPED_NONE) return NULL;
    if (tgl_option(choice, WGMMA_SPLITS, 1) > 1) return tgl_no_splits_of_groups;
    if (s->grouping == TGL_GROUPED_DEPTH)
        return g->left.along_k || g->right.along_k || g->left.is_k_major || g->right.is_k_major
                   ? "groups along K begin at any K: that must be a row of A's transpose and of B"
                   : NULL;
    if (s->grouping == TGL_GROUPED_ROWS && !(rows->along_k && rows->is_k_major))
        return "groups of rows begin at any row: A must be contiguous along K";
    if ((g->exchanged ? g->cluster_columns : g->cluster_rows) > 1)
        return "the rows of a cluster's tiles would be of different groups";
    return NULL;
}

/* Sets the numbers of tiles and units of *g. Returns NULL, or that they are too large. */
static const char *count_units(const tgl_shape *s, const tgl_choice *choice, wgmma_geometry *g)
{
    enum { UNITS_MAX = (1 << 30) - 1 }; /* limit of lib/wgmma_units.h */
    const wgmma_row *t = g->row;
    g->tile_rows = tgl_ceil_div(g->left.edge, t->bm * g->cluster_rows);
    g->tile_columns = tgl_ceil_div(g->right.edge, t->bn * g->cluster_columns);
    if ((double)g->tile_rows * (double)g->tile_columns * (double)s->batch * g->splits > UNITS_MAX)
        return tgl_grid_too_large;
    g->tiles = g->tile_rows * g->tile_columns * s->batch;
    const bool is_split = g->splits > 1 && !g->in_cluster;
    g->whole = is_split ? tgl_min64(tgl_option(choice, WGMMA_WHOLE, 0), g->tiles) : 0;
    g->units = g->whole + (g->tiles - g->whole) * g->splits;
    return NULL;
}

/* Sets gridDim.x and the bytes of the workspace. */
static void count_blocks(const tgl_chip *chip, wgmma_geometry *g)
{
    const wgmma_row *t = g->row;
    g->step.blocks = g->in_cluster ? g->units
                                   : tgl_persistent_blocks(chip, t->min_blocks, g->cluster_blocks,
                                                           g->units * g->cluster_blocks);
    if (g->splits > 1 && !g->in_cluster) {
        const int64_t tiles = (g->tiles - g->whole) * g->cluster_blocks;
        g->step.scratch_bytes = tiles * g->splits * t->bm * t->bn * (int64_t)sizeof(float);
        g->step.counter_bytes = tiles * (int64_t)sizeof(unsigned);
    }
}

/* Bytes of local memory that a thread may use outside of the main loop. The result is not 0 if the
 * thread's sums leave few registers, or if a cluster adds the sums of its blocks. */
static int wgmma_spill_limit(const tgl_shape *s, const wgmma_geometry *g)
{
    enum { REGISTERS_MAX = 255 /* of a thread: CUDA programming guide, compute capabilities */ };
    /* Registers besides the sums. With 40, NVRTC 13.0 spills outside of the main loop. */
    enum { OTHERS_WITH_FACTORS = 56 };
    const wgmma_row *t = g->row;
    if (wgmma_spills_sums(t)) return 2 * TGL_SPILL_MAX;
    const bool is_full = t->registers == REGISTERS_MAX || (t->alternates && !g->left.is_k_major);
    const bool is_tight =
        tgl_shape_has_blocked_scales(s) && room_to_promote(s, g) < OTHERS_WITH_FACTORS;
    return g->in_cluster || is_full || is_tight ? TGL_SPILL_MAX : 0;
}

/* Sets the members of g->step that count_blocks() has not set. */
static void describe_step(const tgl_chip *chip, const tgl_shape *s, wgmma_geometry *g)
{
    const wgmma_row *t = g->row;
    tgl_gemm_step *step = &g->step;
    const int cluster = g->in_cluster ? g->splits : g->cluster_blocks;
    step->name = t->name;
    step->file = "gemm/wgmma.cu";
    step->symbol = "gemm_wgmma";
    step->needs = TGL_HAS_WGMMA | TGL_HAS_TMA | (cluster > 1 ? TGL_HAS_CLUSTERS : 0);
    step->threads = tgl_ring_threads(t->consumers);
    if (t->consumers == 1 && tgl_shape_has_blocked_scales(s))
        step->threads += 32; /* the warp that copies the factors */
    step->registers = t->registers;
    step->local_bytes = wgmma_spill_limit(s, g);
    step->static_shared = TGL_RING_STATIC_SHARED;
    step->dynamic_shared = wgmma_shared_bytes(s, g);
    step->vec_a = step->vec_b = 1;
    step->batch_step = (int)s->batch;
    step->loops_over_batch = step->is_persistent = true;
    step->has_whole_grid = g->in_cluster;
    step->args = (struct tgl_gemm_args){
        .raster = tgl_square_raster(chip, t->bm, t->bn, g->cluster_rows, g->tile_rows),
        .tiles_whole = (int)g->whole,
        .splits = g->splits,
        .cluster = cluster,
        .k_chunk = (int)g->k_chunk};
}

const char *tgl_wgmma_set_options(const tgl_chip *chip, const tgl_shape *s,
                                  const tgl_choice *choice, wgmma_geometry *g)
{
    g->cluster_rows = (int)tgl_min64(tgl_option(choice, WGMMA_CLUSTER, 1), INT_MAX);
    g->cluster_columns = (int)tgl_min64(tgl_option(choice, WGMMA_COLUMNS, 1), INT_MAX);
    g->in_cluster = tgl_option(choice, WGMMA_IN_CLUSTER, 0) != 0;
    const char *fault = cluster_fault(chip, choice, g);
    if (fault == NULL) fault = group_fault(s, choice, g);
    if (fault != NULL) return fault;
    g->cluster_blocks = g->cluster_rows * g->cluster_columns;
    wgmma_split(choice, g);
    return count_units(s, choice, g);
}

const char *tgl_wgmma_set_operands(const tgl_shape *s, const tgl_rectangle *part,
                                   const tgl_choice *choice, wgmma_geometry *g)
{
    const wgmma_row *t = tgl_choice_row(choice);
    g->row = t;
    g->exchanged = tgl_option(choice, WGMMA_EXCHANGED, 0) != 0;
    g->bk = WGMMA_LINE_BYTES / (int)tgl_type_size(s->type_a);
    g->depth = tgl_ceil_div(s->k, g->bk);
    g->stages = t->stages;
    g->boxes = t->boxes;
    g->repack_count = 0;
    g->repacked_bytes = 0;
    if (wgmma_promotes(s) && !has_room_to_promote(s, g))
        return "a consumer has no registers to add the sums of a stage in FP32";
    const bool in_registers = tgl_option(choice, WGMMA_LEFT_REGISTERS, 0) != 0;
    if (in_registers && !(wgmma_is_tf32(s) && tgl_wgmma_has_room_for_left(t)))
        return "left_registers=1 is for TF32 and tiles that leave enough registers";
    g->left = side_of(s, part, !g->exchanged, in_registers);
    if (in_registers && g->left.is_k_major)
        return "left_registers=1 is for a left operand that TMA can read and that is contiguous in "
               "its rows";
    g->right = side_of(s, part, g->exchanged, false);
    add_repacks(s, g);
    return NULL;
}

const char *tgl_wgmma_make_geometry(const tgl_chip *chip, const tgl_shape *s,
                                    const tgl_rectangle *part, const tgl_choice *choice,
                                    wgmma_geometry *g)
{
    const wgmma_row *t = tgl_choice_row(choice);
    *g = (wgmma_geometry){.row = t};
    const char *fault = tgl_wgmma_set_operands(s, part, choice, g);
    if (fault == NULL) fault = tgl_wgmma_set_options(chip, s, choice, g);
    if (fault != NULL) return fault;
    count_blocks(chip, g);
    g->stores_by_tma = tgl_wgmma_stores_by_tma(s, g);
    const int bytes_max = chip->shared_per_block / t->min_blocks - TGL_RING_STATIC_SHARED;
    fit_into_shared(s, bytes_max, g);
    describe_step(chip, s, g);
    return tgl_repack_fault(g->repacks, g->repack_count);
}
