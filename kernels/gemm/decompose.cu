/* SPDX-License-Identifier: Apache-2.0
 *
 * A pre-pass that makes two words of f16 of each element of FP32 matrices (lib/decompose_args.h). A
 * line is a row of op(A) or a column of op(B). The words are K-major, and their lines begin at
 * multiples of 16 bytes, as TMA needs it. A launch has one or two jobs, each a matrix or a batch of
 * matrices, of any alignment. TRANSPOSED_0, TRANSPOSED_1: the lines of the job's matrices are
 * columns in memory. PAIRS: the second job reads complex matrices (lib/complex_pairs.h).
 *
 *   load      A thread block processes a few whole lines. Lines that are too long for one block are
 *             divided over the blocks of a cluster. A thread holds 32 elements: eight float4 of a
 *             contiguous line; or, if lines are columns in memory, one float4 of each of eight
 *             successive rows, that is eight successive k of four lines. Threads therefore need not
 *             exchange words. Lines that are too long for the registers of a cluster are read
 *             twice, the second time usually from L2.
 *   extents   The extent of a line is its largest |x|, and whether several elements are not 0. The
 *             extents that threads find in their parts of a line are joined: first those of a warp,
 *             then those of the warps, then those of the blocks of a cluster.
 *   words     The block stores the scale and the words of each line. For each panel of lines it
 *             stores the state and the list of the elements that two words cannot represent. Blocks
 *             add the state and the number of listed elements to a counter of the panel, which is
 *             zero at the launch. The last block copies the counter into the panel.
 *
 * If a line has a single element that is not 0, its scale puts that element below the range of two
 * words. The thread that has the element then stores its k in place of the line's exponent, and the
 * main kernel multiplies the element unrounded. Products with matrices that select, permute or
 * scale lines of the other matrix are therefore those of FFMA. Such elements are not in the lists:
 * a list takes atomic operations and fences, which would delay the whole kernel.
 *
 * The order of a list is not fixed; its reader sorts it. Whether a list overflows depends only on
 * the matrix.
 */
#include "lib/cluster.h"
#include "lib/half.h"
#include "lib/launch_order.h"

#ifndef TRANSPOSED_0
#define TRANSPOSED_0 0 /* 1: lines of the first job are columns in memory */
#endif
#ifndef TRANSPOSED_1
#define TRANSPOSED_1 0 /* 1: lines of the second job are columns in memory */
#endif
#ifndef THREADS
#define THREADS 256 /* or 512 */
#endif
#ifndef STRIP
#define STRIP 8 /* lines of a block if lines are columns in memory: 8, 16 or 32 */
#endif

#define WARPS       (THREADS / 32)
#define BLOCKS      (1024 / THREADS) /* resident blocks of an SM: 64 registers for each thread */
#define INFINITY_IS 0x7f800000u      /* the bits of Inf; NaNs have larger ones */

#if STRIP % 8 != 0 || STRIP > 32 || THREADS / 32 > 32
#error "STRIP: 8, 16 or 32; THREADS: at most 1024"
#endif

#include "lib/decompose_load.h"

/* ---- Extents --------------------------------------------------------------------------------- */

static __device__ __forceinline__ unsigned larger(unsigned x, unsigned y)
{
    return x > y ? x : y;
}

/* The extent of a line, or of a part of it, is 2 * bits(max |x|) + (1 if several elements are not
 * 0). joined() returns the extent of two parts together. Bit patterns have the order of the
 * nonnegative floats that they represent; Inf and NaN come last. */
static __device__ __forceinline__ unsigned joined(unsigned x, unsigned y)
{
    return larger(x, y) | (x != 0 && y != 0);
}

/* The joined extent of all lanes whose numbers differ only in the bits from low to high / 2. */
static __device__ __forceinline__ unsigned lanes_extent(unsigned x, int low, int high)
{
    for (int i = high / 2; i >= low; i /= 2)
        x = joined(x, __shfl_xor_sync(0xffffffffu, x, i));
    return x;
}

/* Updates the extents of lines with the thread's 32 elements x[]. If transposed, the elements
 * belong to four lines (x[e] to line e % 4), whose extents are own[0..3]. Otherwise they belong to
 * one line, whose extent is own[0]. */
