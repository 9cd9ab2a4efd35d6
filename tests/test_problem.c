/* SPDX-License-Identifier: Apache-2.0
 *
 * Every wrong argument gives its status and error message (src/problem/shape.c,
 * src/problem/operands.c).
 */
#include "support.h"

/* ---- Problems -------------------------------------------------------------------------------- */

/* A member of tgl_problem and its new value. */
typedef struct change {
    size_t offset, size;
    int64_t value;
} change;

#define SET(member, value)                                                                         \
    {                                                                                              \
        offsetof(tgl_problem, member), sizeof(((tgl_problem *)NULL)->member), value                \
    }
#define BIG INT64_MAX
#define MAX_N                                                                                      \
    (INT64_MAX / 4) /* the maximum number of floats whose size in bytes fits in 63 bits            \
                     */

/* Changes to the product of 5 x 7 and 7 x 6 (k = 7), the resulting status, and the error message.
 */
static const struct {
    change changes[6];
    tgl_status status;
    const char *sentence;
} bad_problems[] = {
    {{SET(size, 0)},
     TGL_BAD_ARGUMENT,
     "problem.size is 0; set problem.size = sizeof problem, which is 216 in this version of the "
     "library"},
    {{SET(m, -1)}, TGL_BAD_M, "m is -1; it must not be negative"},
    {{SET(n, -2)}, TGL_BAD_N, "n is -2; it must not be negative"},
    {{SET(k, INT64_MIN)}, TGL_BAD_K, "k is -9223372036854775808; it must not be negative"},
    {{SET(order, 0)}, TGL_BAD_ORDER, "order is 0; use TGL_ROW_MAJOR or TGL_COL_MAJOR"},
    {{SET(trans_a, 0)}, TGL_BAD_TRANS_A, "trans_a is 0, which is not a tgl_transpose"},
    {{SET(trans_b, 115)}, TGL_BAD_TRANS_B, "trans_b is 115, which is not a tgl_transpose"},
    {{SET(type_a, 0)}, TGL_BAD_TYPE, "type_a is 0, which is not a tgl_type"},
    {{SET(type_b, 12)}, TGL_BAD_TYPE, "type_b is 12, which is not a tgl_type"},
    {{SET(type_c, -1)}, TGL_BAD_TYPE, "type_c is -1, which is not a tgl_type"},
    {{SET(compute, 5)}, TGL_BAD_COMPUTE, "compute is 5, which is not a tgl_compute"},
    {{SET(lda, 6)}, TGL_BAD_LDA, "lda is 6; it must be at least 7"},
    {{SET(lda, -7)}, TGL_BAD_LDA, "lda is -7; it must be at least 7"},
    {{SET(ldb, 5)}, TGL_BAD_LDB, "ldb is 5; it must be at least 6"},
    {{SET(ldc, 5)}, TGL_BAD_LDC, "ldc is 5; it must be at least 6"},
    {{SET(trans_a, TGL_TRANS), SET(lda, 4)}, TGL_BAD_LDA, "lda is 4; it must be at least 5"},
    {{SET(trans_b, TGL_TRANS), SET(ldb, 6)}, TGL_BAD_LDB, "ldb is 6; it must be at least 7"},
    {{SET(order, TGL_COL_MAJOR), SET(lda, 4)}, TGL_BAD_LDA, "lda is 4; it must be at least 5"},
    {{SET(order, TGL_COL_MAJOR), SET(ldb, 6)}, TGL_BAD_LDB, "ldb is 6; it must be at least 7"},
    {{SET(order, TGL_COL_MAJOR), SET(ldc, 4)}, TGL_BAD_LDC, "ldc is 4; it must be at least 5"},
    {{SET(order, TGL_COL_MAJOR), SET(trans_a, TGL_CONJ_TRANS), SET(lda, 6)},
     TGL_BAD_LDA,
     "lda is 6; it must be at least 7"},
    {{SET(k, 0), SET(lda, -1)}, TGL_BAD_LDA, "lda is -1; it must be at least 1"},
    {{SET(m, 0), SET(ldc, 5)}, TGL_BAD_LDC, "ldc is 5; it must be at least 6"},
    {{SET(batch, -1)}, TGL_BAD_BATCH, "batch is -1; it must not be negative"},
    {{SET(stride_a, -1)}, TGL_BAD_STRIDE_A, "stride_a is -1; it must not be negative"},
    {{SET(stride_b, -1)}, TGL_BAD_STRIDE_B, "stride_b is -1; it must not be negative"},
    {{SET(stride_c, -1)}, TGL_BAD_STRIDE_C, "stride_c is -1; it must not be negative"},
    {{SET(batch, 2)},
     TGL_BAD_STRIDE_C,
     "stride_c is 0; it must be at least 30 so that no two C overlap"},
    {{SET(batch, 2), SET(ldc, 10), SET(stride_c, 45)},
     TGL_BAD_STRIDE_C,
     "stride_c is 45; it must be at least 46 so that no two C overlap"},
    {{SET(batch, 2), SET(ldc, 14), SET(stride_c, 5)},
     TGL_BAD_STRIDE_C,
     "stride_c is 5; it must be at least 62, or 6 to 8 within ldc, so that no two C overlap"},
    {{SET(batch, 2), SET(ldc, 14), SET(stride_c, 9)},
     TGL_BAD_STRIDE_C,
     "stride_c is 9; it must be at least 62, or 6 to 8 within ldc, so that no two C overlap"},
    {{SET(batch, 3), SET(ldc, 17), SET(stride_c, 6)},
     TGL_BAD_STRIDE_C,
     "stride_c is 6; it must be at least 74 so that no two C overlap"},
    {{SET(order, TGL_COL_MAJOR), SET(batch, 3), SET(ldc, 15), SET(stride_c, 6)},
     TGL_BAD_STRIDE_C,
     "stride_c is 6; it must be at least 80, or 5 to 5 within ldc, so that no two C overlap"},
    {{SET(batch, BIG), SET(ldc, MAX_N / 5), SET(stride_c, 6)},
     TGL_TOO_LARGE,
     "the bytes of matrix C do not fit in 63 bits"},

    {{SET(batching, 2)}, TGL_BAD_BATCHING, "batching is 2; use TGL_STRIDED or TGL_POINTERS"},
    {{SET(alignment, -4)}, TGL_BAD_ALIGNMENT, "alignment is -4; it must be 0 or a power of two"},
    {{SET(batching, TGL_POINTERS), SET(alignment, 12)},
     TGL_BAD_ALIGNMENT,
     "alignment is 12; it must be 0 or a power of two"},
    {{SET(batching, TGL_POINTERS), SET(batch, BIG / 8 + 1)},
     TGL_TOO_LARGE,
     "the bytes of an array of pointers do not fit in 63 bits"},
    {{SET(batching, TGL_POINTERS), SET(batch, -1)},
     TGL_BAD_BATCH,
     "batch is -1; it must not be negative"},
    {{SET(batching, TGL_POINTERS), SET(lda, BIG)},
     TGL_TOO_LARGE,
     "the bytes of matrix A do not fit in 63 bits"},

    /* Combinations of types, and a separate D. The columns of C do not change: ldc 6. */
    {{SET(type_a, TGL_F64)}, TGL_BAD_TYPE, "A is f64 and B is f32: these types cannot be combined"},
    {{SET(type_c, TGL_F16)},
     TGL_BAD_TYPE,
     "A is f32, B is f32, and C is f16: these types cannot be combined"},
    {{SET(type_d, TGL_F64)},
     TGL_BAD_TYPE,
     "A is f32, B is f32, and D is f64: these types cannot be combined"},
    {{SET(type_d, 12)}, TGL_BAD_TYPE, "type_d is 12, which is not a tgl_type"},
    {{SET(type_accumulate, -1)}, TGL_BAD_TYPE, "type_accumulate is -1, which is not a tgl_type"},
    {{SET(type_accumulate, TGL_F64)},
     TGL_BAD_TYPE,
     "type_accumulate is f64; products of f32 and f32 are accumulated in f32"},
    {{SET(type_a, TGL_I8), SET(type_b, TGL_I8)},
     TGL_BAD_TYPE,
     "A is i8, B is i8, and C is f32: that needs a scale"},
    {{SET(type_a, TGL_C64)},
     TGL_BAD_TYPE,
     "A is c64 and B is f32: a real matrix is not multiplied by a complex one; convert the real "
     "one "
     "to the other's type"},
    {{SET(type_b, TGL_C128)},
     TGL_BAD_TYPE,
     "A is f32 and B is c128: a real matrix is not multiplied by a complex one; convert the real "
     "one to the other's type"},
    {{SET(type_a, TGL_C64), SET(type_b, TGL_C128), SET(type_c, TGL_C128)},
     TGL_BAD_TYPE,
     "A is c64 and B is c128: these types cannot be combined"},
    {{SET(type_a, TGL_C64), SET(type_b, TGL_C64)},
     TGL_BAD_TYPE,
     "A is c64, B is c64, and C is f32: these types cannot be combined"},
    {{SET(type_c, TGL_C64)},
     TGL_BAD_TYPE,
     "A is f32, B is f32, and C is c64: these types cannot be combined"},
    {{SET(trans_a, TGL_CONJ_NO_TRANS), SET(lda, 6)},
     TGL_BAD_LDA,
     "lda is 6; it must be at least 7"},
    {{SET(type_scale, TGL_F16)}, TGL_BAD_TYPE, "type_scale is 3; it must be 0 or TGL_F32"},
    {{SET(compute, -1)}, TGL_BAD_COMPUTE, "compute is -1, which is not a tgl_compute"},
    {{SET(scalars, 2)}, TGL_BAD_ARGUMENT, "scalars is 2, which is not a tgl_scalars"},
    {{SET(scaling_b, 6)}, TGL_BAD_ARGUMENT, "scaling_b is 6, which is not a tgl_scaling"},
    {{SET(ldd, 6)}, TGL_BAD_LDD, "ldd is 6; it must be 0 because D is C (type_d is 0)"},
    {{SET(stride_d, 30)},
     TGL_BAD_STRIDE_D,
     "stride_d is 30; it must be 0 because D is C (type_d is 0)"},
    {{SET(stride_d, -1)}, TGL_BAD_STRIDE_D, "stride_d is -1; it must not be negative"},
    {{SET(type_d, TGL_F32), SET(ldd, 5)}, TGL_BAD_LDD, "ldd is 5; it must be at least 6"},
    {{SET(type_d, TGL_F32), SET(ldc, 5)}, TGL_BAD_LDC, "ldc is 5; it must be at least 6"},
    {{SET(type_d, TGL_F32), SET(order, TGL_COL_MAJOR), SET(ldd, 4)},
     TGL_BAD_LDD,
     "ldd is 4; it must be at least 5"},
    {{SET(type_d, TGL_F32), SET(batch, 2), SET(stride_c, 30)},
     TGL_BAD_STRIDE_D,
     "stride_d is 0; it must be at least 30 so that no two D overlap"},
    {{SET(type_d, TGL_F32), SET(batch, 2), SET(ldd, 14), SET(stride_d, 9)},
     TGL_BAD_STRIDE_D,
     "stride_d is 9; it must be at least 62, or 6 to 8 within ldd, so that no two D overlap"},
    {{SET(type_d, TGL_F32), SET(ldd, BIG / 4)},
     TGL_TOO_LARGE,
     "the bytes of matrix D do not fit in 63 bits"},

    /* Too large: a matrix, a batch, and sizes that overflow only in bytes. */
    {{SET(lda, BIG)}, TGL_TOO_LARGE, "the bytes of matrix A do not fit in 63 bits"},
    {{SET(ldb, BIG)}, TGL_TOO_LARGE, "the bytes of matrix B do not fit in 63 bits"},
    {{SET(ldc, BIG / 4)}, TGL_TOO_LARGE, "the bytes of matrix C do not fit in 63 bits"},
    {{SET(m, BIG)}, TGL_TOO_LARGE, "the bytes of matrix A do not fit in 63 bits"},
    {{SET(n, BIG)}, TGL_TOO_LARGE, "the bytes of matrix B do not fit in 63 bits"},
    {{SET(k, BIG)}, TGL_TOO_LARGE, "the bytes of matrix A do not fit in 63 bits"},
    {{SET(m, 1), SET(n, 0), SET(k, MAX_N + 1)},
     TGL_TOO_LARGE,
     "the bytes of matrix A do not fit in 63 bits"},
    {{SET(batch, BIG), SET(stride_c, 30)},
     TGL_TOO_LARGE,
     "the bytes of matrix C do not fit in 63 bits"},
    {{SET(batch, 3), SET(stride_a, BIG / 2), SET(stride_c, 30)},
     TGL_TOO_LARGE,
     "the bytes of matrix A do not fit in 63 bits"},

    /* If several members are wrong, the first one in the order of the struct is reported. */
    {{SET(m, -1), SET(order, 0)}, TGL_BAD_M, "m is -1; it must not be negative"},
    {{SET(order, 0), SET(lda, 1)}, TGL_BAD_ORDER, "order is 0; use TGL_ROW_MAJOR or TGL_COL_MAJOR"},
    {{SET(lda, 1), SET(batch, -1)}, TGL_BAD_LDA, "lda is 1; it must be at least 7"},
    {{SET(batch, -1), SET(stride_a, -1)}, TGL_BAD_BATCH, "batch is -1; it must not be negative"},
};

