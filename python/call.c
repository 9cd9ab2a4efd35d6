/* SPDX-License-Identifier: Apache-2.0
 *
 * tegula._call: products that were computed before, without the Python of _matmul.py, which takes
 * 20 to 35 us for a call.
 *
 *     call = Calls(numpy.ndarray, numpy.empty, address of tgl_plan_run_operands())
 *     call.run(arrays, scalars, options)      None: compute it in Python, and then
 *     call.learn(arrays, options, plan, ...)  from now on run() computes products like this one
 *
 * It decides nothing about products. learn() stores what Python has decided for arrays of these
 * types, shapes and strides: the plan, and the shape of the result. run() looks the same arrays up
 * and runs the plan. What depends on addresses and scalars is checked here. run() returns None for
 * everything that it does not know or that fails, so that the Python code computes it or raises.
 *
 * Only arrays whose type is numpy.ndarray itself are looked up. They are read through the buffer
 * protocol, which checks at the same time that a result can be written.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <tegula/tegula.h>

enum { A, B, OUT, C, BIAS, ARRAYS }; /* the order of the arguments */
enum { DIMENSIONS_MAX = 5, SCALARS = 2, OPTIONS = 4, FACTS = 5, ENTRIES = 256 };
enum { KEY_MAX = ARRAYS * (1 + 2 * DIMENSIONS_MAX) + OPTIONS };

typedef tgl_status run_function(const tgl_plan *, const tgl_operands *, void *);

/* ---- Keys ------------------------------------------------------------------------------------ */

/* The types, shapes and strides of the arrays, and the options. */
typedef struct key {
    int count;
    uint64_t words[KEY_MAX];
} key;

typedef struct operands {
    Py_buffer views[ARRAYS]; /* obj NULL: there is no such array */
} operands;

static void release(operands *x)
{
    for (int i = 0; i < ARRAYS; i++)
        if (x->views[i].obj != NULL) PyBuffer_Release(&x->views[i]);
}

static void push(key *k, uint64_t word)
{
    k->words[k->count++] = word;
}

/* Adds an array to the key. false: the library cannot access it as it is. */
static bool push_array(key *k, const Py_buffer *x)
{
    const char *format = x->format;
    if (format == NULL || format[0] == '\0' || format[1] != '\0' || !strchr("fdebi", format[0]) ||
        x->ndim < 1 || x->ndim > DIMENSIONS_MAX)
        return false;
    push(k, (uint64_t)format[0] << 8 | (uint64_t)x->ndim);
    for (int i = 0; i < x->ndim; i++) {
        push(k, (uint64_t)x->shape[i]);
        push(k, (uint64_t)x->strides[i]);
    }
    return (uintptr_t)x->buf % (uintptr_t)x->itemsize == 0;
}

static bool is_same(const Py_buffer *x, const Py_buffer *y)
{
    const size_t bytes = (size_t)x->ndim * sizeof *x->shape;
    return x->buf == y->buf && x->ndim == y->ndim && x->format[0] == y->format[0] &&
           memcmp(x->shape, y->shape, bytes) == 0 && memcmp(x->strides, y->strides, bytes) == 0;
}

/* Opens the arrays and makes the key. options are compared by identity; an entry keeps them alive.
 * If C is the result it is no operand of its own. false: Python has to compute this. */
static bool open_arrays(const PyObject *array_type, PyObject *const *arrays,
                        PyObject *const *options, operands *x, key *k)
{
    memset(x, 0, sizeof *x);
    k->count = 0;
    for (int i = 0; i < ARRAYS; i++) {
        if (arrays[i] == Py_None) continue;
        const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (i == OUT ? PyBUF_WRITABLE : 0);
        if ((PyObject *)Py_TYPE(arrays[i]) != array_type ||
            PyObject_GetBuffer(arrays[i], &x->views[i], flags) < 0)
            return false;
    }
    if (x->views[A].obj == NULL || x->views[B].obj == NULL) return false;
    for (int i = 0; i < ARRAYS; i++) {
        const bool is_there = x->views[i].obj != NULL && !(i == C && x->views[OUT].obj != NULL &&
                                                           is_same(&x->views[C], &x->views[OUT]));
        if (!is_there)
            push(k, 0);
        else if (!push_array(k, &x->views[i]))
            return false;
    }
    for (int i = 0; i < OPTIONS; i++)
        push(k, (uintptr_t)options[i]);
    return true;
}

static uint64_t hash(const key *k)
{
    uint64_t h = (uint64_t)k->count;
    for (int i = 0; i < k->count; i++)
        h = (h ^ (h >> 29) ^ k->words[i]) * 0x9e3779b97f4a7c15u; /* 2^64 over the golden ratio */
    return h;
}

/* ---- Entries --------------------------------------------------------------------------------- */

/* What Python has decided. */
typedef struct facts {
    PyObject *owner; /* keeps the plan; None: the caller of run() does */
    const tgl_plan *plan;
    PyObject *new_result; /* the arguments of numpy.empty(); NULL: out is given */
    bool is_scalar;       /* the result is an element instead of an array without dimensions */
    bool in_place;        /* the plan has no C apart from the result */
} facts;

