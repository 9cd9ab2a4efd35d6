/* SPDX-License-Identifier: Apache-2.0
 *
 * How a configuration of the family simt computes a product: its copies, its grid, which tiles are
 * split over K, and by how many blocks and clusters.
 */
#include "families/simt_geometry.h"
#include "families/bundle_grid.h"
#include "families/groups.h"

#include <math.h>

/* Whether byte offsets within a tile of `edge` rows or columns and `bk` of K need more than 32
 * bits. */
static bool simt_is_wide(bool k_major, int edge, int bk, int64_t ld)
{
    const int64_t lines_of_tile = k_major ? edge : bk;
    return ld >= ((int64_t)UINT32_MAX / 4 - edge - bk) / lines_of_tile;
}

/* Floats of a stage: a tile of op(A) and one of op(B), whose rows are padded as PAD_OF() in
 * kernels/lib/simt_tiles.h. A row of a complex B in the stage holds two k of the real matrix. */
static int simt_stage_floats(const tgl_shape *s, const simt_row *t)
{
    enum { PAD = 4, PAIRS_PAD = 8 };
    const int pad_a = s->pairs_a ? (48 - t->bm % 32) % 32 : PAD;
    if (s->pairs_b == 0) return t->bk * (t->bm + pad_a + t->bn + PAD);
    const int pad_b = s->trans_b && t->bk < 16 ? PAIRS_PAD : PAD;
    return t->bk * (t->bm + pad_a) + t->bk / 2 * (t->bn + pad_b);
}

/* Bytes of shared memory of a block: the stages of each slice. The partial sums of slices and
 * clusters reuse the memory of the stages, and so do the lines of D that a block stores at once
 * (lib/simt_lines.h). The largest of these determines the result. */
static int simt_shared_bytes(const tgl_shape *s, const simt_row *t, int cluster)
{
    enum { PAD = 4 };
    const int stages = t->stages * simt_stage_floats(s, t), sums = t->bm * t->bn;
    const int lines = t->slices > 1 ? 0 : t->bm / t->tm * 4 * (t->bn + PAD);
    const int larger = lines > stages ? lines : stages;
    const bool has_sums = cluster > 1 || t->slices > 1;
    return t->slices * (has_sums && sums > larger ? sums : larger) * (int)sizeof(float);
}

/* ---- Clusters -------------------------------------------------------------------------------- */

/* Whether clusters of this size can spread `blocks` blocks evenly over the SMs, so that no SM gets
 * more than ceil(blocks / SMs). Clusters of some sizes do not fit on all SMs: blocks of a cluster
 * would then share an SM while other SMs are idle. */
static bool has_room(const tgl_chip *chip, int cluster, double blocks)
{
    static const double LEAST =
        0.99; /* other chips may have room for fewer clusters than an H200 */
    const double share = tgl_share_for_clusters(cluster);
    return blocks <= (share < 1 ? LEAST * share : 1) * chip->sms * ceil(blocks / chip->sms);
}

/* The largest cluster size that divides `splits` and for which has_room() is true. If there is
 * none: 2, or 1 if splits is odd. If a tile then had more than GROUPS_MAX clusters, whose sums
 * would take too long to add up, the result is the largest size that divides `splits`. whole:
 * blocks of tiles that are not split, which are launched in clusters as well. */
static int simt_cluster_of(const tgl_chip *chip, int splits, double whole, double blocks)
{
    enum { GROUPS_MAX = 16 };
    const int cluster_max =
        chip->cluster_max < TGL_CLUSTER_MAX ? chip->cluster_max : TGL_CLUSTER_MAX;
    int largest = 1;
    for (int c = cluster_max; c > 1; c--) {
        if (splits % c != 0) continue;
        if (has_room(chip, c, whole) && has_room(chip, c, blocks)) return c;
        largest = c > largest ? c : largest;
    }
    const int small = largest > 1 && splits % 2 == 0 ? 2 : 1;
    return splits / small <= GROUPS_MAX ? small : largest;
}

/* ---- Split-K --------------------------------------------------------------------------------- */

/* Splits the tiles from number `whole` on. If K is too short, a tile has fewer splits than the
 * option asks for. */
static void simt_split_tiles(const tgl_chip *chip, const tgl_shape *s, const tgl_choice *choice,
                             simt_geometry *g)
{
    struct tgl_gemm_args *args = &g->step.args;
    const int64_t tiles = g->step.tiles, whole = tgl_option(choice, SIMT_WHOLE, 0);
    const int64_t depth = tgl_option(choice, SIMT_DEPTH, 0);
    const int64_t asked = tgl_min64(tgl_option(choice, SIMT_SPLITS, 1), TGL_SPLITS_MAX);
    args->tiles_whole = (int)tiles;
    g->first_depth = s->k;
    if (whole >= tiles || asked < 2) return;
    const int64_t part = depth > 0 ? depth : tgl_ceil_div(s->k, asked);
    if (part >= s->k) return; /* all of K is one split */
    const int64_t chunk = tgl_round_up(part, simt_depth_of_step(g->row));
    const int64_t splits = tgl_min64(tgl_ceil_div(s->k, chunk), asked);
    if (splits < 2) return;
    args->splits = (int)splits;
    args->k_chunk = (int)chunk;
    g->first_depth = s->k - (splits - 1) * chunk;
    const double whole_blocks = (double)whole * (double)s->batch;
    const double split_blocks = (double)((tiles - whole) * splits) * (double)s->batch;
    if (depth == 0)
        args->cluster =
            simt_cluster_of(chip, args->splits, whole_blocks, whole_blocks + split_blocks);
    args->tiles_whole = (int)(whole - whole % args->cluster);
    const int64_t groups = splits / args->cluster;
    const int64_t split_tile_count = g->step.batch_step * (tiles - args->tiles_whole);
    if (groups == 1) return;
    g->step.counter_bytes = split_tile_count * args->cluster * (int64_t)sizeof(unsigned);
    g->step.scratch_bytes =
        split_tile_count * groups * g->row->bm * g->row->bn * (int64_t)sizeof(float);
}

