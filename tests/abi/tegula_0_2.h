/* SPDX-License-Identifier: Apache-2.0
 *
 * Tegula: matrix multiplication in C, C := alpha*op(A)*op(B) + beta*C, on CPUs and NVIDIA GPUs.
 * This is the only public header, and the manual.
 *
 *     tgl_device *dev;
 *     tgl_status status = tgl_device_open("auto", NULL, &dev);
 *     if (status != TGL_OK) { fprintf(stderr, "%s\n", tgl_status_text(status)); return 1; }
 *
 *     // Memory of the device; on the CPU any memory will do.
 *     void *A, *B, *C;                     // A: m x k, B: k x n, C: m x n, row-major
 *     tgl_alloc(dev, m * k * sizeof(float), &A);
 *     tgl_alloc(dev, k * n * sizeof(float), &B);
 *     tgl_alloc(dev, m * n * sizeof(float), &C);
 *     tgl_upload(dev, A, host_a, m * k * sizeof(float), NULL);
 *     tgl_upload(dev, B, host_b, k * n * sizeof(float), NULL);
 *
 *     tgl_problem problem;
 *     tgl_problem_init(&problem, sizeof problem, TGL_F32, m, n, k);
 *     status = tgl_gemm(dev, &problem, 1.0, A, B, 0.0, C, NULL);
 *     tgl_download(dev, host_c, C, m * n * sizeof(float), NULL);   // waits for the product
 *
 *     tgl_free(dev, A), tgl_free(dev, B), tgl_free(dev, C);
 *     tgl_device_close(dev);
 *
 * Conventions that hold for every function:
 *   - Sizes, leading dimensions and strides are int64_t and count elements; sizes of memory are
 *     size_t and count bytes.
 *   - A function that can fail returns a tgl_status, and tgl_last_error() has a sentence of detail,
 *     kept for each thread. After a TGL_BAD_* or TGL_UNSUPPORTED nothing the caller owns has been
 *     changed; after a failure of the device the result of the product is undefined.
 *   - Structs that begin with `size` may grow in later versions. The caller sets size to the sizeof
 *     that it was compiled with. A smaller struct than the library's is accepted from the size of
 *     version 0.2 on, and members that it lacks have their default, 0. A larger one is accepted if
 *     all bytes that the library does not know are 0.
 *   - The library never exits, prints, or changes the caller's state: current CUDA context,
 *     floating-point mode, signal handlers, environment.
 *   - A device may be used by many threads at once; so may a plan. A timer belongs to one
 *     thread at a time. Closing a device or destroying an object must not overlap its other uses.
 *   - Results are bitwise the same from run to run on one device with one version of the library.
 *   - Handles are opaque; destroying NULL does nothing.
 */
#ifndef TEGULA_H
#define TEGULA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TGL_VERSION_MAJOR 0
#define TGL_VERSION_MINOR 2
#define TGL_VERSION_PATCH 0

#if defined(TGL_BUILD) && defined(__GNUC__)
#define TGL_API __attribute__((visibility("default")))
#else
#define TGL_API
#endif

/* ---- Status ---------------------------------------------------------------------------------- */

