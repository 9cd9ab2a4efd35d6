/* SPDX-License-Identifier: Apache-2.0
 *
 * A pre-pass: FP32 matrices become two words of f16 for each element (lib/decompose_args.h),
 * K-major with lines on 16 bytes, as TMA reads them. The one or two jobs of a launch are matrices
 * of any alignment; TRANSPOSED: their lines are columns in memory.
 *
 *   decompose_maxima   The largest |x| of each part of a line, as a bit pattern: patterns are
 *                      ordered as the numbers, Inf and NaN last. Also empties the panels' lists.
 *   decompose_split    The scale of each line, the words, and for each panel of lines its state and
 *                      its list of elements that two words do not hold.
 *
 * Elements are listed in no order, but the reader sorts the list; whether it is full depends only
 * on the matrix.
 */
#include "lib/half.h"
#include "lib/launch_order.h"
#include "lib/words.h"

#ifndef TRANSPOSED_0
#define TRANSPOSED_0 0 /* of the first job */
#endif
#ifndef TRANSPOSED_1
#define TRANSPOSED_1 0 /* of the second */
#endif

#define THREADS     256
#define WARPS       (THREADS / 32)
#define INFINITY_IS 0x7f800000u /* the pattern of Inf; those of NaNs are above */

typedef struct tgl_decompose_job job_t;

/* ---- Maxima ---------------------------------------------------------------------------------- */

static __device__ __forceinline__ unsigned larger(unsigned x, unsigned y)
{
    return x > y ? x : y;
}

static __device__ __forceinline__ unsigned pattern(float x)
{
    return __float_as_uint(x) & 0x7fffffffu;
}

static __device__ __forceinline__ unsigned warp_maximum(unsigned x)
{
#pragma unroll
    for (int i = 16; i > 0; i /= 2)
        x = larger(x, __shfl_xor_sync(0xffffffffu, x, i));
    return x;
}

static __device__ __forceinline__ void empty_panel(const job_t *job, int matrix, int panel)
{
    struct tgl_panel *p =
        &job->panels[(long long)matrix * (job->padded_lines / TGL_PANEL_LINES) + panel];
    p->state = 0;
    p->count = 0;
}

static __device__ __forceinline__ unsigned *maxima_of(const job_t *job, int matrix, int part)
{
    return job->maxima + ((long long)matrix * job->parts + part) * job->lines;
}

