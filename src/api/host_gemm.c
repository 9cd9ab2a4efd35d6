/* SPDX-License-Identifier: Apache-2.0
 *
 * tgl_gemm_host(): products of matrices in host memory. A device that works on host memory runs a
 * plan. For other devices this file divides the product into tiles. It makes the plans of all tiles
 * before it computes the first tile, so that memory cannot run out halfway. If the device fails
 * after the first tile, the cpu device computes the tiles that are left.
 */
#include "api/host_gemm.h"
#include "api/handles.h"
#include "api/plan_cache.h"
#include "backend/host_product.h"
#include "base/integers.h"

/* Tile sizes in elements. 2048 x 2048 is large enough for the fastest kernels. 1024 x 1024 gives
 * enough tiles to overlap copies and computation if m, n and k are a few thousand. Estimates, not
 * measured. */
static const tgl_tile_limits default_limits = {.min = 1024, .max = 2048, .unit = 256};

/* Desired number of tiles along m, n or k; tgl_tile_limits has priority. */
enum { TILES_PER_SIDE = 4 };

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* Divides one dimension of the product, of `side` elements, into tiles. Returns the number of
 * tiles; *tile := the size of each tile but the last. */
static int64_t divide(int64_t side, const tgl_tile_limits *limits, int64_t *tile)
{
    int64_t wanted = tgl_ceil_div(side, TILES_PER_SIDE);
    if (wanted < limits->min) wanted = limits->min;
    if (wanted > limits->max) wanted = limits->max;
    const int64_t count = tgl_ceil_div(side, wanted);
    *tile = count > 1 ? tgl_round_up(tgl_ceil_div(side, count), limits->unit) : side;
    return count > 1 ? tgl_ceil_div(side, *tile) : 1;
}

/* The shape of a product m x n x k that is a part of `whole`. `swapped` is false, because the
 * operands are already exchanged. */
static tgl_shape single_shape(const tgl_shape *whole, int64_t m, int64_t n, int64_t k)
{
    tgl_shape tile = *whole;
    tile.m = m, tile.n = n, tile.k = k;
    tile.swapped = false;
    tile.pointers = false, tile.alignment = 0;
    tile.batch = 1, tile.stride_a = tile.stride_b = tile.stride_c = tile.stride_d = 0;
    return tile;
}

/* The shape of the product that computes one tile of D over one slab (a part of K, host_product.h)
 * in device memory. */
static tgl_shape tile_shape(const tgl_host_product *p, int64_t row, int64_t column, int64_t slab)
{
    const tgl_shape *whole = p->shape;
    const int64_t m = tgl_tile_size(whole->m, p->m, row);
    const int64_t n = tgl_tile_size(whole->n, p->n, column);
    const int64_t k = tgl_tile_size(whole->k, p->k, slab);
    const tgl_type d = tgl_slab_result(p, slab);
    const tgl_type c = tgl_slab_has_input(p, slab) ? tgl_slab_input(p, slab) : d;
    tgl_shape tile = single_shape(whole, m, n, k);
    tile.in_place = c == d;
    tile.type_c = c, tile.type_d = d;
    tile.lda = tgl_tile_pitch(whole->type_a, whole->trans_a ? m : k);
    tile.ldb = tgl_tile_pitch(whole->type_b, whole->trans_b ? k : n);
    tile.ldc = tgl_tile_pitch(c, n);
    tile.ldd = tgl_tile_pitch(d, n);
    tile.epilogue.type_bias = tile.epilogue.type_residual = d;
    return tile;
}

/* ---- Plans ----------------------------------------------------------------------------------- */

static tgl_status make_plan(tgl_device *dev, tgl_host_product *p, int64_t row, int64_t column,
                            int64_t slab)
{
    tgl_plan **plan =
        &p->plans[row == p->rows - 1][column == p->columns - 1][tgl_kind_of_slab(p, slab)];
    const tgl_shape tile = tile_shape(p, row, column, slab);
    TGL_TRY(tgl_plan_find(dev, &tile, NULL, plan));
    if ((*plan)->workspace > p->workspace) p->workspace = (*plan)->workspace;
    return TGL_OK;
}

/* Makes a plan for each kind of tile: inner tiles, the last row of tiles, the last column, and the
 * tiles of the first and of the last slab of k. The kinds differ in size or in the type of the
 * sums. */
static tgl_status make_plans(tgl_device *dev, tgl_host_product *p)
{
    for (int64_t i = 0; i < tgl_min64(p->rows, 2); i++)
        for (int64_t j = 0; j < tgl_min64(p->columns, 2); j++)
            for (int64_t s = 0; s < tgl_min64(p->slabs, TGL_SLABS); s++)
                TGL_TRY(make_plan(dev, p, i == 0 ? 0 : p->rows - 1, j == 0 ? 0 : p->columns - 1,
                                  s < 2 ? s : p->slabs - 1));
    return TGL_OK;
}

static void release_plans(tgl_host_product *p)
{
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            for (int s = 0; s < TGL_SLABS; s++)
                tgl_plan_release(p->plans[i][j][s]);
}

