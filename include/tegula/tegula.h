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
 *     tgl_upload(dev, A, host_a, m * k * sizeof(float));
 *     tgl_upload(dev, B, host_b, k * n * sizeof(float));
 *
 *     tgl_problem problem = tgl_problem_make(TGL_F32, m, n, k);
 *     status = tgl_gemm(dev, &problem, 1.0, A, B, 0.0, C, NULL);
 *     tgl_download(dev, host_c, C, m * n * sizeof(float));   // waits for the product
 *
 *     tgl_free(dev, A), tgl_free(dev, B), tgl_free(dev, C);
 *     tgl_device_close(dev);
 *
 * Conventions that hold for every function:
 *   - Sizes, leading dimensions and strides are int64_t and count elements; sizes of memory are
 *     size_t and count bytes.
 *   - A function that can fail returns a tgl_status. On failure nothing the caller owns has been
 *     changed, and tgl_last_error() has a sentence of detail.
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
#define TGL_VERSION_MINOR 1
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
    TGL_BAD_ARGUMENT = 1, /* a NULL that must not be, or a struct size this version does not know */
    TGL_BAD_ORDER = 2,    /* neither TGL_ROW_MAJOR nor TGL_COL_MAJOR */
    TGL_BAD_TRANS_A = 3,  /* not one of tgl_transpose */
    TGL_BAD_TRANS_B = 4,  /* likewise */
    TGL_BAD_TYPE = 5,     /* a value outside tgl_type */
    TGL_BAD_COMPUTE = 6,  /* a value outside tgl_compute */
    TGL_BAD_M = 7,        /* negative */
    TGL_BAD_N = 8,        /* negative */
    TGL_BAD_K = 9,        /* negative */
    TGL_BAD_LDA = 10,     /* less than a row (row-major) or column (column-major) of A as stored */
    TGL_BAD_LDB = 11,     /* likewise for B */
    TGL_BAD_LDC = 12,     /* likewise for C */
    TGL_BAD_BATCH = 13,   /* a negative batch count */
    TGL_BAD_STRIDE_A = 14,   /* a negative stride between the A of a batch */
    TGL_BAD_STRIDE_B = 15,   /* likewise for B */
    TGL_BAD_STRIDE_C = 16,   /* negative, or so small that two C of the batch would overlap */
    TGL_BAD_A = 17,          /* A is NULL though it would be read, or not aligned to its element */
    TGL_BAD_B = 18,          /* likewise for B */
    TGL_BAD_C = 19,          /* likewise for C, which is read or written */
    TGL_TOO_LARGE = 20,      /* the bytes of a matrix, a batch or an array do not fit in 63 bits */
    TGL_UNSUPPORTED = 21,    /* a valid request that this device or version has no kernel for */
    TGL_NO_DEVICE = 22,      /* the name is unknown, or the machine has no such device */
    TGL_NO_MEMORY = 23,      /* host or device memory is exhausted */
    TGL_NO_COMPILER = 24,    /* NVRTC (cuda) or a C compiler (sim) was not found */
    TGL_COMPILE = 25,        /* a kernel did not compile; tgl_last_error() has the compiler's log */
    TGL_GRID_TOO_LARGE = 26, /* the kernel would need a larger grid than the device has */
    TGL_DRIVER = 27,         /* the driver or operating system refused a call */
    TGL_DEVICE_LOST = 28,    /* a kernel faulted: the device object can only be closed now; CUDA may
                                end what the process does on its other GPUs, too */
    TGL_KERNEL_FAULT = 29,   /* sim: a kernel made an illegal access, a race, or missed a barrier */
    TGL_UNKNOWN_KERNEL = 30, /* tgl_plan_options.kernel names no kernel of this device */
    TGL_BAD_SETTING = 31,    /* an environment variable holds a value that is not understood */
    TGL_BAD_BATCHING = 32,   /* a value outside tgl_batching, or the call for the other one */
    TGL_BAD_ALIGNMENT = 33,  /* an alignment that is neither 0 nor a power of two */
    TGL_BAD_EPILOGUE = 34,   /* a member of tgl_epilogue makes no sense */
    TGL_BAD_BIAS = 35,       /* like TGL_BAD_A; also a bias where the epilogue has none */
    TGL_BAD_RESIDUAL = 36,   /* likewise for the residual */
} tgl_status;

