/* SPDX-License-Identifier: Apache-2.0
 *
 * The global memory that a launch may touch, region by region: matrices, batches of them, and
 * lists. Pure functions of addresses.
 */
#ifndef TGL_SIM_REGIONS_H
#define TGL_SIM_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A batch of stored matrices of which a launch may touch a part, the same of each; or a list, which
 * is a matrix of one row. */
typedef struct tgl_sim_region {
    const char *name;                  /* in sentences: "A", "the scratch" */
    const char *label;                 /* in the table by line: "A", "workspace" */
    uintptr_t base;                    /* of the part in the first matrix */
    const void *const *bases;          /* of each whole matrix; NULL: they are a stride apart */
    int64_t part_offset;               /* bytes from there to the part */
    int element;                       /* bytes */
    int64_t rows, row_bytes, ld_bytes; /* of the part */
    int64_t extent; /* bytes from the part's first element to its last; 0: not to be touched */
    int64_t batch, stride_bytes;
    int64_t first_row, first_col, all_rows, all_cols; /* where the part lies, in the whole */
    bool is_list;
    const char *forbidden; /* why it must not be read ("beta is 0"), or NULL */
} tgl_sim_region;

enum { TGL_SIM_WHERE = 256 }; /* bytes for a description of a place in memory */

/* Whether the bytes are elements of the region: within its extent, and within a row. Where the
 * matrices of a batch share elements, as A's and B's may, rows are not told apart. */
bool tgl_region_has(const tgl_sim_region *x, uintptr_t address, unsigned bytes);

/* Where an address of the region lies: *index is the matrix of the batch; row and column are
 * counted in the whole matrix. */
void tgl_region_locate(const tgl_sim_region *x, uintptr_t address, int64_t *index, int64_t *row,
                       int64_t *col);

/* "row 3, column 64 of A, which is 32 x 64", or where the address lies beside the nearest of
 * `count` regions. *is_inside: it lies within the extent of one. False: none is near. */
bool tgl_regions_describe(const tgl_sim_region *regions, int count, uintptr_t address,
                          bool *is_inside, char text[TGL_SIM_WHERE]);

#endif
