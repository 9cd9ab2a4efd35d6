/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls functions of BLAS and CBLAS. Their prototypes are types in this file, and the functions are
 * looked up by their names, as the loader does for a program with LD_PRELOAD.
 */
#include "blas_calls.h"

#include <dlfcn.h>
#include <stdlib.h>

/* Columns: name, is_cblas, is_64, is_double. */
#define NAMES_OF(routine)                                                                          \
    {"s" routine "_", 0, 0, 0}, {"d" routine "_", 0, 0, 1}, {"scipy_s" routine "_", 0, 0, 0},      \
        {"scipy_d" routine "_", 0, 0, 1}, {"s" routine "_64_", 0, 1, 0},                           \
        {"d" routine "_64_", 0, 1, 1}, {"scipy_s" routine "_64_", 0, 1, 0},                        \
    {                                                                                              \
        "scipy_d" routine "_64_", 0, 1, 1                                                          \
    }
#define CBLAS_NAMES_OF(routine)                                                                    \
    {"cblas_s" routine, 1, 0, 0}, {"cblas_d" routine, 1, 0, 1},                                    \
        {"scipy_cblas_s" routine, 1, 0, 0}, {"scipy_cblas_d" routine, 1, 0, 1},                    \
        {"cblas_s" routine "64_", 1, 1, 0}, {"cblas_d" routine "64_", 1, 1, 1},                    \
        {"cblas_s" routine "_64", 1, 1, 0}, {"cblas_d" routine "_64", 1, 1, 1},                    \
        {"scipy_cblas_s" routine "64_", 1, 1, 0},                                                  \
    {                                                                                              \
        "scipy_cblas_d" routine "64_", 1, 1, 1                                                     \
    }

const blas_name gemm_names[18] = {NAMES_OF("gemm"), CBLAS_NAMES_OF("gemm")};
const blas_name gemv_names[18] = {NAMES_OF("gemv"), CBLAS_NAMES_OF("gemv")};
const blas_name batch_names[10] = {CBLAS_NAMES_OF("gemm_batch")};
const blas_name strided_names[10] = {CBLAS_NAMES_OF("gemm_batch_strided")};

/* ---- Calls ----------------------------------------------------------------------------------- */

static void *address_of(const blas_name *f)
{
    void *address = dlsym(RTLD_DEFAULT, f->name);
    if (address == NULL) fail_msg("%s is not exported", f->name);
    return address;
}

/* The letter for a transpose; for an illegal value, an illegal letter. */
static char letter_of(int trans)
{
    return trans == NO_TRANS ? 'N' : trans == TRANS ? 't' : trans == CONJ_TRANS ? 'C' : 'x';
}

