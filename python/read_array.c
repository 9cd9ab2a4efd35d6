/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads arrays (read_array.h), with a function for each protocol.
 */
#include "read_array.h"

#include <string.h>

enum { DLPACK_COMPLEX = 5 }; /* DLPack's code of complex types */

/* The element types, as the protocols name them. */
static const struct {
    const char *format;  /* buffer protocol */
    uint8_t code, bits;  /* DLPack */
    const char *typestr; /* __cuda_array_interface__ */
} ELEMENTS[] = {
    {"f", 2, 32, "<f4"},
    {"d", 2, 64, "<f8"},
    {"e", 2, 16, "<f2"},
    {"b", 0, 8, "|i1"},
    {"i", 0, 32, "<i4"},
    {NULL, 4, 16, NULL}, /* bfloat16 */
    {"Zf", DLPACK_COMPLEX, 64, "<c8"},
    {"Zd", DLPACK_COMPLEX, 128, "<c16"},
    {NULL, 10, 8, NULL},
    {NULL, 12, 8, NULL}, /* float8_e4m3fn, float8_e5m2 */
};
enum { ELEMENTS_COUNT = sizeof ELEMENTS / sizeof *ELEMENTS };

/* ---- What the protocols have in common ------------------------------------------------------- */

static bool set_element(array *a, int i)
{
    if (i == ELEMENTS_COUNT) return false;
    a->element = i + 1;
    a->size = ELEMENTS[i].bits / 8;
    return true;
}

/* Sets the strides of a row-major array. */
static void set_strides(array *a)
{
    int64_t step = a->size;
    for (int i = a->dimensions - 1; i >= 0; i--) {
        a->strides[i] = step;
        step *= a->shape[i];
    }
}

static bool set_dimensions(array *a, int64_t count)
{
    a->dimensions = (int)count;
    return count >= 0 && count <= DIMENSIONS_MAX;
}

static bool is_empty(const array *a)
{
    for (int i = 0; i < a->dimensions; i++)
        if (a->shape[i] == 0) return true;
    return false;
}

static bool is_aligned(const array *a)
{
    return (uintptr_t)a->data % (uintptr_t)a->size == 0;
}

/* Calls a method of x without arguments. NULL: an exception is set. */
static PyObject *call_method(PyObject *x, const char *name)
{
    PyObject *method = PyObject_GetAttrString(x, name);
    PyObject *result = method != NULL ? PyObject_CallObject(method, NULL) : NULL;
    Py_XDECREF(method);
    return result;
}

/* ---- The buffer protocol --------------------------------------------------------------------- */

static bool read_buffer(PyObject *x, bool is_written, array *a)
{
    const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (is_written ? PyBUF_WRITABLE : 0);
    Py_buffer *b = &a->buffer;
    if (PyObject_GetBuffer(x, b, flags) < 0) return false;
    int i = 0;
    if (b->format == NULL) return false;
    while (i < ELEMENTS_COUNT &&
           (ELEMENTS[i].format == NULL || strcmp(ELEMENTS[i].format, b->format) != 0))
        i++;
    if (!set_element(a, i) || !set_dimensions(a, b->ndim)) return false;
    a->data = b->buf;
    for (i = 0; i < b->ndim; i++) {
        a->shape[i] = b->shape[i];
        a->strides[i] = b->strides[i];
    }
    return true;
}

/* ---- DLPack ---------------------------------------------------------------------------------- */

static bool take_tensor(const dlpack_tensor *t, array *a)
{
    int i = 0;
    while (i < ELEMENTS_COUNT && (ELEMENTS[i].code != t->code || ELEMENTS[i].bits != t->bits))
        i++;
    if (t->lanes != 1 || !set_element(a, i) || !set_dimensions(a, t->dimensions)) return false;
    a->data = (char *)t->data + t->byte_offset;
    memcpy(a->shape, t->shape, (size_t)t->dimensions * sizeof *t->shape);
    if (t->strides == NULL) set_strides(a);
    for (i = 0; t->strides != NULL && i < t->dimensions; i++)
        a->strides[i] = t->strides[i] * a->size;
    const bool is_gpu = t->device_type == DLPACK_CUDA || t->device_type == DLPACK_CUDA_MANAGED;
    a->device = is_gpu ? 1 + t->device_id : 0;
    return (is_gpu || t->device_type == DLPACK_CPU || t->device_type == DLPACK_CUDA_HOST) &&
           (t->data != NULL || is_empty(a));
}

/* Whether a Python function returns a true value. If the call fails, returns false and sets an
 * exception. */