static tgl_problem changed(const change *changes)
{
    tgl_problem problem = problem_of(TGL_F32, 5, 6, 7);
    for (const change *c = changes; c->size > 0; c++) {
        const int32_t narrow = (int32_t)c->value;
        memcpy((char *)&problem + c->offset, c->size == 8 ? (const void *)&c->value : &narrow,
               c->size);
    }
    return problem;
}

static void bad_problems_are_refused(void **state)
{
    tgl_device *dev = *state;
    for (size_t i = 0; i < COUNT_OF(bad_problems); i++) {
        const tgl_problem problem = changed(bad_problems[i].changes);
        char sentence[160];
        tgl_status status = tgl_problem_check(&problem);
        tgl_last_error(sentence, sizeof sentence);
        assert_string_equal(sentence, bad_problems[i].sentence);
        assert_status(status, bad_problems[i].status);

        /* tgl_gemm() and tgl_plan_create() return the same error and do not access the pointers. */
        void *nowhere = (void *)1;
        forget_error();
        status = tgl_gemm(dev, &problem, 1, nowhere, nowhere, 0, nowhere, NULL);
        assert_status(status, bad_problems[i].status);
        tgl_last_error(sentence, sizeof sentence);
        assert_string_equal(sentence, bad_problems[i].sentence);

        tgl_plan *plan = nowhere;
        forget_error();
        assert_status(tgl_plan_create(dev, &problem, NULL, &plan), bad_problems[i].status);
        assert_null(plan);
        assert_sentence(bad_problems[i].sentence);
    }
}

