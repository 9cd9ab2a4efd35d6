/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments and patches of the production kernels (those in kernels/gemm/): see
 * gemm_arguments.h.
 */
#include "families/gemm_arguments.h"
#include "families/decompose.h"

#include "../../kernels/lib/bundle_table.h"
#include "../../kernels/lib/group_table.h"
#include "../../kernels/lib/tma_map.h"

#include <stddef.h>

typedef struct tgl_gemm_args gemm_args;

enum { MAPS_OF_INPUTS = 2, MAPS_MAX = 3 };

/* The parameters of a kernel that takes tensor maps. */
typedef struct mapped_args {
    gemm_args args;
    struct tgl_tensor_map maps[MAPS_MAX];
} mapped_args;

const char *tgl_gemm_parameters(const tgl_gemm_step *step)
{
#define MAP "|struct tgl_tensor_map"
    static const char *const parameters[] = {"struct tgl_gemm_args", "struct tgl_gemm_args" MAP,
                                             "struct tgl_gemm_args" MAP MAP,
                                             "struct tgl_gemm_args" MAP MAP MAP};
#undef MAP
    return step->of->shape->is_bundle ? "struct tgl_bundle_args" : parameters[step->map_count];
}

int64_t tgl_gemm_offset_a(const tgl_shape *shape, const tgl_rectangle *part)
{
    return part->row * (shape->trans_a ? 1 : shape->lda);
}

int64_t tgl_gemm_offset_b(const tgl_shape *shape, const tgl_rectangle *part)
{
    const int64_t lines = shape->pairs_b != 0 ? part->col / 2 : part->col;
    return shape->trans_b ? lines * shape->ldb : part->col;
}

gemm_args tgl_gemm_known_args(const tgl_gemm_step *step, bool has_product)
{
    const tgl_shape *s = step->of->shape;
    const tgl_shape_epilogue *e = &s->epilogue;
    const bool has_weights = tgl_shape_has_weights(s);
    gemm_args args = step->args;
    args.lda = s->lda;
    args.ldb = s->ldb;
    args.ldc = s->ldc;
    args.ldd = s->ldd;
    args.stride_a = s->stride_a;
    args.stride_b = s->stride_b;
    args.stride_c = s->stride_c;
    args.stride_d = s->stride_d;
    args.ld_scale_a = s->ld_scale_a;
    args.ld_scale_b = has_weights ? s->weights.ld : s->ld_scale_b;
    args.stride_scale_a = tgl_scales_stride(s, TGL_AT_SCALE_A);
    args.stride_scale_b = has_weights ? s->weights.stride : tgl_scales_stride(s, TGL_AT_SCALE_B);
    args.stride_scale_d = tgl_scales_stride(s, TGL_AT_SCALE_D);
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

/* The bytes by which a pointer advances at each repetition of a launch. stride: bytes from one
 * problem to the next. The result is 0 for groups along K: there the pointer to the table of
 * groups advances (table_step()), and each entry of the table has the place of its group in the
 * matrices. */
static int64_t repeat_step(const tgl_gemm_step *step, int64_t stride)
{
    return step->of->shape->grouping == TGL_GROUPED_DEPTH ? 0 : stride * step->batch_step;
}

static int64_t table_step(const tgl_gemm_step *step)
{
    const bool is_depth = step->of->shape->grouping == TGL_GROUPED_DEPTH;
    return is_depth ? (int64_t)sizeof(struct tgl_group_span) * step->batch_step : 0;
}

/* Adds a patch: a run sets the pointer at offset `at` of the arguments to `offset` bytes behind the
 * beginning of an operand. stride: bytes from one problem to the next. */
static void patch_pointer(tgl_list_builder *builder, const tgl_gemm_step *step, tgl_operand operand,
                          size_t at, int64_t offset, int64_t stride)
{
    const tgl_patch patch = {.value = TGL_VALUE_OPERAND,
                             .index = (int)operand,
                             .at = (int)at,
                             .offset = offset,
                             .step = repeat_step(step, stride)};
    tgl_list_patch(builder, &patch);
}

/* patch_pointer() with offset and stride in elements. */
static void patch_operand(tgl_list_builder *builder, const tgl_gemm_step *step, tgl_operand operand,
                          size_t at, tgl_type type, int64_t offset, int64_t stride)
{
    patch_pointer(builder, step, operand, at, tgl_type_bytes(type, offset),
                  tgl_type_bytes(type, stride));
}

/* Patches the pointers to arrays of pointers. Without a product (alpha is 0) the pointers to the
 * arrays of A and B stay NULL. */
static void patch_arrays(tgl_list_builder *builder, const tgl_gemm_step *step, bool has_product)
{
    const int64_t each = (int64_t)sizeof(void *);
    if (has_product) {
        patch_pointer(builder, step, TGL_AT_A_ARRAY, AT(A_array), 0, each);
        patch_pointer(builder, step, TGL_AT_B_ARRAY, AT(B_array), 0, each);
    }
    if (!step->of->shape->in_place)
        patch_pointer(builder, step, TGL_AT_C_ARRAY, AT(C_array), 0, each);
    patch_pointer(builder, step, TGL_AT_D_ARRAY, AT(D_array), 0, each);
}

/* Whether the kernel reads a copy of the operand in scratch, and not the operand itself. */
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
    const tgl_rectangle *part = &step->of->part;
    const int64_t row = part->row, col = part->col;
    if (has_product && !is_repacked(step, TGL_AT_A))
        patch_operand(builder, step, TGL_AT_A, AT(A), tgl_shape_stored_type(s, true),
                      tgl_gemm_offset_a(s, part), s->stride_a);
    if (has_product && !is_repacked(step, TGL_AT_B))
        patch_operand(builder, step, TGL_AT_B, AT(B), tgl_shape_stored_type(s, false),
                      tgl_gemm_offset_b(s, part), s->stride_b);
    if (!s->in_place)
        patch_operand(builder, step, TGL_AT_C, AT(C), s->type_c, row * s->ldc + col, s->stride_c);
    patch_operand(builder, step, TGL_AT_D, AT(D), s->type_d, row * s->ldd + col, s->stride_d);
}

