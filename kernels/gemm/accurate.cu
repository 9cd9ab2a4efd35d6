/* SPDX-License-Identifier: Apache-2.0
 *
 * FP32 products on the f16 tensor cores of sm_90a, within the error bound of FP32 sums
 * (docs/accuracy.md). gemm/decompose.cu has made two words of f16 of each element, hi and lo, and a
 * product is 2^-(sA + sB) * (hi*hi + 2^-11 * (hi*lo + lo*hi)), with the scales of the row of op(A)
 * and of the column of op(B).
 *
 *   tiles         As in gemm/wgmma.cu: left is op(A), right is op(B), both K-major. A stage holds
 *                 one word of both tiles, BK deep: first lo, then hi, so that the stages of a step
 *                 of K follow each other in the ring.
 *   two phases    The tensor cores truncate what they add to a large sum. Each slab of SLAB steps
 *                 is therefore added up from zero, in two phases. First hi*lo + lo*hi: FFMA adds it
 *                 to the FP32 sum in registers with the factor 2^-11. Then hi*hi, which is added as
 *                 it is. While one consumer adds, the others multiply: they take turns to issue
 *                 their phases. Without turns they wait for the same stages, multiply together and
 *                 add together; some blocks are then slower than others, so that the tiles that
 *                 blocks have in common have left L2 before the last one reads them (H200, tiles of
 *                 128x192 at 16384 cubed: 172 GB read from memory instead of 61, and 47 ms instead
 *                 of 38).
 *   exact tiles   A tile is computed by FFMA from the operands themselves if one of its lines has
 *                 an Inf or a NaN, or if a list overflows. The tiles of a cluster are either all
 *                 exact or none, because they share copies. A consumer also computes its 64 rows by
 *                 FFMA if they have listed elements and one of their sums is Inf or NaN.
 *   lists         Elements that two words cannot represent are in lists. The products of these
 *                 elements are added to the unscaled sums, in the order of lines and k.
 *
 * The tensor maps are three-dimensional: K, lines, and the words of all matrices: hi and lo of the
 * first, hi and lo of the second, ... args.left_tables has the panels of left, then its exponents,
 * and args.right_tables those of right (lib/decompose_args.h).
 */
#define WGMMA_TYPE    TYPE_F16
#define LEFT_ALONG_K  1
#define RIGHT_ALONG_K 1
#define EXCHANGED     0

#include "lib/dynamic_shared.h"
#include "lib/launch_order.h"
#include "lib/shuffle.h"
#include "lib/wgmma_ring.h"
#include "lib/wgmma_store.h"
#include "lib/wgmma_turns.h"
#include "lib/wgmma_units.h"
#include "lib/words.h"

#ifndef A_ALONG_K
#define A_ALONG_K 1 /* op(A) is K-major in memory */
#endif
#ifndef B_ALONG_K
#define B_ALONG_K 0
#endif
#ifndef SLAB
#define SLAB 1 /* steps of K that the tensor cores accumulate before an FP32 addition */
#endif

#if M_STEPS != 1
#error "a consumer has 64 rows: the sum takes the registers of another accumulator"
#endif
#if 2 * SLAB > STAGES
#error "the stages of a slab are in the ring at once"
#endif
#if CONSUMERS < 2
#error "while one consumer adds, another one multiplies"
#endif
#if CLUSTER_COLUMNS > 1
#error "the blocks of a cluster have the same right panels"
#endif

/* Registers of a thread: what the block starts with, less what the producer gives back. */
#define PRODUCER_REGISTERS (CONSUMERS == 3 ? 32 : CLUSTER > 1 ? 40 : 24)
#define CONSUMER_REGISTERS (CONSUMERS == 3 ? 160 : CLUSTER > 1 ? 232 : 240)

enum { WARP_CHUNK = CHUNK_LINES * CHUNK_PITCH }; /* floats */

struct shared {
    unsigned char stages[STAGES][STAGE_BYTES]; /* left, then right */
    __align__(16) float chunks[CONSUMERS * 4][WARP_CHUNK];
    int exponents[CONSUMERS][BN]; /* of right; then elements of op(B) that listed ones meet */
    int orders[CONSUMERS][TGL_LISTED_MAX + 1]; /* of lists */
    struct ring ring;
    struct turns turns;
};

/* ---- Registers ------------------------------------------------------------------------------- */