static void bad_problem_pointers_are_refused(void **state)
{
    tgl_device *dev = *state;
    assert_status(tgl_problem_check(NULL), TGL_BAD_ARGUMENT);
    assert_sentence("problem is NULL");
    assert_status(tgl_gemm(dev, NULL, 1, NULL, NULL, 0, NULL, NULL), TGL_BAD_ARGUMENT);
    const tgl_problem problem = problem_of(TGL_F32, 1, 1, 1);
    assert_status(tgl_gemm(NULL, &problem, 1, NULL, NULL, 0, NULL, NULL), TGL_BAD_ARGUMENT);
}

static void a_short_message_is_cut(void **state)
{
    (void)state;
    const tgl_problem problem = problem_of(TGL_F32, -1, 1, 1);
    char sentence[8] = "xxxxxxx";
    assert_status(tgl_problem_check(&problem), TGL_BAD_M);
    const size_t length = tgl_last_error(sentence, 5);
    assert_int_equal(length, strlen("m is -1; it must not be negative"));
    assert_string_equal(sentence, "m is");
    assert_int_equal(tgl_last_error(sentence, 0), length);
    assert_string_equal(sentence, "m is");
}

/* The message that forget_error() sets and that successful calls keep. */
#define LEFT_FROM_BEFORE "problem is NULL"

