/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads arrays of several libraries into one struct, as tegula/_arrays.py does in Python.
 *
 * know_type() adds a type of arrays and says how they are read. Arrays of other types, and arrays
 * that the library cannot access without a copy, are left to the Python code.
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
    READ_TENSOR,    /* torch.Tensor: DLPack's table of functions, and attributes of the tensor */
    READ_INTERFACE, /* __cuda_array_interface__ */
    READ_CAPSULE,   /* __dlpack__() */
} reader;

/* A type of arrays. */
typedef struct source {
    PyObject *type; /* arrays of subclasses are not read */
    reader reader;
    bool is_read_only;                 /* results are not written to these arrays */
    bool has_no_version;               /* READ_CAPSULE: __dlpack__() does not take max_version */
    const dlpack_functions *functions; /* READ_TENSOR: DLPack's table of functions */
    /* READ_TENSOR: Python functions. The first two take the tensor, the third no argument. */
    PyObject *is_negated, *is_conjugated, *uses_gradients;
} source;

/* The types that are known. None is removed before the end, because reading an array can run any
 * Python code, which might remove the type that is in use. */
typedef struct sources {
    int count;
    source known[SOURCES_MAX];
} sources;

/* An array as the library sees it. */
typedef struct array {
    bool is_there; /* whether the product has this array */
    const PyObject *type;
    char *data;
    int element; /* 1 + index of the element type in the table of read_array.c */
    int size;    /* size of an element in bytes */
    int dimensions;
    int64_t shape[DIMENSIONS_MAX], strides[DIMENSIONS_MAX]; /* bytes */
    int device;                                             /* 0: CPU; 1 + N: GPU N */
    void *stream;     /* the stream of the GPU in which the array is up to date */
    PyObject *owner;  /* keeps memory of a GPU until the product has run, memory of the CPU during
                       * the call; NULL: the buffer or the library of the array keeps it */
    Py_buffer buffer; /* for READ_BUFFER; else buffer.obj is NULL */
} array;

/* Adds a type. If there is no room, Python computes the products of its arrays. */
void know_type(sources *s, const source *added);

/* Reads x. is_written: whether x is a result. false: Python has to compute the product; an
 * exception may be set. */
bool read_array(sources *s, PyObject *x, bool is_written, array *a);

void release_array(array *a);
void forget_types(sources *s);

#endif
