/* SPDX-License-Identifier: Apache-2.0
 *
 * Tegula: matrix multiplication in C, C := alpha*op(A)*op(B) + beta*C, on CPUs and NVIDIA GPUs.
 * This header is also the manual. tegula/dist.h is the header for distributed matrices.
 *
 *     tgl_device *dev;
 *     tgl_status status = tgl_device_open("auto", NULL, &dev);
 *     if (status != TGL_OK) { fprintf(stderr, "%s\n", tgl_status_text(status)); return 1; }
 *
 *     // Memory of the device. The cpu device accepts any host memory.
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
 *   - A function that can fail returns a tgl_status. tgl_last_error() returns the message
 *     of the calling thread's latest failure. After a TGL_BAD_* or TGL_UNSUPPORTED the caller's
 *     memory is unchanged. After a failure of the device the result of the product is undefined.
 *   - Structs that begin with `size` may get more members in later versions. The caller sets size
 *     to sizeof the struct. The library accepts the struct of every version since 0.2: members that
 *     an older struct does not have are 0, the default, and the additional bytes of a newer struct
 *     must be 0.
 *   - The library never exits, prints, or changes the caller's current CUDA context, floating-point
 *     mode, signal handlers or environment.
 *   - Several threads may use a device or a plan at the same time. A timer belongs to one thread at
 *     a time. Closing a device or destroying an object must not overlap another use of it.
 *   - Results are bitwise the same from run to run on one device with one version of the library
 *     and the same wisdom: the file of measured times from which kernels are chosen
 *     (docs/plans.md). New measurements may change the choice of kernels, unless the file is
 *     read-only. On cpu all threads of a product compute in the caller's rounding mode and
 *     treatment of denormal numbers, and the exceptions that they raise are raised in the caller.
 *     AMX, AVX512-BF16 and BFMMLA always round in the same way.
 *   - cpu: a signal handler may leave a product by longjmp(). C is undefined then, the memory that
 *     the call has taken is lost, and threads of the device may use the matrices until
 *     tgl_device_sync() or tgl_device_close() returns. Later calls are not affected. The handler
 *     must not interrupt an allocation of memory in this way: the first call with a problem
 *     allocates.
 *   - Handles are opaque. Destroying NULL does nothing. Using a destroyed handle is undefined.
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
    TGL_BAD_ARGUMENT = 1,    /* an argument is NULL or out of range, or a struct has a wrong size */
    TGL_BAD_ORDER = 2,       /* neither TGL_ROW_MAJOR nor TGL_COL_MAJOR */
    TGL_BAD_TRANS_A = 3,     /* not one of tgl_transpose */
    TGL_BAD_TRANS_B = 4,     /* not one of tgl_transpose */
    TGL_BAD_TYPE = 5,        /* a value outside tgl_type, or an invalid combination of types */
    TGL_BAD_COMPUTE = 6,     /* a value outside tgl_compute */
    TGL_BAD_M = 7,           /* negative */
    TGL_BAD_N = 8,           /* negative */
    TGL_BAD_K = 9,           /* negative */
    TGL_BAD_LDA = 10,        /* less than a row (row-major) or column (column-major) of stored A */
    TGL_BAD_LDB = 11,        /* less than a row (row-major) or column (column-major) of stored B; or
                                odd, with B of I4 */
    TGL_BAD_LDC = 12,        /* less than a row (row-major) or column (column-major) of C */
    TGL_BAD_BATCH = 13,      /* a negative batch count */
    TGL_BAD_STRIDE_A = 14,   /* negative; or not 0, but A has all groups (tgl_grouping) */
    TGL_BAD_STRIDE_B = 15,   /* negative; or odd, with B of I4; or not 0, but B has all groups */
    TGL_BAD_STRIDE_C = 16,   /* negative, or so small that two C of the batch would overlap; or not
                                0, but C has all groups */
    TGL_BAD_A = 17,          /* A is read but NULL, or not aligned to its element size */
    TGL_BAD_B = 18,          /* B is read but NULL, or not aligned to its element size */
    TGL_BAD_C = 19,          /* C is accessed but NULL, or not aligned to its element size */
    TGL_TOO_LARGE = 20,      /* the size of a matrix, batch or array in bytes exceeds 63 bits */
    TGL_UNSUPPORTED = 21,    /* a valid request for which this device or version has no kernel */
    TGL_NO_DEVICE = 22,      /* the name is unknown, or the machine has no such device */
    TGL_NO_MEMORY = 23,      /* host or device memory is exhausted */
    TGL_NO_COMPILER = 24,    /* NVRTC (cuda) or a C compiler (sim) was not found */
    TGL_COMPILE = 25,        /* a kernel did not compile; tgl_last_error() has the compiler's log */
    TGL_GRID_TOO_LARGE = 26, /* the kernel would need a grid larger than the device's limit */
    TGL_DRIVER = 27,         /* a call to the CUDA driver or the operating system failed */
    TGL_DEVICE_LOST = 28,    /* a kernel faulted. The device object can only be closed now. CUDA may
                                also stop this process's work on other GPUs */
    TGL_KERNEL_FAULT = 29,   /* sim: an illegal access, a race or a missing barrier in a kernel;
                                cuda: returned by tgl_gemm_host() only */
    TGL_UNKNOWN_KERNEL = 30, /* tgl_plan_options.kernel is not a kernel of this device */
    TGL_BAD_SETTING = 31,    /* an environment variable has an invalid value */
    TGL_BAD_BATCHING = 32,   /* a value outside tgl_batching, or not the value that the called
                                function takes */
    TGL_BAD_ALIGNMENT = 33,  /* an alignment that is neither 0 nor a power of two */
    TGL_BAD_EPILOGUE = 34,   /* an invalid member of tgl_epilogue */
    TGL_BAD_BIAS = 35,       /* the bias is NULL or not aligned, or the epilogue has no bias */
    TGL_BAD_RESIDUAL = 36,   /* the residual is NULL or not aligned, or the epilogue has no
                                residual */
    TGL_BAD_LDD = 37,        /* less than a row (row-major) or column (column-major) of D; or not 0,
                                but the problem has no D */
    TGL_BAD_STRIDE_D = 38,   /* negative, or so small that two D of the batch would overlap; or not
                                0, but D has all groups or the problem has no D */
    TGL_BAD_D = 39,          /* D is NULL or not aligned, or the problem has no D */
    TGL_BAD_SCALAR = 40,     /* a pointer to alpha or beta is NULL or not aligned, or given, but the
                                scalars are values; or in a product in I32 alpha or beta is not an
                                integer of 32 bits, or in a real product it has an imaginary part */
    TGL_BAD_SCALE = 41,      /* one of: a scale is NULL or not aligned, or given although the
                                problem has none; ld_scale_a or ld_scale_b is too small, or given
                                without factors of blocks or groups; scale_group is not 32, 64 or
                                128 (with TGL_SCALING_GROUP) or not 0 (otherwise); type_zero_b is
                                given without factors of weights, or zero_b without type_zero_b;
                                zero_b is NULL although type_zero_b is given; stride_scale_b is
                                negative, or given although B has no weights with factors; the
                                factors would not fit in memory; amax_d is NULL or not aligned, or
                                given although epilogue.amax is 0 */
    TGL_BAD_WORKSPACE = 42,  /* the caller's workspace is too small or not aligned to 256 bytes, or
                                it is given to tgl_gemm_host() */
    TGL_COMMUNICATION = 43,  /* tegula/dist.h: a rank did not answer in time, or a link failed */
    TGL_BAD_GROUPS = 44,     /* an invalid grouping; the groups are NULL or not aligned, or the
                                problem has none; cpu: sizes that are negative, or exceed the rows
                                or k */
} tgl_status;

/* The identifier of a status, such as "TGL_BAD_LDA", and a phrase that explains it. Static text,
 * never NULL; a value outside the enum gives "TGL_UNKNOWN_STATUS" and a phrase that says so. */
TGL_API const char *tgl_status_name(tgl_status status);
TGL_API const char *tgl_status_text(tgl_status status);

/* The version of the linked library, "0.2.0". Static text. */
TGL_API const char *tgl_version(void);

/* ---- Devices --------------------------------------------------------------------------------- */

typedef struct tgl_device tgl_device;

