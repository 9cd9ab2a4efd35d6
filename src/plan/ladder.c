/* SPDX-License-Identifier: Apache-2.0
 *
 * Which problems the ladder's kernels take, and on which grid.
 */
#include "plan/ladder.h"
#include "plan/gemm.h"

#include <limits.h>

/* Kernels count in ints, and look up to the size of a tile past the end of a matrix. */
enum { GRID_Y_MAX = 65535, EXTENT_MAX = INT_MAX - 1024 };

tgl_status tgl_ladder_check(tgl_device *dev, const tgl_gemm_shape *shape)
{
    const char *name = dev->backend->name;
    if (shape->type_a != TGL_F32 || shape->type_b != TGL_F32 || shape->type_c != TGL_F32 ||
        shape->compute != TGL_COMPUTE_DEFAULT)
        return tgl_fail(dev, TGL_UNSUPPORTED,
                        "the %s device has kernels for FP32 in IEEE arithmetic only; use \"cpu\"",
                        name);
    if (shape->trans_a || shape->trans_b)
        return tgl_fail(dev, TGL_UNSUPPORTED,
                        "the %s device has no kernel for transposed matrices; use \"cpu\"", name);
    if (shape->batch != 1)
        return tgl_fail(dev, TGL_UNSUPPORTED,
                        "the %s device has no kernel for batches; use \"cpu\"", name);
    if (!tgl_epilogue_is_none(&shape->epilogue))
        return tgl_fail(dev, TGL_UNSUPPORTED, "the ladder's kernels have no epilogue");
    if (shape->pointers)
        return tgl_fail(dev, TGL_UNSUPPORTED, "the ladder's kernels take no arrays of pointers");
    if (shape->m > EXTENT_MAX || shape->n > EXTENT_MAX || shape->k > EXTENT_MAX)
        return tgl_fail(dev, TGL_UNSUPPORTED, "the %s device takes m, n and k up to %d", name,
                        EXTENT_MAX);
    return TGL_OK;
}

tgl_status tgl_ladder_check_chip(tgl_device *dev, const tgl_kernel *kernel, int capability)
{
    if (kernel->min_arch <= capability) return TGL_OK;
    return tgl_fail(dev, TGL_UNSUPPORTED, "%s needs compute capability %d.%d; this is %d.%d",
                    kernel->name, kernel->min_arch / 10, kernel->min_arch % 10, capability / 10,
                    capability % 10);
}

tgl_status tgl_ladder_grid(tgl_device *dev, const tgl_gemm_shape *shape, const tgl_kernel *kernel,
                           unsigned *x, unsigned *y)
{
    const int64_t rows = tgl_ceil_div(shape->m, kernel->block_m);
    if (rows > GRID_Y_MAX)
        return tgl_fail(dev, TGL_GRID_TOO_LARGE,
                        "%s takes at most %lld rows (%d blocks of %d); m is %lld", kernel->name,
                        (long long)GRID_Y_MAX * kernel->block_m, GRID_Y_MAX, kernel->block_m,
                        (long long)shape->m);
    *x = (unsigned)tgl_ceil_div(shape->n, kernel->block_n);
    *y = (unsigned)rows;
    return TGL_OK;
}