/* Unusual but valid problems. */
static void good_problems_pass(void **state)
{
    (void)state;
    static const change good[][6] = {
        {SET(type_accumulate, TGL_F32)},
        {SET(type_scale, TGL_F32)},
        {SET(scalars, TGL_SCALARS_DEVICE), SET(compute, TGL_COMPUTE_FAST)},
        {SET(type_d, TGL_F32)},
        {SET(type_d, TGL_F32), SET(ldd, 6), SET(ldc, 9)},
        {SET(type_d, TGL_F32), SET(batch, 2),
         SET(stride_d, 30)}, /* both products read the same C */
        {SET(type_d, TGL_F32), SET(batch, 3), SET(ldd, 18), SET(stride_d, 6), SET(stride_c, 1)},
        {SET(type_d, TGL_F32), SET(batching, TGL_POINTERS), SET(batch, 3), SET(stride_d, -7)},
        {SET(type_a, TGL_F16), SET(type_b, TGL_F16), SET(type_c, TGL_F16), SET(type_d, TGL_F32)},
        {SET(type_a, TGL_F8_E4M3), SET(type_b, TGL_F8_E5M2), SET(type_c, TGL_BF16)},
        {SET(type_a, TGL_I8), SET(type_b, TGL_I8), SET(type_c, TGL_BF16), SET(scaling_a, 1)},
        {SET(type_a, TGL_I8), SET(type_b, TGL_I8), SET(type_c, TGL_I32), SET(type_accumulate, 8)},
        {SET(m, 5)},
        {SET(m, 0), SET(n, 0), SET(k, 0), SET(batch, 0)},
        {SET(trans_a, TGL_CONJ_TRANS), SET(lda, 5)},
        {SET(trans_a, TGL_CONJ_NO_TRANS), SET(lda, 7)},
        {SET(type_a, TGL_C64), SET(type_b, TGL_C64), SET(type_c, TGL_C64), SET(type_accumulate, 9),
         SET(trans_b, TGL_CONJ_NO_TRANS)},
        {SET(type_a, TGL_C128), SET(type_b, TGL_C128), SET(type_c, TGL_C128), SET(type_d, TGL_C128),
         SET(trans_b, TGL_CONJ_TRANS)},
        {SET(order, TGL_COL_MAJOR), SET(lda, 5), SET(ldb, 7), SET(ldc, 5)},
        {SET(batch, 2), SET(ldc, 10), SET(stride_c, 46)},
        {SET(batch, 3), SET(ldc, 18), SET(stride_c, 6)},
        {SET(batch, 3), SET(ldc, 20), SET(stride_c, 7)},
        {SET(order, TGL_COL_MAJOR), SET(batch, 3), SET(ldc, 15), SET(stride_c, 5)},
        {SET(n, 1), SET(batch, 1000), SET(ldc, 1000), SET(stride_c, 1)},
        {SET(m, 0), SET(n, 0), SET(k, BIG)},
        {SET(k, 0), SET(lda, BIG), SET(ldb, BIG)},
        {SET(m, 1), SET(k, 1), SET(lda, BIG), SET(ldb, BIG), SET(ldc, BIG)},
        {SET(m, 1), SET(n, 0), SET(k, MAX_N)},
        {SET(m, 0), SET(n, 0), SET(batch, BIG), SET(stride_a, BIG), SET(stride_b, BIG)},
        {SET(batching, TGL_POINTERS), SET(batch, BIG / 8)},
        {SET(type_a, TGL_I8), SET(type_b, TGL_I8), SET(type_c, TGL_I32)},
    };
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        const tgl_problem problem = changed(good[i]);
        forget_error();
        tgl_status status = tgl_problem_check(&problem);
        assert_sentence(LEFT_FROM_BEFORE);
        assert_status(status, TGL_OK);
    }
}

