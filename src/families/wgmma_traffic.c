/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes that products of the family wgmma move from and to memory.
 */
#include "families/wgmma_geometry.h"

/* MISSES: if the operands are much larger than L2, the fraction of tile loads that miss L2. Loads
 * miss because blocks that share a tile do not load it at the same time. The value is fitted on an
 * H100, whose memory is slower: times on an H200 hardly depend on it. With 0.17 the planner chose
 * tiles of 128x128 for large squares on an H100, which take up to twice the time there. */
static const double MISSES = 0.25;
/* The part of repeated requests of an operand, those beyond one of each byte, that memory serves
 * even if both operands fit into L2: this times the operand's fraction of the bytes of A and B. The
 * small operand of a layer stays in L2. Fitted to 144 products of bf16, f16 and TF32
 * (docs/notes/2026-11-29-gpu.md). */
static const double REPEATED_READS = 0.13;

double tgl_wgmma_left_share(const wgmma_geometry *g)
{
    return (double)g->left.edge / (double)(g->left.edge + g->right.edge);
}

wgmma_traffic tgl_wgmma_traffic(const tgl_chip *chip, const tgl_shape *s, const wgmma_row *t)
{
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k, batch = (double)s->batch;
    const double operands = (double)tgl_type_size(s->type_a) * (m * k + k * n); /* bytes of A and
                                                                                   B */
    const double beyond =
        operands > (double)chip->l2_bytes ? 1 - (double)chip->l2_bytes / operands : 0;
    return (wgmma_traffic){.operands = batch * operands,
                           .result = batch * (double)tgl_type_size(s->type_d) * m * n,
                           .missed = MISSES * beyond,
                           .step = WGMMA_LINE_BYTES * (t->bm + t->bn)};
}

/* Bytes of repeated requests of an operand that memory serves. share: the operand's fraction of
 * the bytes of A and B; tiles: how many tiles of D need each tile of the operand; sharers: blocks
 * of a cluster that request it together. */
static double repeated_bytes(const tgl_shape *s, const wgmma_side *x, double share, int64_t tiles,
                             int sharers)
{
    const double bytes = (double)tgl_type_size(s->type_a) * (double)x->edge * (double)x->k;
    const double requests = (double)tgl_ceil_div(tiles, sharers);
    return REPEATED_READS * share * bytes * (requests - 1) * (double)s->batch;
}

double tgl_wgmma_repeated_bytes(const tgl_shape *s, const wgmma_geometry *g)
{
    const double share = tgl_wgmma_left_share(g);
    return repeated_bytes(s, &g->left, share, tgl_ceil_div(g->right.edge, g->row->bn),
                          g->cluster_columns) +
           repeated_bytes(s, &g->right, 1 - share, tgl_ceil_div(g->left.edge, g->row->bm),
                          g->cluster_rows);
}

double tgl_wgmma_memory_bytes(const wgmma_traffic *t, double steps, double repeated)
{
    return tgl_larger(t->operands + repeated, t->missed * (steps * t->step)) + t->result;
}