/* The values are pinned: they do not change between versions, and new ones are added at the end. */
typedef enum tgl_status {
    TGL_OK = 0,
    TGL_BAD_ARGUMENT = 1,  /* a NULL that must not be, or a struct of a size that is not accepted */
    TGL_BAD_ORDER = 2,     /* neither TGL_ROW_MAJOR nor TGL_COL_MAJOR */
    TGL_BAD_TRANS_A = 3,   /* not one of tgl_transpose */
    TGL_BAD_TRANS_B = 4,   /* not one of tgl_transpose */
    TGL_BAD_TYPE = 5,      /* a value outside tgl_type, or types that do not go together */
    TGL_BAD_COMPUTE = 6,   /* a value outside tgl_compute */
    TGL_BAD_M = 7,         /* negative */
    TGL_BAD_N = 8,         /* negative */
    TGL_BAD_K = 9,         /* negative */
    TGL_BAD_LDA = 10,      /* less than a row (row-major) or column (column-major) of A as stored */
    TGL_BAD_LDB = 11,      /* likewise for B */
    TGL_BAD_LDC = 12,      /* likewise for C */
    TGL_BAD_BATCH = 13,    /* a negative batch count */
    TGL_BAD_STRIDE_A = 14, /* a negative stride between the A of a batch */
    TGL_BAD_STRIDE_B = 15, /* likewise for B */
    TGL_BAD_STRIDE_C = 16, /* negative, or so small that two C of the batch would overlap */
    TGL_BAD_A = 17,        /* A is NULL though it would be read, or not aligned to its element */
    TGL_BAD_B = 18,        /* likewise for B */
    TGL_BAD_C = 19,        /* likewise for C, which is read or written */
    TGL_TOO_LARGE = 20,    /* the bytes of a matrix, a batch or an array do not fit in 63 bits */
    TGL_UNSUPPORTED = 21,  /* a valid request that this device or version has no kernel for */
    TGL_NO_DEVICE = 22,    /* the name is unknown, or the machine has no such device */
    TGL_NO_MEMORY = 23,    /* host or device memory is exhausted */
    TGL_NO_COMPILER = 24,  /* NVRTC (cuda) or a C compiler (sim) was not found */
    TGL_COMPILE = 25,      /* a kernel did not compile; tgl_last_error() has the compiler's log */
    TGL_GRID_TOO_LARGE = 26, /* the kernel would need a larger grid than the device has */
    TGL_DRIVER = 27,         /* the driver or operating system refused a call */
    TGL_DEVICE_LOST = 28,    /* a kernel faulted: the device object can only be closed now; CUDA may
                                also stop this process's work on other GPUs */
    TGL_KERNEL_FAULT = 29,   /* sim: a kernel made an illegal access, a race, or missed a barrier */
    TGL_UNKNOWN_KERNEL = 30, /* tgl_plan_options.kernel names no kernel of this device */
    TGL_BAD_SETTING = 31,    /* an environment variable holds a value that is not understood */
    TGL_BAD_BATCHING = 32,   /* a value outside tgl_batching, or the call for the other one */
    TGL_BAD_ALIGNMENT = 33,  /* an alignment that is neither 0 nor a power of two */
    TGL_BAD_EPILOGUE = 34,   /* a member of tgl_epilogue makes no sense */
    TGL_BAD_BIAS = 35,       /* like TGL_BAD_A; also a bias where the epilogue has none */
    TGL_BAD_RESIDUAL = 36,   /* like TGL_BAD_BIAS, for the residual */
    TGL_BAD_LDD = 37,        /* like TGL_BAD_LDC, for D */
    TGL_BAD_STRIDE_D = 38,   /* like TGL_BAD_STRIDE_C, for D */
    TGL_BAD_D = 39,          /* like TGL_BAD_C, for D; also a D where the problem has none */
    TGL_BAD_SCALAR = 40, /* alpha or beta: a NULL device pointer, or one not aligned to its type */
    TGL_BAD_SCALE = 41,  /* a scale that is NULL, not aligned, or not part of the problem */
    TGL_BAD_WORKSPACE = 42, /* the caller's workspace is too small or not aligned to 256 bytes */
} tgl_status;

/* The identifier of a status, such as "TGL_BAD_LDA", and one sentence that explains it.
 * Static text, never NULL; a value outside the enum gives "TGL_UNKNOWN_STATUS". */
TGL_API const char *tgl_status_name(tgl_status status);
TGL_API const char *tgl_status_text(tgl_status status);

/* The version of the library that is linked, "0.2.0". Static text. */
TGL_API const char *tgl_version(void);

/* ---- Devices --------------------------------------------------------------------------------- */

typedef struct tgl_device tgl_device;

typedef struct tgl_device_options {
    size_t size;         /* sizeof(tgl_device_options) */
    int threads;         /* cpu: the most threads to use; 0: OMP_NUM_THREADS, or all there are */
    int current_context; /* cuda: 1: use the CUDA context that is current in the calling thread,
                            which must outlive the device and belong to the GPU that is named; 0:
                            the GPU's primary context */
} tgl_device_options;

/* Opens a device by name and stores it in *dev; the caller closes it.
 *   "auto"    the first CUDA device if there is one, else the CPU
 *   "cpu"     the host's processor; always there
 *   "cuda"    the first CUDA device; "cuda:N" the N-th
 *   "sim"     the CUDA kernels, run on the host by the simulator; not in a setuid program, as it
 *             runs a C compiler
 * options may be NULL. On failure *dev is NULL.
 * Returns TGL_OK; TGL_BAD_ARGUMENT; TGL_NO_DEVICE; TGL_NO_MEMORY; TGL_NO_COMPILER; TGL_DRIVER;
 * TGL_BAD_SETTING (an environment variable such as TEGULA_CPU holds a value that is not
 * understood).
 */
TGL_API tgl_status tgl_device_open(const char *name, const tgl_device_options *options,
                                   tgl_device **dev);

/* Releases the device and all it caches. Plans, timers and memory of the device must be gone first.
 */
TGL_API void tgl_device_close(tgl_device *dev);

/* The name of the opened device in full: "cpu", "cuda:0", "sim". Valid until the device is closed.
 */