static void types_have_sizes(void **state)
{
    (void)state;
    static const struct {
        int type;
        size_t size;
    } types[] = {{TGL_F32, 4},     {TGL_F64, 8}, {TGL_F16, 2}, {TGL_BF16, 2}, {TGL_F8_E4M3, 1},
                 {TGL_F8_E5M2, 1}, {TGL_I8, 1},  {TGL_I32, 4}, {TGL_C64, 8},  {TGL_C128, 16},
                 {0, 0},           {11, 0},      {-1, 0}};
    for (size_t i = 0; i < COUNT_OF(types); i++)
        assert_int_equal(tgl_type_size((tgl_type)types[i].type), types[i].size);
}

/* ---- Pointers -------------------------------------------------------------------------------- */

enum { A, B, C };
static _Alignas(8) char room[3][16]; /* a 1 x 1 matrix each, also behind an offset of 3 bytes */

static const struct {
    int matrix;
    int offset; /* bytes from an aligned address; -1: NULL */
    tgl_order order;
    double alpha, beta;
    int k;
    tgl_status status;
    const char *sentence;
} pointers[] = {
    {A, -1, TGL_ROW_MAJOR, 1, 0, 1, TGL_BAD_A, "A is NULL"},
    {B, -1, TGL_ROW_MAJOR, 1, 0, 1, TGL_BAD_B, "B is NULL"},
    {C, -1, TGL_ROW_MAJOR, 1, 0, 1, TGL_BAD_C, "C is NULL"},
    {A, -1, TGL_COL_MAJOR, 1, 0, 1, TGL_BAD_A, "A is NULL"},
    {B, -1, TGL_COL_MAJOR, 1, 0, 1, TGL_BAD_B, "B is NULL"},
    {A, 1, TGL_ROW_MAJOR, 1, 0, 1, TGL_BAD_A, "A is not aligned to its element size"},
    {B, 2, TGL_ROW_MAJOR, 1, 0, 1, TGL_BAD_B, "B is not aligned to its element size"},
    {C, 3, TGL_COL_MAJOR, 1, 0, 1, TGL_BAD_C, "C is not aligned to its element size"},
    {A, -1, TGL_ROW_MAJOR, (double)NAN, 0, 1, TGL_BAD_A, "A is NULL"},
    {C, -1, TGL_ROW_MAJOR, 0, 0, 1, TGL_BAD_C, "C is NULL"},
    {C, -1, TGL_ROW_MAJOR, 0, 1, 1, TGL_BAD_C, "C is NULL"},
    {C, -1, TGL_ROW_MAJOR, 1, 1, 0, TGL_BAD_C, "C is NULL"},
    {A, -1, TGL_ROW_MAJOR, 0, 1, 1, TGL_OK, ""},
    {B, -1, TGL_COL_MAJOR, 0, 1, 1, TGL_OK, ""},
    {A, 1, TGL_ROW_MAJOR, 0, 1, 1, TGL_OK, ""},
    {A, -1, TGL_ROW_MAJOR, 1, 1, 0, TGL_OK, ""},
    {B, -1, TGL_ROW_MAJOR, 1, 1, 0, TGL_OK, ""},
    {A, -1, TGL_ROW_MAJOR, 1e-60, 1, 1, TGL_OK, ""}, /* rounds to 0 in f32 */
};

