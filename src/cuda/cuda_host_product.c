/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of matrices in host memory. D is divided into tiles, and K into slabs
 * (backend/host_product.h): a tile of D is the sum over all slabs of a tile of A times a tile of B.
 * The simplest form would be, for each tile of D: copy the tiles of A and B to the GPU, multiply,
 * copy the result back. This file adds two things.
 *
 * 1. Copies and arithmetic overlap. There are three streams: `in` copies tiles of A, B and C to the
 * GPU, `work` multiplies, `out` copies results back. Events order them:
 *
 *     work waits for `loaded`: the tiles of this product have arrived
 *     in waits for a slot's `used` before it overwrites the slot with another tile
 *     out waits for `computed`: the tile of D is complete
 *
 * A tile of D is delivered to the host's matrix after the next one has been enqueued.
 *
 * 2. Tiles of A and B stay on the GPU in slots, as many as there is memory for. A new tile replaces
 * the least recently used one.
 *
 * There are two buffers for tiles of D. The host waits for the copy from a buffer to end before it
 * enqueues the next work that writes to the buffer.
 */
#include "backend/host_product.h"
#include "base/integers.h"
#include "base/no_cancel.h"
#include "cuda/staging.h"

#include <stdlib.h>

enum { ALIGNMENT = TGL_WORKSPACE_ALIGNMENT }; /* bytes: alignment of all buffers in GPU memory */

/* The minimum number of slots: the GPU reads a tile of A and one of B while the next two tiles
 * arrive. */
enum { SLOTS_LEAST = 4 };

/* A tile of A or B on the GPU. */
typedef struct tile_slot {
    tgl_host_tile tile;
    bool is_b;
    uint64_t latest_use; /* 0: the slot is empty */
} tile_slot;

/* A tile of D on the GPU. `sum` is in the accumulation type, `other` in the type of C or D. */
typedef struct tile_result {
    char *sum, *other;
    tgl_host_tile to; /* the tile of the host's D */
    bool is_pending;  /* the tile is being computed or copied */
} tile_result;

typedef struct tiled_product {
    tgl_device *dev;
    const tgl_driver *driver;
    tgl_staging *staging;
    tgl_host_product *of;
    /* Bytes of GPU memory: for `sum` and for `other` of a tile of D; for a slot. */
    size_t sum_bytes, other_bytes, slot_bytes;
    int slot_count;
    char *workspace, *slots_at;
    tile_slot *slots; /* array of slot_count slots */
    uint64_t clock;   /* counts the uses of slots */
    bool has_loaded;  /* `in` has copies for which `work` does not wait yet */
    tile_result results[TGL_RESULTS];
    int next_result;
} tiled_product;

static tgl_status check(const tiled_product *p, CUresult result)
{
    return tgl_cuda_check(p->dev, result, "a product of host memory");
}

/* ---- Tiles of the host's matrices ------------------------------------------------------------ */

/* The tile of A, B, C or D (TGL_AT_A to TGL_AT_D) at this place, as it is stored in host memory.
 * slab: the number of the tile along K; ignored for C and D. */