static void patch_scalars(tgl_list_builder *builder, const tgl_gemm_step *step, bool has_product)
{
    const tgl_type type = tgl_shape_scalar_type(step->of->shape);
    const bool is_f64 = type == TGL_F64, is_i32 = type == TGL_I32;
    if (step->of->shape->device_scalars) {
        patch_operand(builder, step, TGL_AT_ALPHA, AT(alpha_at), type, 0, 0);
        patch_operand(builder, step, TGL_AT_BETA, AT(beta_at), type, 0, 0);
        return;
    }
    if (has_product)
        tgl_list_patch_value(builder,
                             is_f64   ? TGL_VALUE_ALPHA_F64
                             : is_i32 ? TGL_VALUE_ALPHA_I32
                                      : TGL_VALUE_ALPHA_F32,
                             0, AT(alpha), 0);
    tgl_list_patch_value(builder,
                         is_f64   ? TGL_VALUE_BETA_F64
                         : is_i32 ? TGL_VALUE_BETA_I32
                                  : TGL_VALUE_BETA_F32,
                         0, AT(beta), 0);
}

/* Patches the pointer to the scale factors of an operand. at: offset of the pointer in the
 * arguments. line: the part's first row or column; with TGL_SCALING_LINE the kernel's first factor
 * is that of this line. Factors per block need no offset, because products with such factors have
 * no strips. */
static void patch_scale(tgl_list_builder *builder, const tgl_gemm_step *step, tgl_operand operand,
                        size_t at, tgl_scaling scaling, int64_t line)
{
    if (scaling == TGL_SCALING_NONE) return;
    patch_operand(builder, step, operand, at, step->of->shape->type_scale,
                  scaling == TGL_SCALING_LINE ? line : 0, 0);
}

/* Patches the pointers to the factors and zero points of weights, which are B. */
static void patch_weights(tgl_list_builder *builder, const tgl_gemm_step *step)
{
    const tgl_weights *w = &step->of->shape->weights;
    if (w->has_factors)
        patch_operand(builder, step, TGL_AT_SCALE_B, AT(scale_b), step->of->shape->type_scale, 0,
                      w->stride);
    if (w->has_zeros) patch_operand(builder, step, TGL_AT_ZEROS, AT(zero_b), TGL_I8, 0, w->stride);
}