typedef struct tgl_device_options {
    size_t size;         /* sizeof(tgl_device_options) */
    int threads;         /* cpu, sim: the maximum number of threads; 0: the number of processors, or
                            OMP_NUM_THREADS if that is less. Reduced to 1024 (cpu) or 16 (sim) */
    int current_context; /* cuda: 1: use the calling thread's current CUDA context, which must
                            belong to the named GPU and outlive the device; 0: use the GPU's primary
                            context */
} tgl_device_options;

/* Opens a device by name and stores it in *dev; the caller closes it.
 *   "auto"    the first CUDA device if there is one, else the CPU
 *   "cpu"     the host's processor, always available
 *   "cuda"    the first CUDA device; "cuda:N" is device number N, counted from 0
 *   "sim"     the simulator, which runs the CUDA kernels on the host. It runs a C compiler, so it
 *             does not open in a setuid program.
 * options may be NULL. On failure *dev is NULL.
 * The calling thread needs 256 KB of stack for cuda and 48 KB for sim, here and to make a plan;
 * with less the call returns TGL_NO_MEMORY. 16 KB are enough for cpu.
 * Returns TGL_OK; TGL_BAD_ARGUMENT; TGL_NO_DEVICE; TGL_NO_MEMORY; TGL_NO_COMPILER; TGL_DRIVER;
 * TGL_BAD_SETTING (an environment variable such as TEGULA_CPU has an invalid value).
 */
TGL_API tgl_status tgl_device_open(const char *name, const tgl_device_options *options,
                                   tgl_device **dev);

/* Releases the device and its caches. Its plans, prepared operands and timers must be destroyed and
 * its memory freed before. */
TGL_API void tgl_device_close(tgl_device *dev);

/* The full name of the device: "cpu", "cuda:0", "sim". Valid until the device is closed. */
TGL_API const char *tgl_device_name(const tgl_device *dev);

/* Copies the error message of the calling thread's latest failed call to text, at most size bytes
 * with the terminating zero, and returns the length of the whole message, as snprintf does. The
 * message may have several lines: with TGL_COMPILE it contains the compiler's log. It has at most
 * 8191 bytes, and is empty if no call of this thread has failed yet. Call this function right after
 * a failure: a later call may replace the message even if it succeeds, because some calls try
 * alternatives that may fail. */
TGL_API size_t tgl_last_error(char *text, size_t size);

/* The properties of a device as pairs of text, for people to read: index 0, 1, ... until the
 * function returns TGL_BAD_ARGUMENT. *key and *value are valid until the device is closed. Programs
 * should use tgl_device_number(). */
TGL_API tgl_status tgl_device_property(const tgl_device *dev, int index, const char **key,
                                       const char **value);

/* Numeric properties of a device. */
typedef enum tgl_number {
    TGL_NUMBER_PROCESSORS = 0,         /* cuda: SMs; cpu: processors that this process may use;
                                          sim: 1, its only number */
    TGL_NUMBER_CLOCK_HZ = 1,           /* cuda: the maximum SM clock */
    TGL_NUMBER_MEMORY_BYTES = 2,       /* the device's memory */
    TGL_NUMBER_MEMORY_BYTES_PER_S = 3, /* cuda: peak bandwidth, from memory clock and bus width */
    TGL_NUMBER_L1_BYTES = 4, /* cpu: L1 data cache of a core; cuda: shared memory of an SM */
    TGL_NUMBER_L2_BYTES = 5,
    TGL_NUMBER_L3_BYTES = 6,            /* cpu */
    TGL_NUMBER_CAPABILITY = 7,          /* cuda: 90 for compute capability 9.0 */
    TGL_NUMBER_FP32_LANES = 8,          /* cuda: FP32 multiply-adds per SM and clock */
    TGL_NUMBER_THREADS = 9,             /* cpu: the maximum number of threads of a product */
    TGL_NUMBER_SHARED_BLOCK_BYTES = 10, /* cuda: the maximum shared memory of a thread block */
} tgl_number;

/* *value := the property. Returns TGL_OK; TGL_UNSUPPORTED (the device has no such property or
 * cannot determine it); TGL_BAD_ARGUMENT. */
TGL_API tgl_status tgl_device_number(const tgl_device *dev, tgl_number number, double *value);

/* Limits each product of a cpu device to `threads` threads, the calling thread included, as if the
 * device had been opened with this number. The limit holds for the calls of all threads of the
 * program, from their next product on. 0 restores the number with which the device was opened. A
 * number above both the processors of the process and the number at opening is reduced to the
 * larger of these two. tgl_device_number() with TGL_NUMBER_THREADS returns the limit. An existing
 * plan still divides its product into the same parts, so that the bits of its results do not
 * change; only fewer threads compute the parts.
 * Returns TGL_OK; TGL_BAD_ARGUMENT; TGL_UNSUPPORTED (cuda, sim). */
TGL_API tgl_status tgl_set_threads(tgl_device *dev, int threads);

/* Upper bounds of the device's speed, measured when tgl_device_measure() is called. A measurement
 * takes a fraction of a second and needs the device to be idle otherwise. */
typedef enum tgl_ceiling {
    TGL_CEILING_FMA_F32 = 0, /* FLOP/s of a loop of independent FP32 fused multiply-adds */
    TGL_CEILING_FMA_F64 = 1, /* FLOP/s of a loop of independent FP64 fused multiply-adds */
    TGL_CEILING_COPY = 2,    /* bytes/s, read plus written, of a large copy in device memory */
} tgl_ceiling;

/* Returns TGL_OK and *value > 0; TGL_BAD_ARGUMENT; TGL_UNSUPPORTED (sim); TGL_NO_MEMORY; cuda also:
 * TGL_NO_COMPILER; TGL_COMPILE; TGL_DRIVER; TGL_DEVICE_LOST. */
TGL_API tgl_status tgl_device_measure(tgl_device *dev, tgl_ceiling ceiling, double *value);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* *memory := `bytes` bytes of device memory, aligned to 256 bytes and not initialised. The caller
 * frees it with tgl_free(). 0 bytes give NULL. The functions below also accept memory from any
 * other allocator if the device can address it (cpu, sim: all host memory). */
TGL_API tgl_status tgl_alloc(tgl_device *dev, size_t bytes, void **memory);
TGL_API void tgl_free(tgl_device *dev, void *memory);

/* Copy host memory to the device, or back. The copy starts after the work that is already in
 * `stream` (NULL: the default stream), and the call returns when the copy is complete. cpu and sim
 * ignore the stream. Returns TGL_UNSUPPORTED if the stream is being captured. */
TGL_API tgl_status tgl_upload(tgl_device *dev, void *device_dst, const void *host_src, size_t bytes,
                              void *stream);
TGL_API tgl_status tgl_download(tgl_device *dev, void *host_dst, const void *device_src,
                                size_t bytes, void *stream);

/* Waits for all work of the device. On cpu only products that a signal handler has left by
 * longjmp() can be unfinished. Returns TGL_OK, or the failure of that work. */
TGL_API tgl_status tgl_device_sync(tgl_device *dev);

/* Frees the memory that the device keeps for later calls, unless a call is using it: cached plans
 * of tgl_gemm(), kernels that no plan uses, workspace, and the GPU memory of tgl_gemm_host(), but
 * not its pinned memory. Later calls allocate and load them again. cuda: waits for all work of the
 * context. Plans and prepared operands of the caller stay valid. */
TGL_API tgl_status tgl_device_trim(tgl_device *dev);

/* ---- Problems -------------------------------------------------------------------------------- */

