/* SPDX-License-Identifier: Apache-2.0
 *
 * A pre-pass of grouped products: makes the table of lib/group_table.h from the ends or sizes of
 * the groups. A row of the table is a span: a range of rows, or of K, that belongs to one group.
 * The grid is one block. It takes THREADS groups at a time (a chunk), one per thread, and finds
 * where the groups begin by prefix scans in shared memory.
 *
 * The sizes may be any numbers. Ends are replaced by the maximum of all ends so far, sizes below 0
 * by 0, and everything is cut off at `limit`. The groups are therefore disjoint and lie within the
 * matrices, and their spans fit in the table.
 */
#include "lib/group_table.h"
#include "lib/launch_order.h"

#define THREADS 256
#define SORT_MAX                                                                                   \
    4096 /* more groups are not sorted (sort_groups()): the time to sort grows with the            \
            square of their number */

static __device__ __forceinline__ int clamped(int value, int limit)
{
    return value < 0 ? 0 : value < limit ? value : limit;
}

/* An inclusive scan over the block's threads. *value := the sum of the values of threads 0 to this
 * one, at most `limit`; with is_max their maximum. at: THREADS ints of shared memory; at[t] := the
 * result of thread t. */
static __device__ __forceinline__ void scan(int *value, int *at, int limit, bool is_max)
{
    const int t = (int)threadIdx.x;
    at[t] = *value;
    __syncthreads();
    for (int distance = 1; distance < THREADS; distance *= 2) {
        const int other = t >= distance ? at[t - distance] : 0;
        __syncthreads();
        if (is_max)
            *value = other > *value ? other : *value;
        else /* avoids overflow */
            *value = other > limit - *value ? limit : *value + other;
        at[t] = *value;
        __syncthreads();
    }
}

struct group_chunk {
    int first[THREADS], end[THREADS]; /* first row or k of each group of the chunk, and the one
                                         behind its last */
    int spans[THREADS];               /* inclusive prefix sums of span counts */
};

/* Called by all threads: sets chunk->first and chunk->end for each group of a chunk. group: the
 * thread's group. carry: the end of the last group of the previous chunk. */
static __device__ __forceinline__ void find_groups(const struct tgl_groups_args *args,
                                                   struct group_chunk *chunk, int group, int carry)
{
    const int t = (int)threadIdx.x;
    const bool is_masked = args->grouping == TGL_GROUPS_MASKED;
    int end = group < args->count ? clamped(args->groups[group], args->limit) : 0;
    if (!is_masked) {
        if (t == 0) {
            if (!args->has_sizes)
                end = end > carry ? end : carry;
            else
                end = end > args->limit - carry ? args->limit : end + carry;
        }
        scan(&end, chunk->end, args->limit, !args->has_sizes);
    }
    chunk->end[t] = end;
    __syncthreads();
    chunk->first[t] = is_masked ? 0 : t > 0 ? chunk->end[t - 1] : carry;
}

/* Returns the group of the chunk to which span number `span` of the chunk belongs: the first g with
 * spans[g] > span. */
static __device__ __forceinline__ int group_of_span(const struct group_chunk *chunk, int span)
{
    int low = 0, high = THREADS - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (chunk->spans[middle] > span)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Span number `number` of the `count` spans of a group, with its place in its band. The caller sets
 * the other members. */
static __device__ __forceinline__ struct tgl_group_span span_in_band(int number, int count,
                                                                     int band_max)
{
    struct tgl_group_span span = {0};
    const int bands = (count + band_max - 1) / band_max, height = (count + bands - 1) / bands;
    const int rest = count - number / height * height; /* spans from the band's first one to the
                                                          group's last one */
    span.in_band = (short)(number % height);
    span.band_spans = (short)(rest < height ? rest : height);
    return span;
}

/* Called by all threads: writes the spans of a chunk to the table, from span number `at` on, and
 * returns their number. base: the number of the chunk's first group. */
static __device__ __forceinline__ int write_rows(const struct tgl_groups_args *args,
                                                 struct group_chunk *chunk, int base, int at)
{
    const int t = (int)threadIdx.x, tile = args->tile;
    int spans = (chunk->end[t] - chunk->first[t]) / tile;
    spans += (chunk->end[t] - chunk->first[t]) % tile > 0;
    scan(&spans, chunk->spans, 0x7fffffff, false);
    const int all = chunk->spans[THREADS - 1];
    for (int i = t; i < all; i += THREADS) {
        const int g = group_of_span(chunk, i);
        const int before = g > 0 ? chunk->spans[g - 1] : 0;
        struct tgl_group_span span =
            span_in_band(i - before, chunk->spans[g] - before, args->band_max);
        span.group = base + g;
        span.first = chunk->first[g] + (i - before) * tile;
        span.end = chunk->end[g];
        args->table->spans[at + i] = span;
    }
    return all;
}

/* Called by all threads, for groups of K, which have one span each: writes the spans of all groups
 * to the table, the longest first; unsorted if there are more than SORT_MAX groups. */
static __device__ __forceinline__ void sort_groups(const struct tgl_groups_args *args)
{
    for (int g = (int)threadIdx.x; g < args->count; g += THREADS) {
        const struct tgl_group_span own = args->unsorted[g];
        int rank = args->count > SORT_MAX ? g : 0;
        for (int i = 0; i < args->count && args->count <= SORT_MAX; i++) {
            const struct tgl_group_span other = args->unsorted[i];
            const int more = (other.end - other.first) - (own.end - own.first);
            rank += more > 0 || (more == 0 && i < g);
        }
        args->table->spans[rank] = own;
    }
}

__global__ void __launch_bounds__(THREADS) groups(const struct tgl_groups_args args)
{
    __shared__ struct group_chunk chunk;
    wait_for_earlier_launches();
    let_later_launches_start();
    const bool is_depth = args.grouping == TGL_GROUPS_DEPTH;
    int spans = 0, carry = 0;
    for (int base = 0; base < args.count; base += THREADS) {
        const int group = base + (int)threadIdx.x;
        find_groups(&args, &chunk, group, carry);
        __syncthreads();
        if (!is_depth) {
            spans += write_rows(&args, &chunk, base, spans);
        } else if (group < args.count) {
            const struct tgl_group_span span = {group, chunk.first[threadIdx.x],
                                                chunk.end[threadIdx.x], 0, 0};
            args.unsorted[group] = span;
        }
        carry = chunk.end[THREADS - 1];
        __syncthreads();
    }
    if (is_depth) sort_groups(&args);
    const struct tgl_group_head head = {is_depth ? args.count : spans, 0, {0, 0}};
    if (threadIdx.x == 0) args.table->head = head;
}
