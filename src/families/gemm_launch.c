/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the steps of the production families: macros that all kernels of kernels/gemm/ understand,
 * alternatives, arguments, and what a run fills in.
 */
#include "families/gemm_launch.h"
#include "families/decompose.h"

#include "../../kernels/lib/tma_map.h"

#include <stddef.h>
#include <string.h>

typedef struct tgl_gemm_args gemm_args;

enum { MAPS_OF_INPUTS = 2, MAPS_MAX = 3 };

/* The parameters of a kernel that takes tensor maps. */
typedef struct mapped_args {
    gemm_args args;
    struct tgl_tensor_map maps[MAPS_MAX];
} mapped_args;

/* ---- What the kernels take ------------------------------------------------------------------- */

/* True if all that is read or written is FP32. */
static bool is_f32(const tgl_shape *s)
{
    const tgl_shape_epilogue *e = &s->epilogue;
    return tgl_shape_is_all(s, TGL_F32) && s->type_accumulate == TGL_F32 &&
           (e->bias == TGL_BIAS_NONE || e->type_bias == TGL_F32) &&
           (!e->residual || e->type_residual == TGL_F32);
}

const char *tgl_gemm_unsupported_reason(const tgl_shape *s)
{
    if (s->scaling_a != TGL_SCALING_NONE || s->scaling_b != TGL_SCALING_NONE ||
        s->scaling_d != TGL_SCALING_NONE)
        return "there are no CUDA kernels with scales";
    _Static_assert(TGL_EXTENT_MAX == 2147482623, "the sentence says so");
    if (s->m > TGL_EXTENT_MAX || s->n > TGL_EXTENT_MAX || s->k > TGL_EXTENT_MAX)
        return "CUDA kernels take m, n and k up to 2147482623";
    return NULL;
}

const char *tgl_gemm_unsupported_unless_f32(const tgl_shape *s, const tgl_chip *chip)
{
    (void)chip;
    if (!is_f32(s)) return "it multiplies FP32 only";
    return tgl_gemm_unsupported_reason(s);
}

void tgl_gemm_fail(const char *why, tgl_list_builder *builder)
{
    if (builder->status == TGL_OK)
        builder->status = tgl_fail(TGL_UNSUPPORTED, "the planner's choice cannot serve: %s", why);
}

/* ---- Kernels --------------------------------------------------------------------------------- */

bool tgl_gemm_has_unaligned(const tgl_shape *shape, int vec_a, int vec_b)
{
    return !shape->pointers && (vec_a > 1 || vec_b > 1);
}

void tgl_add_macros(tgl_list_builder *builder, const tgl_macro *macros, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tgl_list_macro(builder, macros[i].name, macros[i].value);
}

/* What epilogue and operands add to the macros of a kernel. */
static void add_common_macros(const tgl_shape *s, tgl_list_builder *builder)
{
    const tgl_shape_epilogue *e = &s->epilogue;
    const struct {
        const char *name;
        int value, otherwise; /* what the kernel takes without the macro */
    } macros[] = {{"BIAS", (int)e->bias, 0},
                  {"ACTIVATION", (int)e->activation, 0},
                  {"RESIDUAL", e->residual, 0},
                  {"EXPRESSION", e->expression != NULL, 0},
                  {"SEPARATE_D", !s->in_place, 0},
                  {"DEVICE_SCALARS", s->device_scalars, 0},
                  {"TYPE_A", s->type_a, TGL_F32},
                  {"TYPE_B", s->type_b, TGL_F32},
                  {"TYPE_C", s->type_c, TGL_F32},
                  {"TYPE_D", s->type_d, TGL_F32},
                  {"ACCUMULATE", s->type_accumulate, TGL_F32},
                  {"TYPE_BIAS", e->bias != TGL_BIAS_NONE ? e->type_bias : TGL_F32, TGL_F32},
                  {"TYPE_RESIDUAL", e->residual ? e->type_residual : TGL_F32, TGL_F32}};
    for (size_t i = 0; i < sizeof macros / sizeof macros[0]; i++)
        if (macros[i].value != macros[i].otherwise)
            tgl_list_macro(builder, macros[i].name, macros[i].value);
}