/* The element types. The valid combinations, and the type in which products are accumulated:
 *     A, B                        accumulated in   C, D
 *     F32                         F32              F32
 *     F64                         F64              F64
 *     both F16, or both BF16      F32              the type of A and B, or F32
 *     F8_E4M3 and/or F8_E5M2      F32              F16, BF16 or F32; with a scale also F8
 *     I8                          I32              I32; with a scale also I8, F16, BF16, F32
 *     C64                         C64              C64
 *     C128                        C128             C128
 *     A of F16 or BF16, B of      F32              the type of A, or F32
 *     I8 or I4 (weights)
 * Other combinations give TGL_BAD_TYPE. This version has kernels for the first three rows and
 * the last three on all devices. On cuda before compute capability 8.0, F64, C128, F16, BF16 and
 * weights are supported only with few rows or columns or small matrices. cpu, sim, and cuda from
 * compute capability 8.0 on have kernels for I8 and F8. With scales, products of I8 cannot have a C
 * or D of I32 (TGL_UNSUPPORTED).
 *
 * Results in I32 are exact modulo 2^32: sums wrap around, and so does the arithmetic with alpha,
 * beta and the epilogue. alpha and beta must be integers of 32 bits. With scales the sums wrap too,
 * and everything after them is computed in F32, the type of alpha and beta then.
 *
 * F8_E4M3 has no infinity; its largest value is 448. F8_E5M2 is the upper half of an F16. (AMD's
 * "fnuz" forms are other types.) Results of 8 bits saturate: a result beyond the largest finite
 * value, also Inf, becomes that value. A NaN stays NaN; in I8 it becomes 0.
 *
 * A complex element is two real numbers, the real part first, as in C, Fortran and NumPy. It is
 * aligned as one of them: C64 to 4 bytes, C128 to 8. A product of complex elements is computed from
 * the four real products of their parts, also if a part is infinite or NaN. The bound of rounding
 * errors holds for the real and for the imaginary part, each a sum of 2k real products. Most plans
 * of cuda and sim need workspace: without it, creating them gives TGL_UNSUPPORTED.
 *
 * Weights: B has integers q of 8 or 4 bits, and A has 16 bits. An element of op(B) is
 *     w = (q - zero) * factor
 * where the factor (scaling_b, scale_b) and the zero point (type_zero_b, zero_b) are those of its
 * column and its group of successive k. Without factors w = q. D is the product of A and w, with
 * the epilogue as for any product. w is computed in F32. Some kernels round it once, to the type of
 * A; on cuda and sim these need workspace. Others do not round it: they multiply A by q - zero,
 * which is exact in the type of A, and multiply the F32 sum of a group by the factor.
 *
 * Two elements of I4, -8 to 7 in two's complement, are in one byte: element 2i in the four low bits
 * of byte i, element 2i+1 in the high bits. ldb and stride_b count elements and must be even, so
 * that each row (column-major: column) begins at a whole byte. For unsigned values of 4 bits, the
 * caller flips bit 3 of each (XOR 0x88 of each byte) and subtracts 8 from the zero points. */
typedef enum tgl_type {
    TGL_F32 = 1,
    TGL_F64 = 2,
    TGL_F16 = 3,
    TGL_BF16 = 4,
    TGL_F8_E4M3 = 5,
    TGL_F8_E5M2 = 6,
    TGL_I8 = 7,
    TGL_I32 = 8,
    TGL_C64 = 9,   /* two F32 */
    TGL_C128 = 10, /* two F64 */
    TGL_I4 = 11,   /* half a byte; only weights have this type */
} tgl_type;

/* Bytes of an element, or 0 for I4 and for a value outside tgl_type. */
TGL_API size_t tgl_type_size(tgl_type type);

/* The arithmetic that a product may use. ACCURATE, TF32 and FAST are permissions: the library may
 * use more exact arithmetic instead, so they are supported wherever IEEE is supported.
 *
 * ACCURATE, the default of F32 on some GPUs, guarantees the error bound of sums in F32 and exact
 * results where each row of op(A) or each column of op(B) has at most one element that is not 0
 * (identity matrices, permutations, one-hot rows). Its results may differ in the last bits from
 * those of fused multiply-adds. For example, products of integers may be rounded if both operands
 * have integers of more than 11 bits. TEGULA_COMPUTE=ieee in the environment makes IEEE the
 * default. */
typedef enum tgl_compute {
    TGL_COMPUTE_DEFAULT = 0,  /* F32: ACCURATE on GPUs of compute capability 9.0 and on sim, else
                                 IEEE; the environment variable TEGULA_COMPUTE replaces this. C64:
                                 the same. F64, C128: IEEE. F16, BF16: ACCURATE */
    TGL_COMPUTE_IEEE = 1,     /* every product and sum rounded as IEEE 754 says, in the
                                 accumulation type; fused multiply-adds are used */
    TGL_COMPUTE_ACCURATE = 2, /* any arithmetic within the error bound of sums in the accumulation
                                 type; an F32 value may be split into several 16-bit values */
    TGL_COMPUTE_TF32 = 3,     /* F32 inputs may be rounded to TF32 (10 bits of mantissa) */
    TGL_COMPUTE_FAST = 4,     /* products of F8 may be accumulated over all of k in the reduced
                                 precision of the tensor cores, 13 bits of fraction. The other modes
                                 use this precision only for sums over at most 128 of k, which they
                                 add in F32 */
} tgl_compute;

/* The values are those of CBLAS and its extensions, so that its enums may be cast to these. Real
 * elements are their own conjugates: for them TGL_CONJ_TRANS is TGL_TRANS, and TGL_CONJ_NO_TRANS is
 * TGL_NO_TRANS. */
typedef enum tgl_order { TGL_ROW_MAJOR = 101, TGL_COL_MAJOR = 102 } tgl_order;
typedef enum tgl_transpose {
    TGL_NO_TRANS = 111,
    TGL_TRANS = 112,
    TGL_CONJ_TRANS = 113,    /* the transposed matrix of the conjugate elements */
    TGL_CONJ_NO_TRANS = 114, /* the conjugate elements, not transposed */
} tgl_transpose;

/* How the matrices of a batch are addressed. X is A, B, C or D. */
typedef enum tgl_batching {
    TGL_STRIDED = 0,  /* X[i] = X + i*stride_x */
    TGL_POINTERS = 1, /* X[i] is element i of an array of pointers */
} tgl_batching;

/* Where alpha and beta of a run come from. */
typedef enum tgl_scalars {
    TGL_SCALARS_HOST = 0,   /* values: tgl_operands.alpha and beta, or the arguments of a call */
    TGL_SCALARS_DEVICE = 1, /* tgl_operands.alpha_at and beta_at, pointers to memory of the device
                               that are read when the product runs */
} tgl_scalars;

/* How many scale factors a matrix has: for products of 8-bit types,
 *     D := scale_d * epilogue(alpha * scale_a * scale_b * sum + beta*C)
 * where each factor is the one that belongs to the matrix, row or column of the element of D, and
 * `sum` is the sum of products of the unscaled elements. D is rounded once, at the end. The factors
 * are F32 in memory of the device, contiguous, and read when the product runs; all products of a
 * batch have the same ones. Groups (tgl_grouping) have factors of their own.
 *
 * TGL_SCALING_BLOCK and TGL_SCALING_LINE_128 are for A and B of F8. They have a factor for each 128
 * successive k:
 *     D := scale_d * epilogue(alpha * (sum over q of fa[row, q] * fb[q, column] * sum[q]) + beta*C)
 * where sum[q] is the sum of the products of k = 128*q to 128*q + 127. If A has factors of one of
 * these two kinds, B must have factors of one of them, too. Rows, columns and k need not be
 * multiples of 128: the last blocks are shorter. The factors are, for any order and transposes of
 * the matrices,
 *     TGL_SCALING_LINE_128    fa[row, q] = scale_a[q*ld_scale_a + row]
 *                             fb[q, column] = scale_b[q*ld_scale_b + column]
 *     TGL_SCALING_BLOCK       fa[row, q] = scale_a[(row / 128)*ld_scale_a + q]
 *                             fb[q, column] = scale_b[(column / 128)*ld_scale_b + q]
 * That is the memory order of torch._scaled_mm and of cuBLASLt's modes VEC128_32F and
 * BLK128x128_32F. In BLK128x128_32F, ld_scale is the number of blocks of k, rounded up to a
 * multiple of 4. The product of two factors is rounded to F32, and so are the scaled sums as they
 * are added.
 *
 * Weights (tgl_type) have factors of TGL_SCALING_TENSOR, _LINE or _GROUP, or none, and A and D have
 * none. TGL_SCALING_GROUP has a factor for each column of op(B) and each group of scale_group
 * successive k, for any order and transpose of B:
 *     fb[group, column] = scale_b[group*ld_scale_b + column],   group = k / scale_group
 * k need not be a multiple of scale_group: the last group is shorter. Zero points, of I8, are in an
 * array of the same layout, zero_b. B[i] of a batch has the factors and zero points from index
 * i*stride_scale_b on.
 */