/* Stops the compiler from keeping values that it has derived from x: while the consumers multiply,
 * the sums need nearly all registers. */
#ifdef TGL_SIM
#define FORGET(x) (void)0
#else
#define FORGET(x) asm volatile("" : "+r"(x))
#endif

/* ---- State of the operands ------------------------------------------------------------------- */

/* Of one problem of the batch. */
struct lines {
    const struct tgl_panel *left_panels, *right_panels;
    const int *left_exponents, *right_exponents;
};

static __device__ __forceinline__ struct lines lines_of(const struct tgl_gemm_args *args, int batch)
{
    const long long lefts = args->stride_a != 0 ? args->batch : 1;
    const long long rights = args->stride_b != 0 ? args->batch : 1;
    const long long left = (args->m + TGL_PANEL_LINES - 1) / TGL_PANEL_LINES; /* panels */
    const long long right = (args->n + TGL_PANEL_LINES - 1) / TGL_PANEL_LINES;
    const long long left_number = lefts > 1 ? batch : 0, right_number = rights > 1 ? batch : 0;
    struct lines lines;
    lines.left_panels = (const struct tgl_panel *)args->left_tables;
    lines.right_panels = (const struct tgl_panel *)args->right_tables;
    lines.left_exponents = (const int *)(lines.left_panels + lefts * left);
    lines.right_exponents = (const int *)(lines.right_panels + rights * right);
    lines.left_panels += left_number * left;
    lines.right_panels += right_number * right;
    lines.left_exponents += left_number * left * TGL_PANEL_LINES;
    lines.right_exponents += right_number * right * TGL_PANEL_LINES;
    return lines;
}

/* A flag next to the states of panels: one of them has a list. */
#define HAS_LISTS 4u

/* The combined state of the panels of lines [first, first + count), of `extent` lines in all.
 * TGL_PANEL_NOT_FINITE is also set for a list that overflows. */
static __device__ __forceinline__ unsigned states_of(const struct tgl_panel *panels, int first,
                                                     int count, int extent)
{
    const int end = extent - first < count ? extent : first + count;
    unsigned state = 0;
    for (int i = first / TGL_PANEL_LINES; i * TGL_PANEL_LINES < end; i++) {
        state |= panels[i].state;
        if (panels[i].count > 0) state |= HAS_LISTS;
        if (panels[i].count > TGL_LISTED_MAX) state |= TGL_PANEL_NOT_FINITE;
    }
    return state;
}

/* The states of all panels of a unit, of the tiles of the whole cluster. */
static __device__ __forceinline__ unsigned
state_of_unit(const struct tgl_gemm_args *args, const struct lines *lines, const struct unit *u)
{
    const int first = u->left - ROW_IN_CLUSTER * BM;
    if (u->steps == 0) return 0;
    return states_of(lines->left_panels, first, BM * CLUSTER_ROWS, args->m) |
           states_of(lines->right_panels, u->right, BN, args->n);
}

/* ---- Producer -------------------------------------------------------------------------------- */

/* By one thread: fills the stages of all units of the block. */
static __device__ __forceinline__ void produce(const struct tgl_gemm_args *args,
                                               const struct tgl_tensor_map *left_map,
                                               const struct tgl_tensor_map *right_map,
                                               struct shared *shared, int depth)
{
    const int units = (int)unit_count(args);
    struct source left = {left_map, BM, 0, 0}, right = {right_map, BN, 0, 0};
    struct place at = {0, 0};
    for (int i = (int)blockIdx.x / CLUSTER; i < units; i += (int)gridDim.x / CLUSTER) {
        const struct unit u = find_unit(args, i, depth);
        const struct lines lines = lines_of(args, u.batch);
        if (state_of_unit(args, &lines, &u) & TGL_PANEL_NOT_FINITE) continue;
        left.edge = u.left;
        right.edge = u.right;
        for (int word = 0; word < 2 * u.steps; word++) {
            const int is_lo = word % 2 == 0, p = word / 2 * BK;
            unsigned char *stage = shared->stages[at.stage];
            mbarrier *full = &shared->ring.full[at.stage];
            left.z = 2 * (args->stride_a != 0 ? u.batch : 0) + is_lo;
            right.z = 2 * (args->stride_b != 0 ? u.batch : 0) + is_lo;
            mbarrier_wait(&shared->ring.empty[at.stage], at.parity ^ 1);
            mbarrier_arrive_and_expect(full, STAGE_BYTES);
            load_left(stage, &left, p, full);
            load_right(stage + LEFT_BYTES, &right, p, full);
            advance(&at);
        }
    }
}

