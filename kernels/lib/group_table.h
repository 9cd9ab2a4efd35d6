/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a grouped product (tgl_grouping of include/tegula/tegula.h). gemm/groups.cu makes it
 * from the sizes or ends of the groups in device memory, and the kernels of the product read it.
 * A row of the table is a span: a range of rows of D, or of K, that belongs to one group. The
 * groups are disjoint and lie within the matrices, whatever the sizes are. The host includes this
 * file as well.
 *
 *   TGL_GROUPS_ROWS    One span for each row of tiles of each group. The tiles begin at row `first`
 *                      of D, and `end` is where the rows of the group end. TGL_GROUPS_MASKED: the
 *                      same for the rows of D[group]. The spans of a group are divided into bands
 *                      of about equal height, whose tiles share B.
 *   TGL_GROUPS_DEPTH   One span for each group, [first, end) of K: the largest groups first, unless
 *                      there are so many groups that gemm/groups.cu does not sort them.
 */
#ifndef TGL_GROUP_TABLE_H
#define TGL_GROUP_TABLE_H

enum { TGL_GROUPS_ROWS = 1, TGL_GROUPS_DEPTH = 2, TGL_GROUPS_MASKED = 3 }; /* as tgl_grouping */

struct tgl_group_span {
    int group, first, end;
    short in_band, band_spans; /* the span's number in its band; spans of the band */
    /* 16 bytes: one load */
};

struct tgl_group_head {
    int spans;     /* the number of spans */
    int taken;     /* units that blocks have taken beside their first ones (lib/wgmma_queue.h) */
    int unused[2]; /* 16 bytes, as a span */
};

struct tgl_group_table {
    struct tgl_group_head head;
    struct tgl_group_span spans[1];
};

/* The parameters of gemm/groups.cu. */
struct tgl_groups_args {
    const int *groups; /* an end or a size for each group */
    struct tgl_group_table *table;
    struct tgl_group_span *unsorted; /* TGL_GROUPS_DEPTH: scratch memory, a span per group */
    int count;                       /* groups */
    int limit;                       /* rows of D (MASKED: of D[group]); DEPTH: K of all groups */
    int tile;                        /* rows of a tile */
    int band_max;                    /* the most spans of a band */
    int grouping;
    int has_sizes; /* 1: groups has sizes; 0: ends */
};

#endif