typedef enum tgl_scaling {
    TGL_SCALING_NONE = 0,
    TGL_SCALING_TENSOR = 1,   /* one factor for the matrix */
    TGL_SCALING_LINE = 2,     /* one factor for each row of A, column of B or row of D */
    TGL_SCALING_BLOCK = 3,    /* one for each 128 rows of A or columns of B, and 128 of k */
    TGL_SCALING_LINE_128 = 4, /* one for each row of A or column of B, and 128 of k */
    TGL_SCALING_GROUP = 5,    /* weights: one for each column of B, and scale_group of k */
} tgl_scaling;

/* A grouped product is a set of products, the groups, whose sizes differ from group to group, such
 * as those of the experts of a mixture of experts. batch is the number of groups. Group i has
 * size(i) rows, or size(i) of the depth k. The sizes are read from memory of the device when the
 * product runs (tgl_operands.groups), so that one plan serves all sizes. Any size may be 0.
 *
 *   TGL_GROUPED_ROWS    A (m x k) and D (m x n) have the rows of all groups one behind the other.
 *                       Group i has rows first(i) to first(i) + size(i) - 1, and a B of its own:
 *                           D[rows of i] := alpha * A[rows of i] * op(B[i]) + beta * C[rows of i]
 *                       m: the number of rows of A and D. Rows behind the last group are not
 *                       computed, and D keeps its elements there. stride_a, stride_c and stride_d
 *                       are 0. A row bias and a residual have m rows, and stride 0; a column bias
 *                       has n elements for each group, stride_bias apart.
 *   TGL_GROUPED_MASKED  A batch of which only the first size(i) rows of product i are computed. The
 *                       other rows of D[i] keep their elements. m: the rows of each A[i] and D[i].
 *   TGL_GROUPED_DEPTH   op(A) (m x k) has the columns of all groups one behind the other, and op(B)
 *                       (k x n) has their rows. Each group has a D of its own:
 *                           D[i] := alpha * op(A)[:, part i] * op(B)[part i, :] + beta * C[i]
 *                       k: of all groups together. A group of size 0 gives beta*C[i], or 0.
 *                       stride_a and stride_b are 0.
 *
 * ROWS and MASKED are for TGL_ROW_MAJOR. A column-major product whose groups are columns of D is
 * the row-major product of the transposed matrices.
 *
 * Scale factors of ROWS and MASKED (DEPTH has none) are those of one matrix after the other:
 * scale_x of X[i], where X is A, B or D, begins at factor i*stride, where stride is
 *     TGL_SCALING_TENSOR      1: an array with a factor for each matrix
 *     TGL_SCALING_LINE        m (A, D) or n (B)
 *     TGL_SCALING_LINE_128    ceil(k/128) * ld_scale_x
 *     TGL_SCALING_BLOCK       ceil(m/128) * ld_scale_a (A) or ceil(n/128) * ld_scale_b (B)
 * A and D of ROWS are one matrix with the rows of all groups, and have the factors of one matrix of
 * m rows. A of ROWS has no TGL_SCALING_BLOCK: a block would have rows of several groups. */
typedef enum tgl_grouping {
    TGL_GROUPED_NONE = 0,
    TGL_GROUPED_ROWS = 1,
    TGL_GROUPED_DEPTH = 2,
    TGL_GROUPED_MASKED = 3,
} tgl_grouping;

/* The meaning of the array tgl_operands.groups, which has one int32_t for each group. */
typedef enum tgl_group_form {
    TGL_GROUP_ENDS = 0, /* the row or k where the group ends: first(i) is the end of group i-1, and
                           first(0) is 0. Not for TGL_GROUPED_MASKED */
    TGL_GROUP_SIZES = 1 /* size(i): first(i) is the sum of the sizes of the groups before */
} tgl_group_form;

/* One matrix product or a batch of them,
 *     D[i] := alpha * op(A[i]) * op(B[i]) + beta * C[i],   i = 0 .. batch-1
 * with op(A): m x k, op(B): k x n, C and D: m x n, op(X) = X, X^T, X^H or conj(X). If type_d is 0,
 * the result overwrites C. Element (r, c) of a stored matrix X is X[r*ldx + c] in row-major and X[r
 * + c*ldx] in column-major order. Call tgl_problem_init() first: a struct of zeros is not a valid
 * problem.
 */
typedef struct tgl_problem {
    size_t size; /* sizeof(tgl_problem) */
    int64_t m, n, k;
    tgl_order order;
    tgl_transpose trans_a, trans_b;
    tgl_type type_a, type_b, type_c;
    tgl_type type_d; /* 0: the result overwrites C. Else D is another matrix, of this type */
    tgl_type type_accumulate; /* 0 or the accumulation type in the table of tgl_type */
    tgl_compute compute;
    tgl_scalars scalars;
    int64_t lda, ldb, ldc; /* elements; 0: the minimum, no padding between rows or columns; for B
                              of I4 the minimum rounded up to an even number */
    int64_t ldd;           /* of D if type_d is not 0; else 0 */
    int64_t batch;         /* 1: one product; 0: nothing is computed */
    /* TGL_STRIDED: elements from one matrix of a batch to the next. 0: all products use the same
     * matrix, which is allowed for A and B, and for C if D is another matrix. Results must not
     * overlap. Either the stride is at least the extent of one result, or the results are
     * interleaved: stride >= row, and (batch-1)*stride + row <= leading dimension, where row is the
     * length of a row (column-major: of a column). */
    int64_t stride_a, stride_b, stride_c;
    int64_t stride_d; /* of D if type_d is not 0; else 0 */
    tgl_batching batching;
    /* TGL_POINTERS: the alignment in bytes, a power of two, that the caller guarantees for every
     * A[i] and B[i]. Kernels use loads of up to 16 bytes if it allows them. 0: the element size. */
    int64_t alignment;
    tgl_scaling scaling_a, scaling_b, scaling_d;
    tgl_type type_scale;            /* the type of all scale factors; 0: TGL_F32 */
    tgl_grouping grouping;          /* not with TGL_POINTERS */
    tgl_group_form group_form;      /* of a problem with a grouping; else 0 */
    int64_t ld_scale_a, ld_scale_b; /* factors from one block of k (TGL_SCALING_LINE_128, _GROUP) or
                                       of rows or columns (TGL_SCALING_BLOCK) to the next; 0: the
                                       minimum */
    int scale_group;                /* TGL_SCALING_GROUP: 32, 64 or 128; else 0 */
    tgl_type type_zero_b;   /* TGL_I8: weights have zero points (zero_b), one for each factor
                               of scale_b; 0: they have none */
    int64_t stride_scale_b; /* weights: factors, and zero points, from one matrix B of a batch to
                               the next. 0: all matrices have the same ones */
} tgl_problem;

/* Fills *problem with C := alpha*A*B + beta*C: A, B and C of `type` (I8: C of I32; F8: C of BF16),
 * row-major, not transposed, without padding, batch 1. size: sizeof(tgl_problem). Returns TGL_OK;
 * TGL_BAD_ARGUMENT (problem is NULL, or size is smaller than the struct of version 0.2). The sizes
 * and the type are checked when the problem is used. */
TGL_API tgl_status tgl_problem_init(tgl_problem *problem, size_t size, tgl_type type, int64_t m,
                                    int64_t n, int64_t k);

/* Returns TGL_OK, or the status of the first error in the problem, which tgl_last_error()
 * describes. Members are checked in about the order of the struct. */
TGL_API tgl_status tgl_problem_check(const tgl_problem *problem);

/* ---- Products -------------------------------------------------------------------------------- */

/* C := alpha*op(A)*op(B) + beta*C as `problem` describes, with BLAS semantics:
 *   alpha == 0   neither A nor B is read (they may be NULL): C := beta*C
 *   beta == 0    C is not read: a NaN in C does not reach the result
 *   k == 0       C := beta*C, whatever alpha is
 *   m, n or batch == 0   no memory is touched; pointers may be NULL
 *   NaN and Inf  propagate as in the formula. Except in the cases above, a NaN alpha or beta makes
 *                all of C NaN
 *   complex      an alpha or beta whose imaginary part is 0 scales both parts of an element as a
 *                real number does
 * alpha and beta are rounded to the accumulation type; for I32 any other value than an integer of
 * 32 bits gives TGL_BAD_SCALAR. C must not overlap A or B.
 * A, B, C: memory of `dev` aligned to the element size and owned by the caller. It must stay valid
 * until the stream has completed this product. stream: a CUstream or cudaStream_t (NULL: the
 * default stream). cpu and sim ignore it: the product is complete when the call returns. Returns
 * TGL_OK; a TGL_BAD_* (C unchanged); TGL_TOO_LARGE; TGL_UNSUPPORTED; TGL_NO_MEMORY;
 * TGL_NO_COMPILER; TGL_COMPILE; TGL_GRID_TOO_LARGE; TGL_DRIVER; TGL_DEVICE_LOST; TGL_KERNEL_FAULT.
 *
 * The first call with a problem creates a plan. The device caches the plans of the latest few
 * hundred problems, and later calls reuse them. Problems with device scalars or with a D other than
 * C give TGL_UNSUPPORTED here: use tgl_plan_create(). To capture a product into a CUDA graph,
 * create a plan, capture tgl_plan_run(), and keep the plan as long as the graph: the device may
 * drop a cached plan, and unload its kernels, while the graph still needs them. */
