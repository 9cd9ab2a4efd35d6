/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations for all files of libtegula_blas.so. The library exports the functions of BLAS and
 * CBLAS and computes their products with Tegula:
 *
 *   blas_gemm.c, blas_gemv.c, blas_batch.c   the exported functions: check the arguments and
 *                                            translate them to column-major products
 *   blas_multiply.c                          runs a product: by Tegula, the next BLAS, or a loop
 *   blas_unaligned.c                         copies matrices that are not aligned
 *   blas_gpu.c                               large products on a GPU
 *   blas_device.c                            opens the device of the process at the first call
 *   blas_threads.c                           the number of threads from environment variables
 *   blas_thread_calls.c, openblas_names.c    the number of threads that programs set by calls
 *   blas_trace.c                             prints a line for each call (TEGULA_BLAS_TRACE=1)
 *   blas_report.c                            calls xerbla_() and cblas_xerbla()
 *
 * BLAS exists with 32-bit and with 64-bit integers. A function with 64-bit integers has a suffix in
 * its name, such as sgemm_64_(), and reports errors to a handler that also has a suffix or, if
 * there is none, to one without. The parameter is_64 says that the program called such a function.
 * A matrix is aligned if its address is a multiple of the size of a real number of its type: 4
 * bytes for TGL_F32 and TGL_C64, else 8.
 */
#ifndef TGL_BLAS_SHIM_H
#define TGL_BLAS_SHIM_H

#include "tegula/tegula.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BLAS_COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* ---- Exported names -------------------------------------------------------------------------- */

/* Begins the definition of an exported function. Its name must also be in blas_exports.map. */
#define BLAS_FUNCTION(name, parameters)                                                            \
    __attribute__((visibility("default"))) void name parameters;                                   \
    void name parameters

