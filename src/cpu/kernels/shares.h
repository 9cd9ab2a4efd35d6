/* SPDX-License-Identifier: Apache-2.0
 *
 * How work is divided: into parts of nearly equal size, and item by item among threads.
 */
#ifndef TGL_CPU_SHARES_H
#define TGL_CPU_SHARES_H

#include "base/integers.h"

#include <stdatomic.h>
#include <stdint.h>

/* cpu_ceil_div() and cpu_share() handle the common cases without a division, which takes as long as
 * a dozen multiply-adds: a noticeable time in a small product. */
static inline int64_t cpu_ceil_div(int64_t x, int64_t y)
{
    return x <= y ? x > 0 : (x + y - 1) / y;
}

/* Divides `total` items into `parts` parts of nearly equal size. Returns the first item of part
 * `index`. */
static inline int64_t cpu_share(int64_t total, int64_t parts, int64_t index)
{
    if (parts == 1) return index == 0 ? 0 : total;
    const int64_t rest = total % parts;
    return total / parts * index + tgl_min64(index, rest);
}

/* The half-open range [begin, end). */
typedef struct cpu_range {
    int64_t begin, end;
} cpu_range;

static inline int64_t cpu_length(cpu_range r)
{
    return r.end - r.begin;
}

/* Part `index` of a range that is cut into `parts` nearly equal parts of whole units. Only the last
 * unit of the range may be shorter. */
static inline cpu_range cpu_part(cpu_range all, int64_t unit, int64_t parts, int64_t index)
{
    if (parts == 1) return all;
    const int64_t total = cpu_length(all), units = cpu_ceil_div(total, unit);
    const int64_t begin = cpu_share(units, parts, index) * unit;
    const int64_t end = cpu_share(units, parts, index + 1) * unit;
    return (cpu_range){all.begin + tgl_min64(begin, total), all.begin + tgl_min64(end, total)};
}

/* Returns the index of the next item for a thread that has finished an item. The first item of
 * thread t is item t. Items are handed out one by one, so that a delayed or slower thread computes
 * fewer of them. taken: a counter that the team shares, 0 at first. */
static inline int64_t cpu_next_item(_Atomic int64_t *taken, int team)
{
    return team + atomic_fetch_add_explicit(taken, 1, memory_order_relaxed);
}

#endif
