/* SPDX-License-Identifier: Apache-2.0
 *
 * One axis of a distributed matrix or of a distributed product: indices 0 .. size-1 in blocks that
 * are dealt out to parts in turn.
 *
 *     block i: [0, first), then [first + (i-1)*block, first + i*block), the last one cut off
 *     part of block i: (source + i) mod parts
 *     part of a rank: (rank / stride) mod parts
 *
 * The local index of an element counts the elements of its part before it.
 */
#ifndef DIST_AXIS_H
#define DIST_AXIS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dist_axis {
    int64_t size, first, block; /* first and block: at least 1 */
    int parts, source, stride;
} dist_axis;

/* One contiguous block of ceil(size/parts) elements for each part; the last ones may be shorter. */
dist_axis dist_axis_even(int64_t size, int parts, int stride);

int dist_axis_part(const dist_axis *axis, int rank);

/* The number of elements of a part. */
int64_t dist_axis_length(const dist_axis *axis, int part);

/* The number of elements of a part whose index in the axis is below `index`. */
int64_t dist_axis_before(const dist_axis *axis, int part, int64_t index);

/* The index of the element `local` of a part. *rest := the number of elements from there to the end
 * of its block. */
int64_t dist_axis_index(const dist_axis *axis, int part, int64_t local, int64_t *rest);

/* A range of local indices of a part of an axis. */
typedef struct dist_window {
    const dist_axis *axis;
    int part;
    int64_t begin, end;
} dist_window;

/* All of a part. */
dist_window dist_window_whole(const dist_axis *axis, int part);

/* `length` consecutive elements that two windows of axes of the same size share. They begin x
 * elements behind the beginning of one window, and y behind that of the other. */
typedef struct dist_run {
    int64_t x, y, length;
} dist_run;

/* The shared elements of two windows as the least number of runs, in ascending order. Call
 * dist_overlap_next() with the same struct until it returns false. */
typedef struct dist_overlap {
    dist_window x, y;
    int64_t at;       /* local index of x that comes next */
    dist_run waiting; /* length 0: none */
} dist_overlap;

dist_overlap dist_overlap_start(dist_window x, dist_window y);
bool dist_overlap_next(dist_overlap *overlap, dist_run *run);

/* The number of shared elements. */
int64_t dist_overlap_count(dist_window x, dist_window y);

/* Whether y contains all of x as one run; *offset := where x begins in y. True for an empty x. */
bool dist_overlap_is_whole(dist_window x, dist_window y, int64_t *offset);

#endif