static const char *parameters_of(const tgl_gemm_step *step)
{
#define MAP "|struct tgl_tensor_map"
    static const char *const parameters[] = {"struct tgl_gemm_args", NULL,
                                             "struct tgl_gemm_args" MAP MAP,
                                             "struct tgl_gemm_args" MAP MAP MAP};
#undef MAP
    return parameters[step->map_count];
}

const tgl_kernel *tgl_gemm_kernel(const tgl_gemm_step *step, tgl_list_builder *builder)
{
    const tgl_kernel kernel = {
        .name = step->name,
        .file = step->file,
        .symbol = step->symbol,
        .parameters = parameters_of(step),
        .expression = step->of->shape->epilogue.expression,
        .needs = step->needs,
        .local_bytes = step->local_bytes,
    };
    add_common_macros(step->of->shape, builder);
    return tgl_list_kernel(builder, &kernel);
}

/* ---- Arguments ------------------------------------------------------------------------------- */

static int64_t bytes_of(tgl_type type, int64_t elements)
{
    return elements * (int64_t)tgl_type_size(type);
}

int64_t tgl_gemm_offset_a(const tgl_shape *shape, const tgl_rectangle *part)
{
    return part->row * (shape->trans_a ? 1 : shape->lda);
}

int64_t tgl_gemm_offset_b(const tgl_shape *shape, const tgl_rectangle *part)
{
    return part->col * (shape->trans_b ? shape->ldb : 1);
}

static int64_t offset_a(const tgl_gemm_step *step)
{
    return tgl_gemm_offset_a(step->of->shape, &step->of->part);
}

static int64_t offset_b(const tgl_gemm_step *step)
{
    return tgl_gemm_offset_b(step->of->shape, &step->of->part);
}

/* All that is known when the plan is made. */
static gemm_args known_args(const tgl_gemm_step *step, bool has_product)
{
    const tgl_shape *s = step->of->shape;
    const tgl_shape_epilogue *e = &s->epilogue;
    gemm_args args = step->args;
    args.lda = s->lda;
    args.ldb = s->ldb;
    args.ldc = s->ldc;
    args.ldd = s->ldd;
    args.stride_a = s->stride_a;
    args.stride_b = s->stride_b;
    args.stride_c = s->stride_c;
    args.stride_d = s->stride_d;
    args.m = (int)step->of->part.m;
    args.n = (int)step->of->part.n;
    args.k = has_product ? (int)s->k : 0;
    args.waits_at_end = step->of->is_strip;
    if (e->bias != TGL_BIAS_NONE) args.stride_bias = e->stride_bias;
    if (e->residual) {
        args.ld_residual = e->ld_residual;
        args.stride_residual = e->stride_residual;
    }
    if (!has_product && step->is_persistent) {
        args.splits = 1;
    } else if (!has_product) {
        args.tiles_whole = (int)step->tiles;
        args.cluster = 1;
    }
    return args;
}

/* ---- Patches --------------------------------------------------------------------------------- */

#define AT(member) offsetof(gemm_args, member)

/* A pointer to an operand: `offset` elements from its beginning, and `stride` between problems. */
static void patch_operand(tgl_list_builder *builder, const tgl_gemm_step *step, tgl_operand operand,
                          size_t at, tgl_type type, int64_t offset, int64_t stride)
{
    const tgl_patch patch = {.value = TGL_VALUE_OPERAND,
                             .index = (int)operand,
                             .at = (int)at,
                             .offset = bytes_of(type, offset),
                             .step = bytes_of(type, stride) * step->batch_step};
    tgl_list_patch(builder, &patch);
}

/* An array of pointers, one for each problem. */
static void patch_array(tgl_list_builder *builder, const tgl_gemm_step *step, tgl_operand operand,
                        size_t at)
{
    const tgl_patch patch = {.value = TGL_VALUE_OPERAND,
                             .index = (int)operand,
                             .at = (int)at,
                             .step = (int64_t)sizeof(void *) * step->batch_step};
    tgl_list_patch(builder, &patch);
}