TGL_API const char *tgl_device_name(const tgl_device *dev);

/* Copies the sentence of detail of the calling thread's latest failed call to text, at most size
 * bytes with the terminating zero, and returns the length of the whole sentence (as snprintf does).
 * The sentence may have several lines: that of TGL_COMPILE contains the compiler's log. Empty if
 * no call of this thread has failed yet. Call it right after a failure: a later call may leave
 * another sentence even if it succeeds, where it tried something else first. */
TGL_API size_t tgl_last_error(char *text, size_t size);

/* The properties of a device as pairs of text: index 0, 1, ... until it returns TGL_BAD_ARGUMENT.
 * *key and *value are valid until the device is closed. They are for people to read; programs use
 * tgl_device_number(). */
TGL_API tgl_status tgl_device_property(const tgl_device *dev, int index, const char **key,
                                       const char **value);

/* Properties of a device that are numbers. */
typedef enum tgl_number {
    TGL_NUMBER_PROCESSORS = 0,         /* SMs of a GPU; processors that the cpu device may use */
    TGL_NUMBER_CLOCK_HZ = 1,           /* cuda: the highest clock of the SMs */
    TGL_NUMBER_MEMORY_BYTES = 2,       /* of the device */
    TGL_NUMBER_MEMORY_BYTES_PER_S = 3, /* cuda: bandwidth by clock and bus width */
    TGL_NUMBER_L1_BYTES = 4, /* cpu: the data cache of a core; cuda: shared memory of an SM */
    TGL_NUMBER_L2_BYTES = 5,
    TGL_NUMBER_L3_BYTES = 6,            /* cpu */
    TGL_NUMBER_CAPABILITY = 7,          /* cuda: 90 for compute capability 9.0 */
    TGL_NUMBER_FP32_LANES = 8,          /* cuda: FP32 multiply-adds of an SM in a clock */
    TGL_NUMBER_THREADS = 9,             /* cpu: threads that a product uses at most */
    TGL_NUMBER_SHARED_BLOCK_BYTES = 10, /* cuda: the most shared memory of a thread block */
} tgl_number;

/* *value := the property. Returns TGL_OK; TGL_UNSUPPORTED: the device has no such property, or does
 * not know it; TGL_BAD_ARGUMENT. */
TGL_API tgl_status tgl_device_number(const tgl_device *dev, tgl_number number, double *value);

/* A ceiling of the device, measured now (it takes a fraction of a second and the whole device). */
typedef enum tgl_ceiling {
    TGL_CEILING_FMA_F32 = 0, /* FLOP/s of a loop of independent FP32 fused multiply-adds */
    TGL_CEILING_FMA_F64 = 1, /* the same in FP64 */
    TGL_CEILING_COPY = 2,    /* bytes/s of a large copy within the device, read plus written */
} tgl_ceiling;

/* Returns TGL_OK and *value > 0; TGL_UNSUPPORTED (sim); TGL_NO_MEMORY; TGL_DRIVER. */
TGL_API tgl_status tgl_device_measure(tgl_device *dev, tgl_ceiling ceiling, double *value);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* *memory := `bytes` bytes of the device, aligned to 256 bytes and not initialised; the caller
 * gives it back with tgl_free(). 0 bytes give NULL. Memory from any other allocator that the device
 * can address serves every function below as well (cpu, sim: all host memory). */
TGL_API tgl_status tgl_alloc(tgl_device *dev, size_t bytes, void **memory);
TGL_API void tgl_free(tgl_device *dev, void *memory);

/* Copies host memory to the device, or back. The copy comes after all work that `stream` has been
 * given before (NULL: the default stream); the call returns when the copy is complete. cpu and sim
 * ignore the stream. A stream that is being captured gives TGL_UNSUPPORTED. */
TGL_API tgl_status tgl_upload(tgl_device *dev, void *device_dst, const void *host_src, size_t bytes,
                              void *stream);
TGL_API tgl_status tgl_download(tgl_device *dev, void *host_dst, const void *device_src,
                                size_t bytes, void *stream);

/* Waits for all work given to the device. Returns TGL_OK, or the failure of that work. */
TGL_API tgl_status tgl_device_sync(tgl_device *dev);

/* ---- Problems -------------------------------------------------------------------------------- */

/* The element types. Which types go together, and how their products are accumulated:
 *     A, B                        accumulated in   C, D
 *     F32                         F32              F32
 *     F64                         F64              F64
 *     F16 or BF16, A's = B's      F32              that type, or F32
 *     F8_E4M3, F8_E5M2 (mixed)    F32              F16, BF16 or F32
 *     I8                          I32              I32; or I8, F16, BF16, F32 through a scale
 * Other combinations are TGL_BAD_TYPE. This version has kernels for F32 (all devices) and F64
 * (cpu); the other rows give TGL_UNSUPPORTED. */
