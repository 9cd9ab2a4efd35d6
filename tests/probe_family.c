/* SPDX-License-Identifier: Apache-2.0
 *
 * The host code of the probe family (probe_family.h). Its launch list has three steps:
 *
 *   scan A      sets the flag if A has an element above the threshold; if A is not aligned to 16
 *               bytes, also repacks it. Left out without a product (k = 0 or alpha = 0).
 *   tiles       the product, with a tensor map of A itself or of the repacked A
 *   negate C    returns at once unless the flag is set; clears it. Left out without a product.
 */
#include "probe_family.h"

#include "../kernels/lib/tma_map.h"
#include "base/integers.h"
#include "list_of_kernel.h"

#include <stdio.h>
#include <stdlib.h>

enum { BM = 32, BN = 32, BK = 32, ALIGNMENT = 16 /* alignment in bytes that TMA requires */ };
enum { FLAG = 0, DONE = 4, COUNTER_BYTES = 8 }; /* offsets of the counters */
enum { OPTION_THRESHOLD };

static const char *const options[] = {"threshold", NULL};

/* ---- Supported problems ---------------------------------------------------------------------- */

static const char *const rows[] = {"probe_32x32x32"};

static const char *unsupported_reason(const tgl_shape *s, const tgl_chip *chip)
{
    if ((chip->features & TGL_HAS_TMA) == 0) return "the chip has no TMA";
    if ((chip->features & TGL_HAS_CLUSTERS) == 0) return "the chip has no clusters";
    if (!tgl_shape_is_all(s, TGL_F32)) return "the probe is for FP32 only";
    if (s->trans_a || s->trans_b) return "the probe takes no transposed matrices";
    if (s->batch != 1 || s->pointers) return "the probe takes no batches";
    if (!s->in_place || s->device_scalars) return "the probe has neither D nor device scalars";
    if (!tgl_epilogue_is_none(&s->epilogue)) return "the probe has no epilogue";
    if (s->m > TGL_EXTENT_MAX || s->n > TGL_EXTENT_MAX || s->k > TGL_EXTENT_MAX)
        return "the probe counts in int";
    return NULL;
}

static void predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    (void)chip;
    c->threads = 128;
    c->splits = 2;
    c->blocks = 2 * (double)tgl_ceil_div(s->n, BN) * (double)tgl_ceil_div(s->m, BM);
    c->workspace_bytes = s->m * tgl_round_up(s->k, 4) * 4;
    c->launches = 1;
    if (tgl_ceil_div(s->m, BM) > TGL_GRID_YZ_MAX) {
        c->rejected = "the grid would be too large";
        c->rejected_status = TGL_GRID_TOO_LARGE;
    }
}

static bool example(int index, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape)
{
    (void)index, (void)type, (void)trans_a, (void)trans_b, (void)shape;
    return false; /* has no kernels to compile ahead of time */
}

/* ---- Kernels --------------------------------------------------------------------------------- */

typedef struct scan_args {
    int k;
    float threshold;
    const float *A;
    long long lda;
    float *packed;
    long long pitch;
    unsigned *flag;
} scan_args;

typedef struct multiply_args {
    struct tgl_tensor_map map_A;
    int m, n, k;
    float alpha, beta;
    const float *B;
    long long ldb;
    float *C;
    long long ldc;
} multiply_args;

/* The struct is padded at its end to the alignment of the tensor map; the kernel's parameters are
 * not. */
#define MULTIPLY_BYTES (offsetof(multiply_args, ldc) + sizeof(long long))

typedef struct negate_args {
    int n;
    float *C;
    long long ldc;
    unsigned *flag, *done;
} negate_args;

/* symbol: the name of the kernel and of its file. The library does not embed this file, so the
 * kernel's description contains the text. */
static const tgl_kernel *kernel_of(tgl_list_builder *b, const char *symbol, const char *parameters,
                                   unsigned needs)
{
    char file[64];
    char *source = read_text(PROBE_KERNELS, symbol);
    snprintf(file, sizeof file, "probe/%s.cu", symbol);
    const tgl_kernel kernel = {.name = symbol,
                               .file = file,
                               .symbol = symbol,
                               .parameters = parameters,
                               .source = source != NULL ? source : "",
                               .needs = needs};
    const tgl_kernel *own = tgl_list_kernel(b, &kernel);
    free(source);
    return own;
}