/* ---- Consumers: the main loop ---------------------------------------------------------------- */

/* A consumer's position in the ring, and the parity of its next turn. */
struct progress {
    struct place at;
    unsigned turn;
};

/* The left tile of a stage, of consumer 0. The descriptors of all other tiles of the stage differ
 * by a constant. The compiler computes them in uniform registers, because it can prove that this
 * one is equal in all lanes (lib/shuffle.h). */
static __device__ __forceinline__ wgmma_tile tile_of_stage(struct shared *shared, int stage)
{
    const wgmma_tile first = tile_of(shared->stages[0], 1, BM);
    const unsigned low = uniform((unsigned)moved_tile(first, (unsigned)stage * STAGE_BYTES));
    return (first & 0xffffffff00000000ull) | low;
}

static __device__ __forceinline__ wgmma_tile left_tile(wgmma_tile stage, int group)
{
    return moved_tile(stage, (unsigned)(group * WM * 128));
}

static __device__ __forceinline__ wgmma_tile right_tile(wgmma_tile stage)
{
    return moved_tile(stage, LEFT_BYTES);
}

/* A group of wgmmas: acc := left * right, added to acc unless is_first. */
static __device__ __forceinline__ void multiply_hi(float *acc, wgmma_tile left, wgmma_tile right,
                                                   bool is_first)
{
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < K_STEPS; k++)
        wgmma(acc, moved_tile(left, k * K_STEP(1, BM)), moved_tile(right, k * K_STEP(1, BN)),
              k > 0 || !is_first);
    wgmma_commit();
}

static __device__ __forceinline__ void multiply_cross(float *acc, wgmma_tile left_hi,
                                                      wgmma_tile left_lo, wgmma_tile right_hi,
                                                      wgmma_tile right_lo, bool is_first)
{
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < K_STEPS; k++) {
        const int step = k * K_STEP(1, BM);
        wgmma(acc, moved_tile(left_hi, step), moved_tile(right_lo, step), k > 0 || !is_first);
        wgmma(acc, moved_tile(left_lo, step), moved_tile(right_hi, step), 1);
    }
    wgmma_commit();
}

/* acc := hi*lo + lo*hi of `steps` steps. Releases the stages of lo. */
static __device__ __forceinline__ void cross_phase(float *acc, struct shared *shared, int steps,
                                                   int group, struct place at)
{
    int before = 0; /* the stage of lo in the step before */
#pragma unroll
    for (int i = 0; i < SLAB; i++) {
        if (i > 0 && i >= steps) break;
        const int lo = at.stage;
        const wgmma_tile lo_tile = tile_of_stage(shared, lo);
        mbarrier_wait(&shared->ring.full[lo], at.parity);
        advance(&at);
        const wgmma_tile hi_tile = tile_of_stage(shared, at.stage);
        mbarrier_wait(&shared->ring.full[at.stage], at.parity);
        multiply_cross(acc, left_tile(hi_tile, group), left_tile(lo_tile, group),
                       right_tile(hi_tile), right_tile(lo_tile), i == 0);
        if (i > 0) {
            WGMMA_WAIT(acc, 1);
            release(&shared->ring, before);
        }
        before = lo;
        advance(&at);
    }
    pass_turn(&shared->turns, group);
    WGMMA_WAIT(acc, 0);
    WGMMA_HOLD(acc);
    release(&shared->ring, before);
}

/* acc := hi*hi of `steps` steps. Releases the stages of hi, and moves past the slab. */
static __device__ __forceinline__ void hi_phase(float *acc, struct shared *shared, int steps,
                                                int group, struct place *at)
{
    int before = 0;
#pragma unroll
    for (int i = 0; i < SLAB; i++) {
        if (i > 0 && i >= steps) break;
        advance(at);
        const wgmma_tile tile = tile_of_stage(shared, at->stage);
        multiply_hi(acc, left_tile(tile, group), right_tile(tile), i == 0);
        if (i > 0) {
            WGMMA_WAIT(acc, 1);
            release(&shared->ring, before);
        }
        before = at->stage;
        advance(at);
    }
    pass_turn(&shared->turns, group);
    WGMMA_WAIT(acc, 0);
    WGMMA_HOLD(acc);
    release(&shared->ring, before);
}

