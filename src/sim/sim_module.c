/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads a compiled kernel, and reads the source lines and the __shared__ arrays from its object (an
 * ELF file, which sim_module.h describes).
 */
#include "sim/sim_module.h"

#include "sim/growing.h"
#include "sim/temp_folder.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Shared memory --------------------------------------------------------------------------- */

typedef struct collection {
    tgl_sim_module *module;
    bool has_failed;
} collection;

/* Copies the name of a __shared__ array. gcc calls the symbol As.0, clang sgemm_shared.As; the name
 * is As. */
static void copy_name(tgl_shared_array *array, const char *symbol)
{
    const char *dot = strchr(symbol, '.');
    const bool is_number = dot != NULL && dot[1] >= '0' && dot[1] <= '9';
    if (dot == NULL)
        snprintf(array->name, sizeof array->name, "%s", symbol);
    else if (is_number)
        snprintf(array->name, sizeof array->name, "%.*s", (int)(dot - symbol), symbol);
    else
        snprintf(array->name, sizeof array->name, "%s", dot + 1);
}

static void collect_array(const char *name, uint64_t address, uint64_t bytes, void *context)
{
    collection *c = context;
    tgl_sim_module *module = c->module;
    const uintptr_t begin = module->load_address + (uintptr_t)address;
    if (begin < module->shared_base || begin - module->shared_base >= module->shared_size ||
        bytes > module->shared_size - (begin - module->shared_base) ||
        strcmp(name, "tgl_sim_guard") == 0)
        return;
    tgl_shared_array *arrays =
        realloc(module->arrays, (size_t)(module->array_count + 1) * sizeof *arrays);
    if (arrays == NULL) {
        c->has_failed = true;
        return;
    }
    module->arrays = arrays;
    tgl_shared_array *array = &arrays[module->array_count++];
    array->begin = begin - module->shared_base;
    array->end = array->begin + (size_t)bytes;
    copy_name(array, name);
    module->shared_bytes += (size_t)bytes;
    for (size_t word = array->begin / 4; word * 4 < array->end; word++)
        module->array_of_word[word] = (uint16_t)module->array_count;
}

static bool find_shared_memory(tgl_sim_module *module, const void *image, size_t size)
{
    module->shared_size = (size_t)(module->image->shared_end - module->image->shared_begin);
    module->array_of_word = calloc(module->shared_size / 4 + 1, sizeof *module->array_of_word);
    if (module->array_of_word == NULL) return false;
    collection c = {module, false};
    tgl_elf_each_variable(image, size, collect_array, &c);
    return !c.has_failed;
}

/* The arguments and the result of the search in tgl_sim_variable(). The search skips the
 * simulator's own variables (tgl_sim...). It also skips variables of less than 4 bytes, because
 * these belong to the compiler's start files. */
typedef struct search {
    uint64_t address; /* relative to load_address */
    tgl_shared_array *found;
    bool is_found;
} search;

static void compare_variable(const char *name, uint64_t address, uint64_t bytes, void *context)
{
    search *s = context;
    const bool is_own = strncmp(name, "tgl_sim", strlen("tgl_sim")) == 0 || bytes < 4;
    if (is_own || s->address < address || s->address - address >= bytes) return;
    copy_name(s->found, name);
    s->is_found = true;
}

bool tgl_sim_variable(const tgl_sim_module *module, uintptr_t address, tgl_shared_array *found)
{
    search s = {.address = address - module->load_address, .found = found};
    tgl_elf_each_variable(module->object, module->object_size, compare_variable, &s);
    return s.is_found;
}

/* ---- Loading --------------------------------------------------------------------------------- */

static tgl_status open_object(tgl_sim_module *module, const void *image, size_t size)
{
    tgl_temp_folder folder;
    TGL_TRY(tgl_temp_folder_make(&folder));
    const char *path = tgl_temp_folder_write(&folder, "kernel.so", image, size);
    if (path != NULL) module->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    tgl_status status = TGL_OK;
    if (path == NULL)
        status = tgl_temp_folder_fail(&folder);
    else if (module->handle == NULL)
        status = tgl_fail(
            TGL_DRIVER,
            "a compiled kernel cannot be loaded: %s (is %s mounted noexec? TMPDIR can name "
            "another place)",
            dlerror(), tgl_temp_folder_base());
    tgl_temp_folder_remove(&folder); /* the object stays loaded */
    return status;
}

/* Sets the addresses that depend on where the object is loaded. */
static bool find_addresses(tgl_sim_module *module)
{
    struct link_map *map;
    if (module->handle == NULL || dlinfo(module->handle, RTLD_DI_LINKMAP, &map) != 0) return false;
    module->image = dlsym(module->handle, "tgl_sim_object");
    if (module->image == NULL) return false;
    module->load_address = (uintptr_t)map->l_addr;
    module->shared_base = (uintptr_t)module->image->shared_begin;
    return true;
}

static bool make_visits(tgl_sim_module *module)
{
    module->visits = calloc(module->code_size + 1, sizeof *module->visits); /* + 1: never 0 bytes */
    return module->visits != NULL;
}

/* A visitor for tgl_elf_each_use(). The place of a basic block is the return address of its call of
 * __sanitizer_cov_trace_pc(), 4 bytes behind the relocation on x86-64 and aarch64. */