typedef enum tgl_type {
    TGL_F32 = 1,
    TGL_F64 = 2,
    TGL_F16 = 3,
    TGL_BF16 = 4,
    TGL_F8_E4M3 = 5,
    TGL_F8_E5M2 = 6,
    TGL_I8 = 7,
    TGL_I32 = 8,
} tgl_type;

/* Bytes of an element, or 0 for a value outside tgl_type. */
TGL_API size_t tgl_type_size(tgl_type type);

/* The arithmetic that a product may use. ACCURATE, TF32 and FAST are permissions: arithmetic that
 * is more exact serves them too, so they are never unsupported where IEEE is supported. */
typedef enum tgl_compute {
    TGL_COMPUTE_DEFAULT = 0,  /* the library chooses IEEE or ACCURATE */
    TGL_COMPUTE_IEEE = 1,     /* every product and sum rounded as IEEE 754 says, in the
                                 accumulation type; fused multiply-adds are used */
    TGL_COMPUTE_ACCURATE = 2, /* any arithmetic within the error bound of sums in the accumulation
                                 type; F32 may be computed from several 16-bit words */
    TGL_COMPUTE_TF32 = 3,     /* F32 inputs may be rounded to TF32, 10 bits of fraction */
    TGL_COMPUTE_FAST = 4,     /* 8-bit inputs may be summed with the tensor cores' own precision */
} tgl_compute;

/* CBLAS's values, so that its enums may be cast. */
typedef enum tgl_order { TGL_ROW_MAJOR = 101, TGL_COL_MAJOR = 102 } tgl_order;
typedef enum tgl_transpose {
    TGL_NO_TRANS = 111,
    TGL_TRANS = 112,
    TGL_CONJ_TRANS = 113, /* the same as TGL_TRANS: all types are real */
} tgl_transpose;

/* How the matrices of a batch are found. */
typedef enum tgl_batching {
    TGL_STRIDED = 0,  /* X[i] = X + i*stride_x */
    TGL_POINTERS = 1, /* X[i] is the i-th of an array of pointers */
} tgl_batching;

/* Where alpha and beta of a run come from. */
typedef enum tgl_scalars {
    TGL_SCALARS_HOST = 0,   /* values: tgl_operands.alpha and beta, or the arguments of a call */
    TGL_SCALARS_DEVICE = 1, /* tgl_operands.alpha_at and beta_at, pointers to memory of the device
                               that are read when the product runs */
} tgl_scalars;

/* A factor that the elements of a matrix are multiplied by. For 8-bit types. */
typedef enum tgl_scaling {
    TGL_SCALING_NONE = 0,
    TGL_SCALING_TENSOR = 1, /* one for the matrix */
    TGL_SCALING_LINE = 2,   /* one for each row of A, column of B or row of D */
    TGL_SCALING_BLOCK = 3,  /* one for each 128 of k in a row of A; for each 128 x 128 of B */
} tgl_scaling;

/* One matrix product or a batch of them,
 *     D[i] := alpha * op(A[i]) * op(B[i]) + beta * C[i],   i = 0 .. batch-1
 * with op(A): m x k, op(B): k x n, C and D: m x n, op(X) = X or X^T. D is C itself unless type_d
 * says otherwise. Element (r, c) of a stored matrix X is X[r*ldx + c] in row-major and X[r + c*ldx]
 * in column-major order. Start from tgl_problem_init(): a struct of zeros is not a valid problem.
 */
typedef struct tgl_problem {
    size_t size; /* sizeof(tgl_problem) */
    int64_t m, n, k;
    tgl_order order;
    tgl_transpose trans_a, trans_b;
    tgl_type type_a, type_b, type_c;
    tgl_type type_d; /* 0: D is C: the result replaces C. Else D is another matrix, of this type */
    tgl_type type_accumulate; /* 0: as the table of tgl_type says; else it must be that type */
    tgl_compute compute;
    tgl_scalars scalars;
    int64_t lda, ldb, ldc; /* elements; 0: tight, the least that is legal */
    int64_t ldd;           /* of D where it is another matrix than C; else 0 */
    int64_t batch;         /* 1: one product; 0: none, nothing is done */
    /* TGL_STRIDED: elements from one matrix of a batch to the next; 0 shares A or B, and C where D
     * is another matrix. No two results may share an element: either the stride is at least the
     * extent of one result, or the results are interleaved: stride >= row, and (batch-1)*stride +
     * row <= leading dimension, where row is the length of a row (column-major: a column). */
    int64_t stride_a, stride_b, stride_c;
    int64_t stride_d; /* of D where it is another matrix than C; else 0 */
    tgl_batching batching;
    /* TGL_POINTERS: bytes, a power of two, that every A[i] and B[i] is promised to be a multiple
     * of. Kernels copy up to 16 bytes at once where they may. 0: no more than an element. */
    int64_t alignment;
    tgl_scaling scaling_a, scaling_b, scaling_d; /* no kernel of this version has any */
    tgl_type type_scale;                         /* of all scales; 0: TGL_F32 */
} tgl_problem;