/* sum += acc * factor, rounded to nearest. The tensor cores would truncate. */
static __device__ __forceinline__ void promote(float *sum, const float *acc, const float factor)
{
#pragma unroll
    for (int i = 0; i < ACC; i++)
        sum[i] = fmaf(acc[i], factor, sum[i]);
}

/* sum := the scaled sums of a unit. */
static __device__ __forceinline__ void multiply(float *sum, struct shared *shared, int all_steps,
                                                int group, struct progress *progress)
{
    float acc[ACC];
#pragma unroll
    for (int i = 0; i < ACC; i++)
        sum[i] = 0.0f;
    for (int step = 0; step < all_steps; step += SLAB) {
        const int steps = SLAB == 1 || all_steps - step < SLAB ? all_steps - step : SLAB;
        take_turn(&shared->turns, group, &progress->turn);
        cross_phase(acc, shared, SLAB == 1 ? 1 : steps, group, progress->at);
        promote(sum, acc, 1.0f / (1 << TGL_WORD_EXPONENT));
        take_turn(&shared->turns, group, &progress->turn);
        hi_phase(acc, shared, SLAB == 1 ? 1 : steps, group, &progress->at);
        promote(sum, acc, 1.0f);
    }
}

/* ---- Consumers: from scaled sums to sums ----------------------------------------------------- */

/* The threads of a consumer wait for each other. */
static __device__ __forceinline__ void consumer_barrier(int group)
{
    named_barrier(2 + group, 128);
}

/* Where a thread's sums are: sum[i] belongs to row `row` + i / 2 % 2 * 8 of the tile, and to column
 * `col` + i / 4 * 8 + i % 2 (lib/wgmma.h). */
struct fragment {
    int row, col;
};

static __device__ __forceinline__ struct fragment fragment_of(int group)
{
    int thread = (int)threadIdx.x % 128;
    struct fragment f;
    FORGET(thread);
    f.row = group * WM + thread / 32 * 16 + thread % 32 / 4;
    f.col = thread % 4 * 2;
    return f;
}

static __device__ __forceinline__ int at_most(int x, int most)
{
    return x < most ? x : most;
}

/* A sum is 0, or between 2^-59 (2^-24 squared, times 2^-11) and 2^61 (2^15 squared, times a k below
 * 2^31). With |s| of up to 60, both products are therefore normal numbers or only the last one is
 * rounded. With any s, the first factor is as far from 1 as that allows, down to 2^-67; and where
 * the second one would be below 2^-145, the result is less than half of the least denormal number.
 */
static __device__ __forceinline__ float unscaled(float sum, int s, const bool is_wide)
{
    if (!is_wide) return sum;
    const int e = -s, first = e < -67 ? -67 : at_most(e, 113);
    const int second = e - first < -145 ? -145 : e - first;
    return sum * power_of_two(first) * any_power_of_two(second);
}

static __device__ __forceinline__ void unscale(float *sum, const struct tgl_gemm_args *args,
                                               const struct lines *lines, const struct unit *u,
                                               int group, int *exponents, bool is_wide)
{
    const struct fragment f = fragment_of(group);
    const int own[2] = {lines->left_exponents[at_most(u->left + f.row, args->m - 1)],
                        lines->left_exponents[at_most(u->left + f.row + 8, args->m - 1)]};
    consumer_barrier(group); /* the exponents of the unit before have been read */
    for (int i = (int)threadIdx.x % 128; i < BN; i += 128)
        exponents[i] = lines->right_exponents[at_most(u->right + i, args->n - 1)];
    consumer_barrier(group);
    if (is_wide) {
#pragma unroll
        for (int i = 0; i < ACC; i++)
            sum[i] = unscaled(sum[i], own[i / 2 % 2] + exponents[f.col + i / 4 * 8 + i % 2], true);
        return;
    }
    const float rows[2] = {power_of_two(-own[0]), power_of_two(-own[1])};
#pragma unroll
    for (int i = 0; i < ACC; i += 4) {
        const int2 s = *(const int2 *)&exponents[f.col + i / 4 * 8];
        const float columns[2] = {power_of_two(-s.x), power_of_two(-s.y)};
#pragma unroll
        for (int j = 0; j < 4; j++)
            sum[i + j] = sum[i + j] * rows[j / 2] * columns[j % 2];
    }
}

