/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of kernels, and the lookups in it and in the embedded sources.
 */
#include "plan/registry.h"
#include "plan/sources.h"

#include <string.h>

/* Ladder rungs in their order. Columns as in registry.h: the tile macros are the file's defaults,
 * which block_m, block_n and threads must agree with. */
static const tgl_kernel kernels[] = {
    {.name = "ladder/naive",
     .file = "ladder/01_naive.cu",
     .symbol = "sgemm_naive",
     .defines = "",
     .block_m = 32,
     .block_n = 8,
     .threads = 256},
};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

/* See src/cuda/measure.c, which chooses their grids itself. */
static const tgl_kernel measure_kernels[] = {
    {.name = "measure/ffma",
     .file = "measure/ffma.cu",
     .symbol = "measure_ffma",
     .defines = "",
     .threads = 256},
    {.name = "measure/dfma",
     .file = "measure/dfma.cu",
     .symbol = "measure_dfma",
     .defines = "",
     .threads = 256},
    {.name = "measure/copy",
     .file = "measure/copy.cu",
     .symbol = "measure_copy",
     .defines = "",
     .threads = 512},
};
enum { MEASURE_KERNELS = sizeof measure_kernels / sizeof measure_kernels[0] };

const tgl_kernel *tgl_kernel_at(int index)
{
    return index >= 0 && index < KERNELS ? &kernels[index] : NULL;
}

const tgl_kernel *tgl_measure_kernel_at(int index)
{
    return index >= 0 && index < MEASURE_KERNELS ? &measure_kernels[index] : NULL;
}

static const tgl_kernel *find(const tgl_kernel *table, int rows, const char *name)
{
    for (int i = 0; i < rows; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

const tgl_kernel *tgl_kernel_find(const char *name)
{
    return find(kernels, KERNELS, name);
}

const tgl_kernel *tgl_measure_kernel_find(const char *name)
{
    return find(measure_kernels, MEASURE_KERNELS, name);
}

const char *tgl_kernel_source(const char *file, unsigned long *size)
{
    for (const tgl_source_file *source = tgl_source_files; source->name != NULL; source++)
        if (strcmp(source->name, file) == 0) {
            *size = source->size;
            return source->text;
        }
    return NULL;
}

const char *tgl_kernel_source_name(int index)
{
    for (int i = 0; i <= index; i++)
        if (tgl_source_files[i].name == NULL) return NULL;
    return index >= 0 ? tgl_source_files[index].name : NULL;
}
