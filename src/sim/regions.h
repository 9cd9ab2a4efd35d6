/* SPDX-License-Identifier: Apache-2.0
 *
 * The regions of global memory that a launch may access: matrices, batches of matrices, and
 * vectors. The functions compute with addresses only, and access no region.
 */
#ifndef TGL_SIM_REGIONS_H
#define TGL_SIM_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A batch of matrices as they are stored, or of vectors (matrices of one row). A launch may access
 * the same partition (a rectangle of elements) of each matrix. */
typedef struct tgl_sim_region {
    const char *name;                  /* name in error messages: "A", "the scratch" */
    const char *label;                 /* name in the table by source line: "A", "workspace" */
    uintptr_t base;                    /* address of the partition in the first matrix */
    const void *const *bases;          /* array of pointers to the matrices; NULL: the batch is
                                          strided */
    int64_t partition_offset;          /* distance from a matrix in `bases` to its partition, in
                                          bytes */
    int element;                       /* bytes per element */
    int64_t rows, row_bytes, ld_bytes; /* partition: number of rows, bytes of a row, bytes from row
                                          to row */
    int64_t extent; /* bytes from the partition's first element to its last; 0: not accessible */
    int64_t batch, stride_bytes;
    int64_t first_row, first_col, all_rows,
        all_cols;          /* position of the partition in the matrix, and size of the matrix */
    bool is_list;          /* a vector: messages give an index instead of a row and a column */
    const char *forbidden; /* why it must not be read, such as "beta is 0"; NULL: it may be read */

    /* The matrices of a bundle (plan/bundle.h), which differ in size: a region for each of them.
     * Of this region itself only name, label, element and extent are then used. NULL: no bundle. */
    const struct tgl_sim_region *members;
    int member_count;
    int64_t shadow_row; /* in a member: rows of all D before this one */
} tgl_sim_region;

/* A description of an address. */
typedef struct tgl_where {
    char text[256];
} tgl_where;

/* The member of a bundle's region that contains the address, or is nearest to it; x itself if it is
 * no bundle's region. */
const tgl_sim_region *tgl_region_member(const tgl_sim_region *x, uintptr_t address);

/* Whether all bytes of an access, `bytes` from `address` on, are elements of the region: within its
 * extent, and within one row. Rows are not checked if the matrices of the batch overlap, as the
 * matrices of A or of B may do. */
bool tgl_region_has(const tgl_sim_region *x, uintptr_t address, unsigned bytes);

/* Whether all bytes of an access lie between the region's first and last element, in a row or
 * between rows. */
bool tgl_region_spans(const tgl_sim_region *x, uintptr_t address, unsigned bytes);

/* The position of an address in its region. *index: number of the matrix in the batch. *row, *col:
 * position in the whole matrix, not in the partition. */
void tgl_region_locate(const tgl_sim_region *region, uintptr_t address, int64_t *index,
                       int64_t *row, int64_t *col);

/* Describes an address, as "row 3, column 64 of A, which is 32 x 64" or relative to the nearest of
 * `count` regions. *is_inside: whether the address is within the extent of a region. Returns false
 * if no region is near. */
bool tgl_regions_describe(const tgl_sim_region *regions, int count, uintptr_t address,
                          bool *is_inside, tgl_where *where);

#endif