/* Without a product A and B stay NULL. */
static void patch_arrays(tgl_list_builder *builder, const tgl_gemm_step *step, bool has_product)
{
    if (has_product) {
        patch_array(builder, step, TGL_AT_A_ARRAY, AT(A_array));
        patch_array(builder, step, TGL_AT_B_ARRAY, AT(B_array));
    }
    if (!step->of->shape->in_place) patch_array(builder, step, TGL_AT_C_ARRAY, AT(C_array));
    patch_array(builder, step, TGL_AT_D_ARRAY, AT(D_array));
}

static bool is_repacked(const tgl_gemm_step *step, tgl_operand operand)
{
    if (step->keeps_operands) return false;
    for (int i = 0; i < step->map_count; i++)
        if (step->maps[i].operand == (int)operand) return step->maps[i].base == TGL_VALUE_SCRATCH;
    return false;
}

static void patch_matrices(tgl_list_builder *builder, const tgl_gemm_step *step, bool has_product)
{
    const tgl_shape *s = step->of->shape;
    const int64_t row = step->of->part.row, col = step->of->part.col;
    if (has_product && !is_repacked(step, TGL_AT_A))
        patch_operand(builder, step, TGL_AT_A, AT(A), s->type_a, offset_a(step), s->stride_a);
    if (has_product && !is_repacked(step, TGL_AT_B))
        patch_operand(builder, step, TGL_AT_B, AT(B), s->type_b, offset_b(step), s->stride_b);
    if (!s->in_place)
        patch_operand(builder, step, TGL_AT_C, AT(C), s->type_c, row * s->ldc + col, s->stride_c);
    patch_operand(builder, step, TGL_AT_D, AT(D), s->type_d, row * s->ldd + col, s->stride_d);
}

static void patch_scalars(tgl_list_builder *builder, const tgl_gemm_step *step, bool has_product)
{
    const tgl_type type = step->of->shape->type_accumulate;
    const bool is_f64 = type == TGL_F64;
    if (step->of->shape->device_scalars) {
        patch_operand(builder, step, TGL_AT_ALPHA, AT(alpha_at), type, 0, 0);
        patch_operand(builder, step, TGL_AT_BETA, AT(beta_at), type, 0, 0);
        return;
    }
    if (has_product)
        tgl_list_patch_value(builder, is_f64 ? TGL_VALUE_ALPHA_F64 : TGL_VALUE_ALPHA_F32, 0,
                             AT(alpha), 0);
    tgl_list_patch_value(builder, is_f64 ? TGL_VALUE_BETA_F64 : TGL_VALUE_BETA_F32, 0, AT(beta), 0);
}

static void patch_epilogue(tgl_list_builder *builder, const tgl_gemm_step *step)
{
    const tgl_shape_epilogue *e = &step->of->shape->epilogue;
    const int64_t row = step->of->part.row, col = step->of->part.col;
    if (e->bias != TGL_BIAS_NONE)
        patch_operand(builder, step, TGL_AT_BIAS, AT(bias), e->type_bias,
                      e->bias == TGL_BIAS_ROW ? row : col, e->stride_bias);
    if (e->residual)
        patch_operand(builder, step, TGL_AT_RESIDUAL, AT(residual), e->type_residual,
                      row * e->ld_residual + col, e->stride_residual);
}

/* Without a product A and B are not read. */
static void patch_maps(tgl_list_builder *builder, const tgl_gemm_step *step, bool has_product)
{
    for (int i = has_product ? 0 : MAPS_OF_INPUTS; i < step->map_count; i++) {
        tgl_list_patch_value(
            builder, TGL_VALUE_TENSOR_MAP, tgl_list_tensor(builder, &step->maps[i]),
            offsetof(mapped_args, maps) + (size_t)i * sizeof(struct tgl_tensor_map), 0);
    }
}

/* ---- Order ----------------------------------------------------------------------------------- */

static bool is_with_product(const tgl_launch *launch)
{
    for (int i = 0; i < launch->condition_count; i++)
        if (launch->conditions[i].kind == TGL_IF_NO_PRODUCT) return false;
    return true;
}