/* The identifier of a status, such as "TGL_BAD_LDA", and one sentence that explains it.
 * Static text, never NULL; a value outside the enum gives "TGL_UNKNOWN_STATUS". */
TGL_API const char *tgl_status_name(tgl_status status);
TGL_API const char *tgl_status_text(tgl_status status);

/* The version of the library that is linked, "0.1.0". Static text. */
TGL_API const char *tgl_version(void);

/* ---- Devices --------------------------------------------------------------------------------- */

typedef struct tgl_device tgl_device;

typedef struct tgl_device_options {
    size_t size;         /* sizeof(tgl_device_options) */
    int threads;         /* cpu: the most threads to use; 0: OMP_NUM_THREADS, or all there are */
    char *message;       /* where a failed open writes its sentence of detail; may be NULL */
    size_t message_size; /* bytes at message */
} tgl_device_options;

/* Opens a device by name and stores it in *dev; the caller closes it.
 *   "auto"    the first CUDA device if there is one, else the CPU
 *   "cpu"     the host's processor; always there
 *   "cuda"    the first CUDA device; "cuda:N" the N-th
 *   "sim"     the CUDA kernels, run on the host by the simulator; not in a setuid program, as it
 *             runs a C compiler
 * options may be NULL. On failure *dev is NULL.
 * Returns TGL_OK; TGL_BAD_ARGUMENT; TGL_NO_DEVICE; TGL_NO_MEMORY; TGL_NO_COMPILER; TGL_DRIVER;
 * TGL_BAD_SETTING (TEGULA_CPU and the like hold nonsense). */
TGL_API tgl_status tgl_device_open(const char *name, const tgl_device_options *options,
                                   tgl_device **dev);

/* Releases the device and all it caches. Plans, timers and memory of the device must be gone first.
 */
TGL_API void tgl_device_close(tgl_device *dev);

/* The name of the opened device in full: "cpu", "cuda:0", "sim". Valid until the device is closed.
 */
TGL_API const char *tgl_device_name(const tgl_device *dev);

/* Copies the sentence of detail of the device's latest failure to text, at most size bytes with the
 * terminating zero, and returns the length of the whole sentence (as snprintf does). Empty if
 * nothing has failed yet. */
TGL_API size_t tgl_last_error(const tgl_device *dev, char *text, size_t size);

/* What there is to know about a device, as pairs of text: index 0, 1, ... until it returns
 * TGL_BAD_ARGUMENT. *key and *value are valid until the device is closed. */
TGL_API tgl_status tgl_device_property(const tgl_device *dev, int index, const char **key,
                                       const char **value);

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

/* Copies host memory to the device, or back. Both wait: all work given to the device before is
 * done, and the copy itself is complete, when they return. */
TGL_API tgl_status tgl_upload(tgl_device *dev, void *device_dst, const void *host_src,
                              size_t bytes);
TGL_API tgl_status tgl_download(tgl_device *dev, void *host_dst, const void *device_src,
                                size_t bytes);

/* Waits for all work given to the device. Returns TGL_OK, or the failure of that work. */
TGL_API tgl_status tgl_device_sync(tgl_device *dev);

/* ---- Problems -------------------------------------------------------------------------------- */

/* TGL_F32 and TGL_F64 have kernels; the others are named for what comes, and give TGL_UNSUPPORTED.
 */
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

