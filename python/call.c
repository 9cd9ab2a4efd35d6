/* SPDX-License-Identifier: Apache-2.0
 *
 * tegula._call: the compiled path of the package. It computes products like those that were
 * computed before, without the Python code of tegula/_matmul.py, which takes 20 to 60 us a call.
 *
 *     call = Calls(address of tgl_plan_run_operands(), check, hold)
 *     call.know(type, reader, ...)            from now on run() reads arrays of this type
 *     call.run(arrays, scalars, options)      returns None: compute the product in Python, and then
 *     call.learn(arrays, options, plan, ...)  from now on run() computes products like this one
 *
 * This file decides nothing about products. learn() stores what Python has decided for arrays of
 * certain types, shapes, strides and devices: the plan, and the function that makes the result.
 * run() looks up arrays of the same types, shapes, strides and devices, checks what depends on
 * addresses, streams and scalars, and runs the plan. It returns None for every product that it does
 * not know, so that the Python code computes the product or raises an exception. If the plan itself
 * fails, run() raises the exception, by the Python functions check() and hold().
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <tegula/tegula.h>

#include "read_array.h"

enum { A, B, OUT, C, BIAS, SCALE_A, SCALE_B, ARRAYS }; /* the order of the arguments */
enum { SCALARS = 2, OPTIONS = 4, FACTS = 6, ENTRIES = 256 };
enum { KEY_MAX = ARRAYS * (3 + 2 * DIMENSIONS_MAX) + OPTIONS };

typedef tgl_status run_function(const tgl_plan *, const tgl_operands *, void *);

/* ---- Keys ------------------------------------------------------------------------------------ */

/* The types, devices, shapes and strides of the arrays, and the options. */
typedef struct key {
    int count;
    uint64_t words[KEY_MAX];
} key;

typedef struct operands {
    array of[ARRAYS];
} operands;

static void init(operands *x)
{
    for (int i = 0; i < ARRAYS; i++) {
        x->of[i].is_there = false;
        x->of[i].owner = NULL;
        x->of[i].buffer.obj = NULL;
    }
}

static void release(operands *x)
{
    for (int i = 0; i < ARRAYS; i++)
        release_array(&x->of[i]);
}

static void push(key *k, uint64_t word)
{
    k->words[k->count++] = word;
}

static void push_array(key *k, const array *x)
{
    push(k, (uintptr_t)x->type);
    push(k, (uint64_t)x->device << 16 | (uint64_t)x->element << 8 | (uint64_t)x->dimensions);
    for (int i = 0; i < x->dimensions; i++) {
        push(k, (uint64_t)x->shape[i]);
        push(k, (uint64_t)x->strides[i]);
    }
}

static bool is_same(const array *x, const array *y)
{
    const size_t bytes = (size_t)x->dimensions * sizeof *x->shape;
    return x->data == y->data && x->element == y->element && x->dimensions == y->dimensions &&
           memcmp(x->shape, y->shape, bytes) == 0 && memcmp(x->strides, y->strides, bytes) == 0;
}

/* Reads the arrays and makes the key. options are compared by identity; an entry keeps them alive.
 * If C is the same array as the result, it is not part of the key. false: Python has to compute the
 * product. */
