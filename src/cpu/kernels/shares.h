/* SPDX-License-Identifier: Apache-2.0
 *
 * How work is divided: into even parts, and item by item among threads.
 */
#ifndef TGL_CPU_SHARES_H
#define TGL_CPU_SHARES_H

#include "base/integers.h"

#include <stdatomic.h>
#include <stdint.h>

/* cpu_ceil_div() and cpu_share() avoid divisions in common cases: a division takes as long as a
 * dozen multiply-adds, which matters for small products. */
static inline int64_t cpu_ceil_div(int64_t x, int64_t y)
{
    return x <= y ? x > 0 : (x + y - 1) / y;
}

/* The first item of part `index` when `total` items are divided evenly into `parts`. */
static inline int64_t cpu_share(int64_t total, int64_t parts, int64_t index)
{
    if (parts == 1) return index == 0 ? 0 : total;
    const int64_t rest = total % parts;
    return total / parts * index + tgl_min64(index, rest);
}

/* The half-open range from begin to end. */
typedef struct cpu_range {
    int64_t begin, end;
} cpu_range;

static inline int64_t cpu_length(cpu_range r)
{
    return r.end - r.begin;
}

/* Part `index` when a range is cut into even parts of whole units. The last unit may be shorter. */
static inline cpu_range cpu_part(cpu_range all, int64_t unit, int64_t parts, int64_t index)
{
    if (parts == 1) return all;
    const int64_t total = cpu_length(all), units = cpu_ceil_div(total, unit);
    const int64_t begin = cpu_share(units, parts, index) * unit;
    const int64_t end = cpu_share(units, parts, index + 1) * unit;
    return (cpu_range){all.begin + tgl_min64(begin, total), all.begin + tgl_min64(end, total)};
}

/* The item that a thread takes after it has finished one. Its first item has the thread's own
 * number. A thread that is delayed, by another program or by a slower processor, takes fewer items
 * than others. taken: 0 at first, shared by the team. */
static inline int64_t cpu_next_item(_Atomic int64_t *taken, int team)
{
    return team + atomic_fetch_add_explicit(taken, 1, memory_order_relaxed);
}

#endif