/* How products are formed and summed. */
typedef enum tgl_compute {
    TGL_COMPUTE_DEFAULT = 0, /* IEEE arithmetic of at least the precision of C's type */
    TGL_COMPUTE_TF32 = 1,    /* F32 inputs may be rounded to TF32 for tensor cores; no kernel yet */
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

/* One matrix product or a batch of them,
 *     C[i] := alpha * op(A[i]) * op(B[i]) + beta * C[i],   i = 0 .. batch-1
 * with op(A): m x k, op(B): k x n, C: m x n, op(X) = X or X^T.
 * Element (r, c) of a stored matrix X is X[r*ldx + c] in row-major and X[r + c*ldx] in column-major
 * order. Start from tgl_problem_make(): a struct of zeros is not a valid problem. */
typedef struct tgl_problem {
    size_t size; /* sizeof(tgl_problem) */
    int64_t m, n, k;
    tgl_order order;
    tgl_transpose trans_a, trans_b;
    tgl_type type_a, type_b, type_c;
    tgl_compute compute;
    int64_t lda, ldb, ldc; /* elements; 0: tight, the least that is legal */
    int64_t batch;         /* 1: one product; 0: none, nothing is done */
    /* TGL_STRIDED: elements from one matrix of a batch to the next; 0 shares A or B. No two C may
     * share an element: they lie one behind the other, stride_c at least the extent of one, or side
     * by side, so that ldc holds a row (column-major: a column) of each. */
    int64_t stride_a, stride_b, stride_c;
    tgl_batching batching;
    /* TGL_POINTERS: bytes, a power of two, that every A[i] and B[i] is promised to be a multiple
     * of. Kernels copy up to 16 bytes at once where they may. 0: no more than an element. */
    int64_t alignment;
} tgl_problem;

/* The problem C := alpha*A*B + beta*C of one type: row-major, not transposed, tight, strided, batch
 * 1. */
TGL_API tgl_problem tgl_problem_make(tgl_type type, int64_t m, int64_t n, int64_t k);

/* TGL_OK, or the first thing wrong with the problem in the order of tgl_problem's members; the
 * sentence goes to message (at most message_size bytes; may be NULL). */
TGL_API tgl_status tgl_problem_check(const tgl_problem *problem, char *message,
                                     size_t message_size);

/* ---- Products -------------------------------------------------------------------------------- */

/* C := alpha*op(A)*op(B) + beta*C as `problem` describes, BLAS semantics to the letter:
 *   alpha == 0   neither A nor B is read (they may be NULL): C := beta*C
 *   beta == 0    C is not read: NaN there does not survive
 *   k == 0       C := beta*C, whatever alpha is
 *   m, n or batch == 0   no memory is touched; pointers may be NULL
 *   NaN and Inf  propagate as in the formula; but for the cases above a NaN alpha or beta makes
 *                all of C NaN
 * alpha and beta are rounded to C's type. C must not overlap A or B.
 * A, B, C: memory of `dev` aligned to their element, owned by the caller, valid until the stream
 * has passed this call. stream: a CUstream or cudaStream_t (NULL: the default stream); ignored by
 * cpu and sim, which are done when the call returns. Returns TGL_OK; a TGL_BAD_* (C untouched);
 * TGL_UNSUPPORTED; TGL_NO_MEMORY; TGL_NO_COMPILER; TGL_COMPILE; TGL_GRID_TOO_LARGE; TGL_DRIVER;
 * TGL_DEVICE_LOST; TGL_KERNEL_FAULT.
 *
 * The first call of a shape makes a plan, which later ones find, as long as it is among the latest
 * few hundred and their workspaces take no more than 256 MiB. To capture a product into a CUDA
 * graph, make the plan yourself and capture tgl_plan_run(): the library may let go of its own
 * before the graph is gone. Where a product needs a workspace it returns TGL_UNSUPPORTED for a
 * stream that is being captured. */
TGL_API tgl_status tgl_gemm(tgl_device *dev, const tgl_problem *problem, double alpha,
                            const void *A, const void *B, double beta, void *C, void *stream);

/* tgl_gemm() for a problem whose batching is TGL_POINTERS. A, B, C: arrays of problem->batch
 * pointers, in memory of `dev` themselves, valid until the stream has passed this call. Pointers
 * of A and B may repeat; no C may overlap another matrix. cpu and sim look at each pointer
 * (TGL_BAD_A and the like); cuda cannot, and a bad one is a kernel's fault there. */
TGL_API tgl_status tgl_gemm_batched(tgl_device *dev, const tgl_problem *problem, double alpha,
                                    const void *const *A, const void *const *B, double beta,
                                    void *const *C, void *stream);

/* The same with the arguments every BLAS user knows, on the default stream. lda, ldb and ldc are
 * checked as BLAS does: at least 1, and at least a row (row-major) or column of the stored matrix.
 */
TGL_API tgl_status tgl_sgemm(tgl_device *dev, tgl_order order, tgl_transpose trans_a,
                             tgl_transpose trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                             const float *A, int64_t lda, const float *B, int64_t ldb, float beta,
                             float *C, int64_t ldc);
TGL_API tgl_status tgl_dgemm(tgl_device *dev, tgl_order order, tgl_transpose trans_a,
                             tgl_transpose trans_b, int64_t m, int64_t n, int64_t k, double alpha,
                             const double *A, int64_t lda, const double *B, int64_t ldb,
                             double beta, double *C, int64_t ldc);

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
    TGL_ACTIVATION_SILU = 3, /* x / (1 + exp(-x)); likewise */
} tgl_activation;

