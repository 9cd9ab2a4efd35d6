/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks a problem and its arguments, and normalises it to row-major. Argument errors are born
 * here, nowhere else.
 */
#include "problem.h"
#include "device.h"

#include <stdio.h>

/* Writes the sentence and yields the status; `message` and `message_size` are in scope. */
#define REJECT(status, ...) (snprintf(message, message_size, __VA_ARGS__), (status))

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

size_t tgl_type_size(tgl_type type)
{
    switch (type) {
    case TGL_F64:
        return 8;
    case TGL_F32:
    case TGL_I32:
        return 4;
    case TGL_F16:
    case TGL_BF16:
        return 2;
    case TGL_F8_E4M3:
    case TGL_F8_E5M2:
    case TGL_I8:
        return 1;
    }
    return 0;
}

tgl_problem tgl_problem_make(tgl_type type, int64_t m, int64_t n, int64_t k)
{
    return (tgl_problem){
        .size = sizeof(tgl_problem),
        .m = m,
        .n = n,
        .k = k,
        .order = TGL_ROW_MAJOR,
        .trans_a = TGL_NO_TRANS,
        .trans_b = TGL_NO_TRANS,
        .type_a = type,
        .type_b = type,
        .type_c = type,
        .compute = TGL_COMPUTE_DEFAULT,
        .batch = 1,
    };
}

static bool is_transpose(tgl_transpose trans)
{
    return trans == TGL_NO_TRANS || trans == TGL_TRANS || trans == TGL_CONJ_TRANS;
}

/* A stored matrix: `rows` lines of `row` elements each, `ld` apart. */
typedef struct stored {
    int64_t rows, row, ld, stride;
    size_t element;
} stored;

/* How op(X), rows x cols, lies in memory. */
static stored stored_as(int64_t rows, int64_t cols, bool transposed, bool col_major, int64_t ld,
                        int64_t stride, tgl_type type)
{
    bool flip = transposed != col_major;
    return (stored){flip ? cols : rows, flip ? rows : cols, ld, stride, tgl_type_size(type)};
}

/* Elements from the first to one past the last of one matrix; -1 if that passes int64_t. */
static int64_t extent(const stored *x)
{
    if (x->rows == 0 || x->row == 0) return 0;
    int64_t last;
    if (__builtin_mul_overflow(x->rows - 1, x->ld, &last)) return -1;
    return __builtin_add_overflow(last, x->row, &last) ? -1 : last;
}

/* Whether the bytes of the whole batch can be counted in int64_t. */
static bool is_addressable(const stored *x, int64_t batch)
{
    int64_t one = extent(x), all;
    if (one < 0) return false;
    if (one == 0 || batch == 0) return true;
    return !__builtin_mul_overflow(batch - 1, x->stride, &all) &&
           !__builtin_add_overflow(all, one, &all) &&
           !__builtin_mul_overflow(all, (int64_t)x->element, &all);
}

static tgl_status check_enums(const tgl_problem *p, char *message, size_t message_size)
{
    if (p->order != TGL_ROW_MAJOR && p->order != TGL_COL_MAJOR)
        return REJECT(TGL_BAD_ORDER, "order is %d; use TGL_ROW_MAJOR or TGL_COL_MAJOR",
                      (int)p->order);
    if (!is_transpose(p->trans_a))
        return REJECT(TGL_BAD_TRANS_A, "trans_a is %d; use TGL_NO_TRANS or TGL_TRANS",
                      (int)p->trans_a);
    if (!is_transpose(p->trans_b))
        return REJECT(TGL_BAD_TRANS_B, "trans_b is %d; use TGL_NO_TRANS or TGL_TRANS",
                      (int)p->trans_b);
    const struct {
        const char *name;
        tgl_type type;
    } types[] = {{"type_a", p->type_a}, {"type_b", p->type_b}, {"type_c", p->type_c}};
    for (int i = 0; i < 3; i++)
        if (tgl_type_size(types[i].type) == 0)
            return REJECT(TGL_BAD_TYPE, "%s is %d, which is not a tgl_type", types[i].name,
                          (int)types[i].type);
    if (p->compute != TGL_COMPUTE_DEFAULT && p->compute != TGL_COMPUTE_TF32)
        return REJECT(TGL_BAD_COMPUTE, "compute is %d, which is not a tgl_compute",
                      (int)p->compute);
    return TGL_OK;
}

/* A member that counts something, its name, and what a negative one is called. */
typedef struct count {
    const char *name;
    int64_t value;
    tgl_status status;
} count;