/* ---- Consumers: listed elements -------------------------------------------------------------- */

static __device__ __forceinline__ float element_of_a(const struct tgl_gemm_args *args,
                                                     const float *A, int row, int p)
{
    return A[A_ALONG_K ? row * args->lda + p : p * args->lda + row];
}

static __device__ __forceinline__ float element_of_b(const struct tgl_gemm_args *args,
                                                     const float *B, int p, int col)
{
    return B[B_ALONG_K ? col * args->ldb + p : p * args->ldb + col];
}

/* order[i] := the number of a list's i-th element, in the order of lines and k. */
static __device__ __forceinline__ void sort_list(int *order, const struct tgl_panel *panel,
                                                 int group)
{
    const int own = (int)threadIdx.x % 128, count = (int)panel->count;
    consumer_barrier(group); /* the order before has been read */
    if (own < count) {
        const int line = panel->listed[own].line, k = panel->listed[own].k;
        int before = 0;
        for (int i = 0; i < count; i++) {
            const int other = panel->listed[i].line;
            before += other < line || (other == line && panel->listed[i].k < k);
        }
        order[before] = own;
    }
    consumer_barrier(group);
}

/* Adds the products of listed elements of op(A). The consumer's rows are one panel. met: BN floats
 * of shared memory for the row of op(B) that is multiplied by an element. */
static __device__ __forceinline__ void
add_listed_of_left(float *sum, const struct tgl_gemm_args *args, const struct tgl_panel *panel,
                   const struct unit *u, int group, float *met, int *order)
{
    const float *B = B_OF(args, u->batch);
    const struct fragment f = fragment_of(group);
    sort_list(order, panel, group);
#pragma unroll 1
    for (int n = 0; n < (int)panel->count; n++) {
        const struct tgl_listed *x = &panel->listed[order[n]];
        consumer_barrier(group); /* what the element before met has been read */
        for (int i = (int)threadIdx.x % 128; i < BN; i += 128)
            met[i] = element_of_b(args, B, x->k, at_most(u->right + i, args->n - 1));
        consumer_barrier(group);
        const int line = x->line + group * WM - f.row; /* 0 or 8: the row is the thread's */
        if (line != 0 && line != 8) continue;
#pragma unroll
        for (int i = 0; i < ACC; i++)
            if (i / 2 % 2 == line / 8)
                sum[i] = fmaf(x->value, met[f.col + i / 4 * 8 + i % 2], sum[i]);
    }
}

/* Adds the products of listed elements of op(B) in a panel. Products with elements of op(A) that
 * are listed themselves have already been added. */
static __device__ __forceinline__ void
add_listed_of_right(float *sum, const struct tgl_gemm_args *args, const struct tgl_panel *panel,
                    const int *left_exponents, int first_column, const struct unit *u, int group,
                    int *order)
{
    const float *A = A_OF(args, u->batch);
    const struct fragment f = fragment_of(group);
    sort_list(order, panel, group);
#pragma unroll 1
    for (int n = 0; n < (int)panel->count; n++) {
        const struct tgl_listed *x = &panel->listed[order[n]];
        const int col = first_column + x->line - u->right;
        if (col < 0 || col >= BN || col % 8 / 2 * 2 != f.col) continue;
        float met[2]; /* in the thread's two rows */
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int row = at_most(u->left + f.row + 8 * i, args->m - 1);
            const struct scale scale = scale_of(left_exponents[row]);
            met[i] = element_of_a(args, A, row, x->k);
            if (is_below_words(met[i], scaled(met[i], scale))) met[i] = 0.0f;
        }
#pragma unroll
        for (int i = 0; i < ACC; i++)
            if (i / 4 == col / 8 && i % 2 == col % 2)
                sum[i] = fmaf(met[i / 2 % 2], x->value, sum[i]);
    }
}

