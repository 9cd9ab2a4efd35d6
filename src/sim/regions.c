/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the region of an address among those that a launch may access.
 */
#include "sim/regions.h"

#include <stdio.h>

/* Maximum distance in bytes from a region at which an address is described relative to it. */
enum { FAR = 1 << 30 };

static uintptr_t distance_to_range(uintptr_t address, uintptr_t begin, uintptr_t end)
{
    if (address < begin) return begin - address;
    return address >= end ? address - end + 1 : 0;
}

static uintptr_t base_of(const tgl_sim_region *x, int64_t index)
{
    if (x->bases != NULL) return (uintptr_t)x->bases[index] + (uintptr_t)x->partition_offset;
    return x->base + (uintptr_t)(index * x->stride_bytes);
}

static uintptr_t distance_to(const tgl_sim_region *region, uintptr_t address);

const tgl_sim_region *tgl_region_member(const tgl_sim_region *x, uintptr_t address)
{
    const tgl_sim_region *nearest = x->members;
    uintptr_t least = UINTPTR_MAX;
    if (x->members == NULL) return x;
    for (int i = 0; i < x->member_count; i++) {
        const tgl_sim_region *own = &x->members[i];
        if (own->extent == 0) continue;
        if (tgl_region_has(own, address, 1)) return own;
        const uintptr_t far = distance_to(own, address);
        if (far >= least) continue;
        nearest = own;
        least = far;
    }
    return nearest;
}

/* The index of the matrix nearest to the address, in a batch given by pointers. */
static int64_t nearest_of_pointers(const tgl_sim_region *x, uintptr_t address)
{
    int64_t nearest = 0;
    uintptr_t least = UINTPTR_MAX;
    for (int64_t i = 0; i < x->batch && least > 0; i++) {
        const uintptr_t base = base_of(x, i);
        const uintptr_t far = distance_to_range(address, base, base + (uintptr_t)x->extent);
        if (far >= least) continue;
        nearest = i;
        least = far;
    }
    return nearest;
}

/* The distance in bytes from an address to a region; 0: inside. A strided batch counts as one
 * range. */
static uintptr_t distance_to(const tgl_sim_region *region, uintptr_t address)
{
    const tgl_sim_region *x = tgl_region_member(region, address);
    const int64_t first = x->bases != NULL ? nearest_of_pointers(x, address) : 0;
    const int64_t last = x->bases != NULL ? first : x->batch - 1;
    return distance_to_range(address, base_of(x, first), base_of(x, last) + (uintptr_t)x->extent);
}

/* Whether the address ranges of the matrices of a strided batch overlap. */
static bool are_interlaced(const tgl_sim_region *x)
{
    return x->bases == NULL && x->batch > 1 && x->stride_bytes > 0 && x->stride_bytes < x->extent;
}

/* Whether the matrices of a batch are interleaved without sharing elements: one row of each matrix
 * fits within ld. */
static bool are_side_by_side(const tgl_sim_region *x)
{
    return are_interlaced(x) && x->stride_bytes >= x->row_bytes &&
           (x->batch - 1) * x->stride_bytes + x->row_bytes <= x->ld_bytes;
}

/* The index of the matrix that contains the address or is the last one before it. In a batch given
 * by pointers: the index of the nearest matrix. */
static int64_t index_in_batch(const tgl_sim_region *x, uintptr_t address)
{
    if (x->bases != NULL) return nearest_of_pointers(x, address);
    if (address < x->base || x->batch == 1 || x->stride_bytes == 0) return 0;
    int64_t offset = (int64_t)(address - x->base);
    if (are_side_by_side(x)) offset %= x->ld_bytes;
    const int64_t index = offset / x->stride_bytes;
    return index < x->batch ? index : x->batch - 1;
}

