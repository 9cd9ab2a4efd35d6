/* SPDX-License-Identifier: Apache-2.0
 *
 * A compiled kernel that is loaded into this process. It is a shared object: an ELF file that
 * dlopen() loads, called the object below. Host threads that run one launch together need code and
 * shared memory of their own. One of them uses those of the module itself, and each of the others
 * uses a twin with a further copy of the object, loaded into the same process.
 */
#ifndef TGL_SIM_MODULE_H
#define TGL_SIM_MODULE_H

#include "../../kernels/sim/hooks.h"
#include "sim/elf_image.h"

#include "base/error.h"
#include "plan/kernel_source.h"

enum { TGL_SIM_HOST_THREADS_MAX = 16 };

/* A __shared__ array. begin, end: byte offsets from the start of shared memory. */
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
    unsigned *visits; /* number of executions by threads, indexed by return address relative to
                         load_address */
    size_t code_size; /* number of elements of `visits` */
    uint64_t *blocks; /* indices in `visits` of the starts of basic blocks, sorted */
    size_t block_count, block_room;

    /* The shared memory of a block is a section of the object. array_of_word[w]: 1 + the index in
     * `arrays` of the array that contains the 4-byte word w; 0: none. */
    uintptr_t shared_base;
    size_t shared_size;
    uint16_t *array_of_word;
    tgl_shared_array *arrays;
    int array_count;
    size_t shared_bytes; /* sum over all arrays: shared memory that the kernel needs on a GPU */

    void *object; /* contents of the object's file, from which twins are loaded */
    size_t object_size;
    /* Twins, indexed by host thread (tgl_sim_module_twin()). NULL: not loaded yet. */
    struct tgl_sim_module *twins[TGL_SIM_HOST_THREADS_MAX];
} tgl_sim_module;

/* Loads the shared object `image` that tgl_host_compile() made of `kernel`. Each module has its own
 * copy of shared memory. */
tgl_status tgl_sim_module_load(const tgl_kernel *kernel, const void *image, size_t size,
                               tgl_sim_module **out);
void tgl_sim_module_free(tgl_sim_module *module);

/* The twin of a module that host thread `number` executes. Twin 0 uses the module's own code and
 * shared memory, and each other twin has a copy of both. Every twin has its own `visits`, and uses
 * the other tables of the module. The module owns its twins. NULL: the twin cannot be loaded. */
tgl_sim_module *tgl_sim_module_twin(tgl_sim_module *module, int number);

/* Finds the variable of the kernel's object that contains an address. False: there is none. */
bool tgl_sim_variable(const tgl_sim_module *module, uintptr_t address, tgl_shared_array *found);

/* A source location, "ladder/01_naive.cu:21". For code from a header it also names the line of the
 * kernel's own file that led there. */
typedef struct tgl_place {
    char text[160];
} tgl_place;
tgl_place tgl_sim_place(const tgl_sim_module *module, const void *pc);

/* The line of a return address in the kernel's own file; 0: unknown. */
int tgl_sim_line(const tgl_sim_module *module, const void *pc);

/* As tgl_sim_line(), for a return address relative to load_address. */
int tgl_sim_line_at(const tgl_sim_module *module, size_t at);

#endif