/* What a plan does to each element before it is stored, while it is still in a register:
 *     C := activation(alpha*op(A)*op(B) + beta*C + bias) + residual
 * The rules of tgl_gemm() hold for the part in parentheses: alpha == 0 reads neither A nor B, beta
 * == 0 does not read C, and bias, activation and residual have their effect all the same.
 *
 * expression: C code for a float, which takes the place of activation and sum:
 *     C := expression + residual
 * It may use
 *     float acc       alpha*op(A)*op(B)
 *     float c         beta*C; 0 if beta is 0
 *     float bias      that of the row or column; 0 without one
 *     int row, col    of the element in C as the caller sees it, whatever the order
 * and the functions of C and CUDA: fmaxf(), expf() ..., besides relu(x), gelu(x) and silu(x). It is
 * compiled with the kernel; if that fails, tgl_plan_create() returns TGL_COMPILE and
 * tgl_last_error() has the compiler's log, in which the expression is the file "expression". The
 * text is code: it must not come from someone who may not run code here. Devices cuda and sim. */
typedef struct tgl_epilogue {
    size_t size; /* sizeof(tgl_epilogue) */
    tgl_bias bias;
    tgl_activation activation;
    int residual;            /* 1: a matrix of C's type, sizes and order is added last */
    const char *expression;  /* NULL: none; else activation must be TGL_ACTIVATION_NONE */
    int64_t ld_residual;     /* elements; 0: tight */
    int64_t stride_bias;     /* elements from one problem of a batch to the next, whatever its */
    int64_t stride_residual; /* batching; 0: shared by all */
} tgl_epilogue;

/* ---- Plans ----------------------------------------------------------------------------------- */

/* A problem prepared for a device: kernels chosen, compiled and loaded, workspace set aside.
 * Running a plan allocates nothing, compiles nothing and waits for nothing (cpu, sim: except for
 * its own result), and can be captured into a CUDA graph. The plan must outlive the graph. Two
 * graphs that hold runs of one plan must not be under way at the same time, nor may one graph hold
 * them in branches that run side by side: they may share its workspace. Runs on different streams
 * that are not captured need no such care. */
typedef struct tgl_plan tgl_plan;

/* What becomes of 1 to 16 columns or rows of C past the last whole tile of a kernel: one more
 * column or row of tiles covers them, or strips beside the tiles, which are launches of a kernel
 * for few columns or rows. There are none in batches of pointers or of more than 65535, nor with an
 * expression as the epilogue. */