/* A warp's part of a line. */
static __device__ __forceinline__ void find_maxima(const job_t *job, const float *from, int matrix,
                                                   int part, int down)
{
    const int line = down * WARPS + (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int first = part * job->part;
    const int end = job->length - first < job->part ? job->length : first + job->part;
    if (line >= job->lines) return;
    if (part == 0 && line % TGL_PANEL_LINES == 0 && lane == 0)
        empty_panel(job, matrix, line / TGL_PANEL_LINES);
    const float *x = from + line * job->ld;
    unsigned most = 0;
    int p = first;
    if ((unsigned long long)(x + first) % 16 == 0) {
#pragma unroll 4
        for (; p + 128 <= end; p += 128) {
            const float4 v = *(const float4 *)&x[p + lane * 4];
            most = larger(most, larger(larger(pattern(v.x), pattern(v.y)),
                                       larger(pattern(v.z), pattern(v.w))));
        }
    }
#pragma unroll 4
    for (p += lane; p < end; p += 32)
        most = larger(most, pattern(x[p]));
    most = warp_maximum(most);
    if (lane == 0) maxima_of(job, matrix, part)[line] = most;
}

#if TRANSPOSED_0 || TRANSPOSED_1
#define MAXIMA_LINES 128

/* A block's part of MAXIMA_LINES lines, which are columns in memory. */
static __device__ __forceinline__ void find_column_maxima(const job_t *job, const float *from,
                                                          int matrix, int part, int down)
{
    __shared__ unsigned upper[MAXIMA_LINES];
    const int x = (int)threadIdx.x % MAXIMA_LINES, y = (int)threadIdx.x / MAXIMA_LINES;
    const int line = down * MAXIMA_LINES + x;
    const int first = part * job->part;
    const int end = job->length - first < job->part ? job->length : first + job->part;
    unsigned most = 0;
    if (line < job->lines) {
#pragma unroll 8
        for (int p = first + y; p < end; p += THREADS / MAXIMA_LINES)
            most = larger(most, pattern(from[p * job->ld + line]));
        if (part == 0 && line % TGL_PANEL_LINES == 0 && y == 0)
            empty_panel(job, matrix, line / TGL_PANEL_LINES);
    }
    if (y == 1) upper[x] = most;
    __syncthreads();
    if (y == 0 && line < job->lines) maxima_of(job, matrix, part)[line] = larger(most, upper[x]);
}
#endif

static __device__ __forceinline__ void do_maxima(const job_t *job, int block, const bool transposed)
{
    const int in_matrix = job->parts * job->maxima_down;
    const int matrix = block / in_matrix, in_it = block - matrix * in_matrix;
    const int part = in_it / job->maxima_down, down = in_it - part * job->maxima_down;
    const float *from = job->from + matrix * job->stride;
#if TRANSPOSED_0 || TRANSPOSED_1
    if (transposed)
        find_column_maxima(job, from, matrix, part, down);
    else
#endif
        find_maxima(job, from, matrix, part, down);
    (void)transposed;
}

__global__ void __launch_bounds__(THREADS) decompose_maxima(const struct tgl_decompose_args args)
{
    wait_for_earlier_launches();
    let_later_launches_start();
    if (args.alpha_at && *args.alpha_at == 0) return;
    const int block = (int)blockIdx.x;
    if (block < args.first_maxima)
        do_maxima(&args.jobs[0], block, TRANSPOSED_0);
    else
        do_maxima(&args.jobs[1], block - args.first_maxima, TRANSPOSED_1);
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* A matrix and its results. */
struct matrix {
    const float *from;
    unsigned short *hi, *lo;
    const unsigned *maxima;
    int *exponents;
    struct tgl_panel *panels;
};

static __device__ __forceinline__ struct matrix matrix_of(const job_t *job, int number)
{
    const long long words = job->lines * job->pitch;
    struct matrix m;
    m.from = job->from + number * job->stride;
    m.hi = job->to + number * 2 * words;
    m.lo = m.hi + words;
    m.maxima = maxima_of(job, number, 0);
    m.exponents = job->exponents + (long long)number * job->padded_lines;
    m.panels = job->panels + (long long)number * (job->padded_lines / TGL_PANEL_LINES);
    return m;
}

/* s of a line whose largest element has this pattern; 0 of a line of zeros, or with Inf or NaN. */
static __device__ __forceinline__ int exponent_of(unsigned most)
{
    if (most == 0 || most >= INFINITY_IS) return 0;
    /* Of a denormal number, the place of its first bit; else the exponent field. */
    const int exponent = most >> 23 ? (int)(most >> 23) - 127 : 31 - __clz((int)most) - 149;
    return TGL_TOP_EXPONENT - exponent;
}

/* By one thread for each line: what the reader of the words has to know of it. */
static __device__ __forceinline__ void record_line(const struct matrix *m, int line, unsigned most)
{
    const int s = exponent_of(most);
    const unsigned state =
        (most >= INFINITY_IS ? TGL_PANEL_NOT_FINITE : 0) |
        (s > TGL_MODEST_EXPONENT || s < -TGL_MODEST_EXPONENT ? TGL_PANEL_WIDE : 0);
    m->exponents[line] = s;
    if (state) atomicOr(&m->panels[line / TGL_PANEL_LINES].state, state);
}

/* The words of eight elements. Bit i of `below`: two words cannot represent element i. */
struct eight {
    uint4 hi, lo;
    unsigned below;
};

static __device__ __forceinline__ struct eight split_eight(const float *x, struct scale scale)
{
    struct eight to;
    unsigned hi[4], lo[4];
    to.below = 0;
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
        float y[2], rest[2];
#pragma unroll
        for (int j = 0; j < 2; j++) {
            y[j] = scaled(x[i + j], scale);
            const bool below = is_below_words(x[i + j], y[j]);
            to.below |= (unsigned)below << (i + j);
            if (below) y[j] = 0.0f;
        }
        hi[i / 2] = floats_to_f16(y[0], y[1]);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const struct f16 word = {(unsigned short)(hi[i / 2] >> 16 * j)};
            rest[j] = (y[j] - f16_to_float(word)) * (float)(1 << TGL_WORD_EXPONENT);
        }
        lo[i / 2] = floats_to_f16(rest[0], rest[1]);
    }
    to.hi = make_uint4(hi[0], hi[1], hi[2], hi[3]);
    to.lo = make_uint4(lo[0], lo[1], lo[2], lo[3]);
    return to;
}