bool tgl_simt_is_inside(const tgl_shape *s, const simt_row *t, int vec_a, int vec_b)
{
    /* The macro changes only narrow copies of MN-major operands, and with a BK of 16 or more those
     * of K-major operands. */
    const bool is_narrow = (s->trans_a && vec_a < 4) || (!s->trans_b && vec_b < 4);
    const bool has_steps = t->bk >= 16 && (!s->trans_a || s->trans_b) && !tgl_has_groups_of_rows(s);
    return (is_narrow || has_steps) && !s->is_bundle && s->pairs_b == 0 && s->m >= t->bm &&
           s->n >= t->bn;
}

/* Registers of a thread. With INSIDE, with wide copies of one operand, or with a complex B, few
 * addresses take registers (BY_STEPS and FEW_ADDRESSES in kernels/lib/simt_copies.h). Tiles with BK
 * 32 of two K-major operands are an exception: ptxas computes many addresses ahead. */
static int simt_registers(const tgl_shape *s, const simt_row *t, int vec_a, int vec_b)
{
    const bool is_ahead = t->bk > 16 && !s->trans_a && s->trans_b;
    const bool is_inside =
        tgl_simt_is_inside(s, t, vec_a, vec_b) && !tgl_has_groups_of_rows(s) && !is_ahead;
    const bool has_wide = vec_a == 4 || vec_b == 4;
    return is_inside || has_wide || s->pairs_b != 0 ? t->registers : t->registers_max;
}

const char *tgl_simt_make_geometry(const tgl_chip *chip, const tgl_shape *s,
                                   const tgl_choice *choice, simt_geometry *g)
{
    const simt_row *t = tgl_choice_row(choice);
    const bool is_split = tgl_option(choice, SIMT_SPLITS, 1) > 1;
    *g = (simt_geometry){
        .row = t,
        .choice = choice,
        .wide_offsets = simt_is_wide(!s->trans_a, t->bm, t->bk, s->lda) ||
                        simt_is_wide(s->trans_b, t->bn, t->bk, s->ldb),
        .step = {.name = t->name,
                 .file = "gemm/simt.cu",
                 .symbol = "sgemm_simt",
                 .threads = t->bm / t->wm * (t->bn / t->wn) * 32 * t->slices,
                 .local_bytes = t->min_blocks > 1 ? TGL_SPILL_MAX : 0,
                 /* 1 for K-major operands, because the copies transpose them element by element,
                  * and for complex operands, because the copies separate real and imaginary
                  * parts. */
                 .vec_a = !s->trans_a || s->pairs_a ||
                                  tgl_has_groups_of_rows(s) /* groups end at any row */
                              ? 1
                              : tgl_copy_width(s, s->m, s->lda, s->stride_a),
                 .vec_b = s->trans_b || s->pairs_b != 0
                              ? 1
                              : tgl_copy_width(s, s->n, s->ldb, s->stride_b),
                 .args = {.splits = 1, .cluster = 1}}};
    g->step.registers = simt_registers(s, t, g->step.vec_a, g->step.vec_b);
    if (is_split && s->grouping != TGL_GROUPED_NONE) return tgl_no_splits_of_groups;
    if (is_split && s->is_bundle) return tgl_no_splits_of_bundles;
    if (t->min_blocks > 1 && !s->trans_a && s->trans_b && s->pairs_b == 0)
        return "copies of two K-major operands need more registers than it has";
    const char *why = tgl_gemm_cut_tiles(s, t->bm, t->bn, is_split, &g->step);
    if (why != NULL) return why;
    simt_split_tiles(chip, s, choice, g);
    const int64_t whole = g->step.args.tiles_whole;
    g->step.blocks = whole + (g->step.tiles - whole) * g->step.args.splits;
    g->step.dynamic_shared = simt_shared_bytes(s, t, g->step.args.cluster);
    return NULL;
}

int64_t tgl_simt_least_depth(const simt_row *t)
{
    enum { TILES_OF_SPLIT_MIN = 4 }; /* minimum depth of a split, in tiles of K */
    return (int64_t)(t->slices > 1 ? 2 * t->slices : TILES_OF_SPLIT_MIN) * t->bk;
}