/* ---- The launch list ------------------------------------------------------------------------- */

/* The launch list that is being made, and what its steps share. */
typedef struct making {
    const tgl_shape *shape;
    tgl_list_builder *builder;
    tgl_launch launch; /* kernel, grid, threads, conditions and part are set per step */
    int64_t pitch;     /* elements from one row of the repacked A to the next */
    int64_t scratch, counters;
    float threshold;
} making;

static void add_condition(tgl_launch *launch, tgl_condition_kind kind)
{
    launch->conditions[launch->condition_count++] =
        (tgl_condition){.kind = kind, .operand = TGL_AT_A, .alignment = ALIGNMENT};
}

/* Whether a tensor map can describe A itself: its rows must be aligned to 16 bytes. */
static bool may_be_direct(const tgl_shape *s)
{
    return s->lda % (ALIGNMENT / 4) == 0;
}

static void add_scan(const making *of, bool repacks)
{
    const tgl_shape *s = of->shape;
    const scan_args args = {
        .k = (int)s->k, .threshold = of->threshold, .lda = s->lda, .pitch = of->pitch};
    tgl_launch launch = of->launch;
    tgl_list_macro(of->builder, "REPACKS", repacks);
    launch.kernel = kernel_of(of->builder, "probe_scan",
                              "int|float|const float *|long long|float *|long long|unsigned *", 0);
    launch.grid[0] = (unsigned)s->m;
    launch.threads = 256;
    add_condition(&launch, TGL_IF_PRODUCT);
    if (!repacks) add_condition(&launch, TGL_IF_ALIGNED);
    tgl_list_launch(of->builder, &launch, &args, sizeof args);
    tgl_list_patch_value(of->builder, TGL_VALUE_OPERAND, TGL_AT_A, offsetof(scan_args, A), 0);
    if (repacks)
        tgl_list_patch_value(of->builder, TGL_VALUE_SCRATCH, 0, offsetof(scan_args, packed),
                             of->scratch);
    tgl_list_patch_value(of->builder, TGL_VALUE_COUNTERS, 0, offsetof(scan_args, flag),
                         of->counters + FLAG);
}

/* The tensor map of A or of the repacked A, which TMA copies in boxes of BM x BK elements. */
static tgl_tensor tensor_of(const making *of, bool is_direct)
{
    return (tgl_tensor){
        .base = is_direct ? TGL_VALUE_OPERAND : TGL_VALUE_SCRATCH,
        .operand = TGL_AT_A,
        .offset = is_direct ? 0 : of->scratch,
        .type = TGL_F32,
        .rank = 2,
        .size = {of->shape->k, of->shape->m},
        .stride = {4, (is_direct ? of->shape->lda : of->pitch) * 4},
        .box = {BK, BM},
        .swizzle_bytes = 128,
    };
}

static void add_multiply(const making *of, tgl_launch *launch, int64_t k, int map)
{
    const tgl_shape *s = of->shape;
    const multiply_args args = {
        .m = (int)s->m, .n = (int)s->n, .k = (int)k, .ldb = s->ldb, .ldc = s->ldc};
    launch->kernel =
        kernel_of(of->builder, "probe_multiply",
                  "struct tgl_tensor_map|int|int|int|float|float|const float *|long long|"
                  "float *|long long",
                  TGL_HAS_TMA | TGL_HAS_CLUSTERS);
    launch->grid[0] = 2 * (unsigned)tgl_ceil_div(s->n, BN);
    launch->grid[1] = (unsigned)tgl_ceil_div(s->m, BM);
    launch->cluster[0] = 2;
    launch->threads = 128;
    launch->part = (tgl_rectangle){0, 0, s->m, s->n};
    tgl_list_launch(of->builder, launch, &args, MULTIPLY_BYTES);
    if (map >= 0)
        tgl_list_patch_value(of->builder, TGL_VALUE_TENSOR_MAP, map, offsetof(multiply_args, map_A),
                             0);
    tgl_list_patch_value(of->builder, TGL_VALUE_ALPHA_F32, 0, offsetof(multiply_args, alpha), 0);
    tgl_list_patch_value(of->builder, TGL_VALUE_BETA_F32, 0, offsetof(multiply_args, beta), 0);
    tgl_list_patch_value(of->builder, TGL_VALUE_OPERAND, TGL_AT_B, offsetof(multiply_args, B), 0);
    tgl_list_patch_value(of->builder, TGL_VALUE_OPERAND, TGL_AT_D, offsetof(multiply_args, C), 0);
}