/* Adds elements to the list of the panel; all lanes of a warp call it. Bit i of `below`: the lane
 * adds its element i. With j = i % 8 + i / 8 * step, element i has k + j as its index along K, and
 * is from[j * distance]. */
static __device__ __forceinline__ void list_below(struct tgl_panel *panel, unsigned below, int line,
                                                  int k, int step, const float *from,
                                                  long long distance)
{
    const int lane = (int)threadIdx.x % 32;
    int before = 0; /* elements of lower lanes, and this one's */
    for (unsigned bits = below; bits; bits &= bits - 1)
        before++;
    const int own = before;
#pragma unroll
    for (int i = 1; i < 32; i *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, before, i);
        if (lane >= i) before += other;
    }
    const int all = __shfl_sync(0xffffffffu, before, 31);
    if (all == 0) return;
    unsigned at = 0;
    if (lane == 0) at = atomicAdd(&panel->count, (unsigned)all);
    at = __shfl_sync(0xffffffffu, at, 0) + (unsigned)(before - own);
    for (int i = 0; i < 32 && at < TGL_LISTED_MAX; i++) {
        if (!(below >> i & 1)) continue;
        const int further = i % 8 + i / 8 * step;
        panel->listed[at].line = line % TGL_PANEL_LINES;
        panel->listed[at].k = k + further;
        panel->listed[at].value = from[further * distance];
        at++;
    }
}

static __device__ __forceinline__ void store_eight(const struct matrix *m, long long at,
                                                   const struct eight *words)
{
    *(uint4 *)&m->hi[at] = words->hi;
    *(uint4 *)&m->lo[at] = words->lo;
}

/* ---- Words of lines -------------------------------------------------------------------------- */

#define PER_LANE 4                /* times eight elements */
#define SEGMENT  (256 * PER_LANE) /* elements of a line that a warp takes */

