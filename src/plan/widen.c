/* SPDX-License-Identifier: Apache-2.0
 *
 * The pre-pass that a product of weights adds before its 16-bit product: see widen.h.
 */
#include "plan/widen.h"
#include "base/integers.h"
#include "plan/limits.h"

#include "../../kernels/lib/widen_args.h"

#include <stddef.h>

typedef struct tgl_widen_args widen_args;

enum { THREADS = 256, VECTOR = 8 }; /* constants of gemm/widen.cu */

/* ---- Layout ---------------------------------------------------------------------------------- */

/* The weights as they are stored, and as they are expanded. A line is a contiguous row. */
typedef struct layout {
    tgl_operand operand, factors; /* TGL_AT_A and TGL_AT_SCALE_A, or TGL_AT_B and TGL_AT_SCALE_B */
    bool along_k;                 /* lines are along k */
    int64_t lines, length, ld, stride;
    int64_t pitch; /* elements from line to line of the expanded matrix */
    int64_t count; /* expanded matrices; 1 if all products of a batch share one */
} layout;

static layout layout_of(const tgl_shape *s)
{
    enum { TMA_ALIGNMENT = 8 }; /* elements: strides of TMA are multiples of 16 bytes */
    const bool is_a = s->weights.is_a, along_k = is_a ? !s->trans_a : s->trans_b;
    const int64_t lines = is_a ? s->m : s->n, stride = is_a ? s->stride_a : s->stride_b;
    layout x = {.operand = is_a ? TGL_AT_A : TGL_AT_B,
                .factors = is_a ? TGL_AT_SCALE_A : TGL_AT_SCALE_B,
                .along_k = along_k,
                .lines = along_k ? lines : s->k,
                .length = along_k ? s->k : lines,
                .ld = is_a ? s->lda : s->ldb,
                .stride = stride};
    x.pitch = tgl_round_up(x.length > 0 ? x.length : 1, TMA_ALIGNMENT);
    x.count = stride == 0 && s->weights.stride == 0 ? 1 : s->batch;
    return x;
}

tgl_shape tgl_widened_shape(const tgl_shape *s)
{
    tgl_shape wide = *s;
    if (!tgl_shape_has_weights(s)) return wide;
    const layout x = layout_of(s);
    const int64_t stride = x.count > 1 ? x.lines * x.pitch : 0;
    wide.weights = (tgl_weights){.type = 0};
    if (s->weights.is_a)
        wide.lda = x.pitch, wide.stride_a = stride;
    else
        wide.ldb = x.pitch, wide.stride_b = stride;
    return wide;
}

int64_t tgl_widened_bytes(const tgl_shape *s)
{
    if (!tgl_shape_has_weights(s) || s->k == 0) return 0;
    static const int64_t TOO_LARGE = INT64_MAX / 4; /* no memory has so many bytes */
    const layout x = layout_of(s);
    const double bytes =
        (double)x.count * (double)x.lines * (double)x.pitch * (double)tgl_type_size(s->type_a);
    if (bytes > (double)TOO_LARGE) return TOO_LARGE - TOO_LARGE % TGL_WORKSPACE_ALIGNMENT;
    return tgl_round_up((int64_t)bytes, TGL_WORKSPACE_ALIGNMENT);
}

int64_t tgl_widened_rest(const tgl_shape *s, int64_t limit)
{
    if (limit == TGL_WORKSPACE_DEFAULT || limit == TGL_WORKSPACE_EXCEEDED) return limit;
    const int64_t rest = limit - tgl_widened_bytes(s);
    return rest >= 0 ? rest : TGL_WORKSPACE_EXCEEDED;
}

double tgl_widen_seconds(const tgl_chip *chip, const tgl_shape *s)
{
    /* As for the pre-pass of families/repack.c: the seconds by which the launch delays the next
     * one, and the fraction of tgl_chip.memory_rate that it reaches. */
    static const double LAUNCH = 3e-6, SHARE = 0.85;
    const int64_t wide = tgl_widened_bytes(s);
    if (wide == 0) return 0;
    const double stored = (double)tgl_type_bytes(s->weights.type, wide / 2);
    return LAUNCH + ((double)wide + stored) / (SHARE * chip->memory_rate);
}

/* ---- The step -------------------------------------------------------------------------------- */

static const tgl_kernel *kernel_of(const tgl_shape *s, const layout *x, tgl_list_builder *builder)
{
    const tgl_kernel kernel = {.name = "widen",
                               .file = "gemm/widen.cu",
                               .symbol = "widen",
                               .parameters = "struct tgl_widen_args"};
    tgl_list_macro(builder, "BITS", s->weights.type == TGL_I4 ? 4 : 8);
    tgl_list_macro(builder, "BFLOAT", s->type_a == TGL_BF16);
    tgl_list_macro(builder, "ALONG_K", x->along_k);
    tgl_list_macro(builder, "FACTORS", s->weights.has_factors);
    tgl_list_macro(builder, "ZEROS", s->weights.has_zeros);
    return tgl_list_kernel(builder, &kernel);
}