static void bad_pointers_are_refused(void **state)
{
    tgl_device *dev = *state;
    for (size_t i = 0; i < COUNT_OF(pointers); i++) {
        forget_error();
        void *x[3] = {room[A], room[B], room[C]};
        x[pointers[i].matrix] =
            pointers[i].offset < 0 ? NULL : room[pointers[i].matrix] + pointers[i].offset;
        tgl_problem problem = problem_of(TGL_F32, 1, 1, pointers[i].k);
        problem.order = pointers[i].order;
        tgl_status status =
            tgl_gemm(dev, &problem, pointers[i].alpha, x[A], x[B], pointers[i].beta, x[C], NULL);
        assert_sentence(status == TGL_OK ? LEFT_FROM_BEFORE : pointers[i].sentence);
        assert_status(status, pointers[i].status);
    }
}

/* ---- The argument list of BLAS --------------------------------------------------------------- */

static const struct {
    int order, trans_a, trans_b;
    int64_t m, n, k, lda, ldb, ldc;
    tgl_status status;
    const char *sentence;
} blas_calls[] = {
    {0, 111, 111, 1, 1, 1, 1, 1, 1, TGL_BAD_ORDER,
     "order is 0; use TGL_ROW_MAJOR or TGL_COL_MAJOR"},
    {101, 0, 111, 1, 1, 1, 1, 1, 1, TGL_BAD_TRANS_A, "trans_a is 0, which is not a tgl_transpose"},
    {101, 111, 0, 1, 1, 1, 1, 1, 1, TGL_BAD_TRANS_B, "trans_b is 0, which is not a tgl_transpose"},
    {101, 111, 111, -1, 1, 1, 1, 1, 1, TGL_BAD_M, "m is -1; it must not be negative"},
    {101, 111, 111, 1, -1, 1, 1, 1, 1, TGL_BAD_N, "n is -1; it must not be negative"},
    {101, 111, 111, 1, 1, -1, 1, 1, 1, TGL_BAD_K, "k is -1; it must not be negative"},
    {101, 111, 111, 1, 1, 1, 0, 1, 1, TGL_BAD_LDA, "lda is 0; it must be at least 1"},
    {101, 111, 111, 1, 1, 1, 1, 0, 1, TGL_BAD_LDB, "ldb is 0; it must be at least 1"},
    {101, 111, 111, 1, 1, 1, 1, 1, 0, TGL_BAD_LDC, "ldc is 0; it must be at least 1"},
    {101, 111, 111, 0, 0, 0, 0, 1, 1, TGL_BAD_LDA, "lda is 0; it must be at least 1"},
    {102, 111, 111, 3, 1, 1, 0, 1, 3, TGL_BAD_LDA, "lda is 0; it must be at least 3"},
    {101, 111, 111, 1, 4, 2, 2, 3, 4, TGL_BAD_LDB, "ldb is 3; it must be at least 4"},
    {101, 111, 111, 0, 4, 2, 2, 4, 4, TGL_OK, ""},
    {102, 112, 113, 0, 4, 2, 2, 4, 1, TGL_OK, ""},
};