/* *problem := C := alpha*A*B + beta*C with A and B of `type`, and C of the same (I8: I32),
 * row-major, not transposed, tight, strided, batch 1. size: sizeof(tgl_problem). Returns TGL_OK;
 * TGL_BAD_ARGUMENT: problem is NULL, or size is less than that of version 0.2. The sizes and the
 * type are checked when the problem is used. */
TGL_API tgl_status tgl_problem_init(tgl_problem *problem, size_t size, tgl_type type, int64_t m,
                                    int64_t n, int64_t k);

/* TGL_OK, or the first thing found wrong with the problem, about in the order of its members; the
 * sentence is in tgl_last_error(). */
TGL_API tgl_status tgl_problem_check(const tgl_problem *problem);

/* ---- Products -------------------------------------------------------------------------------- */

/* C := alpha*op(A)*op(B) + beta*C as `problem` describes, BLAS semantics to the letter:
 *   alpha == 0   neither A nor B is read (they may be NULL): C := beta*C
 *   beta == 0    C is not read: a NaN in C does not reach the result
 *   k == 0       C := beta*C, whatever alpha is
 *   m, n or batch == 0   no memory is touched; pointers may be NULL
 *   NaN and Inf  propagate as in the formula; but for the cases above a NaN alpha or beta makes
 *                all of C NaN
 * alpha and beta are rounded to the accumulation type. C must not overlap A or B.
 * A, B, C: memory of `dev` aligned to their element, owned by the caller, valid until the stream
 * has completed this product. stream: a CUstream or cudaStream_t (NULL: the default stream);
 * ignored by cpu and sim, which are done when the call returns. Returns TGL_OK; a TGL_BAD_* (C
 * untouched); TGL_TOO_LARGE; TGL_UNSUPPORTED; TGL_NO_MEMORY; TGL_NO_COMPILER; TGL_COMPILE;
 * TGL_GRID_TOO_LARGE; TGL_DRIVER; TGL_DEVICE_LOST; TGL_KERNEL_FAULT.
 *
 * The first call of a shape makes a plan and keeps it; later calls find it, as long as the shape is
 * among the latest few hundred. Problems with device scalars or with a D other than C need a plan
 * of the caller's: TGL_UNSUPPORTED. To capture a product into a CUDA graph, make the plan yourself,
 * capture tgl_plan_run(), and keep the plan as long as the graph: the library may let go of its own
 * plans, and so of their code, before the graph is gone. */
TGL_API tgl_status tgl_gemm(tgl_device *dev, const tgl_problem *problem, double alpha,
                            const void *A, const void *B, double beta, void *C, void *stream);

/* tgl_gemm() for a problem whose batching is TGL_POINTERS. A, B, C: arrays of problem->batch
 * pointers, in memory of `dev` themselves, valid until the stream has completed this product.
 * Pointers of A and B may repeat; no C may overlap another matrix. cpu and sim check each pointer
 * (TGL_BAD_A and the like); cuda cannot, and a bad pointer makes the kernel fault there. */
TGL_API tgl_status tgl_gemm_batched(tgl_device *dev, const tgl_problem *problem, double alpha,
                                    const void *const *A, const void *const *B, double beta,
                                    void *const *C, void *stream);

/* tgl_gemm() with the arguments of BLAS. lda, ldb and ldc are checked as BLAS does: at least 1, and
 * at least a row (row-major) or column of the stored matrix. */
TGL_API tgl_status tgl_sgemm(tgl_device *dev, tgl_order order, tgl_transpose trans_a,
                             tgl_transpose trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                             const float *A, int64_t lda, const float *B, int64_t ldb, float beta,
                             float *C, int64_t ldc, void *stream);
TGL_API tgl_status tgl_dgemm(tgl_device *dev, tgl_order order, tgl_transpose trans_a,
                             tgl_transpose trans_b, int64_t m, int64_t n, int64_t k, double alpha,
                             const double *A, int64_t lda, const double *B, int64_t ldb,
                             double beta, double *C, int64_t ldc, void *stream);

/* ---- Epilogues ------------------------------------------------------------------------------- */