TGL_API tgl_status tgl_gemm(tgl_device *dev, const tgl_problem *problem, double alpha,
                            const void *A, const void *B, double beta, void *C, void *stream);

/* tgl_gemm() for a problem whose batching is TGL_POINTERS. A, B, C: arrays of problem->batch
 * pointers to matrices. The arrays, too, must be in memory of `dev` and stay valid until the stream
 * has completed this product. A matrix may occur several times in A and in B. No C[i] may overlap
 * another matrix. cpu and sim check each pointer and return TGL_BAD_A, TGL_BAD_B or TGL_BAD_C. cuda
 * does not: a bad pointer makes the kernel fault. */
TGL_API tgl_status tgl_gemm_batched(tgl_device *dev, const tgl_problem *problem, double alpha,
                                    const void *const *A, const void *const *B, double beta,
                                    void *const *C, void *stream);

/* tgl_gemm() with the arguments of BLAS. lda, ldb and ldc are checked as in BLAS: at least 1, and
 * at least the length of a row (column-major: of a column) of the stored matrix. tgl_cgemm() is for
 * C64, tgl_zgemm() for C128. As in CBLAS, alpha and beta of these two functions are pointers to two
 * numbers in host memory, the real and the imaginary part; NULL gives TGL_BAD_SCALAR. alpha and
 * beta of tgl_gemm() and tgl_plan_run() are real for all types. */
TGL_API tgl_status tgl_sgemm(tgl_device *dev, tgl_order order, tgl_transpose trans_a,
                             tgl_transpose trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                             const float *A, int64_t lda, const float *B, int64_t ldb, float beta,
                             float *C, int64_t ldc, void *stream);
TGL_API tgl_status tgl_dgemm(tgl_device *dev, tgl_order order, tgl_transpose trans_a,
                             tgl_transpose trans_b, int64_t m, int64_t n, int64_t k, double alpha,
                             const double *A, int64_t lda, const double *B, int64_t ldb,
                             double beta, double *C, int64_t ldc, void *stream);
TGL_API tgl_status tgl_cgemm(tgl_device *dev, tgl_order order, tgl_transpose trans_a,
                             tgl_transpose trans_b, int64_t m, int64_t n, int64_t k,
                             const void *alpha, const void *A, int64_t lda, const void *B,
                             int64_t ldb, const void *beta, void *C, int64_t ldc, void *stream);
TGL_API tgl_status tgl_zgemm(tgl_device *dev, tgl_order order, tgl_transpose trans_a,
                             tgl_transpose trans_b, int64_t m, int64_t n, int64_t k,
                             const void *alpha, const void *A, int64_t lda, const void *B,
                             int64_t ldb, const void *beta, void *C, int64_t ldc, void *stream);

/* ---- Epilogues ------------------------------------------------------------------------------- */

/* A vector that is added to every column or to every row of the result. */
typedef enum tgl_bias {
    TGL_BIAS_NONE = 0,
    TGL_BIAS_ROW = 1,    /* element (row, column) gets bias[row]; m elements */
    TGL_BIAS_COLUMN = 2, /* element (row, column) gets bias[column]; n elements */
} tgl_bias;

/* All of these map NaN to NaN. */
typedef enum tgl_activation {
    TGL_ACTIVATION_NONE = 0,
    TGL_ACTIVATION_RELU = 1, /* max(x, 0) */
    TGL_ACTIVATION_GELU = 2, /* x/2 * (1 + erf(x/sqrt(2))); NaN at -Inf, as the formula gives */
    TGL_ACTIVATION_SILU = 3, /* x / (1 + exp(-x)); NaN at -Inf, as the formula gives */
} tgl_activation;

/* The epilogue, which a plan computes from the sum of each element before it stores the element:
 *     D := activation(alpha*op(A)*op(B) + beta*C + bias) + residual
 * The right side is computed in the accumulation type and rounded once, to D's type. As in
 * tgl_gemm(), alpha == 0 reads neither A nor B, and beta == 0 does not read C; bias, activation and
 * residual are still applied then. Products of complex types take neither an activation nor an
 * expression (TGL_BAD_EPILOGUE). Products of I8 without scales take RELU as the only activation, no
 * expression, and a bias and a residual of I32. No product takes a bias or residual of 8 bits,
 * which is the default if D has 8 bits (TGL_UNSUPPORTED).
 *
 * expression: a C expression of the accumulation type T, in place of activation(...):
 *     D := expression + residual
 * It may use
 *     T acc               alpha*op(A)*op(B)
 *     T c                 beta*C; 0 if beta is 0
 *     T bias              the bias of the row or column; 0 without a bias
 *     long long row, col  the element's indices in D as the caller sees it, in either order
 * and the functions of C and CUDA such as fmaxf() and expf(), and relu(x), gelu(x) and silu(x). It
 * is compiled into the kernel. If that fails, tgl_plan_create() returns TGL_COMPILE, and
 * tgl_last_error() has the compiler's log, in which the expression is the file "expression". The
 * expression is code that runs on this machine: do not take it from an untrusted source. Devices
 * cuda and sim only. */
typedef struct tgl_epilogue {
    size_t size; /* sizeof(tgl_epilogue) */
    tgl_bias bias;
    tgl_activation activation;
    int residual;           /* 1: a matrix of D's sizes and order is added last */
    const char *expression; /* NULL: none; else activation must be TGL_ACTIVATION_NONE */
    int64_t ld_residual;    /* elements; 0: the minimum, no padding */
    /* Elements from one product of a batch to the next, also with TGL_POINTERS. 0: all products use
     * the same bias or residual. */
    int64_t stride_bias, stride_residual;
    tgl_type type_bias, type_residual; /* 0: D's type */
    /* 1: each run also stores the largest magnitude of its results, from which the scale of a later
     * product can be chosen:
     *     *amax_d := max |x|, x = D before it is multiplied by scale_d and rounded to its type
     * over all elements of D and all products of a batch. It is NaN if one x is NaN. Nothing is
     * stored if D has no elements. For products of F8, and of I8 with scales, that have no
     * grouping. */
    int amax;
} tgl_epilogue;

/* ---- Plans ----------------------------------------------------------------------------------- */

/* A plan computes one problem on one device: its kernels have been chosen, compiled and loaded. A
 * plan does not change after its creation. Several threads may run it at the same time, on several
 * streams.
 *
 * Workspace. Some plans need tgl_plan_workspace_size() bytes of memory for partial results.
 *   - The caller may pass it to each run (tgl_operands.workspace). Runs that may overlap in time
 *     need a workspace each.
 *   - Otherwise the device provides it: cuda keeps one arena for each stream, which all plans share
 *     and which grows when a run needs more, up to 32 MiB for a stream and 64 MiB for all. Runs
 *     that find no room share one arena for all streams, up to a quarter of the GPU's memory: on
 *     different streams they wait for each other on the GPU. tgl_device_trim() frees all arenas.
 *     A run that is captured into a CUDA graph does not use an arena: it uses memory that belongs
 *     to the graph, its clones and its executables. When all of them are destroyed, the next graph
 *     gets the memory, or tgl_device_trim() frees it. Clones and executables of one graph, and
 *     copies of it in another graph, must therefore not run at the same time. The runs of one
 *     capture on one stream share the memory, so their order must not be undone
 *     (cuStreamUpdateCaptureDependencies()), and the stream must live until the capture ends. If
 *     the device has no room, or the memory of all graphs would be more than an eighth of the
 *     GPU's, memory nodes of the graph allocate and free the workspace: CUDA does not clone or
 *     embed a graph with memory nodes and allows one executable. Drivers older than CUDA 11.4 have
 *     no memory nodes: the captured run then returns TGL_UNSUPPORTED, and the caller must pass a
 *     workspace.
 *   - If the device has no memory left for the workspace, the run plans and compiles the product
 *     once more with kernels that need none, and uses those.
 *
 * Alignment. If the plan's kernel needs matrices that begin at multiples of 16 bytes, and those of
 * a run do not, the first such run compiles another kernel, or plans and compiles the product once
 * more. Counters, traces and explanations of the plan are those of its own kernel.
 *
 * Apart from these two cases (no memory for the workspace, unaligned matrices) a run compiles
 * nothing. It does not wait for the GPU, unless its arena has to grow. It can be captured into a
 * CUDA graph. The plan must outlive the graph. cpu: a run uses a packing buffer that the device
 * owns; concurrent runs may allocate more. */