static void blas_calls_check_like_blas(void **state)
{
    tgl_device *dev = *state;
    for (size_t i = 0; i < 2 * COUNT_OF(blas_calls); i++) {
        const size_t row = i / 2;
        forget_error();
        const tgl_order order = (tgl_order)blas_calls[row].order;
        const tgl_transpose trans_a = (tgl_transpose)blas_calls[row].trans_a;
        const tgl_transpose trans_b = (tgl_transpose)blas_calls[row].trans_b;
        const int64_t m = blas_calls[row].m, n = blas_calls[row].n, k = blas_calls[row].k;
        const int64_t lda = blas_calls[row].lda, ldb = blas_calls[row].ldb;
        const int64_t ldc = blas_calls[row].ldc;
        tgl_status status = i % 2 == 0 ? tgl_sgemm(dev, order, trans_a, trans_b, m, n, k, 1, NULL,
                                                   lda, NULL, ldb, 0, NULL, ldc, NULL)
                                       : tgl_dgemm(dev, order, trans_a, trans_b, m, n, k, 1, NULL,
                                                   lda, NULL, ldb, 0, NULL, ldc, NULL);
        assert_sentence(status == TGL_OK ? LEFT_FROM_BEFORE : blas_calls[row].sentence);
        assert_status(status, blas_calls[row].status);
    }
    assert_status(tgl_sgemm(NULL, TGL_ROW_MAJOR, TGL_NO_TRANS, TGL_NO_TRANS, 0, 0, 0, 1, NULL, 1,
                            NULL, 1, 0, NULL, 1, NULL),
                  TGL_BAD_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bad_problems_are_refused, setup_cpu, teardown_device),
        cmocka_unit_test_setup_teardown(bad_problem_pointers_are_refused, setup_cpu,
                                        teardown_device),
        cmocka_unit_test(a_short_message_is_cut),
        cmocka_unit_test(good_problems_pass),
        cmocka_unit_test(types_have_sizes),
        cmocka_unit_test_setup_teardown(bad_pointers_are_refused, setup_cpu, teardown_device),
        cmocka_unit_test_setup_teardown(blas_calls_check_like_blas, setup_cpu, teardown_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