typedef enum tgl_strips {
    TGL_STRIPS_AUTO,   /* the planner chooses */
    TGL_STRIPS_NEVER,  /* tiles cover all of C */
    TGL_STRIPS_ALWAYS, /* there are strips, or TGL_UNSUPPORTED */
} tgl_strips;

typedef struct tgl_plan_options {
    size_t size;        /* sizeof(tgl_plan_options) */
    const char *kernel; /* a name from tgl_kernel_name(); NULL: the planner chooses */
    int splits; /* cuda, sim: so many blocks share the k of each tile of C, 1: none do, 0: the
                   planner chooses. Kernels that cannot, and k too small, make it fewer. */
    tgl_strips strips;   /* cuda, sim; the cpu and the ladder's kernels do not look at it */
    int64_t whole_tiles; /* with `kernel` and `splits`: so many tiles of C are not shared, only the
                            rest. Kernels that cannot share their last tiles share them all. */
    int64_t split_depth; /* with `kernel` and `splits`: so much of k, rounded up to a kernel's
                            steps, for all blocks of a shared tile but the first, which takes the
                            rest; 0: equal parts. Kernels that cannot share unequally ignore it. */
    const tgl_epilogue *epilogue; /* NULL: none. The ladder's kernels have none. */
} tgl_plan_options;

/* *plan := a plan for `problem`, which is copied, as are the options, which may be NULL. The caller
 * destroys it, before the device is closed. Returns as tgl_gemm(), and TGL_UNKNOWN_KERNEL;
 * TGL_BAD_EPILOGUE. On failure *plan is NULL. */
TGL_API tgl_status tgl_plan_create(tgl_device *dev, const tgl_problem *problem,
                                   const tgl_plan_options *options, tgl_plan **plan);
TGL_API void tgl_plan_destroy(tgl_plan *plan);

/* tgl_gemm() for a plan that is kept. */
TGL_API tgl_status tgl_plan_run(const tgl_plan *plan, double alpha, const void *A, const void *B,
                                double beta, void *C, void *stream);

/* What a run may be given. Members that the plan has no use for are NULL. All lie in memory of the
 * device; none but C is written, and none may overlap a C. */
typedef struct tgl_operands {
    size_t size;       /* sizeof(tgl_operands) */
    const void *A, *B; /* of a plan whose batching is TGL_STRIDED */
    void *C;
    const void *const *A_array, *const *B_array; /* TGL_POINTERS, as in tgl_gemm_batched() */
    void *const *C_array;
    const void *bias, *residual; /* of a plan whose epilogue has them; of C's type */
} tgl_operands;

/* tgl_plan_run() for any plan: those with arrays of pointers, a bias or a residual too. Returns as
 * tgl_gemm(), and TGL_BAD_BIAS; TGL_BAD_RESIDUAL; TGL_BAD_BATCHING (pointers to matrices where
 * arrays belong, or the other way round). */
TGL_API tgl_status tgl_plan_run_operands(const tgl_plan *plan, double alpha, double beta,
                                         const tgl_operands *operands, void *stream);

/* The name of the kernel that the plan runs, beside strips. Valid as long as the plan. */
TGL_API const char *tgl_plan_kernel(const tgl_plan *plan);

/* Writes what the plan does and why, lines of text, as snprintf does. */
TGL_API size_t tgl_plan_explain(const tgl_plan *plan, char *text, size_t size);

/* The chips whose plans can be explained without one at hand: index 0, 1, ... until NULL. */
TGL_API const char *tgl_chip_name(int index);