static bool answers_yes(PyObject *function, PyObject *x)
{
    PyObject *answer = PyObject_CallFunctionObjArgs(function, x, NULL);
    const bool is_yes = answer != NULL && PyObject_IsTrue(answer) == 1;
    Py_XDECREF(answer);
    return is_yes;
}

/* Whether the elements in memory are the values of the tensor, apart from conjugation, and no
 * gradient has to be recorded. */
static bool is_plain_tensor(const source *s, PyObject *x)
{
    PyObject *requires = PyObject_GetAttrString(x, "requires_grad");
    const bool has_gradient = requires == Py_True && answers_yes(s->uses_gradients, NULL);
    Py_XDECREF(requires);
    return requires != NULL && !has_gradient && !answers_yes(s->is_negated, x) && !PyErr_Occurred();
}

static bool read_tensor(const source *s, PyObject *x, array *a)
{
    dlpack_tensor t;
    if (!is_plain_tensor(s, x) || s->functions->read(x, &t) != 0 || !take_tensor(&t, a))
        return false;
    if (t.code == DLPACK_COMPLEX && (answers_yes(s->is_conjugated, x) || PyErr_Occurred()))
        return false;
    return a->device == 0 ||
           s->functions->current_stream(t.device_type, t.device_id, &a->stream) == 0;
}

/* Whether the memory of x is on a GPU; -1: an exception is set. */
static int is_on_gpu(PyObject *x)
{
    PyObject *place = call_method(x, "__dlpack_device__");
    int type = 0, index = 0;
    const bool is_read = place != NULL && PyArg_ParseTuple(place, "ii", &type, &index);
    Py_XDECREF(place);
    return is_read ? type == DLPACK_CUDA || type == DLPACK_CUDA_MANAGED : -1;
}

/* The DLPack capsule of x. Its memory is up to date in CUDA's default stream. */
static PyObject *call_export(PyObject *x, bool is_gpu, bool has_version)
{
    PyObject *method = PyObject_GetAttrString(x, "__dlpack__"), *arguments = PyTuple_New(0);
    PyObject *keywords = PyDict_New(), *capsule = NULL;
    PyObject *stream = is_gpu ? PyLong_FromLong(1) : NULL;
    PyObject *version = has_version ? Py_BuildValue("(ii)", 1, 0) : NULL;
    if (method != NULL && arguments != NULL && keywords != NULL &&
        (stream == NULL || PyDict_SetItemString(keywords, "stream", stream) == 0) &&
        (version == NULL || PyDict_SetItemString(keywords, "max_version", version) == 0) &&
        !PyErr_Occurred())
        capsule = PyObject_Call(method, arguments, keywords);
    Py_XDECREF(version);
    Py_XDECREF(stream);
    Py_XDECREF(keywords);
    Py_XDECREF(arguments);
    Py_XDECREF(method);
    return capsule;
}

static PyObject *export_capsule(source *s, PyObject *x, bool is_gpu)
{
    PyObject *capsule = s->has_no_version ? NULL : call_export(x, is_gpu, true);
    if (capsule != NULL || !(s->has_no_version || PyErr_ExceptionMatches(PyExc_TypeError)))
        return capsule;
    PyErr_Clear();
    capsule = call_export(x, is_gpu, false);
    s->has_no_version = capsule != NULL;
    return capsule;
}

/* Reads an array through its capsule. A consumer that takes over the memory renames the capsule.
 * This function does not, so the memory still belongs to the capsule, whose destructor frees it. */
static bool read_capsule(source *s, PyObject *x, bool is_written, array *a)
{
    const int is_gpu = is_on_gpu(x);
    a->owner = is_gpu >= 0 ? export_capsule(s, x, is_gpu) : NULL;
    if (a->owner == NULL) return false;
    if (PyCapsule_IsValid(a->owner, "dltensor_versioned")) {
        const dlpack_versioned *v = PyCapsule_GetPointer(a->owner, "dltensor_versioned");
        return v->major == 1 && !(is_written && v->flags & (DLPACK_READ_ONLY | DLPACK_IS_COPIED)) &&
               take_tensor(&v->tensor, a);
    }
    const dlpack_managed *managed = PyCapsule_GetPointer(a->owner, "dltensor");
    return managed != NULL && take_tensor(&managed->tensor, a);
}

/* ---- __cuda_array_interface__ ---------------------------------------------------------------- */

/* Copies the integers of a tuple and returns their number. -1: there are more than DIMENSIONS_MAX,
 * or the object is not a tuple of integers. */
