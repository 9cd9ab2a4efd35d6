/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads arrays of several libraries into one struct, as tegula/_arrays.py does in Python.
 *
 * A type of arrays becomes known by know_type(), with the way to read its arrays. An array that is
 * not of a known type, or not one that the library can access as it is, is left to Python.
 */
#ifndef TEGULA_PYTHON_READ_ARRAY_H
#define TEGULA_PYTHON_READ_ARRAY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "dlpack.h"

enum { DIMENSIONS_MAX = 5, SOURCES_MAX = 64 };

typedef enum reader {
    READ_BUFFER,    /* numpy.ndarray: the buffer protocol */
    READ_TENSOR,    /* torch.Tensor: DLPack's functions of the type, and what they do not tell */
    READ_INTERFACE, /* __cuda_array_interface__ */
    READ_CAPSULE,   /* __dlpack__() */
} reader;

/* A type of arrays. */
typedef struct source {
    PyObject *type; /* arrays of subclasses are not read */
    reader reader;
    bool is_read_only;                 /* results are not written to these arrays */
    bool has_no_version;               /* READ_CAPSULE: __dlpack__() does not take max_version */
    const dlpack_functions *functions; /* READ_TENSOR */
    /* READ_TENSOR: functions. The first two take the tensor, the third takes no argument. */
    PyObject *is_negated, *is_conjugated, *uses_gradients;
} source;

/* The types that are known. They are never removed, because reading can run any code. */
typedef struct sources {
    int count;
    source known[SOURCES_MAX];
} sources;

/* An array as the library sees it. */
typedef struct array {
    bool is_there;
    const PyObject *type;
    char *data;
    int element; /* the type of an element, counted from 1 */
    int size;    /* of an element in bytes */
    int dimensions;
    int64_t shape[DIMENSIONS_MAX], strides[DIMENSIONS_MAX]; /* bytes */
    int device;                                             /* 0: CPU; 1 + N: GPU N */
    void *stream;     /* of a GPU: where the array is up to date */
    PyObject *owner;  /* keeps the memory of a GPU until the product has run, and of the CPU during
                       * the call; NULL: the buffer does, or the library of the array */
    Py_buffer buffer; /* obj NULL: there is none */
} array;

/* Adds a type. Python computes the products of types for which there is no room. */
void know_type(sources *s, const source *added);

/* Reads x. false: Python has to compute this; an exception may be set. */
bool read_array(sources *s, PyObject *x, bool is_written, array *a);

void release_array(array *a);
void forget_types(sources *s);

#endif
