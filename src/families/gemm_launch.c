/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicts and writes the steps of the production families: see gemm_launch.h.
 */
#include "families/gemm_launch.h"
#include "families/gemm_arguments.h"
#include "families/groups.h"

#include <limits.h>

/* ---- Prediction ------------------------------------------------------------------------------ */

const char *tgl_gemm_cut_tiles(const tgl_shape *s, int bm, int bn, bool is_split,
                               tgl_gemm_step *step)
{
    const int64_t rows = tgl_ceil_div(s->m, bm);
    step->batch_step = (int)tgl_min64(s->batch, TGL_GRID_YZ_MAX);
    step->tiles = rows * tgl_ceil_div(s->n, bn);
    step->args.raster = (int)tgl_min64(rows, TGL_RASTER);
    if (step->tiles > (is_split ? TGL_GRID_X_MAX / TGL_SPLITS_MAX : TGL_GRID_X_MAX))
        return tgl_grid_too_large;
    /* The kernel numbers the split tiles of all problems of a launch in an int. */
    if (is_split && step->tiles > INT_MAX / step->batch_step) return tgl_grid_too_large;
    return NULL;
}

bool tgl_gemm_predict_step(const tgl_chip *chip, const tgl_shape *shape, const tgl_gemm_step *step,
                           tgl_candidate *c)
{
    c->threads = step->threads;
    c->registers = step->registers;
    c->shared_bytes = step->static_shared + step->dynamic_shared;
    c->splits = step->args.splits;
    c->workspace_bytes = tgl_round_up(step->scratch_bytes, TGL_WORKSPACE_ALIGNMENT) +
                         tgl_round_up(step->counter_bytes, TGL_WORKSPACE_ALIGNMENT);
    c->launches = tgl_ceil_div(shape->batch, step->batch_step);
    c->is_predicted = true;
    return tgl_predict_occupancy(chip, step->dynamic_shared_unaligned, c);
}

/* ---- Kernels --------------------------------------------------------------------------------- */

void tgl_add_macros(tgl_list_builder *builder, const tgl_macro *macros, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tgl_list_macro(builder, macros[i].name, macros[i].value);
}

/* The macro SCALE_D of a kernel (lib/element.h). If the problem is swapped (transposed), the
 * kernel's columns are the problem's rows. */
static int scale_of_d(const tgl_shape *s)
{
    enum { COLUMNS = 3 };
    return s->scaling_d == TGL_SCALING_LINE && s->swapped ? COLUMNS : (int)s->scaling_d;
}

