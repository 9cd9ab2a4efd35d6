/* SPDX-License-Identifier: Apache-2.0
 *
 * One axis of a distributed matrix (rows or columns) or of a distributed product (m, n or k). Its
 * indices 0 .. size-1 are cut into blocks, which are dealt out to parts in turn. A part is the set
 * of indices that a rank has; several ranks may have the same part.
 *
 *     block 0: [0, first)
 *     block i > 0: [first + (i-1)*block, first + i*block); the last block ends at size
 *     part of block i: (source + i) mod parts
 *     part of a rank: (rank / stride) mod parts
 *
 * The local index of an element is the number of elements of its part before it.
 */
#ifndef DIST_AXIS_H
#define DIST_AXIS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dist_axis {
    int64_t size, first, block; /* first and block: at least 1 */
    int parts, source, stride;
} dist_axis;

/* An axis in which each part has one contiguous block of ceil(size/parts) elements; the last blocks
 * may be shorter or empty. */
dist_axis dist_axis_even(int64_t size, int parts, int stride);

int dist_axis_part(const dist_axis *axis, int rank);

/* The number of elements of a part. */
int64_t dist_axis_length(const dist_axis *axis, int part);

/* The number of elements of a part whose index in the axis is below `index`. */
int64_t dist_axis_before(const dist_axis *axis, int part, int64_t index);

/* The index in the axis of element `local` of a part. *rest := number of elements from this one to
 * the end of its block, where the last block of the axis counts as a complete one. */
int64_t dist_axis_index(const dist_axis *axis, int part, int64_t local, int64_t *rest);

/* A range [begin, end) of local indices of a part of an axis. */
typedef struct dist_window {
    const dist_axis *axis;
    int part;
    int64_t begin, end;
} dist_window;

/* The window of all elements of a part. */
dist_window dist_window_whole(const dist_axis *axis, int part);

/* A run: `length` elements that two windows share, with consecutive local indices in both. x, y:
 * position of the first of these elements in each window, counted from the window's `begin`. */
typedef struct dist_run {
    int64_t x, y, length;
} dist_run;

/* Iterates over the elements that two windows (of axes of equal size) share, in ascending order and
 * in as few runs as possible. Call dist_overlap_next() until it returns false. */
typedef struct dist_overlap {
    dist_window x, y;
    int64_t at;       /* next local index of x to consider */
    dist_run waiting; /* run that was found, to which the next one may be joined; length 0: none */
} dist_overlap;

dist_overlap dist_overlap_start(dist_window x, dist_window y);
bool dist_overlap_next(dist_overlap *overlap, dist_run *run);

/* The number of elements that two windows share. */
int64_t dist_overlap_count(dist_window x, dist_window y);

/* Whether window y contains all of window x as one run. *offset := local index in y's part of the
 * first element of x. True, with *offset = 0, if x is empty. */
bool dist_overlap_is_whole(dist_window x, dist_window y, int64_t *offset);

#endif