static tgl_status check_counts(const count *counts, size_t length, char *message,
                               size_t message_size)
{
    for (size_t i = 0; i < length; i++)
        if (counts[i].value < 0)
            return REJECT(counts[i].status, "%s is %lld; it must not be negative", counts[i].name,
                          (long long)counts[i].value);
    return TGL_OK;
}

static tgl_status check_leading_dimensions(const stored x[3], char *message, size_t message_size)
{
    static const struct {
        const char *name;
        tgl_status status;
    } matrices[] = {{"lda", TGL_BAD_LDA}, {"ldb", TGL_BAD_LDB}, {"ldc", TGL_BAD_LDC}};
    for (int i = 0; i < 3; i++)
        if (x[i].ld < 1 || x[i].ld < x[i].row)
            return REJECT(matrices[i].status, "%s is %lld; it must be at least %lld",
                          matrices[i].name, (long long)x[i].ld,
                          (long long)(x[i].row > 1 ? x[i].row : 1));
    return TGL_OK;
}

/* How a batch is laid out; the distances of one of pointers are nobody's concern. */
static tgl_status check_batch(const tgl_problem *p, char *message, size_t message_size)
{
    const bool strided = p->batching == TGL_STRIDED;
    const count counts[] = {{"batch", p->batch, TGL_BAD_BATCH},
                            {"stride_a", strided ? p->stride_a : 0, TGL_BAD_STRIDE_A},
                            {"stride_b", strided ? p->stride_b : 0, TGL_BAD_STRIDE_B},
                            {"stride_c", strided ? p->stride_c : 0, TGL_BAD_STRIDE_C}};
    TGL_TRY(check_counts(counts, COUNT_OF(counts), message, message_size));
    if (!strided && p->batching != TGL_POINTERS)
        return REJECT(TGL_BAD_BATCHING, "batching is %d; use TGL_STRIDED or TGL_POINTERS",
                      (int)p->batching);
    if (p->alignment < 0 || (p->alignment & (p->alignment - 1)) != 0)
        return REJECT(TGL_BAD_ALIGNMENT, "alignment is %lld; it must be 0 or a power of two",
                      (long long)p->alignment);
    return TGL_OK;
}

/* Refuses a batch of C of which two would share an element: they lie one behind the other, or side
 * by side, a row of each within ld. is_addressable() has seen to it that nothing overflows. */
static tgl_status check_overlap(const stored *c, int64_t batch, char *message, size_t message_size)
{
    if (batch < 2 || c->stride >= extent(c)) return TGL_OK;
    const int64_t most = (c->ld - c->row) / (batch - 1); /* where the last row still fits */
    if (c->stride >= c->row && c->stride <= most) return TGL_OK;
    if (most < c->row)
        return REJECT(TGL_BAD_STRIDE_C,
                      "stride_c is %lld; it must be at least %lld so that no two C overlap",
                      (long long)c->stride, (long long)extent(c));
    return REJECT(TGL_BAD_STRIDE_C,
                  "stride_c is %lld; it must be at least %lld, or %lld to %lld within ldc, so that "
                  "no two C overlap",
                  (long long)c->stride, (long long)extent(c), (long long)c->row, (long long)most);
}

/* batch: of matrices a stride apart. */
static tgl_status check_extents(const stored x[3], int64_t batch, char *message,
                                size_t message_size)
{
    for (int i = 0; i < 3; i++)
        if (!is_addressable(&x[i], batch))
            return REJECT(TGL_TOO_LARGE, "the bytes of matrix %c do not fit in 63 bits", "ABC"[i]);
    return check_overlap(&x[2], batch, message, message_size);
}