/* Eight elements from number p on; zeros past the end. */
static __device__ __forceinline__ void load_eight(float *x, const float *line, int p, int length)
{
    if (p + 8 <= length && (unsigned long long)(line + p) % 16 == 0) {
        const float4 low = *(const float4 *)&line[p], high = *(const float4 *)&line[p + 4];
        x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
        x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        x[i] = p + i < length ? line[p + i] : 0.0f;
}

/* A warp's segment of a line. */
static __device__ __forceinline__ void split_line(const job_t *job, const struct matrix *m,
                                                  int along, int down)
{
    const int line = down * WARPS + (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    if (line >= job->lines) return;
    const float *from = m->from + line * job->ld;
    const int first = along * SEGMENT + lane * 8;
    float x[PER_LANE][8];
#pragma unroll
    for (int i = 0; i < PER_LANE; i++)
        load_eight(x[i], from, first + i * 256, job->length);
    const unsigned most =
        warp_maximum(lane < job->parts ? m->maxima[(long long)lane * job->lines + line] : 0);
    if (along == 0 && lane == 0) record_line(m, line, most);
    const struct scale scale = scale_of(exponent_of(most));
    unsigned below = 0;
#pragma unroll
    for (int i = 0; i < PER_LANE; i++) {
        const struct eight words = split_eight(x[i], scale);
        below |= words.below << 8 * i;
        if (first + i * 256 < job->length)
            store_eight(m, line * job->pitch + first + i * 256, &words);
    }
    if (most < INFINITY_IS)
        list_below(&m->panels[line / TGL_PANEL_LINES], below, line, first, 256, from + first, 1);
}

/* ---- Words of columns ------------------------------------------------------------------------ */

#if TRANSPOSED_0 || TRANSPOSED_1
#define TILE 64 /* lines, and elements of a line, that a block takes at a time: a panel */

#if TILE != 64 || THREADS != 4 * TILE
#error "the threads of a tile"
#endif

/* A block's tiles: 64 lines, which are columns in memory, and `span` elements of each. */
static __device__ __forceinline__ void split_columns(const job_t *job, const struct matrix *m,
                                                     int along, int down)
{
    __shared__ float tile[TILE][TILE + 1];
    __shared__ unsigned maxima[4][TILE];
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    const int line = down * TILE + x;
    unsigned most = 0;
    if (line < job->lines)
        for (int i = y; i < job->parts; i += 4)
            most = larger(most, m->maxima[(long long)i * job->lines + line]);
    maxima[y][x] = most;
    const int end =
        job->length - along * job->span < job->span ? job->length : (along + 1) * job->span;
    for (int p = along * job->span; p < end; p += TILE) {
        __syncthreads(); /* the tile before has been read */
#pragma unroll
        for (int i = 0; i < TILE; i += 4)
            tile[y + i][x] = line < job->lines && p + y + i < job->length
                                 ? m->from[(p + y + i) * job->ld + line]
                                 : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 2; i++) {
            /* Eight threads write 128 bytes of a line. */
            const int l = (int)threadIdx.x / 8 + 32 * i, k = (int)threadIdx.x % 8 * 8;
            const unsigned all =
                larger(larger(maxima[0][l], maxima[1][l]), larger(maxima[2][l], maxima[3][l]));
            const struct scale scale = scale_of(exponent_of(all));
            const int own = down * TILE + l;
            const bool is_inside = own < job->lines && p + k < job->length;
            float v[8];
#pragma unroll
            for (int j = 0; j < 8; j++)
                v[j] = tile[k + j][l];
            const struct eight words = split_eight(v, scale);
            if (is_inside) store_eight(m, own * job->pitch + p + k, &words);
            if (p == 0 && k == 0 && own < job->lines) record_line(m, own, all);
            list_below(&m->panels[down], all < INFINITY_IS ? words.below : 0, own, p + k, 0,
                       m->from + (p + k) * job->ld + own, job->ld);
        }
    }
}
#endif

static __device__ __forceinline__ void do_split(const job_t *job, int block, const bool transposed)
{
    const int in_matrix = job->split_along * job->split_down;
    const int number = block / in_matrix, in_it = block - number * in_matrix;
    const int down = in_it / job->split_along, along = in_it - down * job->split_along;
    const struct matrix m = matrix_of(job, number);
#if TRANSPOSED_0 || TRANSPOSED_1
    if (transposed)
        split_columns(job, &m, along, down);
    else
#endif
        split_line(job, &m, along, down);
    (void)transposed;
}

__global__ void __launch_bounds__(THREADS, 2) decompose_split(const struct tgl_decompose_args args)
{
    wait_for_earlier_launches();
    let_later_launches_start();
    if (args.alpha_at && *args.alpha_at == 0) return;
    const int block = (int)blockIdx.x;
    if (block < args.first_split)
        do_split(&args.jobs[0], block, TRANSPOSED_0);
    else
        do_split(&args.jobs[1], block - args.first_split, TRANSPOSED_1);
}