/* Whether a launch may start while the one before it in the stream still runs, and let the next one
 * do so. With more blocks than SMs an early start would place them unevenly, because some SMs are
 * still busy. To many short blocks that does not matter, nor to persistent ones that fill all SMs:
 * each finds room only where one has ended. */
static bool may_overlap(const tgl_launch *launch, const tgl_chip *chip)
{
    const int64_t blocks = (int64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    tgl_choice of;
    return blocks <= chip->sms ||
           (tgl_configuration_find(launch->kernel->name, strlen(launch->kernel->name), &of) &&
            of.family->may_overlap);
}

/* Whether all launches so far may overlap, in a run with or without a product. All alternatives
 * with a product have the same grid. */
static bool all_overlap(const tgl_launch_list *list, const tgl_chip *chip, bool has_product)
{
    for (int i = 0; i < list->step_count; i++)
        for (int j = 0; j < list->steps[i].launch_count; j++) {
            const tgl_launch *launch = &list->steps[i].launches[j];
            if (is_with_product(launch) == has_product && !may_overlap(launch, chip)) return false;
        }
    return true;
}

/* Strips fill the last wave of the launch before them. They start when the last block of that
 * launch has started; it has waited for all earlier launches. */
static tgl_ordering order_of(const tgl_gemm_step *step, bool overlaps)
{
    if ((step->of->chip->features & TGL_HAS_OVERLAP) == 0) return TGL_AFTER_ALL;
    return step->of->is_strip ? TGL_BESIDE : overlaps ? TGL_WAITS : TGL_AFTER_ALL;
}

/* ---- Launches -------------------------------------------------------------------------------- */

/* The launch, but for kernel, conditions and order. */
static tgl_launch make_launch(const tgl_gemm_step *step, const gemm_args *args, bool has_product)
{
    const int64_t batch = step->of->shape->batch;
    const int64_t repeats = tgl_ceil_div(batch, step->batch_step);
    const int64_t blocks = has_product || step->tiles == 0 ? step->blocks : step->tiles;
    return (tgl_launch){
        .grid = {(unsigned)blocks, 1, step->loops_over_batch ? 1 : (unsigned)step->batch_step},
        .cluster = {(unsigned)args->cluster, 1, 1},
        .threads = (unsigned)step->threads,
        .dynamic_shared = step->dynamic_shared,
        .flag = -1,
        .part = step->of->part,
        .repeats = repeats,
        .count = step->batch_step,
        .last_count = (int)(batch - (repeats - 1) * step->batch_step),
        .count_in_grid_z = !step->loops_over_batch,
        .is_persistent = step->is_persistent && !step->has_whole_grid,
    };
}

/* Workspace of a step: offsets of its regions. */
typedef struct regions {
    int64_t scratch, counters;
} regions;

/* Adds one alternative. launch: with its kernel and conditions. */
static void add_launch(const tgl_gemm_step *step, const regions *at, bool has_product,
                       gemm_args *args, tgl_launch *launch, tgl_list_builder *builder)
{
    if (builder->status != TGL_OK) return;
    const bool overlaps = may_overlap(launch, step->of->chip);
    launch->order = order_of(step, overlaps);
    args->overlaps =
        !step->of->is_last || (overlaps && all_overlap(builder->list, step->of->chip, has_product));
    const mapped_args bytes = {.args = *args};
    const size_t map_bytes = (size_t)step->map_count * sizeof *bytes.maps;
    tgl_list_launch(builder, launch, &bytes,
                    step->map_count > 0 ? offsetof(mapped_args, maps) + map_bytes : sizeof *args);
    patch_maps(builder, step, has_product);
    (step->of->shape->pointers ? patch_arrays : patch_matrices)(builder, step, has_product);
    patch_scalars(builder, step, has_product);
    patch_epilogue(builder, step);
    tgl_list_patch_value(builder, TGL_VALUE_COUNT, 0, AT(batch), 0);
    if (step->scratch_bytes > 0)
        tgl_list_patch_value(builder, TGL_VALUE_SCRATCH, 0, AT(workspace), at->scratch);
    if (step->tables != NULL) {
        tgl_decompose_patch(&step->tables[0], AT(left_tables), step->tables[0].panels, builder);
        tgl_decompose_patch(&step->tables[1], AT(right_tables), step->tables[1].panels, builder);
    }
    if (step->counter_bytes > 0)
        tgl_list_patch_value(builder, TGL_VALUE_COUNTERS, 0, AT(counters), at->counters);
}

static void add_condition(tgl_launch *launch, tgl_operand operand, tgl_type type, int vec,
                          int64_t offset)
{
    if (vec == 1) return;
    launch->conditions[launch->condition_count++] =
        (tgl_condition){.kind = TGL_IF_ALIGNED,
                        .operand = operand,
                        .alignment = (int)bytes_of(type, vec),
                        .offset = bytes_of(type, offset)};
}

static void add_without_product(const tgl_gemm_step *step, const regions *at,
                                tgl_list_builder *builder)
{
    gemm_args args = known_args(step, false);
    tgl_launch launch = make_launch(step, &args, false);
    launch.kernel = step->aligned;
    launch.conditions[launch.condition_count++] = (tgl_condition){.kind = TGL_IF_NO_PRODUCT};
    add_launch(step, at, false, &args, &launch, builder);
}

static void add_aligned(const tgl_gemm_step *step, const regions *at, tgl_list_builder *builder)
{
    const tgl_shape *s = step->of->shape;
    gemm_args args = known_args(step, true);
    tgl_launch launch = make_launch(step, &args, true);
    launch.kernel = step->aligned;
    if (step->unaligned != NULL) {
        add_condition(&launch, TGL_AT_A, s->type_a, step->vec_a, offset_a(step));
        add_condition(&launch, TGL_AT_B, s->type_b, step->vec_b, offset_b(step));
    }
    add_launch(step, at, true, &args, &launch, builder);
}

static void add_unaligned(const tgl_gemm_step *step, const regions *at, tgl_list_builder *builder)
{
    gemm_args args = known_args(step, true);
    tgl_launch launch = make_launch(step, &args, true);
    launch.kernel = step->unaligned;
    launch.dynamic_shared = step->dynamic_shared_unaligned;
    add_launch(step, at, true, &args, &launch, builder);
}

void tgl_gemm_add_step(const tgl_gemm_step *step, tgl_list_builder *builder)
{
    const regions at = {.scratch = tgl_list_scratch(builder, step->scratch_bytes),
                        .counters = tgl_list_counters(builder, step->counter_bytes)};
    tgl_list_step(builder, !step->of->is_strip      ? "tiles"
                           : step->of->part.col > 0 ? "strip of columns"
                                                    : "strip of rows");
    if (!step->of->shape->device_scalars) add_without_product(step, &at, builder);
    add_aligned(step, &at, builder);
    if (step->unaligned != NULL) add_unaligned(step, &at, builder);
}

/* ---- Text ------------------------------------------------------------------------------------ */

static const char *copy_name(tgl_type type, int vec)
{
    const int64_t bytes = bytes_of(type, vec);
    if (vec == 1) return "scalar";
    if (type == TGL_F32) return vec == 4 ? "float4" : "float2";
    return bytes == 16 ? "16-byte" : bytes == 8 ? "8-byte" : "4-byte";
}

void tgl_gemm_explain_split(int splits, int64_t depth, int64_t workspace_bytes, tgl_text *out)
{
    tgl_text_add(out, "split       k %d ways, %lld deep; %.2f MB of partial sums\n", splits,
                 (long long)depth, 1e-6 * (double)workspace_bytes);
}

void tgl_gemm_explain_copies(const tgl_shape *shape, int vec_a, int vec_b, tgl_text *out)
{
    if (vec_a == 1 && vec_b == 1) return;
    tgl_text_add(out, "alignment   %s copies of A, %s copies of B%s\n",
                 copy_name(shape->type_a, vec_a), copy_name(shape->type_b, vec_b),
                 shape->pointers ? ", as their promised alignment allows"
                                 : "; scalar copies for unaligned pointers");
}