bool tgl_region_has(const tgl_sim_region *region, uintptr_t address, unsigned bytes)
{
    if (region->extent == 0) return false;
    const tgl_sim_region *x = tgl_region_member(region, address);
    if (are_interlaced(x) && !are_side_by_side(x))
        return address - x->base <
               (uintptr_t)((x->batch - 1) * x->stride_bytes + x->extent) - bytes + 1;
    const uintptr_t offset = address - base_of(x, index_in_batch(x, address));
    if (offset >= (uintptr_t)x->extent) return false;
    /* the elements of a matrix of one column without gaps are contiguous, as in a vector */
    if (x->row_bytes == x->element && x->ld_bytes == x->element)
        return (int64_t)offset + (int64_t)bytes <= x->extent;
    return (int64_t)offset % x->ld_bytes + (int64_t)bytes <= x->row_bytes;
}

bool tgl_region_spans(const tgl_sim_region *x, uintptr_t address, unsigned bytes)
{
    return x->extent > 0 && distance_to(x, address) == 0 &&
           distance_to(x, address + bytes - 1) == 0;
}

void tgl_region_locate(const tgl_sim_region *region, uintptr_t address, int64_t *index,
                       int64_t *row, int64_t *col)
{
    const tgl_sim_region *x = tgl_region_member(region, address);
    *index = index_in_batch(x, address);
    const int64_t offset = (int64_t)(address - base_of(x, *index));
    *row = x->first_row + offset / x->ld_bytes;
    *col = x->first_col + offset % x->ld_bytes / x->element;
}

/* The region that contains the address or is nearest to it; NULL: all are farther than FAR. */
static const tgl_sim_region *nearest_region(const tgl_sim_region *regions, int count,
                                            uintptr_t address, uintptr_t *distance)
{
    const tgl_sim_region *nearest = NULL;
    *distance = UINTPTR_MAX;
    for (int i = 0; i < count; i++) {
        if (regions[i].extent == 0) continue;
        const uintptr_t far = distance_to(&regions[i], address);
        if (far >= *distance) continue;
        nearest = &regions[i];
        *distance = far;
    }
    return nearest;
}

/* Writes the size of the matrix, ", which is 40 x 24", and the partition that the launch may
 * access. */
static void describe_size(const tgl_sim_region *x, char *text, size_t size)
{
    const int64_t cols = x->row_bytes / x->element;
    const int length = snprintf(text, size, ", which is %lld x %lld", (long long)x->all_rows,
                                (long long)x->all_cols);
    if (x->is_list)
        snprintf(text, size, ", which has %lld", (long long)x->all_cols);
    else if (x->rows < x->all_rows || cols < x->all_cols)
        snprintf(text + length, size - (size_t)length,
                 " and of which this launch has %lld x %lld from row %lld, column %lld",
                 (long long)x->rows, (long long)cols, (long long)x->first_row,
                 (long long)x->first_col);
}

bool tgl_regions_describe(const tgl_sim_region *regions, int count, uintptr_t address,
                          bool *is_inside, tgl_where *where)
{
    char size[128];
    uintptr_t distance;
    int64_t index, row, col;
    const tgl_sim_region *x = nearest_region(regions, count, address, &distance);
    *is_inside = x != NULL && distance == 0;
    if (x == NULL || distance > FAR) return false;
    x = tgl_region_member(x, address);
    const int64_t offset = (int64_t)(address - base_of(x, index_in_batch(x, address)));
    describe_size(x, size, sizeof size);
    if (offset < 0) {
        snprintf(where->text, sizeof where->text, "%lld bytes before the start of %s",
                 (long long)-offset, x->name);
    } else if (offset >= x->extent) {
        snprintf(where->text, sizeof where->text, "%lld bytes past the end of %s%s",
                 (long long)(offset - x->extent), x->name, size);
    } else {
        tgl_region_locate(x, address, &index, &row, &col);
        if (x->is_list)
            snprintf(where->text, sizeof where->text, "number %lld of %s%s", (long long)col,
                     x->name, size);
        else
            snprintf(where->text, sizeof where->text, "row %lld, column %lld of %s%s",
                     (long long)row, (long long)col, x->name, size);
    }
    return true;
}