/* Defines a second exported name for a function of the same file. */
#define BLAS_ALIAS(name, function)                                                                 \
    extern __typeof__(function) name __attribute__((visibility("default"), alias(#function)))

/* ---- Products -------------------------------------------------------------------------------- */

/* The arguments of xGEMM: a column-major product C := alpha*op(A)*op(B) + beta*C. type: TGL_F32,
 * TGL_F64, TGL_C64 or TGL_C128. */
typedef struct blas_gemm {
    tgl_type type;
    tgl_transpose trans_a, trans_b; /* 0: the caller's value is illegal */
    int64_t m, n, k;
    double alpha, beta;
    const void *A, *B;
    void *C;
    int64_t lda, ldb, ldc;
    double alpha_imag, beta_imag; /* of complex types; else 0 */
} blas_gemm;

static inline bool blas_is_complex(tgl_type type)
{
    return type == TGL_C64 || type == TGL_C128;
}

/* Whether the type consists of FP32 numbers: TGL_F32 or TGL_C64. */
static inline bool blas_is_single(tgl_type type)
{
    return type == TGL_F32 || type == TGL_C64;
}

static inline bool blas_is_transposed(tgl_transpose trans)
{
    return trans == TGL_TRANS || trans == TGL_CONJ_TRANS;
}

/* Whether alpha is 0. A and B are not read then. */
static inline bool blas_has_no_alpha(const blas_gemm *g)
{
    return g->alpha == 0 && g->alpha_imag == 0;
}

static inline bool blas_has_beta(const blas_gemm *g)
{
    return g->beta != 0 || g->beta_imag != 0;
}

/* Elements of TGL_C64 and TGL_C128. */
typedef struct blas_c64 {
    float re, im;
} blas_c64;
typedef struct blas_c128 {
    double re, im;
} blas_c128;

/* The real part (part = 0) or the imaginary part (part = 1) of the number at an address. type: that
 * of the number. */
static inline double blas_part(tgl_type type, const void *number, int part)
{
    if (part > 0 && (type == TGL_F32 || type == TGL_F64)) return 0;
    return type == TGL_F32 || type == TGL_C64 ? (double)((const float *)number)[part]
                                              : ((const double *)number)[part];
}

/* These macros initialise members of a blas_gemm from function arguments of the same names.
 *   T    the element type
 *   of   the operator that reads an argument: nothing for a value, * for an address
 *   at   the operator that gives the address of alpha and beta: & for a value, nothing for an
 *        address */
#define BLAS_TYPE_OF(T)                                                                            \
    _Generic((T *)NULL, float * : TGL_F32, double * : TGL_F64, blas_c64 * : TGL_C64,               \
             blas_c128 * : TGL_C128)
#define BLAS_SCALARS(T, at)                                                                        \
    .alpha = blas_part(BLAS_TYPE_OF(T), at alpha, 0),                                              \
    .alpha_imag = blas_part(BLAS_TYPE_OF(T), at alpha, 1),                                         \
    .beta = blas_part(BLAS_TYPE_OF(T), at beta, 0),                                                \
    .beta_imag = blas_part(BLAS_TYPE_OF(T), at beta, 1)
#define BLAS_GEMM_ARGUMENTS(T, of)                                                                 \
    .type = BLAS_TYPE_OF(T), .m = of m, .n = of n, .k = of k, .A = A, .B = B, .C = C,              \
    .lda = of lda, .ldb = of ldb, .ldc = of ldc

/* An illegal argument of a CBLAS function. */
typedef struct blas_error {
    int argument; /* its number in the call, from 1 */
    /* The argument's number in the column-major call to which the reference CBLAS converts a
     * row-major call. 0: the call is column-major, or the reference CBLAS has no such function. */
    int row_major_argument;
    const char *setting; /* "layout", "TransA" or "TransB" if this argument is illegal; else NULL */
    int value;
} blas_error;

/* What computed a product. A batch reports the largest value of its products. */
typedef enum blas_server {
    BLAS_SERVER_NONE = 0, /* nothing: C does not change */
    BLAS_SERVER_TEGULA = 1,
    BLAS_SERVER_GPU = 2,  /* Tegula on the GPU */
    BLAS_SERVER_NEXT = 3, /* the BLAS that the program would use without this library */
    BLAS_SERVER_LOOP = 4, /* the plain loop in blas_multiply.c */
} blas_server;

/* Converts the argument that selects op(X), of Fortran's BLAS ('N', 'T', 'C', also lower case) or
 * of CBLAS; 0: it is illegal. Complex types also accept OpenBLAS's 'R' and 114: conjugated, not
 * transposed. */
tgl_transpose blas_transpose_of_letter(tgl_type type, char letter);
tgl_transpose blas_transpose_of_cblas(tgl_type type, int value);

/* The letter of a transpose in Fortran's BLAS, with OpenBLAS's 'R'. */
char blas_letter_of(tgl_transpose trans);

/* The number of the first illegal argument of xGEMM, in the order in which the reference BLAS
 * checks them; 0: all are legal. */
int blas_gemm_check(const blas_gemm *g);

/* Converts a CBLAS call to a column-major product: exchanges A and B, and m and n, if the layout is
 * row-major. g: the arguments of the call, except the transposes; it is changed. Returns false and
 * sets *error to the first illegal argument of cblas_xgemm(). */
bool blas_gemm_of_cblas(int layout, int trans_a, int trans_b, blas_gemm *g, blas_error *error);

/* Computes a product with legal arguments. */
blas_server blas_multiply(const blas_gemm *g);

/* Copies of the matrices of a product; NULL: the matrix has no copy. */
typedef struct blas_copies {
    char *a, *b, *c;
} blas_copies;

/* *aligned := the product with aligned copies of the matrices that are not aligned. Returns false
 * if all matrices are aligned, or if there is no memory for the copies. The caller must call
 * blas_free_copies(): at once after false, else after the product. */
bool blas_align(const blas_gemm *g, blas_gemm *aligned, blas_copies *copies);

/* Frees the copies. is_done: the product has run, and its result is first copied to C of *g. */
void blas_free_copies(const blas_gemm *g, const blas_copies *copies, bool is_done);

/* The product as a tgl_problem. */
static inline tgl_problem blas_problem_of(const blas_gemm *g)
{
    tgl_problem problem;
    tgl_problem_init(&problem, sizeof problem, g->type, g->m, g->n, g->k);
    problem.order = TGL_COL_MAJOR;
    problem.trans_a = g->trans_a, problem.trans_b = g->trans_b;
    problem.lda = g->lda, problem.ldb = g->ldb, problem.ldc = g->ldc;
    return problem;
}

/* ---- The GPU --------------------------------------------------------------------------------- */

/* Allows large products to run on this cuda device. device: its name, such as "cuda:0". cpu: the
 * device for other products; NULL: it could not be opened. */
void blas_gpu_configure(const char *device, const tgl_device *cpu);

/* Whether a product should run on the GPU that blas_gpu_configure() has allowed. */
bool blas_is_for_gpu(const blas_gemm *g);

/* Computes a product on the GPU. Returns false if it failed and C is unchanged. Ends the program if
 * C is undefined after a failure. */
bool blas_multiply_by_gpu(const blas_gemm *g);

/* ---- Device and tracing ---------------------------------------------------------------------- */

/* State that the first call of a BLAS function sets. The inline functions below read it without a
 * function call: every product needs it, and the smallest take 30 ns. */
typedef struct blas_process {
    tgl_device *_Atomic device; /* NULL: not opened yet, or it cannot be opened */
    bool is_traced, has_gpu;    /* written before the release store to `device` */
} blas_process;
extern blas_process blas_this_process;

tgl_device *blas_open_device(void);

/* The device of the process, opened by the first call; NULL: it cannot be opened. */
static inline tgl_device *blas_device(void)
{
    tgl_device *opened = atomic_load_explicit(&blas_this_process.device, memory_order_acquire);
    return opened != NULL ? opened : blas_open_device();
}

/* Whether TEGULA_BLAS_TRACE requests a line for each call. Valid after blas_device(). */
static inline bool blas_is_traced(void)
{
    return blas_this_process.is_traced;
}

/* Computes a product of TGL_F32 or TGL_F64 on the device. Inlined, so that the members of *g stay
 * in registers. */
static inline tgl_status blas_multiply_real(tgl_device *dev, const blas_gemm *g)
{
    if (g->type == TGL_F32)
        return tgl_sgemm(dev, TGL_COL_MAJOR, g->trans_a, g->trans_b, g->m, g->n, g->k,
                         (float)g->alpha, g->A, g->lda, g->B, g->ldb, (float)g->beta, g->C, g->ldc,
                         NULL);
    return tgl_dgemm(dev, TGL_COL_MAJOR, g->trans_a, g->trans_b, g->m, g->n, g->k, g->alpha, g->A,
                     g->lda, g->B, g->ldb, g->beta, g->C, g->ldc, NULL);
}

/* Whether a product should run on a GPU. Valid after blas_device(). */
static inline bool blas_wants_gpu(const blas_gemm *g)
{
    return blas_this_process.has_gpu && blas_is_for_gpu(g);
}

int blas_threads_of(const tgl_device *dev);

/* Sets the device's number of threads from the environment variables of BLAS libraries, such as
 * OPENBLAS_NUM_THREADS. */
void blas_set_default_threads(tgl_device *dev);

/* Prints a line for a call of xGEMM if TEGULA_BLAS_TRACE is set. batch: number of products; 0: not
 * a batch. */
void blas_trace_gemm(blas_server server, const char *routine, const blas_gemm *g, int64_t batch);

/* Prints a line for a call, even if TEGULA_BLAS_TRACE is not set: the formatted text, then the name
 * of `server`. */
void blas_trace(blas_server server, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Illegal arguments ----------------------------------------------------------------------- */

/* Reports an illegal argument to xerbla_(). routine: in capitals, padded to 6 characters: "SGEMM ".
 * argument: its number, from 1. */
void blas_report(const char *routine, int argument, bool is_64);

/* Reports an illegal argument to cblas_xerbla(). routine: the name of the CBLAS function. */
void blas_report_cblas(const char *routine, const blas_error *error, bool is_64);

#endif
