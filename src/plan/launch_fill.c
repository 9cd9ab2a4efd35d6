/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepares the launches of a run: chooses the alternative of each step, and copies its arguments
 * with the run's pointers and scalars filled in.
 */
#include "base/integers.h"
#include "plan/bundle.h"
#include "plan/launch_list.h"
#include "plan/limits.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static bool holds(const tgl_condition *c, const tgl_run *run)
{
    const uintptr_t base = c->is_in_block ? 0 : (uintptr_t)run->at[c->operand];
    const bool is_aligned =
        (base == 0 && !c->is_in_block) ||
        ((base + (uintptr_t)c->offset) & ((uintptr_t)(unsigned)c->alignment - 1)) == 0;
    switch (c->kind) {
    case TGL_IF_ALIGNED:
        return is_aligned;
    case TGL_IF_MISALIGNED:
        return !is_aligned;
    case TGL_IF_NO_PRODUCT:
        return !run->has_product;
    case TGL_IF_PRODUCT:
        return run->has_product;
    case TGL_IF_NOT_KEPT:
        return run->is_preparation ? c->operand == run->prepares : run->kept[c->operand] == NULL;
    case TGL_IF_COMBINED:
        return tgl_run_is_combined(run, c->combining);
    case TGL_IF_BETA:
        return tgl_run_has_beta(run);
    }
    return false;
}

static bool is_for_kept(const tgl_launch *launch)
{
    for (int i = 0; i < launch->condition_count; i++)
        if (launch->conditions[i].kind == TGL_IF_NOT_KEPT) return true;
    return false;
}

const tgl_launch *tgl_step_choose(const tgl_step *step, const tgl_run *run)
{
    for (int i = 0; i < step->launch_count; i++) {
        const tgl_launch *launch = &step->launches[i];
        int j = 0;
        if (run->is_preparation && !is_for_kept(launch)) continue;
        while (j < launch->condition_count && holds(&launch->conditions[j], run))
            j++;
        if (j == launch->condition_count) return launch;
    }
    return NULL;
}

const tgl_launch *tgl_step_choose_aligned(const tgl_step *step)
{
    /* NULL operands count as aligned. alpha_imag is not 0, so that a complex product takes its last
     * step. */
    const tgl_run run = {.alpha = 1, .alpha_imag = 1, .beta = 1, .has_product = true};
    return tgl_step_choose(step, &run);
}

static bool begins_aligned(const tgl_tensor *map, const tgl_run *run)
{
    if (map->base != TGL_VALUE_OPERAND || run->at[map->operand] == NULL) return true;
    return ((uintptr_t)run->at[map->operand] + (uintptr_t)map->offset) % TGL_MAP_ALIGNMENT == 0;
}

bool tgl_list_takes(const tgl_launch_list *list, const tgl_run *run)
{
    for (int i = 0; i < list->step_count && list->map_count > 0; i++) {
        const tgl_launch *launch = tgl_step_choose(&list->steps[i], run);
        for (int j = 0; launch != NULL && j < launch->patch_count; j++) {
            const tgl_patch *p = &launch->patches[j];
            if (p->value != TGL_VALUE_TENSOR_MAP) continue;
            const tgl_tensor *map = &list->maps[p->index];
            if (!map->is_optional && !begins_aligned(map, run)) return false;
        }
    }
    return true;
}

static void put_pointer(unsigned char *to, const void *base, int64_t offset)
{
    const char *pointer = base != NULL ? (const char *)base + offset : NULL;
    memcpy(to, &pointer, sizeof pointer);
}

static void put_f32(unsigned char *to, double value)
{
    const float narrow = (float)value;
    memcpy(to, &narrow, sizeof narrow);
}

/* Writes an integer scalar. value: a 32-bit integer, or NaN if the kernel reads the scalar from
 * device memory; then 0 is written. */
static void put_i32(unsigned char *to, double value)
{
    const int32_t integer = isnan(value) ? 0 : (int32_t)value;
    memcpy(to, &integer, sizeof integer);
}

/* Bytes in the run's scratch for the result of an operand's pre-pass (the kernels that convert it).
 * 0: it is in run->kept, or the run is a preparation. run: NULL for a run without kept results. */
static size_t computed_bytes(const tgl_launch_list *list, const tgl_run *run, int operand)
{
    const bool is_computed = run == NULL || (run->kept[operand] == NULL && !run->is_preparation);
    return is_computed ? (size_t)tgl_round_up(list->kept_bytes[operand], TGL_WORKSPACE_ALIGNMENT)
                       : 0;
}

/* Bytes in the run's scratch for the copy of C of a complex product; 0: the run needs none. */
static size_t saved_bytes(const tgl_launch_list *list, const tgl_run *run)
{
    const bool is_saved = run == NULL || (!run->is_preparation && tgl_run_has_beta(run) &&
                                          tgl_run_is_combined(run, list->combining));
    return is_saved ? list->saved_bytes : 0;
}

/* Byte offset of the copy of C in the run's scratch. */
static size_t saved_at(const tgl_launch_list *list, const tgl_run *run)
{
    return list->scratch_bytes + computed_bytes(list, run, TGL_AT_A) +
           computed_bytes(list, run, TGL_AT_B);
}