typedef struct tgl_plan tgl_plan;

/* How the kernel of a plan is chosen. docs/plans.md has the details. */
typedef enum tgl_effort {
    TGL_EFFORT_DEFAULT = 0,  /* what the environment variable TEGULA_EFFORT says, else ESTIMATE */
    TGL_EFFORT_ESTIMATE = 1, /* by times that this process or an earlier one has measured (the
                                wisdom), else by the library's table of measured kernels, else by
                                predicted times */
    TGL_EFFORT_MEASURE = 2,  /* cuda, cpu: candidates are measured, unless they were measured
                                before, and the times are stored. sim: as ESTIMATE */
} tgl_effort;

typedef struct tgl_plan_options {
    size_t size; /* sizeof(tgl_plan_options) */
    /* NULL: the planner chooses the kernel. Else a name from tgl_kernel_name(), and after a colon
     * options that fix what the planner would otherwise choose, such as "simt_128x256x8:splits=4"
     * (4-way split-K). docs/command-line.md lists the options of each kernel. They are meant for
     * measurements and change the result only by rounding. */
    const char *kernel;
    const tgl_epilogue *epilogue; /* NULL: none. The ladder's kernels do not support epilogues. */
    /* The maximum workspace of the plan in bytes. 0: the planner's default limit; -1: no workspace.
     */
    int64_t workspace_limit;
    /* MEASURE runs candidates on matrices of its own, never on the caller's: at most a quarter of
     * the free memory (cpu: 256 MiB), which is freed again. It changes neither the arithmetic nor
     * the compute mode; another kernel may round differently. MEASURE measures nothing, and behaves
     * as ESTIMATE, if `kernel` is not NULL, for TGL_POINTERS, for grouped products and those with
     * scale factors or weights, while the stream of tgl_gemm() or the default stream is being
     * captured, if there is no memory for the matrices, and if the file of the wisdom is
     * read-only. */
    tgl_effort effort;
    /* MEASURE: the maximum time in seconds that candidates run on the device, exceeded by at most
     * one run (cpu: three); 0: what TEGULA_EFFORT says, else 0.2. tgl_plan_create() takes longer.
     * cuda: it also compiles candidates in groups of one per processor, at most 16; no group begins
     * after 2.5 times the maximum. If the maximum is at least 2 seconds, the fastest candidates are
     * also measured at the GPU's power limit, and groups begin within 10 times the maximum. */
    double measure_seconds;
} tgl_plan_options;

/* *plan := a plan for `problem`. The problem and the options are copied; options may be NULL. The
 * caller destroys the plan before it closes the device. Returns what tgl_gemm() returns, or
 * TGL_UNKNOWN_KERNEL; TGL_BAD_EPILOGUE; TGL_BAD_ARGUMENT (an option that the kernel does not have).
 * On failure *plan is NULL. */
TGL_API tgl_status tgl_plan_create(tgl_device *dev, const tgl_problem *problem,
                                   const tgl_plan_options *options, tgl_plan **plan);
TGL_API void tgl_plan_destroy(tgl_plan *plan);

/* Bytes of workspace that a run of the plan needs; 0 if it needs none or if plan is NULL. If the
 * product is planned once more because the matrices of a run are not aligned (see above), the new
 * kernel may need more; the device then provides all of the workspace. */
TGL_API size_t tgl_plan_workspace_size(const tgl_plan *plan);

/* Runs a plan with alpha and beta from the host, without a separate D, bias or residual. The other
 * arguments are those of tgl_gemm(). */
TGL_API tgl_status tgl_plan_run(const tgl_plan *plan, double alpha, const void *A, const void *B,
                                double beta, void *C, void *stream);

/* A prepared operand: see tgl_operand_prepare() below. */
typedef struct tgl_prepared tgl_prepared;

/* The operands of a run. Members that the plan does not use must be NULL or 0. All pointers are to
 * memory of the device. The run writes only the result (D, or C if the problem has no D), amax_d
 * and the workspace. None of these may overlap another operand. */
typedef struct tgl_operands {
    size_t size;        /* sizeof(tgl_operands) */
    double alpha, beta; /* TGL_SCALARS_HOST; rounded to the accumulation type. For complex types
                           these are the real parts */
    const void *alpha_at, *beta_at; /* TGL_SCALARS_DEVICE: pointers to values of the accumulation
                                       type; beta_at NULL: beta is 0 */
    const void *A, *B;              /* batching TGL_STRIDED */
    void *C;                        /* batching TGL_STRIDED; only read if the problem has a D */
    void *D;                        /* if the problem's type_d is not 0 */
    const void *const *A_array, *const *B_array; /* TGL_POINTERS, as in tgl_gemm_batched() */
    void *const *C_array;
    void *const *D_array;
    const void *bias, *residual;             /* if the plan's epilogue has them */
    const void *scale_a, *scale_b, *scale_d; /* if the problem has them */
    void *workspace; /* NULL: the device provides it; else aligned to 256 bytes */
    size_t workspace_bytes;
    const tgl_prepared *prepared_a, *prepared_b; /* prepared A and B, or NULL; A and B are given as
                                                    well */
    double alpha_imag, beta_imag; /* TGL_SCALARS_HOST, complex types: the imaginary parts; else 0 */
    const int32_t *groups; /* if the problem has a grouping: problem.batch ends or sizes, in memory
                              of the device, read when the product runs */
    float *amax_d;         /* if epilogue.amax is 1: written by the run */
    const void *zero_b;    /* if the problem has zero points (type_zero_b) */
} tgl_operands;

/* Runs any plan. Returns what tgl_gemm() returns, or TGL_BAD_BIAS; TGL_BAD_RESIDUAL; TGL_BAD_D;
 * TGL_BAD_SCALAR; TGL_BAD_SCALE; TGL_BAD_GROUPS; TGL_BAD_WORKSPACE; TGL_BAD_BATCHING (pointers to
 * matrices for a plan with TGL_POINTERS, or arrays of pointers for a plan with TGL_STRIDED). */
TGL_API tgl_status tgl_plan_run_operands(const tgl_plan *plan, const tgl_operands *operands,
                                         void *stream);

/* ---- Grouped products ------------------------------------------------------------------------ */

/* A product whose problem has a grouping (tgl_grouping) is planned by tgl_plan_create() and run by
 * tgl_plan_run_operands() as any other. The plan is chosen for groups of equal size. The host does
 * not read the sizes, except on cpu, so that a run can be captured into a CUDA graph and replayed
 * with other sizes.
 *
 * cuda, sim: no size makes a kernel access memory outside of the matrices. A negative size counts
 * as 0; an end before that of an earlier group makes the group empty; what exceeds m (DEPTH: k) is
 * left out. cpu returns TGL_BAD_GROUPS for such sizes and computes nothing.
 * Products of F32 are computed in IEEE arithmetic, or in TF32 if the compute mode permits it.
 * Types: on cuda and sim all real types that have kernels on the device, but no weights. Groups of
 * rows may have scale factors (tgl_scaling, tgl_grouping).
 *
 * tgl_grouped_gemm(): the one-shot call, as tgl_gemm() with the groups. groups: as in tgl_operands.
 * Returns what tgl_gemm() returns, or TGL_BAD_GROUPS. */
TGL_API tgl_status tgl_grouped_gemm(tgl_device *dev, const tgl_problem *problem, double alpha,
                                    const void *A, const void *B, double beta, void *C,
                                    const int32_t *groups, void *stream);