static void collect_block(uint64_t address, void *context)
{
    collection *c = context;
    tgl_sim_module *module = c->module;
    uint64_t *blocks =
        tgl_grow(module->blocks, &module->block_room, module->block_count, sizeof *blocks);
    c->has_failed = c->has_failed || blocks == NULL;
    if (blocks == NULL) return;
    module->blocks = blocks;
    module->blocks[module->block_count++] = address + 4;
}

static bool find_blocks(tgl_sim_module *module, const void *image, size_t size)
{
    collection c = {module, false};
    tgl_elf_each_use(image, size, "__sanitizer_cov_trace_pc", collect_block, &c);
    return !c.has_failed;
}

static tgl_status inspect_object(tgl_sim_module *module, const void *image, size_t size)
{
    if (!find_addresses(module))
        return tgl_fail(TGL_DRIVER, "a compiled kernel is not as expected: %s", dlerror());
    if (!find_shared_memory(module, image, size) || !find_blocks(module, image, size) ||
        !tgl_line_table_read(&module->lines, image, size))
        return tgl_fail(TGL_NO_MEMORY, "no memory for the tables of a kernel");
    const tgl_line_table *lines = &module->lines;
    module->code_size = lines->count > 0 ? lines->rows[lines->count - 1].address + 1 : 0;
    module->object = malloc(size);
    if (!make_visits(module) || module->object == NULL)
        return tgl_fail(TGL_NO_MEMORY, "no memory for the counts of a kernel");
    memcpy(module->object, image, size);
    module->object_size = size;
    return TGL_OK;
}

tgl_status tgl_sim_module_load(const tgl_kernel *kernel, const void *image, size_t size,
                               tgl_sim_module **out)
{
    tgl_sim_module *module = calloc(1, sizeof *module);
    if (module == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for a kernel");
    module->kernel = tgl_kernel_copy(kernel);
    tgl_status status = module->kernel != NULL ? open_object(module, image, size)
                                               : tgl_fail(TGL_NO_MEMORY, "no memory for a kernel");
    if (status == TGL_OK) status = inspect_object(module, image, size);
    if (status != TGL_OK) {
        tgl_sim_module_free(module);
        return status;
    }
    *out = module;
    return TGL_OK;
}

tgl_sim_module *tgl_sim_module_twin(tgl_sim_module *module, int number)
{
    if (module->twins[number] != NULL) return module->twins[number];
    tgl_sim_module *twin = malloc(sizeof *twin);
    if (twin == NULL) return NULL;
    *twin = *module;
    twin->handle = NULL;
    const bool is_loaded =
        number == 0 ||
        (open_object(twin, module->object, module->object_size) == TGL_OK && find_addresses(twin));
    if (!is_loaded || !make_visits(twin)) {
        if (twin->handle != NULL) dlclose(twin->handle);
        free(twin);
        return NULL;
    }
    return module->twins[number] = twin;
}

static void free_twin(tgl_sim_module *twin)
{
    if (twin == NULL) return;
    if (twin->handle != NULL) dlclose(twin->handle);
    free(twin->visits);
    free(twin);
}

void tgl_sim_module_free(tgl_sim_module *module)
{
    if (module == NULL) return;
    for (int i = 0; i < TGL_SIM_HOST_THREADS_MAX; i++)
        free_twin(module->twins[i]);
    if (module->handle != NULL) dlclose(module->handle);
    tgl_line_table_free(&module->lines);
    free(module->array_of_word);
    free(module->arrays);
    free(module->visits);
    free(module->blocks);
    free(module->object);
    free(module->kernel);
    free(module);
}

/* ---- Places in the source -------------------------------------------------------------------- */

/* The line table row of the call before a return address, which is relative to load_address. */
static const tgl_line_row *row_at(const tgl_sim_module *module, size_t at)
{
    const tgl_line_row *row = tgl_line_table_find(&module->lines, at - 1);
    return row != NULL && row->line > 0 ? row : NULL;
}

/* The row of the kernel's own file that led to this row of a header. Device functions are inlined,
 * so the nearest earlier row of the kernel's file is taken. */
static const tgl_line_row *kernel_row(const tgl_sim_module *module, const tgl_line_row *row)
{
    for (; row >= module->lines.rows; row--)
        if (row->line > 0 && strcmp(row->file, module->kernel->file) == 0) return row;
    return NULL;
}

tgl_place tgl_sim_place(const tgl_sim_module *module, const void *pc)
{
    tgl_place place;
    const tgl_line_row *row = row_at(module, (uintptr_t)pc - module->load_address);
    const tgl_line_row *caller = row != NULL ? kernel_row(module, row) : NULL;
    if (row == NULL)
        snprintf(place.text, sizeof place.text, "%s", module->kernel->file);
    else if (caller == NULL || caller == row)
        snprintf(place.text, sizeof place.text, "%s:%d", row->file, row->line);
    else
        snprintf(place.text, sizeof place.text, "%s:%d (through %s:%d)", caller->file, caller->line,
                 row->file, row->line);
    return place;
}

int tgl_sim_line_at(const tgl_sim_module *module, size_t at)
{
    const tgl_line_row *row = row_at(module, at);
    if (row != NULL) row = kernel_row(module, row);
    return row != NULL ? row->line : 0;
}

int tgl_sim_line(const tgl_sim_module *module, const void *pc)
{
    return tgl_sim_line_at(module, (uintptr_t)pc - module->load_address);
}