/* Writes which kernel the cuda device would run for `problem` on such a chip ("h200"), and why, as
 * lines of text: the candidates with the times that the planner predicts, those rejected with the
 * reason, and what limits the choice. At most size bytes with the terminating zero; *length is that
 * of the whole text. options may be NULL. Returns TGL_OK, and otherwise, with one sentence as the
 * text: TGL_BAD_ARGUMENT (of the options); TGL_NO_DEVICE (the chip is not known); what
 * tgl_problem_check() returns; TGL_BAD_EPILOGUE; TGL_TOO_LARGE; TGL_NO_MEMORY; TGL_UNKNOWN_KERNEL;
 * TGL_UNSUPPORTED (also for a kernel of the ladder, which is not planned); TGL_GRID_TOO_LARGE. */
TGL_API tgl_status tgl_chip_explain(const char *chip, const tgl_problem *problem,
                                    const tgl_plan_options *options, char *text, size_t size,
                                    size_t *length);

/* What the latest successful run of a plan did to memory, counted exactly by the simulator. A
 * request is one instruction executed by a warp. docs/simulator.md says how the hardware's rules
 * are modelled. */
typedef struct tgl_counters {
    size_t size;             /* sizeof(tgl_counters), set by the caller */
    int64_t blocks, threads; /* of the grid, strips included; of a block of the plan's kernel */
    int64_t shared_bytes;    /* likewise */
    int64_t barriers;        /* __syncthreads passed, over all blocks */

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

/* What compiling one CUDA kernel for one architecture gave. Text is valid until the callback
 * returns. Counts are -1 where the compiler did not say. */
typedef struct tgl_warm_report {
    size_t size;         /* sizeof(tgl_warm_report) as the library knows it */
    const char *kernel;  /* "ladder/naive" */
    const char *arch;    /* "sm_90a" */
    tgl_status status;   /* TGL_OK; TGL_COMPILE or TGL_NO_MEMORY; TGL_DRIVER: it was not kept */
    const char *message; /* of a failure: the compiler's log, or a sentence */
    double seconds;
    int from_cache;  /* 1: nothing was left to be done */
    int is_clean;    /* 1: no register is spilled and no array lies in local memory, unless the
                        kernel is meant to be so */
    int is_unrolled; /* 1: the code has as many FFMAs as its main loop, or they cannot be counted */
    int registers;   /* of a thread */
    int shared_bytes; /* of a block, static */
    int local_bytes;  /* of a thread */
    int spill_bytes;  /* stored and loaded by spills */
} tgl_warm_report;

typedef struct tgl_warm_options {
    size_t size;        /* sizeof(tgl_warm_options) */
    const char *archs;  /* "sm_80,sm_90a"; "newest" and "all" that the compiler knows; NULL: all */
    const char *kernel; /* only this one; NULL: all */
    void (*report)(const tgl_warm_report *report, void *user); /* after each; may be NULL */
    void *user;                                                /* passed to report */
    char *message; /* where a failure writes its sentence of detail, and a success that the cache is
                      off; else it is emptied; may be NULL */
    size_t message_size;
} tgl_warm_options;

/* Compiles CUDA kernels into the disk cache (docs/environment.md says where that is), where GPUs
 * find them: the ladder's, those that measure ceilings, and each configuration of the production
 * families for each transposition, as one large product takes it whose matrices allow the widest
 * copies. Products of other sizes or alignment, or with an epilogue, may have a kernel left to be
 * compiled, when they are planned for the first time. It takes NVRTC but neither GPU nor driver.
 * Returns TGL_OK, with TEGULA_CACHE=off too, where nothing is kept and message says so;
 * TGL_BAD_ARGUMENT; TGL_NO_COMPILER; TGL_UNSUPPORTED (an architecture that NVRTC does not know);
 * TGL_UNKNOWN_KERNEL; TGL_COMPILE or TGL_NO_MEMORY if a kernel did not compile, TGL_DRIVER if it
 * was not kept, after all others were tried; TGL_DRIVER at once if the cache has no folder. */
TGL_API tgl_status tgl_warm(const tgl_warm_options *options);

#ifdef __cplusplus
}
#endif
#endif
