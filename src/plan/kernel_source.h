/* SPDX-License-Identifier: Apache-2.0
 *
 * The description of a kernel to compile, and the kernel sources that were embedded at build time.
 */
#ifndef TGL_KERNEL_SOURCE_H
#define TGL_KERNEL_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

/* Instructions that not all chips have. Bits of tgl_chip.features and tgl_kernel.needs. */
enum {
    TGL_HAS_ASYNC_COPY = 1 << 0, /* cp.async: sm_80 and later */
    TGL_HAS_CLUSTERS = 1 << 1,   /* thread block clusters: sm_90 and later, drivers for CUDA 12.3 */
    TGL_HAS_OVERLAP = 1 << 2,    /* programmatic dependent launch: as clusters */
    TGL_HAS_TMA = 1 << 3,        /* bulk tensor copies, mbarrier transactions: sm_90 and later */
    TGL_HAS_WGMMA = 1 << 4,      /* sm_90a only */
    TGL_HAS_FP8_MMA = 1 << 5,    /* mma.sync of 8-bit floats: sm_89 and later */
};

/* A kernel: everything that determines its machine code, and the local memory it may use. Two
 * kernels have the same code if file, symbol, macros, expression and source are equal. */
typedef struct tgl_kernel {
    const char *name;       /* for messages: "simt_128x256x8", "ladder/naive" */
    const char *file;       /* under kernels/: "ladder/01_naive.cu" */
    const char *symbol;     /* the __global__ function in that file */
    const char *parameters; /* its parameters' types, separated by '|': "struct tgl_gemm_args" */
    const char *macros;     /* separated by blanks: "BM=128 BN=128"; "": the file's defaults */
    const char *expression; /* the text of lib/expression.h; NULL: not included */
    const char *source;     /* the text of the file; NULL: the embedded file */
    unsigned needs;         /* features of the chip */
    int local_bytes; /* bytes of local memory per thread that are accepted; 0: no spills and no
                        arrays */
} tgl_kernel;

/* Whether two descriptions compile to the same code. */
bool tgl_kernel_is_same(const tgl_kernel *x, const tgl_kernel *y);

/* A copy in one allocation, to be freed with free(); NULL: no memory. */
tgl_kernel *tgl_kernel_copy(const tgl_kernel *kernel);

/* The kernels of tgl_device_measure(), named "measure/...": index 0, 1, ... until NULL. */
const tgl_kernel *tgl_measure_kernel_at(int index);
const tgl_kernel *tgl_measure_kernel_find(const char *name);

/* The text of an embedded file by its path under kernels/ ("lib/async_copy.h"); NULL: there is
 * none. */
const char *tgl_kernel_source(const char *file);

/* The text that represents a source in the key of a compiled kernel: for an embedded file its
 * SHA-256 in hexadecimal, computed at build time; for another text the text itself. */
const char *tgl_kernel_source_key(const char *text);

#endif