tgl_status tgl_shape_make(const tgl_problem *p, bool zero_is_tight, tgl_gemm_shape *shape,
                          char *message, size_t message_size)
{
    if (p == NULL) return REJECT(TGL_BAD_ARGUMENT, "problem is NULL");
    if (p->size != sizeof(tgl_problem))
        return REJECT(TGL_BAD_ARGUMENT, "problem.size is %zu; this version knows %zu", p->size,
                      sizeof(tgl_problem));
    const count sizes[] = {{"m", p->m, TGL_BAD_M}, {"n", p->n, TGL_BAD_N}, {"k", p->k, TGL_BAD_K}};
    TGL_TRY(check_counts(sizes, COUNT_OF(sizes), message, message_size));
    TGL_TRY(check_enums(p, message, message_size));

    const bool trans_a = p->trans_a != TGL_NO_TRANS, trans_b = p->trans_b != TGL_NO_TRANS;
    const bool col_major = p->order == TGL_COL_MAJOR, pointers = p->batching == TGL_POINTERS;
    stored x[3] = {
        stored_as(p->m, p->k, trans_a, col_major, p->lda, pointers ? 0 : p->stride_a, p->type_a),
        stored_as(p->k, p->n, trans_b, col_major, p->ldb, pointers ? 0 : p->stride_b, p->type_b),
        stored_as(p->m, p->n, false, col_major, p->ldc, pointers ? 0 : p->stride_c, p->type_c),
    };
    for (int i = 0; i < 3; i++)
        if (zero_is_tight && x[i].ld == 0) x[i].ld = x[i].row > 0 ? x[i].row : 1;
    TGL_TRY(check_leading_dimensions(x, message, message_size));

    TGL_TRY(check_batch(p, message, message_size));
    if (pointers && p->batch > INT64_MAX / (int64_t)sizeof(void *))
        return REJECT(TGL_TOO_LARGE, "the bytes of an array of pointers do not fit in 63 bits");
    TGL_TRY(check_extents(x, pointers && p->batch > 1 ? 1 : p->batch, message, message_size));

    /* In row-major terms a column-major product has its operands exchanged. */
    const int a = col_major ? 1 : 0, b = 1 - a;
    *shape = (tgl_gemm_shape){
        .m = col_major ? p->n : p->m,
        .n = col_major ? p->m : p->n,
        .k = p->k,
        .swapped = col_major,
        .trans_a = col_major ? trans_b : trans_a,
        .trans_b = col_major ? trans_a : trans_b,
        .type_a = col_major ? p->type_b : p->type_a,
        .type_b = col_major ? p->type_a : p->type_b,
        .type_c = p->type_c,
        .compute = p->compute,
        .lda = x[a].ld,
        .ldb = x[b].ld,
        .ldc = x[2].ld,
        .batch = p->batch,
        .stride_a = x[a].stride,
        .stride_b = x[b].stride,
        .stride_c = x[2].stride,
        .pointers = pointers,
        .alignment = pointers ? p->alignment : 0,
    };
    return TGL_OK;
}

tgl_status tgl_problem_check(const tgl_problem *problem, char *message, size_t message_size)
{
    tgl_gemm_shape shape;
    if (message == NULL) message_size = 0;
    if (message_size > 0) message[0] = '\0';
    return tgl_shape_make(problem, true, &shape, message, message_size);
}

bool tgl_shape_is_empty(const tgl_gemm_shape *shape)
{
    return shape->m == 0 || shape->n == 0 || shape->batch == 0;
}

/* NULL if the pointer may be used for elements of so many bytes, else what is wrong with it. */
static const char *pointer_fault(const void *pointer, size_t element)
{
    if (pointer == NULL) return "is NULL";
    return ((uintptr_t)pointer & (element - 1)) != 0 ? "is not aligned to its element" : NULL;
}

/* `volatile`, because GCC 12 at -O3 puts alpha and beta side by side in one vector register and
 * then takes the way to float and back for no change at all. */
static double rounded_to_f32(double value)
{
    volatile float narrow = (float)value;
    return narrow;
}

static tgl_status check_operands(const tgl_gemm_shape *s, const tgl_operands *o, char *message,
                                 size_t message_size)
{
    if (o == NULL) return REJECT(TGL_BAD_ARGUMENT, "operands is NULL");
    if (o->size != sizeof *o)
        return REJECT(TGL_BAD_ARGUMENT, "operands.size is %zu; this version knows %zu", o->size,
                      sizeof *o);
    if (tgl_shape_is_empty(s)) return TGL_OK;
    if (s->pointers && (o->A != NULL || o->B != NULL || o->C != NULL))
        return REJECT(TGL_BAD_BATCHING,
                      "a matrix is given, and batching is TGL_POINTERS: give arrays of pointers");
    if (!s->pointers && (o->A_array != NULL || o->B_array != NULL || o->C_array != NULL))
        return REJECT(TGL_BAD_BATCHING,
                      "an array of pointers is given, and batching is TGL_STRIDED");
    if (o->bias != NULL && s->epilogue.bias == TGL_BIAS_NONE)
        return REJECT(TGL_BAD_BIAS, "bias is given, and the plan's epilogue has none");
    if (o->residual != NULL && !s->epilogue.residual)
        return REJECT(TGL_BAD_RESIDUAL, "residual is given, and the plan's epilogue has none");
    return TGL_OK;
}