size_t tgl_list_scratch_of(const tgl_launch_list *list, const tgl_run *run)
{
    return saved_at(list, run) + saved_bytes(list, run);
}

/* Address of the result of an operand's pre-pass (the kernels that convert it): run->kept, from an
 * earlier run or for a preparation, or else in the scratch of this run. NULL: the run uses none. */
static const char *kept_block(const tgl_launch_list *list, const tgl_run *run, int operand,
                              const char *scratch)
{
    if (run->kept[operand] != NULL) return run->kept[operand];
    if (scratch == NULL || computed_bytes(list, run, operand) == 0) return NULL;
    return scratch + list->scratch_bytes +
           (operand == TGL_AT_B ? computed_bytes(list, run, TGL_AT_A) : 0);
}

static const void *tensor_address(const tgl_launch_list *list, const tgl_tensor *t,
                                  const tgl_run *run, const char *scratch)
{
    const char *base = t->base == TGL_VALUE_SCRATCH ? scratch
                       : t->base == TGL_VALUE_KEPT  ? kept_block(list, run, t->operand, scratch)
                                                    : run->at[t->operand];
    return base != NULL ? base + t->offset : NULL;
}

/* alpha for the kernels of the real product. It is 0 without a product, so that an infinite alpha
 * adds nothing, and 1 if the last step of a complex product applies alpha. */
static double alpha_of(const tgl_launch_list *list, const tgl_run *run)
{
    if (!run->has_product) return 0;
    return tgl_run_is_combined(run, list->combining) ? 1 : run->alpha;
}

static double beta_of(const tgl_launch_list *list, const tgl_run *run)
{
    return tgl_run_is_combined(run, list->combining) ? 0 : run->beta;
}

unsigned tgl_launch_width(const tgl_launch *launch, const tgl_run *run, unsigned planned)
{
    return launch->is_bundle ? (unsigned)run->bundle->tiles : planned;
}

/* Copies the table up to the last product; the kernel does not read the rest. */
static void put_bundle(unsigned char *to, const struct tgl_bundle_table *bundle)
{
    memcpy(to, bundle,
           offsetof(struct tgl_bundle_table, members) +
               (size_t)bundle->count * sizeof bundle->members[0]);
}

tgl_status tgl_launch_fill(const tgl_launch_list *list, const tgl_launch *launch,
                           const tgl_run *run, char *counters, char *scratch, int64_t repeat,
                           tgl_encode_fn *encode, void *context, unsigned char *bytes)
{
    const double alpha = alpha_of(list, run), beta = beta_of(list, run);
    const int count = tgl_launch_count(launch, repeat);
    memcpy(bytes, launch->arguments, (size_t)launch->argument_bytes);
    for (int i = 0; i < launch->patch_count; i++) {
        const tgl_patch *p = &launch->patches[i];
        const int64_t offset = p->offset + repeat * p->step;
        unsigned char *to = bytes + p->at;
        switch (p->value) {
        case TGL_VALUE_OPERAND:
            put_pointer(to, run->at[p->index], offset);
            break;
        case TGL_VALUE_SCRATCH:
            put_pointer(to, scratch, offset);
            break;
        case TGL_VALUE_SCALARS:
            put_pointer(to, run->is_preparation ? NULL : scratch, offset);
            break;
        case TGL_VALUE_COUNTERS:
            put_pointer(to, counters, offset);
            break;
        case TGL_VALUE_KEPT:
            put_pointer(to, kept_block(list, run, p->index, scratch), offset);
            break;
        case TGL_VALUE_ALPHA_F32:
            put_f32(to, alpha);
            break;
        case TGL_VALUE_BETA_F32:
            put_f32(to, beta);
            break;
        case TGL_VALUE_ALPHA_F64:
            memcpy(to, &alpha, sizeof alpha);
            break;
        case TGL_VALUE_BETA_F64:
            memcpy(to, &beta, sizeof beta);
            break;
        case TGL_VALUE_COMPLEX_ALPHA:
            memcpy(to, (const double[]){run->alpha, run->alpha_imag}, 2 * sizeof(double));
            break;
        case TGL_VALUE_COMPLEX_BETA:
            memcpy(to, (const double[]){run->beta, run->beta_imag}, 2 * sizeof(double));
            break;
        case TGL_VALUE_ALPHA_I32:
            put_i32(to, alpha);
            break;
        case TGL_VALUE_BETA_I32:
            put_i32(to, run->beta);
            break;
        case TGL_VALUE_SAVED_C:
            put_pointer(to, saved_bytes(list, run) > 0 ? scratch : NULL,
                        (int64_t)saved_at(list, run));
            break;
        case TGL_VALUE_COUNT:
            memcpy(to, &count, sizeof count);
            break;
        case TGL_VALUE_BUNDLE:
            put_bundle(to, run->bundle);
            break;
        case TGL_VALUE_TENSOR_MAP: {
            const tgl_tensor *map = &list->maps[p->index];
            /* If D is unaligned, the bytes of its map stay 0. The kernel itself tests whether D is
             * aligned before it uses the map. */
            if (map->is_optional && !begins_aligned(map, run)) break;
            TGL_TRY(encode(context, map, p->index, tensor_address(list, map, run, scratch), to));
            break;
        }
        }
    }
    return TGL_OK;
}