/* Defines functions that call the routines with element type T and integer type I. */
#define CALLS_OF(suffix, T, I)                                                                     \
    static void fortran_gemm_##suffix(void *address, const blas_call *c)                           \
    {                                                                                              \
        typedef void gemm(const char *, const char *, const I *, const I *, const I *, const T *,  \
                          const T *, const I *, const T *, const I *, const T *, T *, const I *,   \
                          size_t, size_t);                                                         \
        const char trans_a = letter_of(c->trans_a), trans_b = letter_of(c->trans_b);               \
        const I m = (I)c->m, n = (I)c->n, k = (I)c->k;                                             \
        const I lda = (I)c->lda, ldb = (I)c->ldb, ldc = (I)c->ldc;                                 \
        const T alpha = (T)c->alpha, beta = (T)c->beta;                                            \
        ((gemm *)address)(&trans_a, &trans_b, &m, &n, &k, &alpha, c->A, &lda, c->B, &ldb, &beta,   \
                          c->C, &ldc, 1, 1);                                                       \
    }                                                                                              \
    static void cblas_gemm_##suffix(void *address, const blas_call *c)                             \
    {                                                                                              \
        typedef void gemm(int, int, int, I, I, I, T, const T *, I, const T *, I, T, T *, I);       \
        ((gemm *)address)(c->layout, c->trans_a, c->trans_b, (I)c->m, (I)c->n, (I)c->k,            \
                          (T)c->alpha, c->A, (I)c->lda, c->B, (I)c->ldb, (T)c->beta, c->C,         \
                          (I)c->ldc);                                                              \
    }                                                                                              \
    static void fortran_gemv_##suffix(void *address, const blas_call *c)                           \
    {                                                                                              \
        typedef void gemv(const char *, const I *, const I *, const T *, const T *, const I *,     \
                          const T *, const I *, const T *, T *, const I *, size_t);                \
        const char trans = letter_of(c->trans_a);                                                  \
        const I m = (I)c->m, n = (I)c->n, lda = (I)c->lda, incx = (I)c->ldb, incy = (I)c->ldc;     \
        const T alpha = (T)c->alpha, beta = (T)c->beta;                                            \
        ((gemv *)address)(&trans, &m, &n, &alpha, c->A, &lda, c->B, &incx, &beta, c->C, &incy, 1); \
    }                                                                                              \
    static void cblas_gemv_##suffix(void *address, const blas_call *c)                             \
    {                                                                                              \
        typedef void gemv(int, int, I, I, T, const T *, I, const T *, I, T, T *, I);               \
        ((gemv *)address)(c->layout, c->trans_a, (I)c->m, (I)c->n, (T)c->alpha, c->A, (I)c->lda,   \
                          c->B, (I)c->ldb, (T)c->beta, c->C, (I)c->ldc);                           \
    }                                                                                              \
    static void cblas_strided_##suffix(void *address, const blas_call *c)                          \
    {                                                                                              \
        typedef void strided(int, int, int, I, I, I, T, const T *, I, I, const T *, I, I, T, T *,  \
                             I, I, I);                                                             \
        ((strided *)address)(c->layout, c->trans_a, c->trans_b, (I)c->m, (I)c->n, (I)c->k,         \
                             (T)c->alpha, c->A, (I)c->lda, (I)c->stride_a, c->B, (I)c->ldb,        \
                             (I)c->stride_b, (T)c->beta, c->C, (I)c->ldc, (I)c->stride_c,          \
                             (I)c->batch);                                                         \
    }                                                                                              \
    static void cblas_groups_##suffix(void *address, const group_call *c)                          \
    {                                                                                              \
        typedef void batch(int, const int *, const int *, const I *, const I *, const I *,         \
                           const T *, const T **, const I *, const T **, const I *, const T *,     \
                           T **, const I *, I, const I *);                                         \
        int trans_a[4], trans_b[4];                                                                \
        I m[4], n[4], k[4], lda[4], ldb[4], ldc[4], size[4];                                       \
        T alpha[4], beta[4];                                                                       \
        for (int i = 0; i < c->count; i++) {                                                       \
            const blas_call *g = &c->group[i];                                                     \
            trans_a[i] = g->trans_a, trans_b[i] = g->trans_b;                                      \
            m[i] = (I)g->m, n[i] = (I)g->n, k[i] = (I)g->k;                                        \
            lda[i] = (I)g->lda, ldb[i] = (I)g->ldb, ldc[i] = (I)g->ldc;                            \
            alpha[i] = (T)g->alpha, beta[i] = (T)g->beta, size[i] = (I)c->size[i];                 \
        }                                                                                          \
        ((batch *)address)(c->group[0].layout, trans_a, trans_b, m, n, k, alpha, (const T **)c->A, \
                           lda, (const T **)c->B, ldb, beta, (T **)c->C, ldc, (I)c->count, size);  \
    }

CALLS_OF(s32, float, int32_t)
CALLS_OF(d32, double, int32_t)
CALLS_OF(s64, float, int64_t)
CALLS_OF(d64, double, int64_t)

/* The index of the tables is is_double + 2*is_64. */
typedef void call_fn(void *address, const blas_call *c);
static call_fn *const fortran_gemm[] = {fortran_gemm_s32, fortran_gemm_d32, fortran_gemm_s64,
                                        fortran_gemm_d64};