static bool read_operands(sources *s, PyObject *const *arrays, PyObject *const *options,
                          operands *x, key *k)
{
    k->count = 0;
    for (int i = 0; i < ARRAYS; i++)
        if (arrays[i] != Py_None && !read_array(s, arrays[i], i == OUT, &x->of[i])) return false;
    if (!x->of[A].is_there || !x->of[B].is_there) return false;
    for (int i = 0; i < ARRAYS; i++) {
        if (!x->of[i].is_there ||
            (i == C && x->of[OUT].is_there && is_same(&x->of[C], &x->of[OUT])))
            push(k, 0);
        else
            push_array(k, &x->of[i]);
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

/* What Python has decided about a product. */
typedef struct facts {
    PyObject *owner; /* keeps the plan alive; None: the caller of run() keeps it */
    const tgl_plan *plan;
    PyObject *new_result; /* a function that makes the result; NULL: the caller gives out */
    PyObject *holder;     /* the GPU, whose queued products keep their arrays; NULL: the CPU */
    bool is_scalar;       /* run() returns an element, not an array without dimensions */
    bool in_place;        /* the plan has no C other than the result */
} facts;

typedef struct entry {
    key key;
    facts facts;
    PyObject *options[OPTIONS];
    uint64_t latest_use;
} entry;

typedef struct calls {
    PyObject_HEAD sources types;
    run_function *run;
    PyObject *check; /* raises the exception of a status */
    PyObject *hold;  /* keeps objects until the work in a stream of a device is complete */
    uint64_t uses;
    int count;
    uint64_t hashes[ENTRIES]; /* the hashes of the entries' keys */
    entry *entries[ENTRIES];
} calls;

static void hold_facts(const facts *f)
{
    Py_XINCREF(f->owner);
    Py_XINCREF(f->new_result);
    Py_XINCREF(f->holder);
}

static void drop_facts(const facts *f)
{
    Py_XDECREF(f->owner);
    Py_XDECREF(f->new_result);
    Py_XDECREF(f->holder);
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

/* Adds an entry. If the table is full, it replaces the least recently used entry. */
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

/* The range of bytes that the elements of an array occupy. */
static void span(const array *x, const char **first, const char **end)
{
    *first = x->data;
    *end = x->data + x->size;
    for (int i = 0; i < x->dimensions; i++) {
        const int64_t step = (x->shape[i] - 1) * x->strides[i];
        *(step < 0 ? first : end) += step;
    }
}

static bool overlaps(const operands *x, int i)
{
    const char *first, *end, *out_first, *out_end;
    if (!x->of[i].is_there || !x->of[OUT].is_there) return false;
    span(&x->of[i], &first, &end);
    span(&x->of[OUT], &out_first, &out_end);
    return first < out_end && out_first < end;
}

/* Whether the result overlaps another array. C may be the same array as the result. */
static bool result_overlaps(const operands *x)
{
    for (int i = 0; i < ARRAYS; i++)
        if (i != OUT && overlaps(x, i) && !(i == C && is_same(&x->of[C], &x->of[OUT]))) return true;
    return false;
}

/* *re, *im := the number x, alpha or beta. PyFloat_AsDouble() of a complex number of NumPy would
 * drop the imaginary part. */
static void read_factor(PyObject *x, double *re, double *im)
{
    if (PyFloat_CheckExact(x) || PyLong_CheckExact(x) || PyUnicode_Check(x)) { /* text raises */
        *re = PyFloat_AsDouble(x);
        return;
    }
    PyObject *z = PyObject_CallFunctionObjArgs((PyObject *)&PyComplex_Type, x, NULL);
    if (z == NULL) return;
    *re = PyComplex_RealAsDouble(z);
    *im = PyComplex_ImagAsDouble(z);
    Py_DECREF(z);
}

/* Reads alpha and beta; beta is 1 by default if there is a C, else 0. false: an exception is set,
 * or beta is not 0 although there is neither C nor out. */
static bool read_scalars(PyObject *const *scalars, const operands *x, tgl_operands *o)
{
    const bool has_c = x->of[C].is_there;
    read_factor(scalars[0], &o->alpha, &o->alpha_imag);
    o->beta = has_c;
    if (scalars[1] != Py_None) read_factor(scalars[1], &o->beta, &o->beta_imag);
    const bool has_beta = o->beta != 0 || o->beta_imag != 0;
    return !PyErr_Occurred() && (!has_beta || has_c || x->of[OUT].is_there);
}

/* Whether all arrays are up to date in the same stream. */
static bool have_one_stream(const operands *x)
{
    for (int i = 0; i < ARRAYS; i++)
        if (x->of[i].is_there && x->of[i].stream != x->of[A].stream) return false;
    return true;
}

static void *address(const operands *x, int i)
{
    return x->of[i].is_there ? x->of[i].data : NULL;
}

/* Runs the plan. x and the caller's reference to the facts keep the memory alive while other
 * threads of Python run. */
static tgl_status run_plan(run_function *run, const facts *f, const operands *x, tgl_operands *o)
{
    o->A = address(x, A);
    o->B = address(x, B);
    o->bias = address(x, BIAS);
    o->scale_a = address(x, SCALE_A);
    o->scale_b = address(x, SCALE_B);
    o->C = address(x, f->in_place ? OUT : C);
    o->D = f->in_place ? NULL : address(x, OUT);
    PyThreadState *const python = PyEval_SaveThread();
    const tgl_status status = run(f->plan, o, x->of[A].stream);
    PyEval_RestoreThread(python);
    return status;
}

/* The objects that must be kept until the product has run. NULL: an exception is set. */
static PyObject *list_owners(const operands *x)
{
    PyObject *owners = PyList_New(0);
    for (int i = 0; i < ARRAYS && owners != NULL; i++)
        if (x->of[i].owner != NULL && PyList_Append(owners, x->of[i].owner) < 0) Py_CLEAR(owners);
    return owners;
}

/* Keeps the arrays of a queued product until it has run. false: an exception is set. */
static bool hold_arrays(const calls *self, const facts *f, const operands *x)
{
    if (f->holder == NULL) return true;
    PyObject *owners = list_owners(x), *stream = PyLong_FromVoidPtr(x->of[A].stream);
    bool is_held = owners != NULL && stream != NULL;
    if (is_held && PyList_Size(owners) > 0) {
        PyObject *answer =
            PyObject_CallFunctionObjArgs(self->hold, f->holder, stream, owners, NULL);
        is_held = answer != NULL;
        Py_XDECREF(answer);
    }
    Py_XDECREF(stream);
    Py_XDECREF(owners);
    return is_held;
}

/* Computes the product. false: an exception is set. */
static bool multiply(const calls *self, const facts *f, const operands *x, tgl_operands *o)
{
    const tgl_status status = run_plan(self->run, f, x, o);
    if (status == TGL_OK) return hold_arrays(self, f, x);
    PyObject *answer = PyObject_CallFunction(self->check, "i", (int)status);
    Py_XDECREF(answer);
    return false;
}

/* The element of an array without dimensions. Takes over the reference to the array. */
static PyObject *element_of(PyObject *x)
{
    PyObject *index = PyTuple_New(0);
    PyObject *element = index != NULL ? PyObject_GetItem(x, index) : NULL;
    Py_XDECREF(index);
    Py_DECREF(x);
    return element;
}

/* Makes the array of the result and computes the product. NULL: as for compute(). */
static PyObject *compute_new(calls *self, const facts *f, operands *x, tgl_operands *o,
                             bool *is_final)
{
    PyObject *result = PyObject_CallObject(f->new_result, NULL);
    if (result == NULL) return NULL;
    if (read_array(&self->types, result, true, &x->of[OUT]) && have_one_stream(x)) {
        *is_final = true;
        if (multiply(self, f, x, o)) return f->is_scalar ? element_of(result) : result;
    }
    Py_DECREF(result);
    return NULL;
}

/* Computes the product. Returns a new reference to the result. NULL: if *is_final, an exception is
 * set, else Python has to compute the product. */
static PyObject *compute(calls *self, const facts *f, PyObject *out, PyObject *const *scalars,
                         operands *x, bool *is_final)
{
    tgl_operands o = {.size = sizeof o};
    if (!read_scalars(scalars, x, &o) || result_overlaps(x)) return NULL;
    if (f->new_result != NULL) return compute_new(self, f, x, &o, is_final);
    if (!have_one_stream(x)) return NULL;
    *is_final = true;
    if (!multiply(self, f, x, &o)) return NULL;
    Py_INCREF(out);
    return out;
}

/* run(a, b, out, c, bias, scale_a, scale_b, alpha, beta, *options) */
static PyObject *run(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    calls *self = (calls *)object;
    if (count != ARRAYS + SCALARS + OPTIONS) {
        PyErr_SetString(PyExc_TypeError, "run() takes the arrays, the scalars and the options");
        return NULL;
    }
    operands x;
    key k;
    bool is_final = false;
    PyObject *result = NULL;
    init(&x);
    if (read_operands(&self->types, args, args + ARRAYS + SCALARS, &x, &k)) {
        entry *e = find(self, &k, hash(&k));
        if (e != NULL) {
            e->latest_use = ++self->uses;
            const facts f = e->facts; /* a copy, because Python code may drop the entry */
            hold_facts(&f);
            result = compute(self, &f, args[OUT], args + ARRAYS, &x, &is_final);
            drop_facts(&f);
        }
    }
    release(&x);
    if (result != NULL || is_final) return result;
    /* Reading an array can run code of other libraries. KeyboardInterrupt there is passed on; other
     * exceptions are dropped, because Python reads the arrays again. */
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* ---- know(), learn() and clear()---------------------------------------------------------------
 */

/* know(type, reader, is_read_only, functions, is_negated, is_conjugated, uses_gradients): how run()
 * reads arrays of this type. The last four are None unless the reader is READ_TENSOR; functions is
 * a capsule.
 */
static PyObject *know(PyObject *object, PyObject *args)
{
    PyObject *type, *functions, *is_negated, *is_conjugated, *uses_gradients;
    int how, is_read_only;
    if (!PyArg_ParseTuple(args, "OipOOOO", &type, &how, &is_read_only, &functions, &is_negated,
                          &is_conjugated, &uses_gradients))
        return NULL;
    source added = {.type = type, .reader = (reader)how, .is_read_only = is_read_only != 0};
    if (added.reader == READ_TENSOR) {
        added.is_negated = is_negated;
        added.is_conjugated = is_conjugated;
        added.uses_gradients = uses_gradients;
        if (!PyCapsule_IsValid(functions, "dlpack_exchange_api")) Py_RETURN_NONE;
        added.functions = PyCapsule_GetPointer(functions, "dlpack_exchange_api");
        if (added.functions->major != 1 || added.functions->read == NULL) Py_RETURN_NONE;
    }
    know_type(&((calls *)object)->types, &added);
    Py_RETURN_NONE;
}

static PyObject *unless_none(PyObject *x)
{
    return x != Py_None ? x : NULL;
}

/* Reads the last arguments of learn() and takes references to them. false: an exception is set. */
static bool read_facts(PyObject *const *given, facts *f)
{
    f->owner = given[0];
    f->plan = PyLong_AsVoidPtr(given[1]);
    f->in_place = given[2] == Py_True;
    f->new_result = unless_none(given[3]);
    f->is_scalar = given[4] == Py_True;
    f->holder = unless_none(given[5]);
    hold_facts(f);
    return !PyErr_Occurred();
}

/* learn(a, b, out, c, bias, scale_a, scale_b, *options, owner, address of the plan, in_place,
 * new_result, is_scalar, holder): stores how Python has computed this product, by one run of the
 * plan on these arrays without copies of them. The last six arguments are the members of facts;
 * owner, new_result and holder may be None. */
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
    init(&x);
    const bool is_usable = read_operands(&self->types, args, options, &x, &k);
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

/* clear(): forgets the products. */
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
    PyObject *number, *check, *hold;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "OOO", &number, &check, &hold)) return NULL;
    void *run = PyLong_AsVoidPtr(number);
    if (run == NULL) return NULL;
    calls *self = (calls *)PyType_GenericAlloc(type, 0);
    if (self == NULL) return NULL;
    self->check = check;
    self->hold = hold;
    Py_INCREF(check);
    Py_INCREF(hold);
    *(void **)&self->run = run;
    return (PyObject *)self;
}

static void free_calls(PyObject *object)
{
    calls *self = (calls *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(clear(object, NULL));
    forget_types(&self->types);
    Py_DECREF(self->check);
    Py_DECREF(self->hold);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, NULL},
    {"know", know, METH_VARARGS, NULL},
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
    if (type == NULL || PyModule_AddIntConstant(made, "BUFFER", READ_BUFFER) < 0 ||
        PyModule_AddIntConstant(made, "TENSOR", READ_TENSOR) < 0 ||
        PyModule_AddIntConstant(made, "INTERFACE", READ_INTERFACE) < 0 ||
        PyModule_AddIntConstant(made, "CAPSULE", READ_CAPSULE) < 0 ||
        PyModule_AddObject(made, "Calls", type) < 0) {
        Py_XDECREF(type);
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