static __device__ __forceinline__ void add_elements(unsigned *own, const float *x,
                                                    const bool transposed)
{
    unsigned others[4] = {0, 0, 0, 0}; /* not 0: the line has nonzero elements besides the
                                          largest */
#pragma unroll
    for (int e = 0; e < 32; e++) {
        const int j = transposed ? e % 4 : 0;
        const unsigned twice = __float_as_uint(x[e]) << 1; /* without the sign */
        others[j] |= own[j] < twice ? own[j] : twice;
        own[j] = larger(own[j], twice);
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        own[j] |= others[j] != 0;
}

/* Extents of the block's lines. */
struct extents {
    unsigned of_warps[WARPS][TGL_BLOCK_LINES_MAX];
    float of_block[TGL_BLOCK_LINES_MAX]; /* over the block's parts of the lines */
    float of_line[TGL_BLOCK_LINES_MAX];  /* over whole lines */
};

/* Writes the extents of the lines of which this warp has a part. Returns the number of warps that
 * have parts of the same line. */
static __device__ __forceinline__ int write_extents(struct extents *to, const unsigned *own,
                                                    const job_t *job,
                                                    const struct decompose_place *at,
                                                    const bool transposed)
{
    const int thread = (int)threadIdx.x, lane = thread % 32;
    if (transposed) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const unsigned all = lanes_extent(own[j], STRIP / 4, 32);
            if (lane < STRIP / 4) to->of_warps[thread / 32][at->slot + j] = all;
        }
        return WARPS;
    }
    const int threads = threads_of(job), within = thread & (threads - 1);
    const unsigned all = lanes_extent(own[0], 1, threads < 32 ? threads : 32);
    if (threads >= 32) {
        if (lane == 0) to->of_warps[within / 32][at->slot] = all;
        return threads / 32;
    }
    if (within == 0) to->of_warps[0][at->slot] = all;
    return 1;
}

static __device__ __forceinline__ bool is_finite(unsigned extent)
{
    return extent >> 1 < INFINITY_IS;
}

/* Whether exactly one element of the line is not 0. It may be Inf or NaN. */
static __device__ __forceinline__ bool is_single(unsigned extent)
{
    return extent != 0 && (extent & 1) == 0;
}

/* The exponent s of a line, whose scale is 2^s; 0 if the line has only zeros, or an Inf or a
 * NaN. */
static __device__ __forceinline__ int exponent_of(unsigned extent)
{
    const unsigned largest = extent >> 1;
    if (largest == 0 || !is_finite(extent)) return 0;
    /* The exponent field, or the place of the first bit of a denormal number. */
    const int exponent =
        largest >> 23 ? (int)(largest >> 23) - 127 : 31 - __clz((int)largest) - 149;
    return (extent & 1 ? TGL_TOP_EXPONENT : TGL_SINGLE_EXPONENT) - exponent;
}

/* Called by one thread for each line: stores the exponent of the line, and adds the state of the
 * line to that of its panel. The exponents of single lines are stored by record_singles(). */
static __device__ __forceinline__ void record_line(const job_t *job, const struct decompose_work *w,
                                                   int line, unsigned extent)
{
    if (is_single(extent) && is_finite(extent)) return;
    const int s = exponent_of(extent);
    const unsigned state =
        (is_finite(extent) ? 0 : TGL_PANEL_NOT_FINITE) |
        (s > TGL_MODEST_EXPONENT || s < -TGL_MODEST_EXPONENT ? TGL_PANEL_WIDE : 0);
    job->exponents[(long long)w->matrix * job->padded_lines + line] = s;
    if (state) {
        atomicOr(&job->counters[panel_of(job, w)].state, state);
        __threadfence(); /* before finish_panel() counts the block */
    }
}

/* extents->of_line[i] := the extent of the block's line number i, joined over all blocks that have
 * parts of the line. One of these blocks also calls record_line() for the line. */