static call_fn *const fortran_gemv[] = {fortran_gemv_s32, fortran_gemv_d32, fortran_gemv_s64,
                                        fortran_gemv_d64};
static call_fn *const cblas_gemm[] = {cblas_gemm_s32, cblas_gemm_d32, cblas_gemm_s64,
                                      cblas_gemm_d64};
static call_fn *const cblas_gemv[] = {cblas_gemv_s32, cblas_gemv_d32, cblas_gemv_s64,
                                      cblas_gemv_d64};
static call_fn *const cblas_strided[] = {cblas_strided_s32, cblas_strided_d32, cblas_strided_s64,
                                         cblas_strided_d64};
static void (*const cblas_groups[])(void *address, const group_call *c) = {
    cblas_groups_s32, cblas_groups_d32, cblas_groups_s64, cblas_groups_d64};

static int index_of(const blas_name *f)
{
    return f->is_double + 2 * f->is_64;
}

void call_gemm(const blas_name *f, const blas_call *c)
{
    (f->is_cblas ? cblas_gemm : fortran_gemm)[index_of(f)](address_of(f), c);
}

void call_gemv(const blas_name *f, const blas_call *c)
{
    (f->is_cblas ? cblas_gemv : fortran_gemv)[index_of(f)](address_of(f), c);
}

void call_strided(const blas_name *f, const blas_call *c)
{
    cblas_strided[index_of(f)](address_of(f), c);
}

void call_groups(const blas_name *f, const group_call *c)
{
    cblas_groups[index_of(f)](address_of(f), c);
}

/* ---- Data ------------------------------------------------------------------------------------ */

/* xorshift64* (Vigna 2016). */
uint32_t next_random(uint64_t *seed)
{
    *seed ^= *seed >> 12, *seed ^= *seed << 25, *seed ^= *seed >> 27;
    return (uint32_t)(*seed * 0x2545f4914f6cdd1du >> 32);
}

int64_t random_between(uint64_t *seed, int64_t low, int64_t high)
{
    return low + next_random(seed) % (high - low + 1);
}

double get(const void *memory, bool is_double, int64_t index)
{
    return is_double ? ((const double *)memory)[index] : ((const float *)memory)[index];
}

void set(void *memory, bool is_double, int64_t index, double value)
{
    if (is_double)
        ((double *)memory)[index] = value;
    else
        ((float *)memory)[index] = (float)value;
}

void *random_elements(uint64_t *seed, bool is_double, int64_t count)
{
    void *memory = malloc((size_t)count * sizeof(double) + 1);
    assert_non_null(memory);
    for (int64_t i = 0; i < count; i++)
        set(memory, is_double, i, next_random(seed) / 2147483648.0 - 1);
    return memory;
}

bool multiplies_square(int n, float beta)
{
    static const blas_name sgemm = {"sgemm_", false, false, false};
    float *A = malloc((size_t)(2 * n * n) * sizeof *A), *C = A + n * n;
    if (A == NULL) return false;
    for (int i = 0; i < n * n; i++)
        A[i] = (float)(i % n % 3), C[i] = -1;
    const blas_call c = {.layout = COL_MAJOR,
                         .trans_a = TRANS,
                         .trans_b = NO_TRANS,
                         .m = n,
                         .n = n,
                         .k = n,
                         .alpha = 1,
                         .beta = (double)beta,
                         .A = A,
                         .B = A,
                         .C = C,
                         .lda = n,
                         .ldb = n,
                         .ldc = n};
    call_gemm(&sgemm, &c);
    /* Every column of A is 0 1 2 0 1 2 ..., so each sum is n/3 * (0 + 1 + 4). */
    const int sum = n / 3 * 5;
    bool is_right = true;
    for (int i = 0; i < n * n; i++)
        is_right = is_right && C[i] == (float)sum - beta;
    free(A);
    return is_right;
}
