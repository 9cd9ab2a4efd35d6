/* SPDX-License-Identifier: Apache-2.0
 *
 * A complex product is computed as a real product. These kernels run before and after it. A complex
 * matrix with interleaved real and imaginary parts is a real matrix with twice the columns: D (m x
 * n) is m x 2n, A (m x k) is m x 2k. Then D = A B', where an element b of B becomes 2 x 2 elements
 * of B' (2k x 2n):
 *
 *     re(b)   im(b)
 *    -im(b)   re(b)
 *
 * If the product needs conj(A), the second row has the opposite sign.
 *
 *   expand    writes two lines of a real matrix for each line of a complex one. PARTS 0: the matrix
 *             is B, its lines are rows of op(B): (re, im), (-im, re). PARTS 1: the matrix is B, its
 *             lines are columns of op(B): (re, -im), (im, re). PARTS 2: the matrix is A, its lines
 *             are columns of op(A): all re, then all im.
 *   save      copies C, which the real product replaces by op(A)*op(B).
 *   combine   D := alpha*D + beta*C + bias + residual, after a real product with alpha 1 and beta
 *             0.
 *
 * save and combine run only if the real product cannot do their work: if alpha or beta has an
 * imaginary part, if there is a bias or residual, or if D is not C and beta is not 0. If alpha and
 * beta are in device memory, save and combine decide this themselves, and save writes the alpha and
 * beta of the real product.
 */
#include "lib/complex_args.h"
#include "lib/launch_order.h"

#ifndef DOUBLE
#define DOUBLE 0 /* 1: elements are c128, two doubles; 0: c64, two floats */
#endif
#ifndef PARTS
#define PARTS 0
#endif

#if PARTS < 0 || PARTS > 2
#error "PARTS: 0, 1 or 2"
#endif

#define THREADS 256
#define PER_THREAD                                                                                 \
    4 /* elements that a thread of expand converts; all its loads are in flight at                 \
         once */

#if DOUBLE
typedef double real;
typedef double2 pair;
#define make_pair make_double2
#else
typedef float real;
typedef float2 pair;
#define make_pair make_float2
#endif

/* An element is aligned to half its size at least. load_pair() and store_pair() access both parts
 * at once if the element is aligned to its size, else one after the other. */
static __device__ __forceinline__ pair load_pair(const void *from, long long at)
{
    const real *x = (const real *)from + 2 * at;
    if ((unsigned long long)x % sizeof(pair) == 0) return *(const pair *)x;
    return make_pair(x[0], x[1]);
}

static __device__ __forceinline__ void store_pair(void *to, long long at, pair v)
{
    real *x = (real *)to + 2 * at;
    if ((unsigned long long)x % sizeof(pair) == 0) {
        *(pair *)x = v;
    } else {
        x[0] = v.x;
        x[1] = v.y;
    }
}

/* A scalar: at address `at` in device memory, or `value` if `at` is 0. */
static __device__ __forceinline__ pair scalar_of(const double value[2], const void *at)
{
    if (at) return make_pair(((const real *)at)[0], ((const real *)at)[1]);
    return make_pair((real)value[0], (real)value[1]);
}

static __device__ __forceinline__ bool is_zero(pair x)
{
    return x.x == 0 && x.y == 0;
}

static __device__ __forceinline__ pair sum(pair x, pair y)
{
    return make_pair(x.x + y.x, x.y + y.y);
}

