/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations for all files of libtegula_cublas.so. The library exports functions of cuBLAS and
 * cuBLASLt and computes their products with Tegula, or calls the function that it replaces:
 *
 *   cublas_gemm.c     cublasSgemm_v2() to cublasGemmStridedBatchedEx(): arguments to cublas_product
 *   cublas_lt.c       cublasLtMatmul(): arguments and descriptors to cublas_product
 *   cublas_handles.c  the settings of a handle: stream, modes, workspace
 *   cublas_serve.c    decides whether Tegula computes a product, and runs it
 *   cublas_plans.c    devices and plans
 *   cublas_real.c     finds the functions of cuBLAS; calls from within them
 *   cublas_settings.c the environment, tracing, and fork()
 */
#ifndef TGL_CUBLAS_SHIM_H
#define TGL_CUBLAS_SHIM_H

#include "cublas_abi.h"
#include "tegula/tegula.h"

#include <pthread.h>
#include <stdbool.h>

#define CUBLAS_EXPORT __attribute__((visibility("default")))

/* ---- Products -------------------------------------------------------------------------------- */

/* The caller's workspace. */
typedef struct cublas_workspace {
    bool is_given; /* false: the caller leaves it to the library */
    void *memory;  /* NULL: no workspace may be used */
    size_t bytes;
} cublas_workspace;

/* The column-major products D := epilogue(alpha*op(A)*op(B) + beta*C) as the caller describes them.
 * If is_pointers is set, A, B, C and D are arrays of pointers. For functions without D: D is C. */
typedef struct cublas_product {
    const char *routine;
    cublasOperation_t trans_a, trans_b;
    int64_t m, n, k, batch;
    cudaDataType type_a, type_b, type_c, type_d, type_scale, type_bias;
    int64_t lda, ldb, ldc, ldd;
    int64_t stride_a, stride_b, stride_c, stride_d, stride_bias;
    const void *A, *B, *C, *bias;
    void *D;
    const void *alpha, *beta;
    const void *scale_a, *scale_b, *scale_d; /* of FP8: factors in device memory */
    tgl_scaling scaling_a, scaling_b, scaling_d;
    void *amax_d;                /* of a D of FP8: receives the largest magnitude; or NULL */
    cublasLtEpilogue_t epilogue; /* CUBLASLT_EPILOGUE_DEFAULT: none */
    cublasComputeType_t compute;
    bool has_fast_sums; /* of FP8: CUBLASLT_MATMUL_DESC_FAST_ACCUM */
    cublasMath_t math;  /* of the handle */
    bool is_pointers;
    bool has_device_scalars;
    tgl_compute mode;    /* compute mode of the problem, set by cublas_serve() */
    bool needs_proof;    /* Tegula computes it only if it was measured to be faster than cuBLAS */
    bool has_separate_c; /* cublas_serve() reads C and writes another matrix */
    cudaStream_t stream;
    cublasHandle_t handle; /* NULL: a call of cuBLASLt, which passes its workspace */
    cublas_workspace workspace;
    double seconds;     /* time on the GPU, if the trace has times; else 0 */
    const char *reason; /* why Tegula does not compute it; NULL: it does, or the call came from
                           inside cuBLAS and is passed on */
    char reason_text[200];
} cublas_product;