/* One of these is added to each element of a row, or of a column, of C. */
typedef enum tgl_bias {
    TGL_BIAS_NONE = 0,
    TGL_BIAS_ROW = 1,    /* bias[row]: m of them */
    TGL_BIAS_COLUMN = 2, /* bias[column]: n of them */
} tgl_bias;

/* A NaN stays NaN in all of them. */
typedef enum tgl_activation {
    TGL_ACTIVATION_NONE = 0,
    TGL_ACTIVATION_RELU = 1, /* x, or 0 where that is greater */
    TGL_ACTIVATION_GELU = 2, /* x/2 * (1 + erf(x/sqrt(2))); NaN at -Inf, as the formula says */
    TGL_ACTIVATION_SILU = 3, /* x / (1 + exp(-x)); NaN at -Inf, as the formula says */
} tgl_activation;

/* What a plan does to each element before it is stored, while it is still in a register:
 *     D := activation(alpha*op(A)*op(B) + beta*C + bias) + residual
 * computed in the accumulation type and rounded once, to D's type. The rules of tgl_gemm() hold for
 * the part in parentheses: alpha == 0 reads neither A nor B, beta == 0 does not read C, and bias,
 * activation and residual have their effect all the same.
 *
 * expression: a C expression of the accumulation type T, in place of the activation and the sum:
 *     D := expression + residual
 * It may use
 *     T acc               alpha*op(A)*op(B)
 *     T c                 beta*C; 0 if beta is 0
 *     T bias              that of the row or column; 0 without a bias
 *     long long row, col  of the element in D as the caller sees it, whatever the order
 * and the functions of C and CUDA: fmaxf(), expf() ..., besides relu(x), gelu(x) and silu(x). It is
 * compiled with the kernel; if that fails, tgl_plan_create() returns TGL_COMPILE and
 * tgl_last_error() has the compiler's log, in which the expression is the file "expression". The
 * text is code: it must not come from someone who may not run code here. Devices cuda and sim. */
typedef struct tgl_epilogue {
    size_t size; /* sizeof(tgl_epilogue) */
    tgl_bias bias;
    tgl_activation activation;
    int residual;            /* 1: a matrix of D's sizes and order is added last */
    const char *expression;  /* NULL: none; else activation must be TGL_ACTIVATION_NONE */
    int64_t ld_residual;     /* elements; 0: tight */
    int64_t stride_bias;     /* elements from one problem of a batch to the next, strided or of */
    int64_t stride_residual; /* pointers; 0: all problems share it */
    tgl_type type_bias, type_residual; /* 0: D's type */
} tgl_epilogue;

/* ---- Plans ----------------------------------------------------------------------------------- */

/* A problem prepared for a device: kernels chosen, compiled and loaded. A plan is immutable and may
 * be run from many threads and on many streams at once.
 *
 * Workspace. Some plans need memory for partial results: tgl_plan_workspace_size() bytes.
 *   - The caller may give it with each run (tgl_operands.workspace). Runs that may be under way at
 *     the same time need one each.
 *   - Else the device lends it: cuda keeps one arena for each stream, which all plans share and
 *     which grows when a plan needs more. A run that is captured into a CUDA graph does not use an
 *     arena: it allocates and frees its workspace by nodes of the graph (drivers for CUDA 11.4 and
 *     later; else TGL_UNSUPPORTED, and the caller must give it).
 * Where the device has no memory left for it, the run plans and compiles the product once more,
 * with kernels that need no workspace, and uses those.
 *
 * Otherwise a run compiles nothing, does not wait for the GPU, and can be captured into a CUDA
 * graph. The plan must outlive the graph. cpu: a run takes a packing buffer of the device;
 * concurrent runs may allocate one more. */
typedef struct tgl_plan tgl_plan;

typedef struct tgl_plan_options {
    size_t size; /* sizeof(tgl_plan_options) */
    /* A name from tgl_kernel_name(), and options after a colon that fix how it is used, such as
     * "simt_128x256x8:splits=4". docs/command-line.md lists the options of each kernel. They are
     * for measurements: the result is the same, but for rounding. NULL: the planner chooses. */
    const char *kernel;
    const tgl_epilogue *epilogue; /* NULL: none. The ladder's kernels have none. */
    /* The most bytes of workspace that the plan may need: 0: the default, the planner's own bounds;
     * -1: none. */
    int64_t workspace_limit;
} tgl_plan_options;

/* *plan := a plan for `problem`, which is copied, as are the options, which may be NULL. The caller
 * destroys it, before the device is closed. Returns as tgl_gemm(), and TGL_UNKNOWN_KERNEL;
 * TGL_BAD_EPILOGUE; TGL_BAD_ARGUMENT (an option that the kernel does not have). On failure *plan is
 * NULL. */