static int take_integers(PyObject *tuple, int64_t *numbers)
{
    const Py_ssize_t count = tuple != NULL && PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;
    if (count > DIMENSIONS_MAX) return -1;
    for (Py_ssize_t i = 0; i < count; i++)
        numbers[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    return PyErr_Occurred() ? -1 : (int)count;
}

static bool take_typestr(PyObject *typestr, array *a)
{
    int i = 0;
    if (typestr == NULL || !PyUnicode_Check(typestr)) return false;
    while (i < ELEMENTS_COUNT && (ELEMENTS[i].typestr == NULL ||
                                  PyUnicode_CompareWithASCIIString(typestr, ELEMENTS[i].typestr)))
        i++;
    return set_element(a, i);
}

static bool is_missing(PyObject *x)
{
    return x == NULL || x == Py_None;
}

static bool take_interface(PyObject *facts, bool is_written, array *a)
{
    int is_read_only = 1;
    PyObject *address = NULL;
    PyObject *strides = PyDict_GetItemString(facts, "strides");
    PyObject *stream = PyDict_GetItemString(facts, "stream");
    PyObject *data = PyDict_GetItemString(facts, "data");
    if (!is_missing(PyDict_GetItemString(facts, "mask")) || data == NULL || !PyTuple_Check(data) ||
        !PyArg_ParseTuple(data, "Op", &address, &is_read_only) || (is_written && is_read_only) ||
        !take_typestr(PyDict_GetItemString(facts, "typestr"), a) ||
        !set_dimensions(a, take_integers(PyDict_GetItemString(facts, "shape"), a->shape)))
        return false;
    a->data = PyLong_AsVoidPtr(address);
    if (is_missing(strides))
        set_strides(a);
    else if (take_integers(strides, a->strides) != a->dimensions)
        return false;
    a->stream = is_missing(stream) ? NULL : PyLong_AsVoidPtr(stream);
    if (a->stream == (void *)1)
        a->stream = NULL; /* 1 is the default stream, which the library calls 0 */
    return !PyErr_Occurred();
}

/* The number of the GPU of x. __cuda_array_interface__ does not say it. If x does not support
 * DLPack either, GPU 0 is assumed. -1: an exception is set. */
static int index_of_gpu(PyObject *x)
{
    if (!PyObject_HasAttrString(x, "__dlpack_device__")) return 0;
    PyObject *place = call_method(x, "__dlpack_device__");
    int type, index = -1;
    if (place != NULL && !PyArg_ParseTuple(place, "ii", &type, &index)) index = -1;
    Py_XDECREF(place);
    return index;
}

static bool read_interface(PyObject *x, bool is_written, array *a)
{
    PyObject *facts = PyObject_GetAttrString(x, "__cuda_array_interface__");
    const bool is_read =
        facts != NULL && PyDict_Check(facts) && take_interface(facts, is_written, a);
    Py_XDECREF(facts);
    if (!is_read) return false;
    const int index = index_of_gpu(x);
    a->device = 1 + index;
    a->owner = x;
    Py_INCREF(x);
    return index >= 0;
}

/* ---- Types ----------------------------------------------------------------------------------- */

void know_type(sources *s, const source *added)
{
    for (int i = 0; i < s->count; i++)
        if (s->known[i].type == added->type) return;
    if (s->count == SOURCES_MAX) return;
    Py_INCREF(added->type);
    Py_XINCREF(added->is_negated);
    Py_XINCREF(added->is_conjugated);
    Py_XINCREF(added->uses_gradients);
    s->known[s->count++] = *added;
}

void forget_types(sources *s)
{
    while (s->count > 0) {
        const source *x = &s->known[--s->count];
        Py_DECREF(x->type);
        Py_XDECREF(x->is_negated);
        Py_XDECREF(x->is_conjugated);
        Py_XDECREF(x->uses_gradients);
    }
}

static bool read_as(source *s, PyObject *x, bool is_written, array *a)
{
    switch (s->reader) {
    case READ_BUFFER:
        return read_buffer(x, is_written, a);
    case READ_TENSOR:
        return read_tensor(s, x, a);
    case READ_INTERFACE:
        return read_interface(x, is_written, a);
    case READ_CAPSULE:
        return read_capsule(s, x, is_written, a);
    }
    return false;
}

bool read_array(sources *s, PyObject *x, bool is_written, array *a)
{
    int i = 0;
    while (i < s->count && s->known[i].type != (PyObject *)Py_TYPE(x))
        i++;
    if (i == s->count || (is_written && s->known[i].is_read_only)) return false;
    a->is_there = true;
    a->type = s->known[i].type;
    a->device = 0;
    a->stream = NULL;
    return read_as(&s->known[i], x, is_written, a) && is_aligned(a);
}

void release_array(array *a)
{
    if (a->buffer.obj != NULL) PyBuffer_Release(&a->buffer);
    Py_CLEAR(a->owner);
}