/* `count` products of unrelated sizes, given by the host: product i is problems[i] with
 * operands[i], as for tgl_plan_run_operands(). All of them are checked and planned before the first
 * one starts; the device caches the plans as those of tgl_gemm(). No result may overlap a matrix of
 * another product, because the order of the products is not defined, and several may run at the
 * same time. The arrays and structs may be freed when the call returns.
 *
 * cuda, sim: one launch computes up to 52 products that agree in types, compute mode, transposes
 * (of a column-major product: those of the transposed product), and alignment: whether the
 * addresses, row lengths (as stored) and leading dimensions of A and B are all multiples of 16
 * bytes. Each product has its own sizes, leading dimensions, alpha and beta. A product shares a
 * launch only if its types are real, D is C, k is at most 4096, the leading dimensions are at most
 * 2^20, C has at most 16384 elements for each SM, and it has no batch, epilogue, device scalars,
 * scales, weights, groups, prepared operands or workspace. All other products, and on cpu all of
 * them, have launches of their own. A product may be computed by another kernel than tgl_gemm()
 * would choose, and by another one in another list, so that its rounding may differ; the same list
 * always has the same results.
 *
 * count 0: nothing happens. Returns TGL_OK; TGL_BAD_ARGUMENT; the status of the first product that
 * fails. Products with launches of their own may have run then, because prepared operands,
 * workspaces and the sizes of groups of a product are checked only when this product is run. */
TGL_API tgl_status tgl_grouped_list(tgl_device *dev, int64_t count, const tgl_problem *problems,
                                    const tgl_operands *operands, void *stream);

/* ---- Matrices in host memory ----------------------------------------------------------------- */

/* The product of tgl_gemm() for matrices in host memory, on any device:
 *     D[i] := alpha*op(A[i])*op(B[i]) + beta*C[i]
 * cpu, sim: a plan and a run. cuda: the product is computed in tiles. Copies to and from the GPU
 * run at the same time as the arithmetic, and the matrices may be larger than the memory of the
 * GPU. If k is large, D is the sum, in the accumulation type, of beta*C and of alpha times the
 * product of each part of k. How the product is divided depends on the problem only, so that
 * results are the same from run to run.
 *
 * problem: with TGL_SCALARS_HOST and without a grouping; cuda: without scale factors and weights.
 * It may be a batch with either tgl_batching; arrays of pointers are in host memory too. operands:
 * as for tgl_plan_run_operands(), without bias, residual and workspace. All pointers are to host
 * memory, aligned to the element size and owned by the caller. The product is complete when the
 * call returns. The call waits for no stream. D must not overlap another operand.
 *
 * cuda: takes at most three quarters of the free GPU memory, but at least the memory of four tiles
 * of A or B and two tiles of D (in F64 at most 192 MiB, in C128 384 MiB, plus the workspace of a
 * kernel). Takes at most 80 MiB of pinned host memory, in C128 144 MiB. The device keeps the pinned
 * memory, and GPU memory up to an eighth of the GPU's, for the next call. Calls of several threads
 * run one after another.
 *
 * If the GPU fails after a part of D was written, the CPU computes the rest. The next call returns
 * TGL_DEVICE_LOST if the device is lost.
 *
 * Returns what tgl_plan_create() and tgl_plan_run_operands() return. D is unchanged unless the
 * status is TGL_OK or TGL_KERNEL_FAULT. After TGL_KERNEL_FAULT it is undefined (sim: a kernel is
 * wrong; cuda: the GPU failed after a part of D was written, and then the CPU failed, too). */
TGL_API tgl_status tgl_gemm_host(tgl_device *dev, const tgl_problem *problem,
                                 const tgl_operands *operands);

/* ---- Prepared operands ----------------------------------------------------------------------- */

/* Which operand of a product. */
typedef enum tgl_side { TGL_SIDE_A = 1, TGL_SIDE_B = 2 } tgl_side;

/* Prepares A or B, such as the weights of a layer, for many products. Products in compute mode
 * ACCURATE split the elements of both operands into 16-bit words before they multiply. For a
 * prepared operand this is done once, by kernels in `stream`, and left out of each run that gets it
 * in tgl_operands.prepared_a or prepared_b. The result is bitwise the same.
 *
 * plan: a plan of one of the products. Other plans of the same device can use *prepared if their
 *   operand has the same sizes, type, order, transpose, leading dimension and batch, whatever their
 *   other operand is; only for complex types it must be conjugated if that of `plan` is, and only
 *   then. A plan that cannot use *prepared (because of its compute mode, its kernel or its
 *   workspace limit, or because its device is cpu) accepts it and runs as it would without it.
 * matrix: the operand A or B of the runs, which must have TGL_STRIDED. The matrix stays the
 *   caller's, and must stay valid and unchanged as long as *prepared is used, because products may
 *   read it as well. If its elements change, results are undefined until it is prepared again.
 * stream: runs in other streams must be ordered after the preparation by the caller. During stream
 *   capture the preparation becomes a part of the graph; *prepared must outlive the graph.
 *
 * *prepared owns device memory of about the size of the matrix, if the plan has a use for it
 * (tgl_prepared_size()). The caller destroys it, after the runs that use it are complete, before
 * the device is closed. Several threads may use it at the same time.
 * Returns TGL_OK; TGL_BAD_ARGUMENT; TGL_BAD_A or TGL_BAD_B (NULL or not aligned to its element
 * size); TGL_BAD_BATCHING (TGL_POINTERS); TGL_NO_MEMORY; TGL_DRIVER; TGL_DEVICE_LOST. On failure
 * *prepared is NULL. A run returns TGL_BAD_A or TGL_BAD_B for a prepared operand of another device,
 * another matrix or another layout. */
TGL_API tgl_status tgl_operand_prepare(const tgl_plan *plan, tgl_side side, const void *matrix,
                                       void *stream, tgl_prepared **prepared);
TGL_API void tgl_prepared_destroy(tgl_prepared *prepared);

/* Bytes of device memory of a prepared operand. 0: the plan had no use for it, or it is NULL. */
TGL_API size_t tgl_prepared_size(const tgl_prepared *prepared);

/* ---- What a plan says of itself -------------------------------------------------------------- */

/* The kernel of the plan in the syntax of tgl_plan_options.kernel, such as
 * "simt_128x256x8:splits=4". A plan created with this string is the same. The text is valid as long
 * as the plan. */
TGL_API const char *tgl_plan_kernel(const tgl_plan *plan);

/* Writes a description of the plan and of the reasons for its choices, several lines of text. size
 * and the result are those of snprintf. */
TGL_API size_t tgl_plan_explain(const tgl_plan *plan, char *text, size_t size);

/* A peer is another library, such as cuBLAS. ratio: the peer's time for the product of the plan,
 * divided by the plan's own time, which MEASURE has measured. The ratio is above 1 if the plan is
 * faster. The caller should measure the peer and the plan alternately. tgl_plan_set_peer() stores
 * the ratio in the wisdom, beside the plan's time; tgl_plan_peer() returns it, also in later
 * processes. Returns TGL_OK; TGL_BAD_ARGUMENT (NULL; a ratio that is not a finite number above 0);
 * TGL_UNSUPPORTED (the plan's kernel was not measured; the device is cpu; tgl_plan_peer(): no ratio
 * is stored). */
TGL_API tgl_status tgl_plan_set_peer(const tgl_plan *plan, double ratio);
TGL_API tgl_status tgl_plan_peer(const tgl_plan *plan, double *ratio);

/* The GPUs for which tgl_chip_explain() can plan, present or not: index 0, 1, ... until NULL. */
TGL_API const char *tgl_chip_name(int index);

/* Writes which kernel the cuda device would run for `problem` on a GPU named by tgl_chip_name(),
 * and why: the candidates with their predicted times, the rejected ones with the reason, and the
 * resource that limits the chosen kernel. Writes at most size bytes with the terminating zero;
 * *length is the length of the whole text. options may be NULL. Returns TGL_OK; TGL_BAD_ARGUMENT
 * (invalid options); TGL_NO_DEVICE (unknown chip); what tgl_problem_check() returns;
 * TGL_BAD_EPILOGUE; TGL_BAD_SETTING (TEGULA_COMPUTE); TGL_TOO_LARGE; TGL_NO_MEMORY;
 * TGL_UNKNOWN_KERNEL; TGL_UNSUPPORTED; TGL_GRID_TOO_LARGE. */