static void add_step(const tgl_shape *s, const layout *x, int64_t scratch, bool has_overlap,
                     tgl_list_builder *builder)
{
    const int64_t threads = x->lines * tgl_ceil_div(x->length, VECTOR);
    const int64_t blocks = tgl_ceil_div(threads, THREADS);
    const widen_args args = {.ld = x->ld,
                             .stride = x->stride,
                             .pitch = x->pitch,
                             .to_stride = x->lines * x->pitch,
                             .group = s->weights.group,
                             .factor_ld = s->weights.ld,
                             .factor_stride = s->weights.stride,
                             .lines = x->lines,
                             .length = x->length,
                             .factor_step = (int)s->weights.line_step,
                             .blocks = (int)blocks};
    /* One block more than a grid can have: tgl_list_check() rejects a launch of so many blocks. */
    const int64_t blocks_max = (int64_t)TGL_GRID_X_MAX + 1;
    const double all = (double)blocks * (double)x->count;
    const tgl_launch launch = {
        .kernel = kernel_of(s, x, builder),
        .conditions = {{.kind = TGL_IF_PRODUCT}},
        .condition_count = 1,
        .grid = {(unsigned)(all < (double)blocks_max ? blocks * x->count : blocks_max), 1, 1},
        .cluster = {1, 1, 1},
        .threads = THREADS,
        .order = has_overlap ? TGL_WAITS : TGL_AFTER_ALL,
        .flag = -1,
        .repeats = 1,
        .count = (int)s->batch,
        .last_count = (int)s->batch,
    };
    tgl_list_step(builder, "expand B");
    tgl_list_launch(builder, &launch, &args, sizeof args);
    tgl_list_patch_value(builder, TGL_VALUE_OPERAND, (int)x->operand, offsetof(widen_args, from),
                         0);
    tgl_list_patch_value(builder, TGL_VALUE_OPERAND, (int)x->factors, offsetof(widen_args, factors),
                         0);
    tgl_list_patch_value(builder, TGL_VALUE_OPERAND, TGL_AT_ZEROS, offsetof(widen_args, zeros), 0);
    tgl_list_patch_value(builder, TGL_VALUE_SCRATCH, 0, offsetof(widen_args, to), scratch);
    if (s->device_scalars)
        tgl_list_patch_value(builder, TGL_VALUE_OPERAND, TGL_AT_ALPHA,
                             offsetof(widen_args, alpha_at), 0);
}

tgl_widening tgl_widen_begin(const tgl_shape *s, bool has_overlap, tgl_list_builder *builder)
{
    tgl_widening widening = {0, 0};
    const int64_t bytes = tgl_widened_bytes(s);
    if (bytes == 0) return widening;
    const layout x = layout_of(s);
    widening.scratch = tgl_list_scratch(builder, bytes);
    add_step(s, &x, widening.scratch, has_overlap, builder);
    widening.first_step = builder->list->step_count;
    return widening;
}

/* ---- The 16-bit product ---------------------------------------------------------------------- */

static void redirect_launch(const layout *x, int64_t scratch, tgl_launch *launch)
{
    for (int i = 0; i < launch->condition_count; i++)
        if (launch->conditions[i].operand == x->operand) launch->conditions[i].is_in_block = true;
    for (int i = 0; i < launch->patch_count; i++) {
        tgl_patch *p = &launch->patches[i];
        if (p->value != TGL_VALUE_OPERAND || p->index != (int)x->operand) continue;
        p->value = TGL_VALUE_SCRATCH;
        p->offset += scratch;
    }
}

void tgl_widen_end(const tgl_shape *s, tgl_widening widening, tgl_list_builder *builder)
{
    tgl_launch_list *list = builder->list;
    if (tgl_widened_bytes(s) == 0 || builder->status != TGL_OK) return;
    const layout x = layout_of(s);
    for (int i = widening.first_step; i < list->step_count; i++)
        for (int j = 0; j < list->steps[i].launch_count; j++)
            redirect_launch(&x, widening.scratch, &list->steps[i].launches[j]);
    for (int i = 0; i < list->map_count; i++)
        if (list->maps[i].operand == (int)x.operand && list->maps[i].base == TGL_VALUE_OPERAND) {
            list->maps[i].base = TGL_VALUE_SCRATCH;
            list->maps[i].offset += widening.scratch;
        }
}
