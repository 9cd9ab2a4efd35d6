/* SPDX-License-Identifier: Apache-2.0
 *
 * Building launch lists, checking them, and filling in the arguments of a run.
 */
#include "plan/launch_list.h"
#include "base/integers.h"
#include "plan/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTER_BYTES = 8, TENSOR_MAP_BYTES = 128, TENSOR_MAP_ALIGNMENT = 64 };

/* ---- Memory ---------------------------------------------------------------------------------- */

static void free_step(tgl_step *step)
{
    for (int i = 0; i < step->launch_count; i++) {
        free(step->launches[i].arguments);
        free(step->launches[i].patches);
    }
    free(step->launches);
}

void tgl_list_free(tgl_launch_list *list)
{
    for (int i = 0; i < list->step_count; i++)
        free_step(&list->steps[i]);
    for (int i = 0; i < list->kernel_count; i++)
        free(list->kernels[i]);
    free(list->steps);
    free(list->maps);
    free(list->flags);
    free(list->kernels);
    *list = (tgl_launch_list){.step_count = 0};
}

static void stick(tgl_list_builder *b, tgl_status status)
{
    if (b->status == TGL_OK) b->status = status;
}

static void stick_no_memory(tgl_list_builder *b)
{
    stick(b, tgl_fail(TGL_NO_MEMORY, "no memory for a launch list"));
}

/* Appends an element to an array. Returns its address, or NULL after a failure. */
static void *append(tgl_list_builder *b, void *array, int *count, size_t element)
{
    void **at = array;
    if (b->status != TGL_OK) return NULL;
    void *grown = realloc(*at, (size_t)(*count + 1) * element);
    if (grown == NULL) {
        stick_no_memory(b);
        return NULL;
    }
    *at = grown;
    return memset((char *)grown + (size_t)(*count)++ * element, 0, element);
}

/* ---- Building -------------------------------------------------------------------------------- */

void tgl_list_begin(tgl_list_builder *b, tgl_launch_list *list)
{
    *list = (tgl_launch_list){.step_count = 0};
    *b = (tgl_list_builder){.list = list, .status = TGL_OK};
}

void tgl_list_macro(tgl_list_builder *b, const char *name, int64_t value)
{
    enum { NUMBER = 24 }; /* maximum length of "=", a 64-bit number and a blank */
    const size_t need = b->macro_length + strlen(name) + NUMBER + 1;
    if (b->status != TGL_OK) return;
    if (need > b->macro_room) {
        char *grown = realloc(b->macros, 2 * need);
        if (grown == NULL) {
            stick_no_memory(b);
            return;
        }
        b->macros = grown;
        b->macro_room = 2 * need;
    }
    b->macro_length +=
        (size_t)snprintf(b->macros + b->macro_length, b->macro_room - b->macro_length, "%s%s=%lld",
                         b->macro_length > 0 ? " " : "", name, (long long)value);
}

const tgl_kernel *tgl_list_kernel(tgl_list_builder *b, const tgl_kernel *kernel)
{
    tgl_launch_list *list = b->list;
    tgl_kernel whole = *kernel;
    whole.macros = b->macro_length > 0 ? b->macros : "";
    b->macro_length = 0;
    for (int i = 0; i < list->kernel_count && b->status == TGL_OK; i++)
        if (tgl_kernel_is_same(list->kernels[i], &whole)) return list->kernels[i];
    tgl_kernel **place = append(b, &list->kernels, &list->kernel_count, sizeof(void *));
    if (place == NULL) return NULL;
    *place = tgl_kernel_copy(&whole);
    if (*place == NULL) stick_no_memory(b);
    return *place;
}