TGL_API tgl_status tgl_chip_explain(const char *chip, const tgl_problem *problem,
                                    const tgl_plan_options *options, char *text, size_t size,
                                    size_t *length);

/* The memory accesses of a plan's latest successful run, counted exactly by the simulator. A
 * request is one memory instruction executed by a warp. docs/simulator.md describes how the
 * hardware is modelled. */
typedef struct tgl_counters {
    size_t size;          /* sizeof(tgl_counters), set by the caller; members that the library does
                             not know are left unchanged */
    int64_t blocks;       /* number of blocks of all launches */
    int64_t threads;      /* per block of the plan's main kernel */
    int64_t shared_bytes; /* per block of the plan's main kernel */
    int64_t barriers;     /* executions of __syncthreads() and of cluster barriers, one per block */

    /* sectors: aligned 32-byte segments of memory that a request touches; 4 if the 32 lanes access
     * consecutive floats. bytes: the sum of the sizes that the lanes requested. */
    int64_t global_load_requests, global_load_sectors, global_load_bytes;
    int64_t global_store_requests, global_store_sectors, global_store_bytes;

    /* wavefronts: passes over the banks of shared memory. conflicts: the additional wavefronts that
     * bank conflicts cause. */
    int64_t shared_load_requests, shared_load_wavefronts, shared_load_conflicts, shared_load_bytes;
    int64_t shared_store_requests, shared_store_wavefronts, shared_store_conflicts,
        shared_store_bytes;

    /* cp.async and TMA: copies from global to shared memory, not included in the loads and stores
     * above. */
    int64_t async_copy_requests, async_copy_sectors, async_copy_bytes;
    int64_t async_copy_wavefronts, async_copy_conflicts;

    int64_t needed_bytes; /* the minimum traffic: A, B, C if read, bias, residual and the result,
                             once each */

    /* Tensor cores. mma_requests: mma.sync, executions by a warp. wgmma_requests: executions by a
     * warpgroup; wgmma_bytes: bytes of operands that they read from shared memory. */
    int64_t mma_requests, wgmma_requests, wgmma_bytes;

    /* TMA: a request is one box, with the sectors and bytes of it that are inside the tensor. The
     * loads are contained in async_copy_..., the stores in global_store_.... tma_multicast_bytes:
     * bytes that multicast wrote to other blocks of the cluster, which therefore did not load
     * them. */
    int64_t tma_load_requests, tma_load_sectors, tma_load_bytes, tma_multicast_bytes;
    int64_t tma_store_requests, tma_store_sectors, tma_store_bytes;

    int64_t mbarrier_waits; /* executions by a thread, whether or not it had to wait */
} tgl_counters;

/* Returns TGL_OK and *counters; TGL_UNSUPPORTED on devices other than sim, and before the first
 * run; TGL_BAD_ARGUMENT. */
TGL_API tgl_status tgl_plan_counters(const tgl_plan *plan, tgl_counters *counters);

/* Writes what the simulator recorded in a plan's latest successful run, as JSON: the counts of each
 * source line of the main kernel, and the memory accesses of the lanes of a warp, step by step.
 * docs/simulator.md describes it; later versions may add members. size and the result are those of
 * snprintf; 0 on devices other than sim, and before the first run. */
TGL_API size_t tgl_plan_trace(const tgl_plan *plan, char *text, size_t size);

/* The names of a device's kernels: index 0, 1, ... until NULL. Static text. A kernel need not
 * support every problem: tgl_plan_create() then returns TGL_UNSUPPORTED with a reason. */
TGL_API const char *tgl_kernel_name(const tgl_device *dev, int index);

/* ---- Timing ---------------------------------------------------------------------------------- */

/* Measures the time between two points of a stream: with CUDA events on cuda, with the host's clock
 * on the other devices. The time includes the work of other libraries in the stream. */
typedef struct tgl_timer tgl_timer;

TGL_API tgl_status tgl_timer_create(tgl_device *dev, tgl_timer **timer);
TGL_API void tgl_timer_destroy(tgl_timer *timer);
TGL_API tgl_status tgl_timer_start(tgl_timer *timer, void *stream);

/* Waits for the work since tgl_timer_start() and stores its duration in seconds. */
TGL_API tgl_status tgl_timer_stop(tgl_timer *timer, void *stream, double *seconds);

/* *passed := 1 if the work that was in the stream before tgl_timer_start() is complete, else 0.
 * Does not wait, and leaves captures alone. Returns TGL_OK; TGL_BAD_ARGUMENT (NULL, or the timer
 * was not started); the failure of that work; TGL_DRIVER if the start was captured into a CUDA
 * graph. */
TGL_API tgl_status tgl_timer_passed(const tgl_timer *timer, int *passed);

/* ---- Compiling ahead of time ----------------------------------------------------------------- */

/* The result of compiling one CUDA kernel for one architecture. Pointers are valid until the
 * callback returns. Counts that the compiler did not report are -1. */
typedef struct tgl_warm_report {
    size_t size;         /* sizeof(tgl_warm_report) as the library knows it */
    const char *kernel;  /* "ladder/naive"; with the transposes if each has a kernel of its own:
                            "simt_64x64x16 NT" */
    const char *arch;    /* "sm_90a" */
    tgl_status status;   /* TGL_OK; TGL_COMPILE; TGL_NO_MEMORY; TGL_DRIVER (not stored) */
    const char *message; /* after a failure: the compiler's log or a sentence */
    double seconds;
    int from_cache;     /* 1: it was found in the disk cache */
    int is_clean;       /* 1: no serialised wgmma instructions, and (not for an archive) no register
                           spills or arrays in local memory beyond those that are expected of this
                           kernel */
    int registers;      /* per thread */
    int shared_bytes;   /* per block, static */
    int local_bytes;    /* per thread */
    int spill_bytes;    /* spill stores plus spill loads */
    const char *symbol; /* the kernel's name in the image */
    const void *image;  /* the cubin or PTX that the driver would load; NULL after a failure */
    size_t image_size;
} tgl_warm_report;

typedef struct tgl_warm_options {
    size_t size;        /* sizeof(tgl_warm_options) */
    const char *archs;  /* "sm_80,sm_90a"; "newest" or "all": what NVRTC supports; NULL: all */
    const char *kernel; /* compile only this kernel, or the kernels of this family; NULL: all */
    void (*report)(const tgl_warm_report *report, void *user); /* called per kernel; may be NULL */
    void *user;                                                /* passed to report */
    tgl_type type;       /* of A; 0: for an archive all types; else F32, or BF16 or F64 for a kernel
                            without F32 */
    const char *archive; /* the path of an archive to write; NULL: none */
    int64_t archive_kernels; /* the maximum number of kernels in the archive; 0: as many as 64 MiB
                                hold */
} tgl_warm_options;

/* Compiles CUDA kernels into the disk cache (docs/environment.md says where it is): the ladder's
 * kernels, those that tgl_device_measure() runs, and every configuration of the production kernels
 * in all four transpositions, for one large product with 16-byte aligned matrices. The first plan
 * of a product of another size or alignment, or with an epilogue, may still compile a kernel. Needs
 * NVRTC, but neither a GPU nor a driver.
 * With an archive: compiles the kernels that plans choose for products without an epilogue, the
 * most frequent first, for one architecture, on all processors, and writes them to one file, from
 * which a device loads them before it asks NVRTC (docs/environment.md). report() is called from
 * several threads, one at a time. The cache is used, too, so that a call continues where an
 * interrupted call has stopped. If a kernel fails, no archive is written. options->kernel must be
 * NULL.
 * Returns TGL_OK, also with TEGULA_CACHE=off, where nothing is stored; TGL_BAD_ARGUMENT;
 * TGL_BAD_TYPE; TGL_NO_COMPILER; TGL_UNSUPPORTED (NVRTC does not support the architecture, or
 * archives have no kernels of the type); TGL_UNKNOWN_KERNEL; TGL_DRIVER if the cache has no folder
 * or the archive cannot be written. After all kernels were tried: TGL_COMPILE or TGL_NO_MEMORY if
 * one did not compile, TGL_DRIVER if one could not be stored. */
TGL_API tgl_status tgl_warm(const tgl_warm_options *options);

#ifdef __cplusplus
}
#endif
#endif