typedef struct entry {
    key key;
    facts facts;
    PyObject *options[OPTIONS];
    uint64_t latest_use;
} entry;

typedef struct calls {
    PyObject_HEAD PyObject *array_type, *empty; /* numpy.ndarray, numpy.empty */
    run_function *run;
    uint64_t uses;
    int count;
    uint64_t hashes[ENTRIES]; /* of the entries */
    entry *entries[ENTRIES];
} calls;

static void hold_facts(const facts *f)
{
    Py_XINCREF(f->owner);
    Py_XINCREF(f->new_result);
}

static void drop_facts(const facts *f)
{
    Py_XDECREF(f->owner);
    Py_XDECREF(f->new_result);
}

static void drop(entry *e)
{
    for (int i = 0; i < OPTIONS; i++)
        Py_XDECREF(e->options[i]);
    drop_facts(&e->facts);
    PyMem_Free(e);
}

static entry *find(calls *self, const key *k, uint64_t h)
{
    for (int i = 0; i < self->count; i++)
        if (self->hashes[i] == h && self->entries[i]->key.count == k->count &&
            memcmp(self->entries[i]->key.words, k->words, (size_t)k->count * sizeof *k->words) == 0)
            return self->entries[i];
    return NULL;
}

/* Puts an entry into the place of the one that was not used for the longest time. */
static void put(calls *self, entry *e, uint64_t h)
{
    int place = self->count < ENTRIES ? self->count : 0;
    for (int i = 0; self->count == ENTRIES && i < ENTRIES; i++)
        if (self->entries[i]->latest_use < self->entries[place]->latest_use) place = i;
    entry *old = place < self->count ? self->entries[place] : NULL;
    if (old == NULL) self->count++;
    e->latest_use = ++self->uses;
    self->hashes[place] = h;
    self->entries[place] = e;
    if (old != NULL) drop(old); /* this may run Python code */
}

/* ---- run() ----------------------------------------------------------------------------------- */

/* The bytes from the first to the last element. */
static void span(const Py_buffer *x, const char **first, const char **end)
{
    *first = x->buf;
    *end = (const char *)x->buf + x->itemsize;
    for (int i = 0; i < x->ndim; i++) {
        const Py_ssize_t step = (x->shape[i] - 1) * x->strides[i];
        *(step < 0 ? first : end) += step;
    }
}

static bool overlaps(const operands *x, int i)
{
    const char *first, *end, *out_first, *out_end;
    if (x->views[i].obj == NULL || x->views[OUT].obj == NULL) return false;
    span(&x->views[i], &first, &end);
    span(&x->views[OUT], &out_first, &out_end);
    return first < out_end && out_first < end;
}

/* C may be the result itself. */
static bool result_overlaps(const operands *x)
{
    return overlaps(x, A) || overlaps(x, B) || overlaps(x, BIAS) ||
           (overlaps(x, C) && !is_same(&x->views[C], &x->views[OUT]));
}

/* alpha and beta. false: Python raises, or beta has nothing to be multiplied with. */
static bool read_scalars(PyObject *const *scalars, const operands *x, tgl_operands *o)
{
    const bool has_c = x->views[C].obj != NULL;
    o->alpha = PyFloat_AsDouble(scalars[0]);
    o->beta = has_c;
    if (scalars[1] != Py_None) o->beta = PyFloat_AsDouble(scalars[1]);
    return !PyErr_Occurred() && (o->beta == 0 || has_c || x->views[OUT].obj != NULL);
}

/* Runs the plan. x and the caller's reference to the facts keep the memory alive while other
 * threads of Python run. */
static tgl_status run_plan(run_function *run, const facts *f, const operands *x, tgl_operands *o)
{
    o->A = x->views[A].buf;
    o->B = x->views[B].buf;
    o->bias = x->views[BIAS].buf;
    o->C = f->in_place ? x->views[OUT].buf : x->views[C].buf;
    o->D = f->in_place ? NULL : x->views[OUT].buf;
    PyThreadState *const python = PyEval_SaveThread();
    const tgl_status status = run(f->plan, o, NULL);
    PyEval_RestoreThread(python);
    return status;
}

/* The element of an array without dimensions. Takes the reference to the array. */
static PyObject *element_of(PyObject *array)
{
    PyObject *index = PyTuple_New(0);
    PyObject *element = index != NULL ? PyObject_GetItem(array, index) : NULL;
    Py_XDECREF(index);
    Py_DECREF(array);
    return element;
}

/* The result, a new reference; NULL: Python has to compute it. */
static PyObject *compute(const calls *self, const facts *f, PyObject *out, PyObject *const *scalars,
                         operands *x)
{
    tgl_operands o = {.size = sizeof o};
    if (!read_scalars(scalars, x, &o) || result_overlaps(x)) return NULL;
    if (f->new_result == NULL) {
        if (run_plan(self->run, f, x, &o) != TGL_OK) return NULL;
        Py_INCREF(out);
        return out;
    }
    PyObject *result = PyObject_CallObject(self->empty, f->new_result);
    if (result == NULL) return NULL;
    if (PyObject_GetBuffer(result, &x->views[OUT], PyBUF_STRIDES | PyBUF_WRITABLE) < 0 ||
        run_plan(self->run, f, x, &o) != TGL_OK) {
        Py_DECREF(result);
        return NULL;
    }
    return f->is_scalar ? element_of(result) : result;
}

