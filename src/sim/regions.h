/* SPDX-License-Identifier: Apache-2.0
 *
 * The global memory that a launch may access: matrices, batches of matrices, and vectors. Functions
 * of addresses only.
 */
#ifndef TGL_SIM_REGIONS_H
#define TGL_SIM_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A batch of stored matrices. A launch may access one partition, the same one of each matrix. Or a
 * vector, stored as a matrix of one row. */
typedef struct tgl_sim_region {
    const char *name;                  /* name in error messages: "A", "the scratch" */
    const char *label;                 /* name in the table by line: "A", "workspace" */
    uintptr_t base;                    /* address of the partition in the first matrix */
    const void *const *bases;          /* pointers to the matrices; NULL: the batch is strided */
    int64_t partition_offset;          /* bytes from one of `bases` to the partition */
    int element;                       /* bytes per element */
    int64_t rows, row_bytes, ld_bytes; /* partition: rows, their bytes, bytes between rows */
    int64_t extent; /* bytes from the partition's first element to its last; 0: not accessible */
    int64_t batch, stride_bytes;
    int64_t first_row, first_col, all_rows,
        all_cols;          /* position of the partition, and the size of the whole matrix */
    bool is_list;          /* a vector: messages give an index instead of row and column */
    const char *forbidden; /* why the region must not be read, "beta is 0"; NULL: it may be */
} tgl_sim_region;

/* A description of an address. */
typedef struct tgl_where {
    char text[256];
} tgl_where;

/* Whether the bytes are elements of the region: within its extent and within a row. If the matrices
 * of a batch overlap, as A and B may, rows are not checked. */
bool tgl_region_has(const tgl_sim_region *x, uintptr_t address, unsigned bytes);

/* Whether the bytes lie between the region's first element and its last, in a row or not. */
bool tgl_region_spans(const tgl_sim_region *x, uintptr_t address, unsigned bytes);

/* The position of an address in its region: *index is the matrix of the batch; row and column are
 * those of the whole matrix. */
void tgl_region_locate(const tgl_sim_region *x, uintptr_t address, int64_t *index, int64_t *row,
                       int64_t *col);

/* Describes an address: "row 3, column 64 of A, which is 32 x 64", or its position relative to the
 * nearest of `count` regions. *is_inside: the address is within the extent of a region. False: no
 * region is near. */
bool tgl_regions_describe(const tgl_sim_region *regions, int count, uintptr_t address,
                          bool *is_inside, tgl_where *where);

#endif
