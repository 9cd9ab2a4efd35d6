/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels for NVIDIA GPUs, which the cuda backend compiles with NVRTC and the sim backend with
 * the host's C compiler: one const table, a row a kernel.
 */
#ifndef TGL_REGISTRY_H
#define TGL_REGISTRY_H

#include <stdbool.h>

typedef struct tgl_kernel {
    const char *name;    /* what the user calls it: "ladder/naive" */
    const char *file;    /* under kernels/: "ladder/01_naive.cu" */
    const char *symbol;  /* the __global__ function in that file: "sgemm_naive" */
    const char *defines; /* tile macros, blank-separated: "BM=128 BN=128"; "" takes the defaults */
    int block_m;         /* rows of C that one thread block computes */
    int block_n;         /* columns; the grid is ceil(n / block_n) x ceil(m / block_m) */
    int threads;         /* of a block, in x */
    int min_arch;        /* 80 for sm_80 and later; 0: any */
    int dynamic_shared;  /* bytes of dynamic shared memory that a block is given */
    int local_bytes;     /* local memory a thread may use; 0: neither spills nor indexed arrays */
    int loop_ffmas;      /* of a thread, that its unrolled main loop consists of; 0: not known */
    const char *expression; /* the text of lib/expression.h; NULL: the kernel includes no such */
} tgl_kernel;

/* The ladder's rungs in their order: index 0, 1, ... until NULL. */
const tgl_kernel *tgl_kernel_at(int index);

/* Whether two descriptions compile to the same code. */
bool tgl_kernel_is_same(const tgl_kernel *x, const tgl_kernel *y);

/* NULL: no kernel of that name. */
const tgl_kernel *tgl_kernel_find(const char *name);

/* The kernels that measure a chip, under "measure/": not for products, and not in the table. */
const tgl_kernel *tgl_measure_kernel_at(int index);
const tgl_kernel *tgl_measure_kernel_find(const char *name);

/* A file under kernels/ as it was embedded at build time, by its path there ("lib/async_copy.h");
 * NULL if there is none. *size excludes the terminating zero. */
const char *tgl_kernel_source(const char *file, unsigned long *size);

/* The paths of all embedded files: index 0, 1, ... until NULL. */
const char *tgl_kernel_source_name(int index);

#endif