/* run(a, b, out, c, bias, alpha, beta, *options) */
static PyObject *run(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    calls *self = (calls *)object;
    if (count != ARRAYS + SCALARS + OPTIONS) {
        PyErr_SetString(PyExc_TypeError, "run() takes the arrays, the scalars and the options");
        return NULL;
    }
    operands x;
    key k;
    PyObject *result = NULL;
    if (open_arrays(self->array_type, args, args + ARRAYS + SCALARS, &x, &k)) {
        entry *e = find(self, &k, hash(&k));
        if (e != NULL) {
            e->latest_use = ++self->uses;
            const facts f = e->facts; /* the entry may be dropped meanwhile */
            hold_facts(&f);
            result = compute(self, &f, args[OUT], args + ARRAYS, &x);
            drop_facts(&f);
        }
    }
    release(&x);
    if (result != NULL) return result;
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* ---- learn() and clear() --------------------------------------------------------------------- */

/* The facts of learn(), as new references. false: an exception is set. */
static bool read_facts(PyObject *const *given, facts *f)
{
    f->owner = given[0];
    f->plan = PyLong_AsVoidPtr(given[1]);
    f->in_place = given[2] == Py_True;
    f->new_result = given[3] != Py_None ? given[3] : NULL;
    f->is_scalar = given[4] == Py_True;
    hold_facts(f);
    return !PyErr_Occurred();
}

/* learn(a, b, out, c, bias, *options, owner, address of the plan, in_place, new_result, is_scalar):
 * Python has computed this product by one run of the plan, on the arrays as they are. new_result:
 * the arguments of numpy.empty(), or None. */
static PyObject *learn(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    calls *self = (calls *)object;
    if (count != ARRAYS + OPTIONS + FACTS) {
        PyErr_SetString(PyExc_TypeError, "learn() takes the arrays, the options and the facts");
        return NULL;
    }
    PyObject *const *options = args + ARRAYS;
    operands x;
    key k;
    const bool is_usable = open_arrays(self->array_type, args, options, &x, &k);
    release(&x);
    PyErr_Clear();
    if (!is_usable || find(self, &k, hash(&k)) != NULL) Py_RETURN_NONE;
    entry *e = PyMem_Calloc(1, sizeof *e);
    if (e == NULL) return PyErr_NoMemory();
    e->key = k;
    for (int i = 0; i < OPTIONS; i++)
        Py_INCREF(options[i]);
    memcpy(e->options, options, sizeof e->options);
    if (!read_facts(options + OPTIONS, &e->facts)) {
        drop(e);
        return NULL;
    }
    put(self, e, hash(&k));
    Py_RETURN_NONE;
}

/* clear(): forgets everything. */
static PyObject *clear(PyObject *object, PyObject *unused)
{
    (void)unused;
    calls *self = (calls *)object;
    while (self->count > 0)
        drop(self->entries[--self->count]);
    Py_RETURN_NONE;
}

/* ---- The type -------------------------------------------------------------------------------- */

static PyObject *new_calls(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *array_type, *empty, *address;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "OOO", &array_type, &empty, &address)) return NULL;
    void *run = PyLong_AsVoidPtr(address);
    if (run == NULL) return NULL;
    calls *self = (calls *)PyType_GenericAlloc(type, 0);
    if (self == NULL) return NULL;
    self->array_type = array_type;
    self->empty = empty;
    Py_INCREF(array_type);
    Py_INCREF(empty);
    *(void **)&self->run = run;
    return (PyObject *)self;
}

static void free_calls(PyObject *object)
{
    calls *self = (calls *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(clear(object, NULL));
    Py_DECREF(self->array_type);
    Py_DECREF(self->empty);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, NULL},
    {"learn", (PyCFunction)(void (*)(void))learn, METH_FASTCALL, NULL},
    {"clear", clear, METH_NOARGS, NULL},
    {0},
};
static PyType_Slot slots[] = {
    {Py_tp_new, new_calls}, {Py_tp_dealloc, free_calls}, {Py_tp_methods, methods}, {0}};
static PyType_Spec spec = {"tegula._call.Calls", sizeof(calls), 0, Py_TPFLAGS_DEFAULT, slots};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_call", .m_size = -1};

PyMODINIT_FUNC PyInit__call(void); /* Python finds it by its name */

PyMODINIT_FUNC PyInit__call(void)
{
    PyObject *made = PyModule_Create(&module);
    PyObject *type = made != NULL ? PyType_FromSpec(&spec) : NULL;
    if (type == NULL || PyModule_AddObject(made, "Calls", type) < 0) {
        Py_XDECREF(type);
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
