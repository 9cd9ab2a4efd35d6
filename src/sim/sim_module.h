/* SPDX-License-Identifier: Apache-2.0
 *
 * A compiled kernel that is loaded into this process.
 */
#ifndef TGL_SIM_MODULE_H
#define TGL_SIM_MODULE_H

#include "../../kernels/sim/hooks.h"
#include "sim/elf_image.h"

#include "base/error.h"
#include "plan/kernel_source.h"

enum { TGL_SIM_HOST_THREADS_MAX = 16 };

/* A __shared__ variable; offsets from the start of shared memory. */
typedef struct tgl_shared_array {
    char name[48];
    size_t begin, end;
} tgl_shared_array;

typedef struct tgl_sim_module {
    struct tgl_sim_module *next; /* next module in the device's list */
    tgl_kernel *kernel;          /* copy of the kernel's description */
    void *handle;                /* handle that dlopen() returned */
    const tgl_sim_image *image;
    uintptr_t load_address;
    tgl_line_table lines;
    unsigned *visits; /* visits by threads, indexed by return address relative to load_address */
    size_t code_size; /* number of elements of `visits` */
    uint64_t *blocks; /* indices in `visits` of basic blocks, sorted */
    size_t block_count, block_room;

    /* Shared memory: its section in the object. array_of_word: for each 4-byte word, 1 + the index
     * in `arrays` of the array that contains the word; 0: no array does. */
    uintptr_t shared_base;
    size_t shared_size;
    uint16_t *array_of_word;
    tgl_shared_array *arrays;
    int array_count;
    size_t shared_bytes; /* sum over all arrays: the shared memory that the kernel needs on a GPU */

    void *object; /* the shared object's file, to load it again */
    size_t object_size;
    struct tgl_sim_module *twins[TGL_SIM_HOST_THREADS_MAX]; /* see below; NULL: not loaded yet */
} tgl_sim_module;

/* *out := the loaded shared object that tgl_host_compile() made of `kernel`. Each module has its
 * own copy of shared memory. */
tgl_status tgl_sim_module_load(const tgl_kernel *kernel, const void *image, size_t size,
                               tgl_sim_module **out);
void tgl_sim_module_free(tgl_sim_module *module);

/* The copy of a module that one host thread executes beside others: it has its own code, shared
 * memory (number 0: those of the module itself) and visits, and uses the tables of the module. The
 * module owns it. NULL: it cannot be loaded. */
tgl_sim_module *tgl_sim_module_twin(tgl_sim_module *module, int number);

/* Finds the variable of the kernel's object that contains an address, and copies its name. false:
 * the address is in none. */
bool tgl_sim_variable(const tgl_sim_module *module, uintptr_t address, tgl_shared_array *found);

/* The source location of a return address, "ladder/01_naive.cu:21"; for a line in a header also the
 * line of the kernel's own file that led to it. */
typedef struct tgl_place {
    char text[160];
} tgl_place;
tgl_place tgl_sim_place(const tgl_sim_module *module, const void *pc);

/* The line in the kernel's own file; 0: unknown. */
int tgl_sim_line(const tgl_sim_module *module, const void *pc);

/* Like tgl_sim_line(), for a return address relative to load_address. */
int tgl_sim_line_at(const tgl_sim_module *module, size_t at);

#endif
