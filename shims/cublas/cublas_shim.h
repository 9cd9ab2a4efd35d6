/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations for all files of libtegula_cublas.so. The library exports functions of cuBLAS and
 * cuBLASLt and computes their products with Tegula, or calls the function that it replaces:
 *
 *   cublas_gemm.c     cublasSgemm_v2() to cublasGemmStridedBatchedEx(): each describes its call
 *                     in a cublas_product
 *   cublas_lt.c       cublasLtMatmul(), which describes its call in the same way
 *   cublas_handles.c  reads the settings of a handle: stream, modes, workspace
 *   cublas_serve.c    decides whether Tegula computes a product, and runs it
 *   cublas_plans.c    makes and keeps devices and plans
 *   cublas_real.c     finds the functions of cuBLAS; recognises calls that cuBLAS makes itself
 *   cublas_settings.c reads the environment, and prints the trace
 *   cublas_fork.c     handlers for fork()
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
    bool is_given; /* false: the caller has set none, and the library may choose */
    void *memory;  /* NULL: the caller gives no memory */
    size_t bytes;
} cublas_workspace;

/* The column-major products D := epilogue(alpha*op(A)*op(B) + beta*C) of a call. is_pointers: A, B,
 * C and D are arrays of pointers. Functions without D set D to C. */
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
    const void *scale_a, *scale_b, *scale_d; /* for FP8 matrices: factors in device memory */
    tgl_scaling scaling_a, scaling_b, scaling_d;
    void *amax_d;                /* device memory that receives the largest magnitude of an FP8 D;
                                    NULL: not wanted */
    cublasLtEpilogue_t epilogue; /* CUBLASLT_EPILOGUE_DEFAULT: none */
    cublasComputeType_t compute;
    bool has_fast_sums; /* CUBLASLT_MATMUL_DESC_FAST_ACCUM, for FP8 */
    cublasMath_t math;  /* math mode of the handle */
    bool is_pointers;
    bool has_device_scalars;
    tgl_compute mode;    /* compute mode of the problem, set by cublas_serve() */
    bool needs_proof;    /* Tegula computes the product only if that was measured to be faster
                            than cuBLAS */
    bool has_separate_c; /* set by cublas_serve(): C and D are different matrices */
    cudaStream_t stream;
    cublas_workspace workspace;
    /* The handle's lock. It must be held while a product that uses the handle's workspace is
     * enqueued, because several threads may use the handle. NULL: a call of cuBLASLt, which passes
     * the workspace itself. */
    pthread_mutex_t *lock;
    double seconds;     /* time on the GPU in seconds, if the trace has times; else 0 */
    const char *reason; /* why Tegula does not compute the product; NULL: Tegula computes it, or
                           cuBLAS itself made the call */
    char reason_text[200];
} cublas_product;

/* FP8 in either format. */
static inline bool cublas_is_f8(cudaDataType type)
{
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

/* Whether Tegula may compute the product at all. If not, sets p->reason, unless cuBLAS itself made
 * the call. */
bool cublas_is_wanted(cublas_product *p);

/* Computes a product for which cublas_is_wanted() was true. False: nothing was computed, and
 * p->reason says why. */
bool cublas_serve(cublas_product *p);

/* Calls cublas_is_wanted(), cublas_read_handle() and cublas_serve(), in this order. Returns true if
 * Tegula has computed the product. */
bool cublas_serve_handle(cublasHandle_t handle, cublas_product *p);

/* Formats p->reason. Returns false. */
bool cublas_refuse(cublas_product *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- Handles --------------------------------------------------------------------------------- */

/* Sets the stream, the modes, the workspace and the lock of *p from the handle. Returns false and
 * sets p->reason if they are unknown or not supported. */
bool cublas_read_handle(cublasHandle_t handle, cublas_product *p);

/* ---- Plans ----------------------------------------------------------------------------------- */

/* A plan for one kind of product (sizes, types and other arguments) on one device. */
typedef struct cublas_plan cublas_plan;

/* Finds or makes the plan for a product in the calling thread's CUDA context. epilogue: NULL: none.
 * Returns the plan, which the caller releases with cublas_release_plan(). If there is none, returns
 * NULL, and p->reason says why. */
cublas_plan *cublas_find_plan(cublas_product *p, const tgl_problem *problem,
                              const tgl_epilogue *epilogue);

/* Runs the plan. It uses the caller's workspace if that is large enough. False: the run failed, and
 * p->reason says why. */
bool cublas_run_plan(cublas_plan *plan, cublas_product *p, tgl_operands *operands);

void cublas_release_plan(cublas_plan *plan);

/* Frees the workspace that the library has allocated in the calling thread's CUDA context. Later
 * products allocate it again. */
void cublas_release_workspace(void);

/* The name of the plan's kernel, for the trace. */
const char *cublas_plan_kernel(const cublas_plan *plan);

/* ---- The real library ------------------------------------------------------------------------ */

/* A function of the real cuBLAS. address: NULL until the first call of cublas_find() finds it. */
typedef struct cublas_function {
    const char *name;
    void *_Atomic address;
} cublas_function;

/* The address of a function of the real cuBLAS; NULL: the process has none. */
void *cublas_find(cublas_function *function);

/* The address, with its type, of the real cuBLAS function with this name. */
#define CUBLAS_REAL(function)                                                                      \
    __extension__({                                                                                \
        static cublas_function looked_up = {.name = #function};                                    \
        (__typeof__(&(function)))cublas_find(&looked_up);                                          \
    })

/* Calls the real cuBLAS function with this name. p: the product for the trace; NULL: no trace.
 * arguments: in parentheses. */
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

/* cublas_enter_real() and cublas_leave_real() must surround each call of the real cuBLAS, so that
 * cublas_is_inside() recognises calls that cuBLAS makes itself. Those are passed on to cuBLAS. */
void cublas_enter_real(void);
void cublas_leave_real(void);
bool cublas_is_inside(void);

/* ---- Settings and tracing -------------------------------------------------------------------- */

typedef struct cublas_settings {
    enum { SERVE_FASTER, SERVE_MEASURED, SERVE_ALL, SERVE_NONE } serve;
    bool is_traced, is_timed;
    bool forbids_tf32;     /* NVIDIA_TF32_OVERRIDE=0, which cuBLAS also obeys */
    int64_t own_workspace; /* maximum bytes of workspace for a product if the caller's workspace is
                              smaller */
} cublas_settings;

/* The settings; the first call reads them from the environment. */
const cublas_settings *cublas_get_settings(void);

/* Print the trace line of a product that Tegula has computed (served), or that cuBLAS computes
 * (forwarded). */
void cublas_trace_served(const cublas_product *p, const char *kernel);
void cublas_trace_forwarded(const cublas_product *p, const char *function, bool is_found);

/* Starts to time a product, if the trace has times. NULL: it is not timed, because times are not
 * requested, cuBLAS made the call, the stream is being captured, or there is no device or timer. */
tgl_timer *cublas_start_timer(const cublas_product *p);

/* Waits for the product, and sets p->seconds. timer: the result of cublas_start_timer(); NULL:
 * nothing is done. */
void cublas_stop_timer(tgl_timer *timer, cublas_product *p);

/* Take and release all locks of cublas_handles.c and of cublas_plans.c around fork(). */
void cublas_handles_lock(void);
void cublas_handles_unlock(void);
void cublas_plans_lock(void);
void cublas_plans_unlock(void);

/* Called in a child after fork(). If the parent has used a GPU through this library, the child
 * leaves all products to cuBLAS. */
void cublas_plans_after_fork(void);

#endif