/* Patches the pointers to all scale factors. Without a product (alpha is 0) the pointers for A and
 * B stay NULL, because the kernel does not read their factors. */
static void patch_scales(tgl_list_builder *builder, const tgl_gemm_step *step, bool has_product)
{
    const tgl_shape *s = step->of->shape;
    const int64_t row = step->of->part.row, col = step->of->part.col;
    if (has_product) {
        patch_scale(builder, step, TGL_AT_SCALE_A, AT(scale_a), s->scaling_a, row);
        patch_scale(builder, step, TGL_AT_SCALE_B, AT(scale_b), s->scaling_b, col);
        patch_weights(builder, step);
    }
    patch_scale(builder, step, TGL_AT_SCALE_D, AT(scale_d), s->scaling_d, s->swapped ? col : row);
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
    if (e->amax) patch_pointer(builder, step, TGL_AT_AMAX, AT(amax), 0, 0);
}

/* Patches the tensor maps. Without a product (alpha is 0) the maps of A and B are left out, because
 * the kernel does not read A and B. */
static void patch_maps(tgl_list_builder *builder, const tgl_gemm_step *step, bool has_product)
{
    for (int i = has_product ? 0 : MAPS_OF_INPUTS; i < step->map_count; i++) {
        tgl_list_patch_value(
            builder, TGL_VALUE_TENSOR_MAP, tgl_list_tensor(builder, &step->maps[i]),
            offsetof(mapped_args, maps) + (size_t)i * sizeof(struct tgl_tensor_map), 0);
    }
}

static void patch_groups(tgl_list_builder *builder, const tgl_gemm_step *step)
{
    const tgl_patch patch = {.value = TGL_VALUE_SCRATCH,
                             .at = (int)AT(groups),
                             .offset = step->groups_at,
                             .step = table_step(step)};
    tgl_list_patch(builder, &patch);
}

/* Adds a launch of a bundle: the table has the pointers, sizes and scalars of all products. */
static void add_bundle(const gemm_args *args, const tgl_launch *launch, tgl_list_builder *builder)
{
    const struct tgl_bundle_args bytes = {.args = *args};
    _Static_assert(sizeof bytes <= TGL_ARGUMENT_BYTES_MAX, "TGL_BUNDLE_MAX is too large");
    tgl_list_launch(builder, launch, &bytes, sizeof bytes);
    tgl_list_patch_value(builder, TGL_VALUE_BUNDLE, 0, offsetof(struct tgl_bundle_args, bundle), 0);
}

void tgl_gemm_add_arguments(const tgl_gemm_step *step, bool has_product, const gemm_args *args,
                            const tgl_launch *launch, tgl_list_builder *builder)
{
    if (step->of->shape->is_bundle) {
        add_bundle(args, launch, builder);
        return;
    }
    const mapped_args bytes = {.args = *args};
    const size_t map_bytes = (size_t)step->map_count * sizeof *bytes.maps;
    tgl_list_launch(builder, launch, &bytes,
                    step->map_count > 0 ? offsetof(mapped_args, maps) + map_bytes : sizeof *args);
    patch_maps(builder, step, has_product);
    (step->of->shape->pointers ? patch_arrays : patch_matrices)(builder, step, has_product);
    patch_scalars(builder, step, has_product);
    patch_epilogue(builder, step);
    patch_scales(builder, step, has_product);
    tgl_list_patch_value(builder, TGL_VALUE_COUNT, 0, AT(batch), 0);
    if (step->scratch_bytes > 0)
        tgl_list_patch_value(builder, TGL_VALUE_SCRATCH, 0, AT(workspace), step->scratch_at);
    if (step->of->shape->grouping != TGL_GROUPED_NONE) patch_groups(builder, step);
    if (step->tables != NULL) {
        tgl_decompose_patch(&step->tables[0], AT(left_tables), step->tables[0].panels, builder);
        tgl_decompose_patch(&step->tables[1], AT(right_tables), step->tables[1].panels, builder);
    }
    if (step->counter_bytes > 0)
        tgl_list_patch_value(builder, TGL_VALUE_COUNTERS, 0, AT(counters), step->counters_at);
}
