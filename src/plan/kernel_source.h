/* SPDX-License-Identifier: Apache-2.0
 *
 * What is compiled: the description of one kernel, and the sources that were embedded at build
 * time.
 */
#ifndef TGL_KERNEL_SOURCE_H
#define TGL_KERNEL_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

/* Instructions that not every chip has; bits of tgl_chip.features and tgl_kernel.needs. */
enum {
    TGL_HAS_ASYNC_COPY = 1 << 0, /* cp.async: sm_80 and later */
    TGL_HAS_CLUSTERS = 1 << 1,   /* thread block clusters: sm_90 and later, drivers for CUDA 12.3 */
    TGL_HAS_OVERLAP = 1 << 2,    /* programmatic dependent launches: as clusters */
    TGL_HAS_TMA = 1 << 3,        /* bulk tensor copies, mbarrier transactions: sm_90 and later */
    TGL_HAS_WGMMA = 1 << 4,      /* sm_90a only */
    TGL_HAS_FP8_MMA = 1 << 5,    /* mma.sync of 8-bit floats: sm_89 and later */
};

/* A kernel: all that decides its machine code, and what it is expected to use. Two kernels are the
 * same code if file, symbol, macros, expression and source are the same texts. */
typedef struct tgl_kernel {
    const char *name;       /* for people: "simt_128x256x8", "ladder/naive" */
    const char *file;       /* under kernels/: "ladder/01_naive.cu" */
    const char *symbol;     /* the __global__ function in that file */
    const char *parameters; /* its parameters' types, separated by '|': "struct tgl_gemm_args" */
    const char *macros;     /* blank-separated: "BM=128 BN=128"; "" takes the file's defaults */
    const char *expression; /* the text of lib/expression.h; NULL: the kernel includes no such */
    const char *source;     /* the text of the file; NULL: it is embedded */
    unsigned needs;         /* features of the chip */
    int local_bytes;        /* local memory that a thread may use; 0: neither spills nor arrays */
} tgl_kernel;

/* Whether two descriptions compile to the same code. */
bool tgl_kernel_is_same(const tgl_kernel *x, const tgl_kernel *y);

/* A copy in one allocation, to be freed with free(); NULL: no memory. */
tgl_kernel *tgl_kernel_copy(const tgl_kernel *kernel);

/* The kernels that measure a chip, under "measure/"; not for products: index 0, 1, ... until NULL.
 */
const tgl_kernel *tgl_measure_kernel_at(int index);
const tgl_kernel *tgl_measure_kernel_find(const char *name);

/* A file under kernels/ as it was embedded at build time, by its path there ("lib/async_copy.h");
 * NULL if there is none. *size excludes the terminating zero. */
const char *tgl_kernel_source(const char *file, unsigned long *size);

/* What stands for a source text in the key of a compiled kernel: of an embedded file its SHA-256 in
 * hexadecimal, which was computed at build time; of another text the text itself. */
const char *tgl_kernel_source_key(const char *text);

/* The paths of all embedded files: index 0, 1, ... until NULL. */
const char *tgl_kernel_source_name(int index);

#endif