/* Adds the macros of a kernel that depend only on the epilogue and the operands. */
static void add_common_macros(const tgl_shape *s, tgl_list_builder *builder)
{
    const tgl_shape_epilogue *e = &s->epilogue;
    const struct {
        const char *name;
        int value, otherwise; /* otherwise: the macro's default value in the kernel */
    } macros[] = {{"BIAS", (int)e->bias, 0},
                  {"ACTIVATION", (int)e->activation, 0},
                  {"RESIDUAL", e->residual, 0},
                  {"EXPRESSION", e->expression != NULL, 0},
                  {"AMAX", e->amax, 0},
                  {"SEPARATE_D", !s->in_place, 0},
                  {"DEVICE_SCALARS", s->device_scalars, 0},
                  {"GROUPED", tgl_grouped_macro(s), 0},
                  {"BUNDLE", s->is_bundle, 0},
                  {"SCALE_A", (int)s->scaling_a, 0},
                  {"SCALE_B", (int)s->scaling_b, 0},
                  {"SCALE_D", scale_of_d(s), 0},
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

/* Adds a kernel with the macros that have been added since the last kernel. */
static const tgl_kernel *add_kernel(const tgl_gemm_step *step, bool is_unaligned,
                                    tgl_list_builder *builder)
{
    const bool is_larger = is_unaligned && step->local_bytes_unaligned > 0;
    const tgl_kernel kernel = {
        .name = step->name,
        .file = step->file,
        .symbol = step->symbol,
        .parameters = tgl_gemm_parameters(step),
        .expression = step->of->shape->epilogue.expression,
        .needs = step->needs,
        .local_bytes = is_larger ? step->local_bytes_unaligned : step->local_bytes,
    };
    add_common_macros(step->of->shape, builder);
    return tgl_list_kernel(builder, &kernel);
}

/* Whether matrices that begin at any element need a second, unaligned kernel. They do not if the
 * aligned kernel copies single elements, nor for arrays of pointers, whose alignment the caller
 * guarantees. */
static bool has_unaligned(const tgl_gemm_step *step)
{
    return !step->of->shape->pointers && (step->vec_a > 1 || step->vec_b > 1);
}

/* ---- Order ----------------------------------------------------------------------------------- */

static bool is_with_product(const tgl_launch *launch)
{
    for (int i = 0; i < launch->condition_count; i++)
        if (launch->conditions[i].kind == TGL_IF_NO_PRODUCT) return false;
    return true;
}

/* Whether a launch may start while the previous launch still runs, and may let the next launch
 * start while it runs itself. With more blocks than SMs an early start would distribute the blocks
 * unevenly, because some SMs are still busy. Families with may_overlap are exceptions: their blocks
 * are many and short, or persistent and fill all SMs, so that each starts where an earlier block
 * has ended. */
static bool may_overlap(const tgl_launch *launch, const tgl_chip *chip)
{
    const int64_t blocks = (int64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    return blocks <= chip->sms || launch->may_overlap;
}

/* Whether each launch of the list so far may overlap with the launch before it. has_product: in
 * runs with a product; else in runs without one. All alternatives with a product have the same
 * grid. */
static bool all_overlap(const tgl_launch_list *list, const tgl_chip *chip, bool has_product)
{
    for (int i = 0; i < list->step_count; i++)
        for (int j = 0; j < list->steps[i].launch_count; j++) {
            const tgl_launch *launch = &list->steps[i].launches[j];
            if (is_with_product(launch) == has_product && !may_overlap(launch, chip)) return false;
        }
    return true;
}

/* A strip is a part of D beside the tiles, in a launch of its own. It starts when all blocks of the
 * previous launch have started, and fills the SMs that the last wave of that launch leaves idle.
 * Each block of the previous launch has waited for all launches before it, so the strip need not
 * wait for those launches. */
static tgl_ordering order_of(const tgl_gemm_step *step, bool overlaps)
{
    if ((step->of->chip->features & TGL_HAS_OVERLAP) == 0) return TGL_AFTER_ALL;
    return step->of->is_strip ? TGL_BESIDE : overlaps ? TGL_WAITS : TGL_AFTER_ALL;
}

/* ---- Alternatives ---------------------------------------------------------------------------- */

/* Makes the launch, except its conditions and its order (tgl_ordering). */
static tgl_launch make_launch(const tgl_gemm_step *step, bool is_unaligned, bool has_product,
                              int cluster)
{
    const int64_t batch = step->of->shape->batch;
    const int64_t repeats = tgl_ceil_div(batch, step->batch_step);
    const int64_t blocks = has_product || step->tiles == 0 ? step->blocks : step->tiles;
    const bool is_larger = is_unaligned && step->dynamic_shared_unaligned > 0;
    return (tgl_launch){
        .kernel = is_unaligned ? step->unaligned : step->aligned,
        .grid = {(unsigned)blocks, 1, step->loops_over_batch ? 1 : (unsigned)step->batch_step},
        .cluster = {(unsigned)cluster, 1, 1},
        .threads = (unsigned)step->threads,
        .dynamic_shared = is_larger ? step->dynamic_shared_unaligned : step->dynamic_shared,
        .flag = -1,
        .part = step->of->part,
        .repeats = repeats,
        .count = step->batch_step,
        .last_count = (int)(batch - (repeats - 1) * step->batch_step),
        .count_in_grid_z = !step->loops_over_batch,
        .is_persistent = step->is_persistent && !step->has_whole_grid,
        .is_bundle = step->of->shape->is_bundle,
        .may_overlap = step->of->choice.family->may_overlap,
    };
}

static void add_condition(tgl_launch *launch, tgl_operand operand, tgl_type type, int vec,
                          int64_t offset)
{
    if (vec == 1) return;
    const int size = (int)tgl_type_size(type);
    launch->conditions[launch->condition_count++] = (tgl_condition){.kind = TGL_IF_ALIGNED,
                                                                    .operand = operand,
                                                                    .alignment = vec * size,
                                                                    .offset = offset * size};
}

static void add_conditions(const tgl_gemm_step *step, bool is_unaligned, bool has_product,
                           tgl_launch *launch)
{
    const tgl_shape *s = step->of->shape;
    const tgl_rectangle *part = &step->of->part;
    if (!has_product) launch->conditions[launch->condition_count++].kind = TGL_IF_NO_PRODUCT;
    if (!has_product || is_unaligned || step->unaligned == NULL) return;
    add_condition(launch, TGL_AT_A, s->type_a, step->vec_a, tgl_gemm_offset_a(s, part));
    add_condition(launch, TGL_AT_B, s->type_b, step->vec_b, tgl_gemm_offset_b(s, part));
}

static void add_alternative(const tgl_gemm_step *step, bool is_unaligned, bool has_product,
                            tgl_list_builder *builder)
{
    const tgl_chip *chip = step->of->chip;
    if (builder->status != TGL_OK) return;
    struct tgl_gemm_args args = tgl_gemm_known_args(step, has_product);
    tgl_launch launch = make_launch(step, is_unaligned, has_product, args.cluster);
    add_conditions(step, is_unaligned, has_product, &launch);
    const bool overlaps = may_overlap(&launch, chip);
    launch.order = order_of(step, overlaps);
    args.overlaps =
        !step->of->is_last || (overlaps && all_overlap(builder->list, chip, has_product));
    tgl_gemm_add_arguments(step, has_product, &args, &launch, builder);
}

void tgl_gemm_launch(const tgl_partition *of, tgl_gemm_step *step, tgl_macros_fn *add_macros,
                     const void *geometry, tgl_list_builder *builder)
{
    const tgl_shape part = tgl_part_shape(of->shape, &of->part);
    step->of = of;
    if (of->shape->grouping != TGL_GROUPED_NONE)
        step->groups_at = tgl_groups_add_step(of, step->group_tile, step->args.raster, builder);
    add_macros(geometry, &part, false, builder);
    step->aligned = add_kernel(step, false, builder);
    if (has_unaligned(step)) {
        add_macros(geometry, &part, true, builder);
        step->unaligned = add_kernel(step, true, builder);
    }
    step->scratch_at = tgl_list_scratch(builder, step->scratch_bytes);
    step->counters_at = tgl_list_counters(builder, step->counter_bytes);
    tgl_list_step(builder, !of->is_strip      ? "tiles"
                           : of->part.col > 0 ? "strip of columns"
                                              : "strip of rows");
    if (!of->shape->device_scalars && !of->shape->is_bundle)
        add_alternative(step, false, false, builder);
    add_alternative(step, false, true, builder);
    if (step->unaligned != NULL) add_alternative(step, true, true, builder);
}

/* ---- Text ------------------------------------------------------------------------------------ */

void tgl_gemm_explain_split(const tgl_gemm_step *step, int64_t first_depth, tgl_text *out)
{
    const struct tgl_gemm_args *args = &step->args;
    const long long tiles = step->tiles;
    if (args->splits < 2) return;
    tgl_text_add(out, "split       k %d ways, ", args->splits);
    if (first_depth > 0) tgl_text_add(out, "first %lld and then ", (long long)first_depth);
    tgl_text_add(out, "%d deep", args->k_chunk);
    if (tiles > 0) tgl_text_add(out, ", in %lld of %lld tiles", tiles - args->tiles_whole, tiles);
    tgl_text_add(out, "; %.2f MB of partial sums\n", 1e-6 * (double)step->scratch_bytes);
}

static const char *copy_name(tgl_type type, int vec)
{
    const int bytes = vec * (int)tgl_type_size(type);
    if (vec == 1) return "scalar";
    if (type == TGL_F32) return vec == 4 ? "float4" : "float2";
    return bytes == 16 ? "16-byte" : bytes == 8 ? "8-byte" : "4-byte";
}

void tgl_gemm_explain_copies(const tgl_shape *shape, const tgl_gemm_step *step, tgl_text *out)
{
    if (step->vec_a == 1 && step->vec_b == 1) return;
    tgl_text_add(out, "alignment   %s copies of A, %s copies of B%s\n",
                 copy_name(shape->type_a, step->vec_a), copy_name(shape->type_b, step->vec_b),
                 shape->pointers ? ", as their promised alignment allows"
                                 : "; scalar copies for unaligned pointers");
}
