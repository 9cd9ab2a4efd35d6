/* SPDX-License-Identifier: Apache-2.0
 *
 * The description of a kernel to compile, and the kernel sources that were embedded at build time.
 */
#ifndef TGL_KERNEL_SOURCE_H
#define TGL_KERNEL_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

/* Instructions that not all chips have: bits of tgl_chip.features and tgl_kernel.needs. */
enum {
    TGL_HAS_ASYNC_COPY = 1 << 0, /* cp.async: sm_80 and later */
    TGL_HAS_CLUSTERS = 1 << 1,   /* thread block clusters: sm_90 and later, with a driver for CUDA
                                    12.3 or later */
    TGL_HAS_OVERLAP = 1 << 2,    /* programmatic dependent launch: the same chips and drivers as
                                    clusters */
    TGL_HAS_TMA = 1 << 3,        /* bulk tensor copies, mbarrier transactions: sm_90 and later */
    TGL_HAS_WGMMA = 1 << 4,      /* sm_90a only */
    TGL_HAS_FP8_MMA = 1 << 5,    /* mma.sync of 8-bit floats: sm_89 and later */
};

/* A kernel: everything that determines its machine code, and the local memory that it may use. Two
 * kernels have the same code if file, symbol, macros, expression and source are equal. */
typedef struct tgl_kernel {
    const char *name;       /* name for messages: "simt_128x256x8", "ladder/naive" */
    const char *file;       /* path under kernels/: "ladder/01_naive.cu" */
    const char *symbol;     /* name of the __global__ function in that file */
    const char *parameters; /* types of its parameters, separated by '|': "struct tgl_gemm_args" */
    const char *macros;     /* separated by blanks, "BM=128 BN=128"; "": the defaults of the file */
    const char *expression; /* text of the header lib/expression.h; NULL: it is not included */
    const char *source;     /* text to compile in place of the file; NULL: the embedded file */
    unsigned needs;         /* set of TGL_HAS_...: features that the chip must have */
    int local_bytes; /* local memory that is accepted, in bytes per thread; 0: neither spills nor
                        local arrays */
} tgl_kernel;

/* Whether two kernels compile to the same code. */
bool tgl_kernel_is_same(const tgl_kernel *x, const tgl_kernel *y);

/* A copy in one allocation, which the caller frees with free(); NULL: out of memory. */
tgl_kernel *tgl_kernel_copy(const tgl_kernel *kernel);

/* The kernels of tgl_device_measure(), named "measure/...", by index and by name; NULL: there is
 * none. */
const tgl_kernel *tgl_measure_kernel_at(int index);
const tgl_kernel *tgl_measure_kernel_find(const char *name);

/* The text of an embedded file; NULL: there is none. file: path under kernels/,
 * "lib/async_copy.h". */
const char *tgl_kernel_source(const char *file);

/* The text that stands for a source in the key of a compiled kernel. For an embedded file it is its
 * SHA-256 in hexadecimal, computed at build time; for another text it is the text itself. */
const char *tgl_kernel_source_key(const char *text);

#endif