/* Reserves bytes in a region of the workspace. Returns their offset. */
static int64_t reserve(tgl_list_builder *b, size_t *region, int64_t bytes)
{
    const int64_t at = (int64_t)*region;
    if (bytes < 0 || bytes > INT64_MAX / 2 - at) {
        stick(b, tgl_fail(TGL_TOO_LARGE, "the workspace of a launch list does not fit in 63 bits"));
        return 0;
    }
    *region = (size_t)(at + tgl_round_up(bytes, TGL_WORKSPACE_ALIGNMENT));
    return at;
}

int64_t tgl_list_scratch(tgl_list_builder *b, int64_t bytes)
{
    return reserve(b, &b->list->scratch_bytes, bytes);
}

int64_t tgl_list_counters(tgl_list_builder *b, int64_t bytes)
{
    return reserve(b, &b->list->counter_bytes, bytes);
}

void tgl_list_keep(tgl_list_builder *b, tgl_operand operand, int64_t bytes)
{
    size_t alone = 0;
    reserve(b, &alone, bytes);
    b->list->kept_bytes[operand] = bytes;
}

void tgl_list_step(tgl_list_builder *b, const char *what)
{
    tgl_step *step = append(b, &b->list->steps, &b->list->step_count, sizeof *step);
    if (step != NULL) step->what = what;
}

static tgl_step *latest_step(const tgl_list_builder *b)
{
    return b->list->step_count > 0 ? &b->list->steps[b->list->step_count - 1] : NULL;
}

static tgl_launch *latest_launch(const tgl_list_builder *b)
{
    const tgl_step *step = latest_step(b);
    return step != NULL && step->launch_count > 0 ? &step->launches[step->launch_count - 1] : NULL;
}

void tgl_list_launch(tgl_list_builder *b, const tgl_launch *launch, const void *arguments,
                     size_t argument_bytes)
{
    tgl_step *step = latest_step(b);
    if (b->status != TGL_OK) return;
    if (step == NULL || argument_bytes > TGL_ARGUMENT_BYTES_MAX) {
        stick(b,
              tgl_fail(TGL_BAD_ARGUMENT, "a launch without a step, or with %zu bytes of arguments",
                       argument_bytes));
        return;
    }
    tgl_launch *own = append(b, &step->launches, &step->launch_count, sizeof *own);
    if (own == NULL) return;
    *own = *launch;
    own->patches = NULL;
    own->patch_count = 0;
    own->argument_bytes = (int)argument_bytes;
    own->arguments = malloc(argument_bytes + 1);
    if (own->arguments == NULL)
        stick_no_memory(b);
    else
        memcpy(own->arguments, arguments, argument_bytes);
}

void tgl_list_patch(tgl_list_builder *b, const tgl_patch *patch)
{
    tgl_launch *launch = latest_launch(b);
    if (b->status == TGL_OK && launch == NULL)
        stick(b, tgl_fail(TGL_BAD_ARGUMENT, "a patch without a launch"));
    if (b->status != TGL_OK) return;
    tgl_patch *own = append(b, &launch->patches, &launch->patch_count, sizeof *own);
    if (own != NULL) *own = *patch;
}

void tgl_list_patch_value(tgl_list_builder *builder, tgl_value value, int index, size_t at,
                          int64_t offset)
{
    const tgl_patch patch = {.value = value, .index = index, .at = (int)at, .offset = offset};
    tgl_list_patch(builder, &patch);
}

int tgl_list_tensor(tgl_list_builder *b, const tgl_tensor *tensor)
{
    tgl_tensor *own = append(b, &b->list->maps, &b->list->map_count, sizeof *own);
    if (own == NULL) return -1;
    *own = *tensor;
    return b->list->map_count - 1;
}

int tgl_list_flag(tgl_list_builder *b, const tgl_flag *flag)
{
    tgl_flag *own = append(b, &b->list->flags, &b->list->flag_count, sizeof *own);
    if (own == NULL) return -1;
    *own = *flag;
    return b->list->flag_count - 1;
}

/* ---- Checking -------------------------------------------------------------------------------- */