static __device__ __forceinline__ void join_extents(struct extents *extents, const unsigned *own,
                                                    const job_t *job,
                                                    const struct decompose_work *w,
                                                    const struct decompose_place *at,
                                                    const bool transposed)
{
    const int warps = write_extents(extents, own, job, at, transposed), slot = (int)threadIdx.x;
    const bool has_line = slot < job->block_lines;
    unsigned all = 0;
    __syncthreads();
    for (int i = 0; has_line && i < warps; i++)
        all = joined(all, extents->of_warps[i][slot]);
    if (job->parts > 1) {
        if (has_line) extents->of_block[slot] = __uint_as_float(all);
        __syncwarp();
        cluster_sync();
        all = 0;
        for (int i = 0; has_line && i < job->parts; i++)
            all = joined(all, __float_as_uint(cluster_load(&extents->of_block[slot], i)));
    }
    if (has_line) extents->of_line[slot] = __uint_as_float(all);
    __syncthreads();
    if (job->parts > 1) cluster_arrive();
    if (w->part == 0 && slot < w->count) record_line(job, w, w->line + slot, all);
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* The scale of line number `slot` of the block. */
static __device__ __forceinline__ struct scale scale_of_line(const struct extents *extents,
                                                             int slot)
{
    return scale_of(exponent_of(__float_as_uint(extents->of_line[slot])));
}

/* *hi, *lo := the words hi and lo of elements number e (low half) and e + distance (high half).
 * Returns a mask of the elements that two words cannot represent: bit e is element e. */
static __device__ __forceinline__ unsigned split_two(const float *elements, int e, int distance,
                                                     struct scale scale, unsigned *hi, unsigned *lo)
{
    const float x[2] = {elements[e], elements[e + distance]};
    float y[2], rest[2];
    unsigned below = 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        y[i] = scaled(x[i], scale);
        const bool is_below = is_below_words(x[i], y[i]);
        below |= is_below ? 1u << (e + i * distance) : 0;
        y[i] = is_below ? 0.0f : y[i];
    }
    *hi = floats_to_f16(y[0], y[1]);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const struct f16 word = {(unsigned short)(*hi >> 16 * i)};
        rest[i] = (y[i] - f16_to_float(word)) * (float)(1 << TGL_WORD_EXPONENT);
    }
    *lo = floats_to_f16(rest[0], rest[1]);
    return below;
}

/* Writes the words of the thread's elements, which are of one line. Returns a mask of the elements
 * that two words cannot represent: bit e is element e. */
static __device__ __forceinline__ unsigned split_line(const float *x, const job_t *job,
                                                      const struct decompose_work *w,
                                                      const struct decompose_place *at,
                                                      const struct extents *extents)
{
    const struct scale scale = scale_of_line(extents, at->slot);
    unsigned short *to = words_of(job, w) + at->line * job->pitch + at->k;
    unsigned short *to_lo = to + job->words;
    const bool is_inside = at->line < w->line + w->count;
    unsigned below = 0;
#pragma unroll
    for (int e = 0; e < 32; e += 4) {
        unsigned hi[2], lo[2];
        below |= split_two(x, e, 1, scale, &hi[0], &lo[0]);
        below |= split_two(x, e + 2, 1, scale, &hi[1], &lo[1]);
        if (!is_inside || k_of(at, e, false) >= w->end) continue;
        *(uint2 *)&to[e / 4 * at->distance] = make_uint2(hi[0], hi[1]);
        *(uint2 *)&to_lo[e / 4 * at->distance] = make_uint2(lo[0], lo[1]);
        /* Without this NVRTC 13.5 makes all words before it stores the first ones, and spills
         * registers, if both jobs have contiguous lines. */
        if (!TRANSPOSED_0 && !TRANSPOSED_1) asm volatile("" ::: "memory");
    }
    return below;
}

/* As split_line(), if lines are columns in memory: the thread's elements are of four lines. */
static __device__ __forceinline__ unsigned split_columns(const float *x, const job_t *job,
                                                         const struct decompose_work *w,
                                                         const struct decompose_place *at,
                                                         const struct extents *extents)
{
    unsigned below = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const struct scale scale = scale_of_line(extents, at->slot + j);
        unsigned short *to = words_of(job, w) + (at->line + j) * job->pitch + at->k;
        unsigned hi[4], lo[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            below |= split_two(x, 8 * i + j, 4, scale, &hi[i], &lo[i]);
        if (at->line + j >= w->line + w->count || at->k >= w->end) continue;
        *(uint4 *)to = make_uint4(hi[0], hi[1], hi[2], hi[3]);
        *(uint4 *)&to[job->words] = make_uint4(lo[0], lo[1], lo[2], lo[3]);
    }
    return below;
}

/* ---- Single lines and lists ------------------------------------------------------------------ */

/* below: a mask of the thread's elements that two words cannot represent. Stores the k of those
 * that are in single lines. Returns the mask of the elements to list: those whose lines are neither
 * single nor have an Inf or a NaN. */
static __device__ __forceinline__ unsigned
record_singles(const job_t *job, const struct decompose_work *w, const struct decompose_place *at,
               unsigned below, const struct extents *extents, const bool transposed)
{
    int *exponents = &job->exponents[(long long)w->matrix * job->padded_lines + at->line];
#pragma unroll
    for (int j = 0; j < (transposed ? 4 : 1); j++) {
        const unsigned extent = __float_as_uint(extents->of_line[at->slot + j]);
        const unsigned own = below & (transposed ? 0x11111111u << j : ~0u); /* of this line */
        if (is_finite(extent) && !is_single(extent)) continue;
        if (is_finite(extent) && own != 0)
            exponents[j] = TGL_SINGLE_LINE + k_of(at, __ffs((int)own) - 1, transposed);
        below &= ~own;
    }
    return below;
}