/* Without a product k is 0, and the kernel does not use its tensor map. */
static void add_tiles(const making *of)
{
    tgl_launch without = of->launch, direct = of->launch, packed = of->launch;
    tgl_list_step(of->builder, "tiles");
    add_condition(&without, TGL_IF_NO_PRODUCT);
    add_multiply(of, &without, 0, -1);
    if (of->shape->k == 0) return;
    if (may_be_direct(of->shape)) {
        const tgl_tensor tensor = tensor_of(of, true);
        add_condition(&direct, TGL_IF_ALIGNED);
        add_multiply(of, &direct, of->shape->k, tgl_list_tensor(of->builder, &tensor));
    }
    const tgl_tensor tensor = tensor_of(of, false);
    add_multiply(of, &packed, of->shape->k, tgl_list_tensor(of->builder, &tensor));
}

static void add_negate(const making *of, int flag)
{
    const tgl_shape *s = of->shape;
    const negate_args args = {.n = (int)s->n, .ldc = s->ldc};
    tgl_launch launch = of->launch;
    launch.kernel =
        kernel_of(of->builder, "probe_negate", "int|float *|long long|unsigned *|unsigned *", 0);
    launch.grid[0] = (unsigned)s->m;
    launch.threads = 256;
    launch.part = (tgl_rectangle){0, 0, s->m, s->n};
    launch.flag = flag;
    add_condition(&launch, TGL_IF_PRODUCT);
    tgl_list_step(of->builder, "negate C");
    tgl_list_launch(of->builder, &launch, &args, sizeof args);
    tgl_list_patch_value(of->builder, TGL_VALUE_OPERAND, TGL_AT_D, offsetof(negate_args, C), 0);
    tgl_list_patch_value(of->builder, TGL_VALUE_COUNTERS, 0, offsetof(negate_args, flag),
                         of->counters + FLAG);
    tgl_list_patch_value(of->builder, TGL_VALUE_COUNTERS, 0, offsetof(negate_args, done),
                         of->counters + DONE);
}

static void launch(const tgl_partition *partition, tgl_list_builder *builder)
{
    const tgl_shape *shape = partition->shape;
    const int64_t threshold = partition->choice.option[OPTION_THRESHOLD];
    const int first = builder->list->step_count;
    making of = {
        .shape = shape,
        .builder = builder,
        .launch = {.grid = {1, 1, 1},
                   .cluster = {1, 1, 1},
                   .order = (partition->chip->features & TGL_HAS_OVERLAP) != 0 ? TGL_WAITS
                                                                               : TGL_AFTER_ALL,
                   .flag = -1,
                   .repeats = 1,
                   .count = 1,
                   .last_count = 1},
        .pitch = tgl_round_up(shape->k, ALIGNMENT / 4),
        .threshold = (float)(threshold == TGL_UNSET ? PROBE_THRESHOLD : threshold),
    };
    of.scratch = tgl_list_scratch(builder, shape->m * of.pitch * 4);
    of.counters = tgl_list_counters(builder, COUNTER_BYTES);
    const tgl_flag flag = {
        .offset = of.counters + FLAG, .mask = 1, .set_by = first, .cleared_by = first + 2};
    tgl_list_step(builder, "scan A");
    if (may_be_direct(shape)) add_scan(&of, false);
    add_scan(&of, true);
    add_tiles(&of);
    add_negate(&of, tgl_list_flag(builder, &flag));
}

const tgl_family probe_family = {
    .name = "probe",
    .summary = "a test of launch lists",
    .options = options,
    .is_on_request = true,
    TGL_ROWS(rows),
    .unsupported_reason = unsupported_reason,
    .predict = predict,
    .launch = launch,
    .example = example,
};