TGL_API tgl_status tgl_plan_create(tgl_device *dev, const tgl_problem *problem,
                                   const tgl_plan_options *options, tgl_plan **plan);
TGL_API void tgl_plan_destroy(tgl_plan *plan);

/* Bytes of workspace that a run needs; 0 if it needs none. The plan of a NULL needs none. */
TGL_API size_t tgl_plan_workspace_size(const tgl_plan *plan);

/* tgl_gemm() for a plan that is kept, with scalars of the host and without D, bias or residual. */
TGL_API tgl_status tgl_plan_run(const tgl_plan *plan, double alpha, const void *A, const void *B,
                                double beta, void *C, void *stream);

/* What a run is given. Members that the plan has no use for are NULL or 0. All pointers lead to
 * memory of the device; only D (or C, where that is the result) and the workspace are written, and
 * neither may overlap another operand. */
typedef struct tgl_operands {
    size_t size;                    /* sizeof(tgl_operands) */
    double alpha, beta;             /* TGL_SCALARS_HOST; rounded to the accumulation type */
    const void *alpha_at, *beta_at; /* TGL_SCALARS_DEVICE: one of the accumulation type each;
                                       beta_at NULL: beta is 0 */
    const void *A, *B;              /* of a plan whose batching is TGL_STRIDED */
    void *C;                        /* is not written where D is another matrix */
    void *D;                        /* where the problem's type_d is not 0 */
    const void *const *A_array, *const *B_array; /* TGL_POINTERS, as in tgl_gemm_batched() */
    void *const *C_array;
    void *const *D_array;
    const void *bias, *residual;             /* of a plan whose epilogue has them */
    const void *scale_a, *scale_b, *scale_d; /* of a problem that has them */
    void *workspace; /* NULL: the device lends it; else aligned to 256 bytes */
    size_t workspace_bytes;
} tgl_operands;

/* tgl_plan_run() for any plan. Returns as tgl_gemm(), and TGL_BAD_BIAS; TGL_BAD_RESIDUAL;
 * TGL_BAD_D; TGL_BAD_SCALAR; TGL_BAD_SCALE; TGL_BAD_WORKSPACE; TGL_BAD_BATCHING (pointers to
 * matrices where arrays belong, or the other way round). */
TGL_API tgl_status tgl_plan_run_operands(const tgl_plan *plan, const tgl_operands *operands,
                                         void *stream);

/* The kernel of the plan as tgl_plan_options.kernel takes it: "simt_128x256x8:splits=4" makes the
 * same plan again. Valid as long as the plan. */
TGL_API const char *tgl_plan_kernel(const tgl_plan *plan);

/* Writes what the plan does and why, lines of text, as snprintf does. */
TGL_API size_t tgl_plan_explain(const tgl_plan *plan, char *text, size_t size);

/* The chips whose plans can be explained without one at hand: index 0, 1, ... until NULL. */
TGL_API const char *tgl_chip_name(int index);

/* Writes which kernel the cuda device would run for `problem` on such a chip ("h200"), and why, as
 * lines of text: the candidates with the times that the planner predicts, those rejected with the
 * reason, and what limits the choice. At most size bytes with the terminating zero; *length is that
 * of the whole text. options may be NULL. Returns TGL_OK; TGL_BAD_ARGUMENT (of the options);
 * TGL_NO_DEVICE (the chip is not known); what tgl_problem_check() returns; TGL_BAD_EPILOGUE;
 * TGL_TOO_LARGE; TGL_NO_MEMORY; TGL_UNKNOWN_KERNEL; TGL_UNSUPPORTED; TGL_GRID_TOO_LARGE. */
TGL_API tgl_status tgl_chip_explain(const char *chip, const tgl_problem *problem,
                                    const tgl_plan_options *options, char *text, size_t size,
                                    size_t *length);

/* What the latest successful run of a plan did to memory, counted exactly by the simulator. A
 * request is one instruction executed by a warp. docs/simulator.md says how the hardware's rules
 * are modelled. */
typedef struct tgl_counters {
    size_t size;          /* sizeof(tgl_counters), set by the caller; what the library does not
                             know of a larger struct stays as it is */
    int64_t blocks;       /* of all launches */
    int64_t threads;      /* of a block of the plan's main kernel */
    int64_t shared_bytes; /* of a block of the plan's main kernel */
    int64_t barriers;     /* __syncthreads passed, over all blocks */

    /* sectors: 32-byte pieces of memory that a request touches; 4 a request for neighbouring
     * floats. bytes: what the threads asked for. */
    int64_t global_load_requests, global_load_sectors, global_load_bytes;
    int64_t global_store_requests, global_store_sectors, global_store_bytes;

    /* wavefronts: passes over the banks of shared memory. conflicts: those that would not be there
     * without bank conflicts. */
    int64_t shared_load_requests, shared_load_wavefronts, shared_load_conflicts, shared_load_bytes;
    int64_t shared_store_requests, shared_store_wavefronts, shared_store_conflicts,
        shared_store_bytes;

    /* cp.async: from global to shared memory, counted neither as loads nor as stores above. */
    int64_t async_copy_requests, async_copy_sectors, async_copy_bytes;
    int64_t async_copy_wavefronts, async_copy_conflicts;

    int64_t needed_bytes; /* A and B once, C once, and once more if it is read, bias and residual */
} tgl_counters;