static int value_bytes(tgl_value value)
{
    switch (value) {
    case TGL_VALUE_OPERAND:
    case TGL_VALUE_SCRATCH:
    case TGL_VALUE_COUNTERS:
    case TGL_VALUE_KEPT:
        return POINTER_BYTES;
    case TGL_VALUE_ALPHA_F32:
    case TGL_VALUE_BETA_F32:
    case TGL_VALUE_COUNT:
        return 4;
    case TGL_VALUE_ALPHA_F64:
    case TGL_VALUE_BETA_F64:
        return 8;
    case TGL_VALUE_TENSOR_MAP:
        return TENSOR_MAP_BYTES;
    }
    return TGL_ARGUMENT_BYTES_MAX + 1;
}

/* Whether an operand has a block, and the offset is in it. */
static bool is_in_kept(const tgl_launch_list *list, int operand, int64_t offset)
{
    return operand >= 0 && operand < TGL_KEPT_OPERANDS && offset >= 0 &&
           offset < list->kept_bytes[operand];
}

/* NULL, or why a patch is invalid. */
static const char *patch_fault(const tgl_launch_list *list, const tgl_launch *launch,
                               const tgl_patch *p)
{
    const int bytes = value_bytes(p->value);
    const int alignment = bytes == TENSOR_MAP_BYTES ? TENSOR_MAP_ALIGNMENT : bytes;
    if (p->at < 0 || p->at + bytes > launch->argument_bytes) return "a patch outside the arguments";
    if (p->at % alignment != 0) return "a patch that is not aligned";
    switch (p->value) {
    case TGL_VALUE_OPERAND:
        return p->index < 0 || p->index >= TGL_OPERANDS ? "a patch with no such operand" : NULL;
    case TGL_VALUE_TENSOR_MAP:
        return p->index < 0 || p->index >= list->map_count ? "a patch with no such map" : NULL;
    case TGL_VALUE_SCRATCH:
        return p->offset < 0 || (size_t)p->offset > list->scratch_bytes
                   ? "a patch outside the scratch"
                   : NULL;
    case TGL_VALUE_COUNTERS:
        return p->offset < 0 || (size_t)p->offset > list->counter_bytes
                   ? "a patch outside the counters"
                   : NULL;
    case TGL_VALUE_KEPT:
        return is_in_kept(list, p->index, p->offset) ? NULL : "a patch outside an operand's block";
    default:
        return NULL;
    }
}

/* NULL, or why a flag is invalid for the step that tests it. */
static const char *flag_fault(const tgl_launch_list *list, int index, int step)
{
    if (index < 0) return NULL;
    if (index >= list->flag_count) return "a launch with no such flag";
    const tgl_flag *flag = &list->flags[index];
    if (flag->set_by < 0 || flag->set_by >= step) return "a flag that no earlier step sets";
    if (flag->cleared_by < step || flag->cleared_by >= list->step_count)
        return "a flag that is not cleared by the step that looks at it, or a later one";
    if (flag->offset < 0 || flag->offset % 4 != 0 ||
        (size_t)flag->offset + 4 > list->counter_bytes || flag->mask == 0)
        return "a flag outside the counters";
    return NULL;
}

static const char *condition_fault(const tgl_launch *launch)
{
    if (launch->condition_count < 0 || launch->condition_count > TGL_CONDITIONS_MAX)
        return "too many conditions";
    for (int i = 0; i < launch->condition_count; i++) {
        const tgl_condition *c = &launch->conditions[i];
        const bool is_alignment = c->kind == TGL_IF_ALIGNED || c->kind == TGL_IF_MISALIGNED;
        if (is_alignment && (unsigned)c->operand >= TGL_OPERANDS)
            return "a condition on no operand";
        if (is_alignment && (c->alignment < 1 || (c->alignment & (c->alignment - 1)) != 0))
            return "an alignment that is no power of two";
        if (c->kind == TGL_IF_NOT_KEPT && (unsigned)c->operand >= TGL_KEPT_OPERANDS)
            return "a condition on an operand that is never kept";
    }
    return NULL;
}

