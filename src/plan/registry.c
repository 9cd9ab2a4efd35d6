/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of kernels, and the lookups in it and in the embedded sources.
 */
#include "plan/registry.h"
#include "plan/sources.h"

#include <string.h>

/* Ladder rungs in their order: name, file, symbol, defines, block_m, block_n, threads, min_arch,
 * dynamic_shared, local_bytes, loop_ffmas, expression. The tile macros are the file's defaults,
 * which block_m, block_n and threads must agree with. */
// clang-format off
static const tgl_kernel kernels[] = {
    {"ladder/naive",              "ladder/01_naive.cu",              "sgemm_naive",             "",  32,   8,  256,  0, 0, 0, 0, NULL},
    {"ladder/coalesced",          "ladder/02_coalesced.cu",          "sgemm_coalesced",         "",   8,  32,  256,  0, 0, 0, 0, NULL},
    {"ladder/register_tile",      "ladder/03_register_tile.cu",      "sgemm_register_tile",     "",  64,  64,  256,  0, 0, 0, 0, NULL},
    {"ladder/shared_tile",        "ladder/04_shared_tile.cu",        "sgemm_shared_tile",       "",  32,  32, 1024,  0, 0, 0, 0, NULL},
    {"ladder/thread_tile_1d",     "ladder/05_thread_tile_1d.cu",     "sgemm_thread_tile_1d",    "",  64,  64,  512,  0, 0, 0, 0, NULL},
    {"ladder/thread_tile_2d",     "ladder/06_thread_tile_2d.cu",     "sgemm_thread_tile_2d",    "", 128, 128,  256,  0, 0, 0, 0, NULL},
    {"ladder/vectorised",         "ladder/07_vectorised.cu",         "sgemm_vectorised",        "", 128, 128,  256,  0, 0, 0, 0, NULL},
    {"ladder/conflict_free",      "ladder/08_conflict_free.cu",      "sgemm_conflict_free",     "", 128, 128,  256,  0, 0, 0, 0, NULL},
    {"ladder/register_prefetch",  "ladder/09_register_prefetch.cu",  "sgemm_register_prefetch", "", 128, 128,  256,  0, 0, 0, 0, NULL},
    {"ladder/double_buffer",      "ladder/10_double_buffer.cu",      "sgemm_double_buffer",     "", 128, 128,  256,  0, 0, 0, 0, NULL},
    {"ladder/warp_tiles",         "ladder/11_warp_tiles.cu",         "sgemm_warp_tiles",        "", 128, 256,  256,  0, 0, 0, 0, NULL},
    {"ladder/async_copy",         "ladder/12_async_copy.cu",         "sgemm_async_copy",        "", 128, 256,  256, 80, 0, 0, 0, NULL},
};
// clang-format on
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

static bool is_same_text(const char *x, const char *y)
{
    return x == y || (x != NULL && y != NULL && strcmp(x, y) == 0);
}

bool tgl_kernel_is_same(const tgl_kernel *x, const tgl_kernel *y)
{
    return x == y ||
           (strcmp(x->file, y->file) == 0 && strcmp(x->symbol, y->symbol) == 0 &&
            strcmp(x->defines, y->defines) == 0 && is_same_text(x->expression, y->expression));
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