/* Returns TGL_OK and *counters; TGL_UNSUPPORTED on a device that does not count (all but sim), and
 * before the first run; TGL_BAD_ARGUMENT. */
TGL_API tgl_status tgl_plan_counters(const tgl_plan *plan, tgl_counters *counters);

/* The kernels of a device by name: index 0, 1, ... until NULL. Static text. Not every kernel takes
 * every problem: tgl_plan_create() says TGL_UNSUPPORTED and why. */
TGL_API const char *tgl_kernel_name(const tgl_device *dev, int index);

/* ---- Timing ---------------------------------------------------------------------------------- */

/* A stopwatch on a device's own clock: events in the stream on CUDA, the host's clock elsewhere. It
 * times whatever the stream does between the calls, other libraries' work included. */
typedef struct tgl_timer tgl_timer;

TGL_API tgl_status tgl_timer_create(tgl_device *dev, tgl_timer **timer);
TGL_API void tgl_timer_destroy(tgl_timer *timer);
TGL_API tgl_status tgl_timer_start(tgl_timer *timer, void *stream);

/* Waits for the work since tgl_timer_start() and stores the seconds it took. */
TGL_API tgl_status tgl_timer_stop(tgl_timer *timer, void *stream, double *seconds);

/* ---- Compiling ahead ------------------------------------------------------------------------- */

/* What compiling one CUDA kernel for one architecture gave. Pointers are valid until the callback
 * returns. Counts are -1 where the compiler did not say. */
typedef struct tgl_warm_report {
    size_t size;         /* sizeof(tgl_warm_report) as the library knows it */
    const char *kernel;  /* "ladder/naive"; of a kernel that is compiled for each layout
                            "simt_64x64x16 NT" */
    const char *arch;    /* "sm_90a" */
    tgl_status status;   /* TGL_OK; TGL_COMPILE or TGL_NO_MEMORY; TGL_DRIVER: it was not kept */
    const char *message; /* of a failure: the compiler's log, or a sentence */
    double seconds;
    int from_cache;     /* 1: the disk cache had it */
    int is_clean;       /* 1: no register is spilled and no array lies in local memory, unless the
                           kernel is meant to be so */
    int registers;      /* of a thread */
    int shared_bytes;   /* of a block, static */
    int local_bytes;    /* of a thread */
    int spill_bytes;    /* stored and loaded by spills */
    const char *symbol; /* of the kernel in the image */
    const void *image;  /* what the driver would load, a cubin or PTX; NULL after a failure */
    size_t image_size;
} tgl_warm_report;

typedef struct tgl_warm_options {
    size_t size;        /* sizeof(tgl_warm_options) */
    const char *archs;  /* "sm_80,sm_90a"; "newest" and "all" that the compiler knows; NULL: all */
    const char *kernel; /* only this one; NULL: all */
    void (*report)(const tgl_warm_report *report, void *user); /* after each; may be NULL */
    void *user;                                                /* passed to report */
} tgl_warm_options;

/* Compiles CUDA kernels into the disk cache (docs/environment.md says where that is), where GPUs
 * find them: the ladder's, those that measure ceilings, and each configuration of the production
 * families for each transposition, as one large product takes it whose matrices allow the widest
 * copies. Products of other sizes or alignment, or with an epilogue, may have a kernel left to be
 * compiled, when they are planned for the first time. It takes NVRTC but neither GPU nor driver.
 * Returns TGL_OK, also with TEGULA_CACHE=off, where nothing is kept; TGL_BAD_ARGUMENT;
 * TGL_NO_COMPILER; TGL_UNSUPPORTED (an architecture that NVRTC does not know); TGL_UNKNOWN_KERNEL;
 * TGL_COMPILE or TGL_NO_MEMORY if a kernel did not compile, TGL_DRIVER if it was not kept, after
 * all others were tried; TGL_DRIVER at once if the cache has no folder. */
TGL_API tgl_status tgl_warm(const tgl_warm_options *options);

#ifdef __cplusplus
}
#endif
#endif