/* FP8 in either format. */
static inline bool cublas_is_f8(cudaDataType type)
{
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

/* Whether Tegula may compute the product at all. Calls by cuBLAS are passed on without a reason. */
bool cublas_is_wanted(cublas_product *p);

/* Computes a product that is wanted with Tegula and returns true; or sets p->reason and returns
 * false, and nothing has been computed. */
bool cublas_serve(cublas_product *p);

/* cublas_is_wanted(), cublas_read_handle() and cublas_serve() in this order. Returns true if Tegula
 * has computed the product. */
bool cublas_serve_handle(cublasHandle_t handle, cublas_product *p);

/* Sets p->reason to a text that is not constant. Returns false. */
bool cublas_refuse(cublas_product *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- Handles --------------------------------------------------------------------------------- */

/* Completes *p with the stream, the modes and the workspace of the handle. Returns false and sets
 * p->reason if they are not known or not served. */
bool cublas_read_handle(cublasHandle_t handle, cublas_product *p);

/* The lock of a handle, which is held while a product in the handle's workspace is enqueued:
 * several threads may share the handle. Different handles may have the same lock. NULL for NULL. */
pthread_mutex_t *cublas_lock_of(cublasHandle_t handle);

/* ---- Plans ----------------------------------------------------------------------------------- */

/* A plan for one kind of product (one set of sizes, types and other arguments) on one device. */
typedef struct cublas_plan cublas_plan;

/* Finds or makes the plan for the product, in the calling thread's CUDA context. epilogue: NULL for
 * none. Returns NULL if there is no plan, and p->reason says why. Call cublas_release_plan() after
 * use. */
cublas_plan *cublas_find_plan(cublas_product *p, const tgl_problem *problem,
                              const tgl_epilogue *epilogue);

/* Runs the plan, in the workspace of the caller if it suffices. Returns false and sets p->reason
 * after a failure. */
bool cublas_run_plan(cublas_plan *plan, cublas_product *p, tgl_operands *operands);

void cublas_release_plan(cublas_plan *plan);

/* Frees the workspace that products have left in the calling thread's CUDA context. The next
 * products allocate it again. */
void cublas_release_workspace(void);

/* The kernel of the plan, for the trace. */
const char *cublas_plan_kernel(const cublas_plan *plan);

/* ---- The real library ------------------------------------------------------------------------ */

/* A function of cuBLAS, looked up when it is called first. */
typedef struct cublas_function {
    const char *name;
    void *_Atomic address;
} cublas_function;

/* The address of a function of cuBLAS; NULL: the process has no such function. */
void *cublas_find(cublas_function *function);

/* The address of the function of cuBLAS that has this name, with its type. */
#define CUBLAS_REAL(function)                                                                      \
    __extension__({                                                                                \
        static cublas_function looked_up = {.name = #function};                                    \
        (__typeof__(&(function)))cublas_find(&looked_up);                                          \
    })

/* Calls the function of cuBLAS that the function of this name replaces. p: the product to trace, or
 * NULL for no trace. */
#define CUBLAS_FORWARD(p, function, arguments)                                                     \
    __extension__({                                                                                \
        __typeof__(&(function)) real_function = CUBLAS_REAL(function);                             \
        cublasStatus_t real_status = CUBLAS_STATUS_NOT_INITIALIZED;                                \
        if (real_function != NULL) {                                                               \
            tgl_timer *real_timer = cublas_start_timer(p);                                         \
            cublas_enter_real();                                                                   \
            real_status = real_function arguments;                                                 \
            cublas_leave_real();                                                                   \
            cublas_stop_timer(real_timer, p);                                                      \
        }                                                                                          \
        cublas_trace_forwarded(p, #function, real_function != NULL);                               \
        real_status;                                                                               \
    })

/* Must surround calls of cuBLAS: calls that cuBLAS makes itself are passed on
 * (cublas_is_inside()). */
void cublas_enter_real(void);
void cublas_leave_real(void);
bool cublas_is_inside(void);

/* ---- Settings and tracing -------------------------------------------------------------------- */

typedef struct cublas_settings {
    enum { SERVE_FASTER, SERVE_MEASURED, SERVE_ALL, SERVE_NONE } serve;
    bool is_traced, is_timed;
    bool forbids_tf32;     /* NVIDIA_TF32_OVERRIDE=0, which cuBLAS obeys too */
    int64_t own_workspace; /* bytes that a product may take if the caller's workspace is smaller */
} cublas_settings;

/* Read from the environment by the first call. */
const cublas_settings *cublas_get_settings(void);

/* Prints a line for a product that Tegula has computed, or for one that cuBLAS computes. */
void cublas_trace_served(const cublas_product *p, const char *kernel);
void cublas_trace_forwarded(const cublas_product *p, const char *function, bool is_found);

/* Must surround a product if the trace has times. NULL: the product is not timed, because no times
 * are requested, the call comes from within cuBLAS, or the stream is captured. */
tgl_timer *cublas_start_timer(const cublas_product *p);

/* Waits for the product, and sets p->seconds. */
void cublas_stop_timer(tgl_timer *timer, cublas_product *p);

/* The locks of cublas_handles.c and cublas_plans.c, held while the process forks. */
void cublas_handles_lock(void);
void cublas_handles_unlock(void);
void cublas_plans_lock(void);
void cublas_plans_unlock(void);

/* In a child: if the parent has used a GPU through this library, this process cannot. */
void cublas_plans_after_fork(void);

#endif
