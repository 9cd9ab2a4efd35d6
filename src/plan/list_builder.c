/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds launch lists and frees them.
 */
#include "base/integers.h"
#include "plan/launch_list.h"
#include "plan/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Appends a zeroed element to an array and increments *count. Returns the element, or NULL after a
 * failure. */
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
    enum { NUMBER = 24 }; /* maximum characters of a blank, "=" and a 64-bit number */
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

/* Reserves bytes at the end of a region of the workspace (scratch or counters). region: bytes
 * reserved so far. Returns the offset of the new bytes in the region. */
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

tgl_status tgl_list_end(tgl_list_builder *b)
{
    free(b->macros);
    b->macros = NULL;
    if (b->status == TGL_OK) b->status = tgl_list_check(b->list);
    if (b->status != TGL_OK) tgl_list_free(b->list);
    return b->status;
}