/* Refuses a pointer that is not usable. */
static tgl_status check_pointer(const char *name, tgl_status status, const void *pointer,
                                size_t element, char *message, size_t message_size)
{
    const char *fault = pointer_fault(pointer, element);
    return fault == NULL ? TGL_OK : REJECT(status, "%s %s", name, fault);
}

/* The pointers that the run makes use of. */
static tgl_status check_pointers(const tgl_gemm_shape *s, const tgl_operands *o, bool has_product,
                                 char *message, size_t message_size)
{
    const bool arrays = s->pointers;
    const size_t type_c = tgl_type_size(s->type_c), array = sizeof(void *);
    if (has_product) {
        const size_t a = arrays ? array : tgl_type_size(s->swapped ? s->type_b : s->type_a);
        const size_t b = arrays ? array : tgl_type_size(s->swapped ? s->type_a : s->type_b);
        TGL_TRY(check_pointer(arrays ? "A_array" : "A", TGL_BAD_A,
                              arrays ? (const void *)o->A_array : o->A, a, message, message_size));
        TGL_TRY(check_pointer(arrays ? "B_array" : "B", TGL_BAD_B,
                              arrays ? (const void *)o->B_array : o->B, b, message, message_size));
    }
    TGL_TRY(check_pointer(arrays ? "C_array" : "C", TGL_BAD_C,
                          arrays ? (const void *)o->C_array : o->C, arrays ? array : type_c,
                          message, message_size));
    if (s->epilogue.bias != TGL_BIAS_NONE)
        TGL_TRY(check_pointer("bias", TGL_BAD_BIAS, o->bias, type_c, message, message_size));
    if (s->epilogue.residual)
        TGL_TRY(check_pointer("residual", TGL_BAD_RESIDUAL, o->residual, type_c, message,
                              message_size));
    return TGL_OK;
}

tgl_status tgl_run_make(const tgl_gemm_shape *shape, double alpha, double beta,
                        const tgl_operands *o, tgl_run *run, char *message, size_t message_size)
{
    const bool is_f32 = shape->type_c == TGL_F32, swapped = shape->swapped;
    TGL_TRY(check_operands(shape, o, message, message_size));
    if (shape->k == 0) alpha = 0; /* A and B have no elements, so that C := beta*C */
    *run = (tgl_run){
        .alpha = is_f32 ? rounded_to_f32(alpha) : alpha,
        .beta = is_f32 ? rounded_to_f32(beta) : beta,
        .C = o->C,
        .C_array = o->C_array,
        .bias = o->bias,
        .residual = o->residual,
    };
    const bool has_product = run->alpha != 0; /* a NaN has one */
    if (has_product) {
        run->A = swapped ? o->B : o->A;
        run->B = swapped ? o->A : o->B;
        run->A_array = swapped ? o->B_array : o->A_array;
        run->B_array = swapped ? o->A_array : o->B_array;
    }
    if (tgl_shape_is_empty(shape)) return TGL_OK;
    return check_pointers(shape, o, has_product, message, message_size);
}

/* One array of a run, by the caller's name of it. */
static tgl_status check_array(const tgl_gemm_shape *s, const void *const *array, char name,
                              tgl_status status, size_t element, int64_t promised, char *message,
                              size_t message_size)
{
    for (int64_t i = 0; i < s->batch; i++) {
        const char *fault = pointer_fault(array[i], element);
        if (fault != NULL) return REJECT(status, "%c[%lld] %s", name, (long long)i, fault);
        if (promised > 0 && (uintptr_t)array[i] % (uintptr_t)promised != 0)
            return REJECT(status, "%c[%lld] is not aligned to the %lld bytes that were promised",
                          name, (long long)i, (long long)promised);
    }
    return TGL_OK;
}

tgl_status tgl_run_check_pointers(const tgl_gemm_shape *s, const tgl_run *run, char *message,
                                  size_t message_size)
{
    if (!s->pointers) return TGL_OK;
    if (run->alpha != 0) {
        TGL_TRY(check_array(s, run->A_array, s->swapped ? 'B' : 'A',
                            s->swapped ? TGL_BAD_B : TGL_BAD_A, tgl_type_size(s->type_a),
                            s->alignment, message, message_size));
        TGL_TRY(check_array(s, run->B_array, s->swapped ? 'A' : 'B',
                            s->swapped ? TGL_BAD_A : TGL_BAD_B, tgl_type_size(s->type_b),
                            s->alignment, message, message_size));
    }
    return check_array(s, (const void *const *)run->C_array, 'C', TGL_BAD_C,
                       tgl_type_size(s->type_c), 0, message, message_size);
}