static const char *cluster_fault(const tgl_launch *launch)
{
    unsigned blocks = 1;
    for (int i = 0; i < 3; i++) {
        const unsigned edge = launch->cluster[i];
        if (edge < 1 || launch->grid[i] % edge != 0)
            return "a cluster that does not divide the grid";
        blocks *= edge;
    }
    return blocks > TGL_CLUSTER_MAX ? "a cluster of too many blocks" : NULL;
}

static const char *launch_fault(const tgl_launch_list *list, int step, const tgl_launch *launch)
{
    const char *fault = condition_fault(launch);
    if (launch->kernel == NULL || launch->threads < 1) return "a launch without kernel or threads";
    if (launch->repeats < 1 || launch->count < 1 || launch->last_count < 1)
        return "a launch without problems";
    if (fault == NULL) fault = cluster_fault(launch);
    if (fault == NULL) fault = flag_fault(list, launch->flag, step);
    for (int i = 0; i < launch->patch_count && fault == NULL; i++)
        fault = patch_fault(list, launch, &launch->patches[i]);
    return fault;
}

static tgl_status check_tensor(const tgl_launch_list *list, const tgl_tensor *t)
{
    bool ok = t->operand >= 0 && t->operand < TGL_OPERANDS && t->rank >= 1 &&
              t->rank <= TGL_TENSOR_RANK_MAX &&
              (t->base == TGL_VALUE_OPERAND || t->base == TGL_VALUE_SCRATCH ||
               (t->base == TGL_VALUE_KEPT && is_in_kept(list, t->operand, t->offset)));
    for (int i = 0; i < t->rank && ok; i++)
        ok = t->size[i] > 0 && t->box[i] >= 1 && t->box[i] <= 256 &&
             (i == 0 || t->stride[i] % 16 == 0);
    return ok ? TGL_OK : tgl_fail(TGL_BAD_ARGUMENT, "a launch list has an invalid tensor map");
}

static tgl_status check_launch(const tgl_launch_list *list, int step, const tgl_launch *launch)
{
    const char *fault = launch_fault(list, step, launch);
    if (fault != NULL)
        return tgl_fail(TGL_BAD_ARGUMENT, "step %d (%s) of a launch list has %s", step,
                        list->steps[step].what, fault);
    if (launch->grid[0] < 1 || launch->grid[0] > TGL_GRID_X_MAX || launch->grid[1] < 1 ||
        launch->grid[1] > TGL_GRID_YZ_MAX || launch->grid[2] < 1 ||
        launch->grid[2] > TGL_GRID_YZ_MAX ||
        (launch->count_in_grid_z && launch->count > TGL_GRID_YZ_MAX))
        return tgl_fail(TGL_GRID_TOO_LARGE, "%s would need a grid of %u x %u x %u blocks",
                        launch->kernel->name, launch->grid[0], launch->grid[1], launch->grid[2]);
    return TGL_OK;
}

static tgl_status check(const tgl_launch_list *list)
{
    for (int i = 0; i < list->map_count; i++)
        TGL_TRY(check_tensor(list, &list->maps[i]));
    for (int i = 0; i < list->step_count; i++)
        for (int j = 0; j < list->steps[i].launch_count; j++)
            TGL_TRY(check_launch(list, i, &list->steps[i].launches[j]));
    return TGL_OK;
}

tgl_status tgl_list_end(tgl_list_builder *b)
{
    free(b->macros);
    b->macros = NULL;
    if (b->status == TGL_OK) b->status = check(b->list);
    if (b->status != TGL_OK) tgl_list_free(b->list);
    return b->status;
}

/* ---- At a run -------------------------------------------------------------------------------- */

static bool holds(const tgl_condition *c, const tgl_run *run)
{
    const uintptr_t base = (uintptr_t)run->at[c->operand];
    const bool is_aligned =
        base == 0 || ((base + (uintptr_t)c->offset) & ((uintptr_t)(unsigned)c->alignment - 1)) == 0;
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
    }
    return false;
}