static __device__ __forceinline__ void add_listed(float *sum, const struct tgl_gemm_args *args,
                                                  const struct lines *lines, const struct unit *u,
                                                  int group, struct shared *shared)
{
    const int first = u->left + group * WM, end = at_most(u->right + BN, args->n);
    int *order = shared->orders[group];
    if (first < args->m)
        add_listed_of_left(sum, args, &lines->left_panels[first / TGL_PANEL_LINES], u, group,
                           (float *)shared->exponents[group], order);
#pragma unroll 1
    for (int p = u->right / TGL_PANEL_LINES; p * TGL_PANEL_LINES < end; p++)
        add_listed_of_right(sum, args, &lines->right_panels[p], lines->left_exponents,
                            p * TGL_PANEL_LINES, u, group, order);
}

/* ---- Consumers: exact tiles ------------------------------------------------------------------ */

/* Depth of the tiles of exact sums: 64 rows of op(A) and BN columns of op(B) must fit into the
 * chunks of a consumer. */
#define EXACT_K 4
#if EXACT_K * (64 + BN) > 4 * 16 * 40
#error "the chunks of a consumer are too small"
#endif

/* Elements that each thread loads: of op(A), then of op(B). */
#define EXACT_LEFTS  (EXACT_K * 64 / 128)
#define EXACT_RIGHTS (EXACT_K * BN / 128)

/* Where element number i of a thread lies in a tile: its line, and its k. */
static __device__ __forceinline__ struct fragment place_of(int thread, int i, const int edge,
                                                           const bool is_along_k)
{
    const int at = i * 128 + thread;
    struct fragment f;
    f.row = is_along_k ? at / EXACT_K : at % edge;
    f.col = is_along_k ? at % EXACT_K : at / edge;
    return f;
}

/* The thread's elements from depth `first` on; zeros outside of the matrices. */
static __device__ __forceinline__ void bring(float *to, const struct tgl_gemm_args *args,
                                             const float *A, const float *B, const struct unit *u,
                                             int group, int first, int depth)
{
    int thread = (int)threadIdx.x % 128;
    FORGET(thread);
#pragma unroll
    for (int i = 0; i < EXACT_LEFTS; i++) {
        const struct fragment f = place_of(thread, i, 64, A_ALONG_K);
        const int row = u->left + group * WM + f.row, p = first + f.col;
        to[i] = row < args->m && p < depth ? element_of_a(args, A, row, p) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < EXACT_RIGHTS; i++) {
        const struct fragment f = place_of(thread, i, BN, B_ALONG_K);
        const int col = u->right + f.row, p = first + f.col;
        to[EXACT_LEFTS + i] = col < args->n && p < depth ? element_of_b(args, B, p, col) : 0.0f;
    }
}

static __device__ __forceinline__ void put(float *left, float *right, const float *from)
{
    int thread = (int)threadIdx.x % 128;
    FORGET(thread);
#pragma unroll
    for (int i = 0; i < EXACT_LEFTS; i++) {
        const struct fragment f = place_of(thread, i, 64, A_ALONG_K);
        left[f.col * 64 + f.row] = from[i];
    }
#pragma unroll
    for (int i = 0; i < EXACT_RIGHTS; i++) {
        const struct fragment f = place_of(thread, i, BN, B_ALONG_K);
        right[f.col * BN + f.row] = from[EXACT_LEFTS + i];
    }
}

/* sum := the sums of a unit by FFMA. room: the chunks of the consumer's warps. */
static __device__ __forceinline__ void multiply_exactly(float *sum,
                                                        const struct tgl_gemm_args *args,
                                                        const struct unit *u, int group, int depth,
                                                        float *room)
{
    const float *A = A_OF(args, u->batch), *B = B_OF(args, u->batch);
    const struct fragment f = fragment_of(group);
    float *left = room, *right = room + EXACT_K * 64;
    float next[EXACT_LEFTS + EXACT_RIGHTS];
#pragma unroll
    for (int i = 0; i < ACC; i++)
        sum[i] = 0.0f;
    bring(next, args, A, B, u, group, 0, depth);
#pragma unroll 1
    for (int first = 0; first < depth; first += EXACT_K) {
        consumer_barrier(group); /* what is in the room has been read */
        put(left, right, next);
        consumer_barrier(group);
        bring(next, args, A, B, u, group, first + EXACT_K, depth);
#pragma unroll 1
        for (int k = 0; k < at_most(EXACT_K, depth - first); k++) {
            const float *a = &left[k * 64 + f.row - group * WM];
            const float rows[2] = {a[0], a[8]};
#pragma unroll
            for (int i = 0; i < ACC; i += 4) {
                const float2 b = *(const float2 *)&right[k * BN + f.col + i / 4 * 8];
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sum[i + j] = fmaf(rows[j / 2], j % 2 == 0 ? b.x : b.y, sum[i + j]);
            }
        }
    }
    consumer_barrier(group);
}

