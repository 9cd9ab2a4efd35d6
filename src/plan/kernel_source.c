/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and compares kernel descriptions, and finds embedded sources.
 */
#include "plan/kernel_source.h"
#include "plan/sources.h"

#include <stdlib.h>
#include <string.h>

/* The kernels that measure the peak rates of a GPU. src/cuda/cuda_measure.c chooses the grids. */
static const tgl_kernel measure_kernels[] = {
    {.name = "measure/ffma",
     .file = "measure/fma.cu",
     .symbol = "measure_fma",
     .parameters = "int|float|float|float *",
     .macros = "REAL=float"},
    {.name = "measure/dfma",
     .file = "measure/fma.cu",
     .symbol = "measure_fma",
     .parameters = "int|double|double|double *",
     .macros = "REAL=double"},
    {.name = "measure/copy",
     .file = "measure/copy.cu",
     .symbol = "measure_copy",
     .parameters = "const float4 *|float4 *|long long",
     .macros = ""},
};
enum { MEASURE_KERNELS = sizeof measure_kernels / sizeof measure_kernels[0] };

static bool is_same_text(const char *x, const char *y)
{
    return x == y || (x != NULL && y != NULL && strcmp(x, y) == 0);
}

bool tgl_kernel_is_same(const tgl_kernel *x, const tgl_kernel *y)
{
    return x == y ||
           (is_same_text(x->file, y->file) && is_same_text(x->symbol, y->symbol) &&
            is_same_text(x->macros, y->macros) && is_same_text(x->expression, y->expression) &&
            is_same_text(x->source, y->source));
}

tgl_kernel *tgl_kernel_copy(const tgl_kernel *kernel)
{
    const char *const texts[] = {kernel->name,       kernel->file,   kernel->symbol,
                                 kernel->parameters, kernel->macros, kernel->expression,
                                 kernel->source};
    enum { TEXTS = sizeof texts / sizeof texts[0] };
    size_t bytes = sizeof(tgl_kernel);
    for (int i = 0; i < TEXTS; i++)
        bytes += texts[i] != NULL ? strlen(texts[i]) + 1 : 0;
    tgl_kernel *copy = malloc(bytes);
    if (copy == NULL) return NULL;
    *copy = *kernel;
    const char **const places[TEXTS] = {&copy->name,       &copy->file,   &copy->symbol,
                                        &copy->parameters, &copy->macros, &copy->expression,
                                        &copy->source};
    char *at = (char *)(copy + 1);
    for (int i = 0; i < TEXTS; i++) {
        if (texts[i] == NULL) continue;
        *places[i] = at;
        at = stpcpy(at, texts[i]) + 1;
    }
    return copy;
}

const tgl_kernel *tgl_measure_kernel_at(int index)
{
    return index >= 0 && index < MEASURE_KERNELS ? &measure_kernels[index] : NULL;
}

const tgl_kernel *tgl_measure_kernel_find(const char *name)
{
    for (int i = 0; i < MEASURE_KERNELS; i++)
        if (strcmp(measure_kernels[i].name, name) == 0) return &measure_kernels[i];
    return NULL;
}

const char *tgl_kernel_source(const char *file)
{
    for (const tgl_source_file *source = tgl_source_files; source->name != NULL; source++)
        if (strcmp(source->name, file) == 0) return source->text;
    return NULL;
}

const char *tgl_kernel_source_key(const char *text)
{
    for (const tgl_source_file *source = tgl_source_files; source->name != NULL; source++)
        if (source->text == text) return source->digest;
    return text;
}

bool tgl_source_is_header(const tgl_source_file *file)
{
    const size_t length = strlen(file->name);
    return length > 2 && strcmp(file->name + length - 2, ".h") == 0;
}