/* x*y. If im(x) is 0, only re(x) is multiplied: 0 times an Inf in y would be NaN. */
static __device__ __forceinline__ pair times(pair x, pair y)
{
    if (x.y == 0) return make_pair(x.x * y.x, x.x * y.y);
    return make_pair(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}

/* ---- Expand ---------------------------------------------------------------------------------- */

/* Writes element number `at` of a line, whose value is v. first, second: the two lines of the
 * result. conj_other: the product uses conj() of the other matrix. */
static __device__ __forceinline__ void put(real *first, real *second, long long at, pair v,
                                           bool conj_other)
{
#if PARTS == 2
    first[at] = v.x;
    second[at] = v.y;
#else
    const real sign = conj_other ? -1 : 1;
#if PARTS == 0
    ((pair *)first)[at] = v;
    ((pair *)second)[at] = make_pair(-sign * v.y, sign * v.x);
#else
    ((pair *)first)[at] = make_pair(v.x, -sign * v.y);
    ((pair *)second)[at] = make_pair(v.y, sign * v.x);
#endif
#endif
}

__global__ void __launch_bounds__(THREADS) expand(const struct tgl_expand_args args)
{
    wait_for_earlier_launches();
    const long long matrix = blockIdx.x / args.blocks, block = blockIdx.x % args.blocks;
    real *to = (real *)args.to + matrix * args.to_stride;
    if (args.from_array && block == 0 && threadIdx.x == 0) args.to_array[matrix] = to;
    if (args.alpha_at && is_zero(load_pair(args.alpha_at, 0))) return;
    const void *from = args.from_array
                           ? args.from_array[matrix]
                           : (const void *)((const pair *)args.from + matrix * args.stride);
    const long long all = args.lines * args.length;
    const long long start = block * (THREADS * PER_THREAD) + threadIdx.x;
    long long line[PER_THREAD], at[PER_THREAD];
    pair v[PER_THREAD];
#pragma unroll
    for (int i = 0; i < PER_THREAD; i++) {
        const long long number = start + i * THREADS;
        line[i] = number / args.length;
        at[i] = number - line[i] * args.length;
        v[i] = make_pair(0, 0);
        if (number < all) v[i] = load_pair(from, line[i] * args.ld + at[i]);
    }
#pragma unroll
    for (int i = 0; i < PER_THREAD; i++) {
        if (start + i * THREADS >= all) break;
        real *first = to + 2 * line[i] * args.to_ld;
        if (args.conj) v[i].y = -v[i].y;
        put(first, first + args.to_ld, at[i], v[i], args.conj_other);
    }
    let_later_launches_start();
}

/* ---- Save and combine ------------------------------------------------------------------------ */

/* Whether combine has work. If alpha and beta are arguments of the kernel, combine always has work,
 * because the host then launches combine only if it is needed. */
static __device__ __forceinline__ bool is_combined(const struct tgl_combine_args *args, pair alpha,
                                                   pair beta)
{
    if (!args->alpha_at || args->bias || args->residual) return true;
    return alpha.y != 0 || beta.y != 0 || (args->separate_d && beta.x != 0);
}

static __device__ __forceinline__ pair alpha_of(const struct tgl_combine_args *args)
{
    return args->has_product ? scalar_of(args->alpha, args->alpha_at) : make_pair(0, 0);
}

static __device__ __forceinline__ pair beta_of(const struct tgl_combine_args *args)
{
    if (args->alpha_at && !args->beta_at) return make_pair(0, 0);
    return scalar_of(args->beta, args->beta_at);
}

/* Writes alpha and beta of the real product to device memory. If combine applies the caller's
 * scalars, the real product has alpha 1 (0 if the caller's is 0) and beta 0. */
static __device__ __forceinline__ void write_scalars(void *to, bool combines, pair alpha, pair beta)
{
    real *scalars = (real *)to;
    scalars[0] = combines ? !is_zero(alpha) : alpha.x;
    scalars[1] = combines ? 0 : beta.x;
}

__global__ void __launch_bounds__(THREADS) save(const struct tgl_combine_args args)
{
    wait_for_earlier_launches();
    const pair alpha = alpha_of(&args), beta = beta_of(&args);
    const bool combines = is_combined(&args, alpha, beta);
    if (args.alpha_at && blockIdx.x == 0 && threadIdx.x == 0)
        write_scalars(args.scalars, combines, alpha, beta);
    if (!combines || args.separate_d || is_zero(beta)) return;
    const long long each = args.m * args.n, all = each * args.batch;
    for (long long number = (long long)blockIdx.x * THREADS + threadIdx.x; number < all;
         number += (long long)gridDim.x * THREADS) {
        const long long matrix = number / each, in_it = number - matrix * each;
        const long long row = in_it / args.n, col = in_it - row * args.n;
        const void *C =
            args.D_array ? args.D_array[matrix] : (pair *)args.D + matrix * args.stride_d;
        ((pair *)args.saved)[number] = load_pair(C, row * args.ldd + col);
    }
    let_later_launches_start();
}

/* Returns C[row][col] of problem number `matrix` of the batch. If C and D are one matrix, the
 * element is read from the copy that save has made, where its index is `number`. */
static __device__ __forceinline__ pair load_c(const struct tgl_combine_args *args, long long number,
                                              long long matrix, long long row, long long col)
{
    if (!args->separate_d) return ((const pair *)args->saved)[number];
    const void *C = args->C_array ? args->C_array[matrix]
                                  : (const void *)((const pair *)args->C + matrix * args->stride_c);
    return load_pair(C, row * args->ldc + col);
}

__global__ void __launch_bounds__(THREADS) combine(const struct tgl_combine_args args)
{
    wait_for_earlier_launches();
    const pair alpha = alpha_of(&args), beta = beta_of(&args);
    if (!is_combined(&args, alpha, beta)) return;
    const long long each = args.m * args.n, all = each * args.batch;
    for (long long number = (long long)blockIdx.x * THREADS + threadIdx.x; number < all;
         number += (long long)gridDim.x * THREADS) {
        const long long matrix = number / each, in_it = number - matrix * each;
        const long long row = in_it / args.n, col = in_it - row * args.n;
        void *D = args.D_array ? args.D_array[matrix] : (pair *)args.D + matrix * args.stride_d;
        pair v = make_pair(0, 0);
        if (!is_zero(alpha)) v = times(alpha, load_pair(D, row * args.ldd + col));
        if (!is_zero(beta)) v = sum(v, times(beta, load_c(&args, number, matrix, row, col)));
        if (args.bias)
            v = sum(v, load_pair(args.bias,
                                 matrix * args.stride_bias + (args.bias_of_row ? row : col)));
        if (args.residual)
            v = sum(v, load_pair(args.residual,
                                 matrix * args.stride_residual + row * args.ld_residual + col));
        store_pair(D, row * args.ldd + col, v);
    }
    let_later_launches_start();
}