const tgl_launch *tgl_step_choose(const tgl_step *step, const tgl_run *run)
{
    for (int i = 0; i < step->launch_count; i++) {
        const tgl_launch *launch = &step->launches[i];
        int j = 0;
        if (run->is_preparation && launch->part.m > 0) continue;
        while (j < launch->condition_count && holds(&launch->conditions[j], run))
            j++;
        if (j == launch->condition_count) return launch;
    }
    return NULL;
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

/* alpha of a run; 0 without a product, so that an infinite alpha adds nothing. */
static double alpha_of(const tgl_run *run)
{
    return run->has_product ? run->alpha : 0;
}

/* Bytes of an operand's block in the scratch of a run; 0: the run does not make it. */
static size_t made_bytes(const tgl_launch_list *list, const tgl_run *run, int operand)
{
    const bool is_made = run == NULL || (run->kept[operand] == NULL && !run->is_preparation);
    return is_made ? (size_t)tgl_round_up(list->kept_bytes[operand], TGL_WORKSPACE_ALIGNMENT) : 0;
}

size_t tgl_list_scratch_of(const tgl_launch_list *list, const tgl_run *run)
{
    return list->scratch_bytes + made_bytes(list, run, TGL_AT_A) + made_bytes(list, run, TGL_AT_B);
}

/* The block of an operand, kept from an earlier run or in the scratch of this one. NULL: it is not
 * used. */
static const char *kept_block(const tgl_launch_list *list, const tgl_run *run, int operand,
                              const char *scratch)
{
    if (run->kept[operand] != NULL) return run->kept[operand];
    if (scratch == NULL || made_bytes(list, run, operand) == 0) return NULL;
    return scratch + list->scratch_bytes +
           (operand == TGL_AT_B ? made_bytes(list, run, TGL_AT_A) : 0);
}

static const void *tensor_address(const tgl_launch_list *list, const tgl_tensor *t,
                                  const tgl_run *run, const char *scratch)
{
    const char *base = t->base == TGL_VALUE_SCRATCH ? scratch
                       : t->base == TGL_VALUE_KEPT  ? kept_block(list, run, t->operand, scratch)
                                                    : run->at[t->operand];
    return base != NULL ? base + t->offset : NULL;
}

tgl_status tgl_launch_fill(const tgl_launch_list *list, const tgl_launch *launch,
                           const tgl_run *run, char *counters, char *scratch, int64_t repeat,
                           tgl_encode_fn *encode, void *context, unsigned char *bytes)
{
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
        case TGL_VALUE_COUNTERS:
            put_pointer(to, counters, offset);
            break;
        case TGL_VALUE_KEPT:
            put_pointer(to, kept_block(list, run, p->index, scratch), offset);
            break;
        case TGL_VALUE_ALPHA_F32:
            put_f32(to, alpha_of(run));
            break;
        case TGL_VALUE_BETA_F32:
            put_f32(to, run->beta);
            break;
        case TGL_VALUE_ALPHA_F64: {
            const double alpha = alpha_of(run);
            memcpy(to, &alpha, sizeof alpha);
            break;
        }
        case TGL_VALUE_BETA_F64:
            memcpy(to, &run->beta, sizeof run->beta);
            break;
        case TGL_VALUE_COUNT: {
            const int count = tgl_launch_count(launch, repeat);
            memcpy(to, &count, sizeof count);
            break;
        }
        case TGL_VALUE_TENSOR_MAP: {
            const tgl_tensor *map = &list->maps[p->index];
            if (map->is_optional && !begins_aligned(map, run)) break; /* zeros */
            TGL_TRY(encode(context, map, p->index, tensor_address(list, map, run, scratch), to));
            break;
        }
        }
    }
    return TGL_OK;
}
