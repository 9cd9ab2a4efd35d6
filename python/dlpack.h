/* SPDX-License-Identifier: Apache-2.0
 *
 * The structs of DLPack 1.x that the package reads (dlpack.h of the project DLPack): tensors; the
 * contents of the two kinds of capsules, Python objects that hold a tensor; and the table of
 * functions by which C code reads a tensor of a Python type without a capsule.
 */
#ifndef TEGULA_PYTHON_DLPACK_H
#define TEGULA_PYTHON_DLPACK_H

#include <stdint.h>

enum { DLPACK_CPU = 1, DLPACK_CUDA = 2, DLPACK_CUDA_HOST = 3, DLPACK_CUDA_MANAGED = 13 };
enum { DLPACK_READ_ONLY = 1, DLPACK_IS_COPIED = 2 }; /* flags */

typedef struct dlpack_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t dimensions;
    uint8_t code, bits; /* of the element type */
    uint16_t lanes;
    int64_t *shape, *strides; /* strides: elements; NULL: row-major */
    uint64_t byte_offset;
} dlpack_tensor;

typedef struct dlpack_managed { /* in a capsule "dltensor" */
    dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct dlpack_managed *);
} dlpack_managed;

typedef struct dlpack_versioned { /* in a capsule "dltensor_versioned" */
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dlpack_versioned *);
    uint64_t flags;
    dlpack_tensor tensor;
} dlpack_versioned;

typedef struct dlpack_functions { /* in a capsule "dlpack_exchange_api" */
    uint32_t major, minor;
    struct dlpack_functions *previous; /* the table of an older major version */
    void *allocate, *export, *import;  /* not used by this package */
    int (*read)(void *object, dlpack_tensor *);
    int (*current_stream)(int device_type, int32_t device_id, void **stream);
} dlpack_functions;

#endif