/* Whether a sum of the consumer's threads is Inf or NaN. votes: 4 words of shared memory. */
static __device__ __forceinline__ bool has_overflowed(const float *sum, int *votes, int group)
{
    const float most = 3.40282347e38f; /* FLT_MAX */
    int own = 0;
#pragma unroll
    for (int i = 0; i < ACC; i++)
        own |= !(fabsf(sum[i]) <= most);
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2)
        own |= shuffle_xor(own, lanes);
    consumer_barrier(group); /* what was in `votes` has been read */
    if (threadIdx.x % 32 == 0) votes[threadIdx.x / 32 % 4] = own;
    consumer_barrier(group);
    return (votes[0] | votes[1] | votes[2] | votes[3]) != 0;
}

/* ---- Consumers ------------------------------------------------------------------------------- */

/* sum := the sums of a unit, as FP32 numbers. The products of listed elements are added last, when
 * the sum of the others may have overflowed, although the whole sum has not: FFMA decides. */
static __device__ __forceinline__ void compute_unit(float *sum, const struct tgl_gemm_args *args,
                                                    struct shared *shared, int number, int group,
                                                    int depth, struct progress *progress)
{
    struct unit u = find_unit(args, number, depth);
    struct lines lines = lines_of(args, u.batch);
    const unsigned state = state_of_unit(args, &lines, &u);
    bool is_exact = (state & TGL_PANEL_NOT_FINITE) != 0;
    if (!is_exact) {
        multiply(sum, shared, u.steps, group, progress);
        if (u.steps == 0) return;
        FORGET(number);
        u = find_unit(args, number, depth);
        lines = lines_of(args, u.batch);
        unscale(sum, args, &lines, &u, group, shared->exponents[group],
                (state & TGL_PANEL_WIDE) != 0);
        if (state & HAS_LISTS) {
            add_listed(sum, args, &lines, &u, group, shared);
            is_exact = has_overflowed(sum, shared->orders[group], group);
        }
    }
    if (is_exact) multiply_exactly(sum, args, &u, group, depth, shared->chunks[group * 4]);
}

static __device__ __forceinline__ void consume(const struct tgl_gemm_args *args,
                                               struct shared *shared, int group, int depth)
{
    const int units = (int)unit_count(args);
    struct progress progress = {{0, 0}, first_turn(group)};
    for (int i = (int)blockIdx.x / CLUSTER; i < units; i += (int)gridDim.x / CLUSTER) {
        float sum[1][ACC];
        compute_unit(sum[0], args, shared, i, group, depth, &progress);
        FORGET(i);
        const struct unit u = find_unit(args, i, depth);
        store_sums(args, sum, (char *)shared->chunks[group * 4], 0, &u, group);
    }
}

/* ---- The kernel ------------------------------------------------------------------------------ */

__global__ void __launch_bounds__(THREADS, 1)
    gemm_accurate(const struct tgl_gemm_args args,
                  const __grid_constant__ struct tgl_tensor_map left_map,
                  const __grid_constant__ struct tgl_tensor_map right_map)
{
    DYNAMIC_SHARED_ALIGNED(1024, struct shared, shared, 1);
    const int group = uniform((int)threadIdx.x / 128); /* the warpgroup */
    if (threadIdx.x == 0) make_turns(&shared->turns);
    make_barriers(&shared->ring);
    wait_for_earlier_launches();
    if (args.overlaps) let_later_launches_start();
    const int depth = DEPTH_OF(&args);
    if (group == CONSUMERS) {
        REGISTERS_DECREASE(PRODUCER_REGISTERS);
        if (threadIdx.x == CONSUMER_THREADS) produce(&args, &left_map, &right_map, shared, depth);
    } else {
        REGISTERS_INCREASE(CONSUMER_REGISTERS);
        consume(&args, shared, group, depth);
    }
#if CLUSTER > 1
    __syncwarp();
    cluster_sync(); /* the other block may still arrive at this one's barriers */
#endif
}