/* Adds the thread's elements in the mask `below` to the panel's list. It waits for memory twice:
 * for the atomic counter, and for the elements, which it reads again. This is rare, because most
 * elements are within the range of two words. */
static __device__ __forceinline__ void list_below(const job_t *job, const struct decompose_work *w,
                                                  const struct decompose_place *at, unsigned below,
                                                  const bool transposed, const bool pairs)
{
    unsigned first = atomicAdd(&job->counters[panel_of(job, w)].count, (unsigned)__popc(below));
    __threadfence(); /* before finish_panel() counts the block */
#pragma unroll 1
    for (; below != 0 && first < TGL_LISTED_MAX; below &= below - 1) {
        const int e = __ffs((int)below) - 1;
        struct tgl_listed *to = &job->panels[panel_of(job, w)].listed[first++];
        to->line = line_of(at, e, transposed) % TGL_PANEL_LINES;
        to->k = k_of(at, e, transposed);
        to->value = element_of(job, w, at, e, transposed, pairs);
    }
}

/* ---- Panels ---------------------------------------------------------------------------------- */

/* Counts the block as finished in its panel's counter. The last block of the panel copies the
 * counter to the panel and sets it to zero for the next launch. */
static __device__ __forceinline__ void finish_panel(const job_t *job,
                                                    const struct decompose_work *w)
{
    const int lines = job->lines - w->line / TGL_PANEL_LINES * TGL_PANEL_LINES;
    const int groups = divided(
        lines < TGL_PANEL_LINES ? lines + job->block_lines - 1 : TGL_PANEL_LINES, job->block_lines);
    struct tgl_panel_counter *counter = &job->counters[panel_of(job, w)];
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (atomicAdd(&counter->finished, 1u) + 1 != (unsigned)(groups * job->parts)) return;
    struct tgl_panel *panel = &job->panels[panel_of(job, w)];
    __threadfence();
    panel->state = atomicExch(&counter->state, 0u);
    panel->count = atomicExch(&counter->count, 0u);
    atomicExch(&counter->finished, 0u);
}

/* ---- The kernel ------------------------------------------------------------------------------ */

static __device__ __forceinline__ void decompose_lines(const job_t *job, int block,
                                                       const bool transposed, const bool pairs)
{
    __shared__ struct extents extents;
    unsigned own[4] = {0, 0, 0, 0};
    struct decompose_work w;
    /* A step is 32 elements per thread. Iteration i < 0 adds the elements of step -i to the
     * extents, the last step first. Iteration i > 0 makes the words of step i. Iteration 0 does
     * both, so that the elements of step 0 stay in registers. */
#pragma unroll 1
    for (int i = 1 - job->steps; i < job->steps; i++) {
        float x[32];
        if (!find_work(job, opaque(block), &w)) return;
        const struct decompose_place at = decompose_place_of(job, &w, i < 0 ? -i : i, transposed);
        load_elements(x, job, &w, &at, transposed, pairs);
        if (i <= 0) add_elements(own, x, transposed);
        if (i < 0) continue;
        if (i == 0) join_extents(&extents, own, job, &w, &at, transposed);
        unsigned below = transposed ? split_columns(x, job, &w, &at, &extents)
                                    : split_line(x, job, &w, &at, &extents);
        if (below == 0) continue;
        /* Computed again: `at` would take registers while the words are made. */
        const struct decompose_place again = decompose_place_of(job, &w, i, transposed);
        below = record_singles(job, &w, &again, below, &extents, transposed);
        if (below != 0) list_below(job, &w, &again, below, transposed, pairs);
    }
    finish_panel(job, &w);
    __syncwarp();
    if (job->parts > 1) cluster_wait(); /* no block exits while others read its extents */
}

__global__ void __launch_bounds__(THREADS, BLOCKS) decompose(const struct tgl_decompose_args args)
{
    wait_for_earlier_launches();
    let_later_launches_start();
    if (args.alpha_at && *args.alpha_at == 0) return;
    const int number = (int)blockIdx.x >= args.first_blocks;
    const int block = (int)blockIdx.x - (number ? args.first_blocks : 0);
#if TRANSPOSED_0 == TRANSPOSED_1 && !PAIRS
    decompose_lines(&args.jobs[number], block, TRANSPOSED_0, false); /* one copy of the code */
#else
    if (number == 0)
        decompose_lines(&args.jobs[0], block, TRANSPOSED_0, false);
    else
        decompose_lines(&args.jobs[1], block, TRANSPOSED_1, PAIRS != 0);
#endif
}