static tgl_host_tile tile_of(const tgl_host_product *of, tgl_operand operand,
                             const tgl_tile_place *at, int64_t slab)
{
    const tgl_shape *s = of->shape;
    const int64_t m = tgl_tile_size(s->m, of->m, at->row);
    const int64_t n = tgl_tile_size(s->n, of->n, at->column);
    const int64_t k = tgl_tile_size(s->k, of->k, slab);
    const struct matrix {
        tgl_type type;
        int64_t ld, rows, columns;
    } matrices[] = {
        [TGL_AT_A] = {s->type_a, s->lda, s->trans_a ? k : m, s->trans_a ? m : k},
        [TGL_AT_B] = {s->type_b, s->ldb, s->trans_b ? n : k, s->trans_b ? k : n},
        [TGL_AT_C] = {s->type_c, s->ldc, m, n},
        [TGL_AT_D] = {s->type_d, s->ldd, m, n},
    };
    const struct matrix *x = &matrices[operand];
    const size_t element = tgl_type_size(x->type);
    return (tgl_host_tile){.at = tgl_tile_address(of, operand, at, slab),
                           .rows = x->rows,
                           .row_bytes = (size_t)x->columns * element,
                           .host_pitch = (size_t)x->ld * element,
                           .device_pitch = (size_t)tgl_tile_pitch(x->type, x->columns) * element};
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static size_t aligned(size_t bytes)
{
    return (size_t)tgl_round_up((int64_t)bytes, ALIGNMENT);
}

static size_t tile_bytes(tgl_type type, int64_t rows, int64_t columns)
{
    return aligned((size_t)(rows * tgl_tile_pitch(type, columns)) * tgl_type_size(type));
}

static size_t larger(size_t x, size_t y)
{
    return x > y ? x : y;
}

static void measure_tiles(tiled_product *p)
{
    const tgl_host_product *of = p->of;
    const tgl_shape *s = of->shape;
    const int64_t m = of->m, n = of->n, k = of->k;
    p->slot_bytes = larger(s->trans_a ? tile_bytes(s->type_a, k, m) : tile_bytes(s->type_a, m, k),
                           s->trans_b ? tile_bytes(s->type_b, n, k) : tile_bytes(s->type_b, k, n));
    p->sum_bytes = tile_bytes(s->type_accumulate, m, n);
    if (!tgl_shape_is_all(s, s->type_accumulate))
        p->other_bytes = larger(tile_bytes(s->type_c, m, n), tile_bytes(s->type_d, m, n));
}

/* The number of different tiles of A and B, at most TGL_SLOTS_MAX. */
static int64_t count_tiles(const tgl_host_product *of)
{
    const tgl_shape *s = of->shape;
    const int64_t limit = TGL_SLOTS_MAX;
    if (s->k == 0) return 0;
    int64_t a = of->slabs >= limit / of->rows ? limit : of->slabs * of->rows;
    int64_t b = of->slabs >= limit / of->columns ? limit : of->slabs * of->columns;
    if (s->pointers || s->stride_a != 0) a = s->batch >= limit / a ? limit : a * s->batch;
    if (s->pointers || s->stride_b != 0) b = s->batch >= limit / b ? limit : b * s->batch;
    return tgl_min64(a + b, limit);
}

/* Sets the number of slots: `tiles`, or as many as fit into three quarters of the free memory if
 * that is less, but at least SLOTS_LEAST if there are that many tiles. The rest of the memory is
 * left to other programs. fixed: bytes of GPU memory besides the slots. */
static tgl_status count_slots(tiled_product *p, size_t fixed, int64_t tiles)
{
    size_t free_bytes = 0, total = 0;
    if (tiles == 0) return TGL_OK;
    TGL_TRY(check(p, p->driver->cuMemGetInfo(&free_bytes, &total)));
    const size_t room = (free_bytes + p->staging->bytes) / 4 * 3;
    const int64_t fit = room > fixed ? (int64_t)((room - fixed) / p->slot_bytes) : 0;
    const int64_t least = tgl_min64(tiles, SLOTS_LEAST);
    p->slot_count = (int)(fit < least ? least : tgl_min64(fit, tiles));
    return TGL_OK;
}

/* Reserves the GPU memory. If another program has taken memory in the meantime, reduces the number
 * of slots. */
static tgl_status reserve(tiled_product *p, size_t fixed)
{
    for (;;) {
        const tgl_status status =
            tgl_staging_reserve(p->dev, fixed + (size_t)p->slot_count * p->slot_bytes);
        if (status != TGL_NO_MEMORY || p->slot_count <= SLOTS_LEAST) return status;
        p->slot_count = p->slot_count > 2 * SLOTS_LEAST ? p->slot_count / 2 : SLOTS_LEAST;
    }
}

/* Divides the reserved GPU memory into the workspace, the tiles of D, and the slots. */
static void divide_memory(tiled_product *p)
{
    char *at = p->staging->memory;
    p->workspace = at;
    at += aligned(p->of->workspace);
    for (int i = 0; i < TGL_RESULTS; i++, at += p->sum_bytes + p->other_bytes)
        p->results[i] = (tile_result){.sum = at, .other = at + p->sum_bytes};
    p->slots_at = at;
}

/* Gets all memory, streams and events of the product. */
static tgl_status prepare(tiled_product *p)
{
    measure_tiles(p);
    const size_t fixed = aligned(p->of->workspace) + TGL_RESULTS * (p->sum_bytes + p->other_bytes);
    TGL_TRY(count_slots(p, fixed, count_tiles(p->of)));
    TGL_TRY(reserve(p, fixed));
    divide_memory(p);
    p->slots = calloc((size_t)p->slot_count + 1, sizeof *p->slots);
    if (p->slots == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for the list of tiles");
    return tgl_staging_open(p->dev, larger(p->sum_bytes, p->other_bytes), p->slot_count);
}

/* ---- Slots ----------------------------------------------------------------------------------- */

static bool is_same_tile(const tgl_host_tile *x, const tgl_host_tile *y)
{
    return x->at == y->at && x->rows == y->rows && x->row_bytes == y->row_bytes;
}

/* The index of the slot that has this tile (*is_hit: true), else of the least recently used
 * slot. */
static int find_slot(const tiled_product *p, bool is_b, const tgl_host_tile *tile, bool *is_hit)
{
    int oldest = 0;
    for (int i = 0; i < p->slot_count; i++) {
        const tile_slot *s = &p->slots[i];
        *is_hit = s->latest_use > 0 && s->is_b == is_b && is_same_tile(&s->tile, tile);
        if (*is_hit) return i;
        if (s->latest_use < p->slots[oldest].latest_use) oldest = i;
    }
    return oldest;
}

/* Copies a tile of A or B into a slot, unless a slot has it. *at := the index of the slot. */
static tgl_status fetch(tiled_product *p, bool is_b, const tgl_host_tile *tile, int *at)
{
    bool is_hit = false;
    *at = find_slot(p, is_b, tile, &is_hit);
    tile_slot *slot = &p->slots[*at];
    if (!is_hit) {
        if (slot->latest_use > 0)
            TGL_TRY(
                check(p, p->driver->cuStreamWaitEvent(p->staging->in, p->staging->used[*at], 0)));
        *slot = (tile_slot){.tile = *tile, .is_b = is_b};
        TGL_TRY(tgl_staging_upload(p->dev, p->slots_at + (size_t)*at * p->slot_bytes, tile));
        p->has_loaded = true;
    }
    slot->latest_use = ++p->clock;
    return TGL_OK;
}

/* Makes the stream `work` wait for the copies that have been enqueued so far. */
static tgl_status wait_for_tiles(tiled_product *p)
{
    const tgl_staging *staging = p->staging;
    if (!p->has_loaded) return TGL_OK;
    p->has_loaded = false;
    CUresult result = p->driver->cuEventRecord(staging->loaded, staging->in);
    if (result == CUDA_SUCCESS)
        result = p->driver->cuStreamWaitEvent(staging->work, staging->loaded, 0);
    return check(p, result);
}

/* ---- A tile of D ----------------------------------------------------------------------------- */

/* The buffer that holds a tile of D with elements of this type: `sum` for the accumulation type,
 * else `other`. */
static char *result_at(const tiled_product *p, const tile_result *result, tgl_type type)
{
    return type == p->of->shape->type_accumulate ? result->sum : result->other;
}

/* The run that computes the product of one slab. The caller must set the operands A and B of the
 * run. */
static tgl_run run_of_slab(const tiled_product *p, const tile_result *result, int64_t slab)
{
    const tgl_host_product *of = p->of;
    char *d = result_at(p, result, tgl_slab_result(of, slab));
    const bool has_input = tgl_slab_has_input(of, slab);
    tgl_run run = {.alpha = of->run->alpha,
                   .beta = slab == 0 ? of->run->beta : 1,
                   .alpha_imag = of->run->alpha_imag,
                   .beta_imag = slab == 0 ? of->run->beta_imag : 0,
                   .has_product = of->run->has_product,
                   .workspace = p->workspace,
                   .workspace_bytes = of->workspace};
    run.at[TGL_AT_C] = has_input ? result_at(p, result, tgl_slab_input(of, slab)) : d;
    run.at[TGL_AT_D] = d;
    return run;
}

/* Enqueues the product of one slab: *result += tile of A * tile of B. */
static tgl_status multiply_slab(tiled_product *p, const tgl_tile_place *at, int64_t slab,
                                const tile_result *result)
{
    const tgl_host_product *of = p->of;
    tgl_run run = run_of_slab(p, result, slab);
    int a = 0, b = 0;
    if (run.has_product) {
        const tgl_host_tile tile_a = tile_of(of, TGL_AT_A, at, slab);
        const tgl_host_tile tile_b = tile_of(of, TGL_AT_B, at, slab);
        TGL_TRY(fetch(p, false, &tile_a, &a));
        TGL_TRY(fetch(p, true, &tile_b, &b));
        run.at[TGL_AT_A] = p->slots_at + (size_t)a * p->slot_bytes;
        run.at[TGL_AT_B] = p->slots_at + (size_t)b * p->slot_bytes;
    }
    TGL_TRY(wait_for_tiles(p));
    const tgl_plan *plan = tgl_tile_plan(of, at->row, at->column, slab);
    TGL_TRY(tgl_cuda_run(plan, &run, p->staging->work));
    if (!run.has_product) return TGL_OK;
    TGL_TRY(check(p, p->driver->cuEventRecord(p->staging->used[a], p->staging->work)));
    return check(p, p->driver->cuEventRecord(p->staging->used[b], p->staging->work));
}

static tgl_status load_c(tiled_product *p, const tgl_tile_place *at, const tile_result *result)
{
    const tgl_host_product *of = p->of;
    if (!tgl_slab_has_input(of, 0)) return TGL_OK;
    const tgl_host_tile tile = tile_of(of, TGL_AT_C, at, 0);
    p->has_loaded = true;
    return tgl_staging_upload(p->dev, result_at(p, result, of->shape->type_c), &tile);
}

/* Enqueues the copy of a tile of D to pinned memory, to start when the tile is complete. */
static tgl_status send(tiled_product *p, const tgl_tile_place *at, int index)
{
    const tgl_staging *staging = p->staging;
    tile_result *result = &p->results[index];
    CUresult waited = p->driver->cuEventRecord(staging->computed, staging->work);
    if (waited == CUDA_SUCCESS)
        waited = p->driver->cuStreamWaitEvent(staging->out, staging->computed, 0);
    TGL_TRY(check(p, waited));
    result->to = tile_of(p->of, TGL_AT_D, at, 0);
    result->is_pending = true;
    return tgl_staging_download(p->dev, index, result_at(p, result, p->of->shape->type_d),
                                &result->to);
}

/* Waits for the copy of a tile to pinned memory, and stores the tile in the host's D. */
static tgl_status deliver(tiled_product *p, int index)
{
    tile_result *result = &p->results[index];
    if (!result->is_pending) return TGL_OK;
    result->is_pending = false;
    TGL_TRY(tgl_staging_deliver(p->dev, index, &result->to));
    p->of->delivered++;
    return TGL_OK;
}

/* Enqueues the work for a tile of D. After that, delivers the previous tile. */
static tgl_status compute_tile(tiled_product *p, const tgl_tile_place *at)
{
    const int index = p->next_result;
    p->next_result = (index + 1) % TGL_RESULTS;
    TGL_TRY(load_c(p, at, &p->results[index]));
    for (int64_t slab = 0; slab < p->of->slabs; slab++)
        TGL_TRY(multiply_slab(p, at, slab, &p->results[index]));
    TGL_TRY(send(p, at, index));
    return deliver(p, p->next_result);
}

/* ---- The product ----------------------------------------------------------------------------- */

static tgl_status compute(tiled_product *p)
{
    for (int64_t i = 0; i < tgl_tile_count(p->of); i++) {
        const tgl_tile_place at = tgl_tile_at(p->of, i);
        TGL_TRY(compute_tile(p, &at));
    }
    return deliver(p, (p->next_result + 1) % TGL_RESULTS);
}

/* Ends the product. Keeps the staging's GPU memory for the next product only if it is at most an
 * eighth of all GPU memory. */
static void finish(const tiled_product *p, tgl_status status)
{
    const tgl_cuda *cuda = p->dev->state;
    if (status != TGL_OK) tgl_staging_settle(cuda);
    free(p->slots);
    if (p->staging->bytes > cuda->facts.memory_bytes / 8) tgl_staging_free(cuda);
}

/* Computes the product. Must be called with the staging's lock held, in the device's context. */
static tgl_status run(tiled_product *p)
{
    tgl_status status = prepare(p);
    if (status == TGL_OK) status = compute(p);
    finish(p, status);
    return status;
}

tgl_status tgl_cuda_run_host(tgl_device *dev, tgl_host_product *product)
{
    TGL_NO_CANCEL;
    const tgl_cuda *cuda = dev->state;
    tiled_product p = {
        .dev = dev, .driver = &cuda->driver, .staging = cuda->staging, .of = product};
    tgl_cuda_scope scope;
    TGL_TRY(tgl_cuda_enter_relaxed(dev, &scope));
    pthread_mutex_lock(&p.staging->lock);
    const tgl_status status = run(&p);
    pthread_mutex_unlock(&p.staging->lock);
    tgl_cuda_leave(&scope);
    return status;
}