/* ---- After a failure ------------------------------------------------------------------------- */

static tgl_status run_on_host(tgl_device *cpu, const tgl_host_product *p, const tgl_tile_place *at)
{
    const tgl_shape tile = single_shape(p->shape, tgl_tile_size(p->shape->m, p->m, at->row),
                                        tgl_tile_size(p->shape->n, p->n, at->column), p->shape->k);
    tgl_run run = {.alpha = p->run->alpha,
                   .beta = p->run->beta,
                   .alpha_imag = p->run->alpha_imag,
                   .beta_imag = p->run->beta_imag,
                   .has_product = p->run->has_product};
    if (run.has_product) {
        run.at[TGL_AT_A] = tgl_tile_address(p, TGL_AT_A, at, 0);
        run.at[TGL_AT_B] = tgl_tile_address(p, TGL_AT_B, at, 0);
    }
    run.at[TGL_AT_D] = tgl_tile_address(p, TGL_AT_D, at, 0);
    run.at[TGL_AT_C] =
        tgl_run_has_beta(&run) ? tgl_tile_address(p, TGL_AT_C, at, 0) : run.at[TGL_AT_D];
    tgl_plan *plan;
    TGL_TRY(tgl_plan_find(cpu, &tile, NULL, &plan));
    const tgl_status status = cpu->backend->run(plan, &run, NULL);
    tgl_plan_release(plan);
    return status;
}

/* Computes with the cpu device the tiles that the device has not stored in D. */
static tgl_status finish_on_host(const tgl_host_product *p)
{
    char reason[400];
    tgl_device *cpu;
    tgl_status status = tgl_device_open("cpu", NULL, &cpu);
    for (int64_t i = p->delivered; i < tgl_tile_count(p) && status == TGL_OK; i++) {
        const tgl_tile_place at = tgl_tile_at(p, i);
        status = run_on_host(cpu, p, &at);
    }
    tgl_device_close(cpu);
    if (status == TGL_OK) return TGL_OK;
    tgl_last_error(reason, sizeof reason);
    return tgl_fail(TGL_KERNEL_FAULT,
                    "the GPU has failed when a part of D was written, and the rest "
                    "cannot be computed on the CPU: %s",
                    reason);
}

/* ---- Running --------------------------------------------------------------------------------- */

static tgl_status run_in_tiles(tgl_device *dev, const tgl_shape *shape, const tgl_run *run,
                               const tgl_tile_limits *limits)
{
    tgl_host_product product = {.shape = shape, .run = run, .slabs = 1};
    TGL_TRY(tgl_run_check_pointers(shape, run));
    product.rows = divide(shape->m, limits, &product.m);
    product.columns = divide(shape->n, limits, &product.n);
    if (shape->k > 0) product.slabs = divide(shape->k, limits, &product.k);
    tgl_status status = make_plans(dev, &product);
    if (status == TGL_OK) status = dev->backend->run_host(dev, &product);
    release_plans(&product);
    return status == TGL_OK || product.delivered == 0 ? status : finish_on_host(&product);
}

tgl_status tgl_gemm_host_in_tiles(tgl_device *dev, const tgl_problem *problem,
                                  const tgl_operands *operands, const tgl_tile_limits *limits)
{
    if (dev == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "the device is NULL");
    tgl_shape shape;
    tgl_run run;
    TGL_TRY(tgl_device_shape(dev, problem, true, &shape));
    if (shape.device_scalars)
        return tgl_fail(TGL_UNSUPPORTED,
                        "alpha and beta are in device memory, and all operands of tgl_gemm_host() "
                        "are in host memory");
    if (shape.grouping != TGL_GROUPED_NONE)
        return tgl_fail(TGL_UNSUPPORTED, "tgl_gemm_host() computes no grouped products");
    if (dev->backend->run_host != NULL && tgl_shape_has_scales(&shape))
        return tgl_fail(TGL_UNSUPPORTED,
                        "the problem has scales, which products of host memory have on cpu and sim "
                        "only");
    if (dev->backend->run_host != NULL && tgl_shape_has_weights(&shape))
        return tgl_fail(TGL_UNSUPPORTED,
                        "B has weights of i8 or i4, which products of host memory have on cpu and "
                        "sim only");
    TGL_TRY(tgl_run_make(&shape, operands, &run));
    if (run.workspace != NULL)
        return tgl_fail(TGL_BAD_WORKSPACE,
                        "a workspace is given, and tgl_gemm_host() allocates its own");
    if (tgl_shape_is_empty(&shape)) return TGL_OK;
    if (!run.has_product) shape.k = 0;
    if (dev->backend->run_host != NULL) return run_in_tiles(dev, &shape, &run, limits);
    return tgl_run_once(dev, &shape, operands, NULL);
}

tgl_status tgl_gemm_host(tgl_device *dev, const tgl_problem *problem, const tgl_operands *operands)
{
    return tgl_gemm_host_in_tiles(dev, problem, operands, &default_limits);
}
