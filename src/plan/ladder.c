/* SPDX-License-Identifier: Apache-2.0
 *
 * Which problems the ladder's kernels take, and on which grid.
 */
#include "plan/ladder.h"

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

static const tgl_kernel *fastest(int capability)
{
    const tgl_kernel *kernel, *best = NULL;
    for (int i = 0; (kernel = tgl_kernel_at(i)) != NULL; i++)
        if (kernel->min_arch <= capability) best = kernel;
    return best;
}

tgl_status tgl_ladder_choose(tgl_device *dev, const char *name, int capability,
                             const tgl_kernel **kernel)
{
    *kernel = name != NULL ? tgl_kernel_find(name) : fastest(capability);
    if (*kernel == NULL && name != NULL)
        return tgl_fail(dev, TGL_UNKNOWN_KERNEL, "no kernel is called \"%s\"", name);
    const int needed = *kernel != NULL ? (*kernel)->min_arch : 0;
    if (*kernel == NULL || needed > capability)
        return tgl_fail(dev, TGL_UNSUPPORTED, "%s needs compute capability %d.%d; this is %d.%d",
                        *kernel != NULL ? (*kernel)->name : "every kernel", needed / 10,
                        needed % 10, capability / 10, capability % 10);
    return TGL_OK;
}

static int64_t ceil_div(int64_t x, int64_t y)
{
    return x / y + (x % y != 0);
}

tgl_status tgl_ladder_grid(tgl_device *dev, const tgl_gemm_shape *shape, const tgl_kernel *kernel,
                           unsigned *x, unsigned *y)
{
    const int64_t rows = ceil_div(shape->m, kernel->block_m);
    if (rows > GRID_Y_MAX)
        return tgl_fail(dev, TGL_GRID_TOO_LARGE,
                        "%s takes at most %lld rows (%d blocks of %d); m is %lld", kernel->name,
                        (long long)GRID_Y_MAX * kernel->block_m, GRID_Y_MAX, kernel->block_m,
                        (long long)shape->m);
    *x = (unsigned)ceil_div(shape->n, kernel->block_n);
    *y = (unsigned)rows;
    return TGL_OK;
}
