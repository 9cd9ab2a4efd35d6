/* SPDX-License-Identifier: Apache-2.0
 *
 * The step of gemm/repack.cu: see repack.h.
 */
#include "families/repack.h"

#include "families/prepass.h"

#include "../../kernels/lib/repack_args.h"

#include <stddef.h>

typedef struct tgl_repack_args repack_args;
typedef struct tgl_repack_job repack_job;

/* Constants of gemm/repack.cu. */
enum {
    THREADS = 256,
    LINES_OF_BLOCK = THREADS / 32, /* lines that a block copies, one for each warp */
    BYTES_OF_BLOCK = 2048,         /* bytes of each line that a block copies */
    TILE = 64,                     /* edge of a transposed tile */
    JOBS_MAX = 2,
};

/* ---- Layout ---------------------------------------------------------------------------------- */

static int64_t bytes_of(const tgl_repack *r, int64_t elements)
{
    return elements * (int64_t)tgl_type_size(r->type);
}

int64_t tgl_repack_pitch(const tgl_repack *r)
{
    enum { TMA_ALIGNMENT = 16, LINE_OF_L2 = 128, LONG = 1024 }; /* bytes */
    const int64_t bytes = bytes_of(r, r->length);
    return tgl_round_up(bytes, bytes >= LONG ? LINE_OF_L2 : TMA_ALIGNMENT) /
           (int64_t)tgl_type_size(r->type);
}

int64_t tgl_repack_stride(const tgl_repack *r)
{
    return r->lines * tgl_repack_pitch(r);
}

int64_t tgl_repack_bytes(const tgl_repack *r)
{
    return bytes_of(r, r->count * tgl_repack_stride(r));
}

static int64_t blocks_along(const tgl_repack *r)
{
    return r->transposes ? tgl_ceil_div(r->length, TILE)
                         : tgl_ceil_div(bytes_of(r, r->length), BYTES_OF_BLOCK);
}

static int64_t blocks_down(const tgl_repack *r)
{
    return tgl_ceil_div(r->lines, r->transposes ? TILE : LINES_OF_BLOCK);
}

const char *tgl_repack_fault(const tgl_repack *repacks, int count)
{
    double blocks = 0;
    for (int i = 0; i < count; i++)
        blocks += (double)blocks_along(&repacks[i]) * (double)blocks_down(&repacks[i]) *
                  (double)repacks[i].count;
    return blocks > TGL_GRID_X_MAX ? tgl_grid_too_large : NULL;
}

/* ---- Time ------------------------------------------------------------------------------------ */

/* Warps that copy lines: one for each BYTES_OF_BLOCK of a line. 0 for transposed matrices, which
 * whole blocks copy. */
static double warps_of(const tgl_repack *r)
{
    if (r->transposes) return 0;
    return (double)blocks_along(r) * (double)r->lines * (double)r->count;
}

double tgl_repack_seconds(const tgl_chip *chip, const tgl_repack *repacks, int count)
{
    static const double LAUNCH = 3e-6; /* seconds by which the launch delays the next launch */
    /* Fraction of tgl_chip.memory_rate that the pre-pass reaches. */
    static const double SHARE = 0.85;
    /* Cycles of an SM per warp, fitted to 8 batches of small matrices and 3 of matrices with large
     * k, on an H200. */
    static const double WARP_CYCLES = 123;
    double bytes = 0, warps = 0;
    for (int i = 0; i < count; i++) {
        bytes += 2 * (double)tgl_repack_bytes(&repacks[i]);
        warps += warps_of(&repacks[i]);
    }
    const double work = warps * WARP_CYCLES / (chip->sms * 1e6 * chip->clock_mhz);
    return count > 0 ? LAUNCH + tgl_larger(bytes / (SHARE * chip->memory_rate), work) : 0;
}

/* ---- The step -------------------------------------------------------------------------------- */

static const tgl_kernel *repack_kernel_of(const tgl_partition *of, const tgl_repack *repacks,
                                          int count, tgl_list_builder *builder)
{
    const tgl_kernel kernel = {.name = "repack",
                               .file = "gemm/repack.cu",
                               .symbol = "repack",
                               .parameters = "struct tgl_repack_args"};
    tgl_list_macro(builder, "ELEMENT_BYTES", (int64_t)tgl_type_size(repacks[0].type));
    tgl_list_macro(builder, "ROUND_TF32", repacks[0].rounds_to_tf32);
    if (tgl_shape_scalar_type(of->shape) == TGL_I32) tgl_list_macro(builder, "INTEGER_ALPHA", 1);
    tgl_list_macro(builder, "TRANSPOSED_0", repacks[0].transposes);
    tgl_list_macro(builder, "TRANSPOSED_1", count > 1 && repacks[1].transposes);
    return tgl_list_kernel(builder, &kernel);
}

static repack_job repack_job_of(const tgl_repack *r)
{
    return (repack_job){.ld = r->ld,
                        .pitch = tgl_repack_pitch(r),
                        .stride_from = r->stride,
                        .stride_to = tgl_repack_stride(r),
                        .lines = (int)r->lines,
                        .length = (int)r->length,
                        .blocks_along = (int)blocks_along(r),
                        .blocks_down = (int)blocks_down(r)};
}

void tgl_repack_add_step(const tgl_partition *of, const tgl_repack *repacks, int count,
                         tgl_list_builder *builder)
{
    repack_args args = {.first_blocks = 0};
    int64_t blocks = 0;
    for (int i = 0; i < count && i < JOBS_MAX; i++) {
        args.jobs[i] = repack_job_of(&repacks[i]);
        blocks += blocks_along(&repacks[i]) * blocks_down(&repacks[i]) * repacks[i].count;
        if (i == 0) args.first_blocks = (int)blocks;
    }
    const tgl_launch launch = tgl_prepass_launch(of, repack_kernel_of(of, repacks, count, builder),
                                                 (double)blocks, THREADS);
    tgl_list_step(builder, count > 1                        ? "repack A and B"
                           : repacks[0].operand == TGL_AT_A ? "repack A"
                                                            : "repack B");
    tgl_list_launch(builder, &launch, &args, sizeof args);
    for (int i = 0; i < count && i < JOBS_MAX; i++) {
        const size_t job = offsetof(repack_args, jobs) + (size_t)i * sizeof(repack_job);
        tgl_list_patch_value(builder, TGL_VALUE_OPERAND, (int)repacks[i].operand,
                             job + offsetof(repack_job, from),
                             bytes_of(&repacks[i], repacks[i].offset));
        tgl_list_patch_value(builder, TGL_VALUE_SCRATCH, 0, job + offsetof(repack_job, to),
                             repacks[i].scratch);
    }
    if (of->shape->device_scalars)
        tgl_list_patch_value(builder, TGL_VALUE_OPERAND, TGL_AT_ALPHA,
                             offsetof(repack_args, alpha_at), 0);
}
