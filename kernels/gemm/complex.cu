/* SPDX-License-Identifier: Apache-2.0
 *
 * The pre-passes that make a complex product a real one. With the parts of an element beside each
 * other, D (m x n) is a real matrix m x 2n, and A is a real matrix m x 2k. Then D = A B', where an
 * element b of B becomes a square of B', 2k x 2n:
 *
 *     re(b)   im(b)
 *    -im(b)   re(b)
 *
 * If the product is of the conjugates of A, the second row has the opposite sign.
 *
 *   expand   writes two lines of a real matrix for each line of A or B. PARTS 0: of B. PARTS 1: of
 *            B, whose lines are columns of op(B). PARTS 2: the real parts, then the imaginary
 *            parts: of A, whose lines are columns of op(A). An alpha with an imaginary part is
 *            divided into a power of two, which is alpha of the real product, and a factor below
 *            1/2, by which B is multiplied without overflow.
 *   scale    D := beta*C + bias, where the real product cannot add these: if beta has an imaginary
 *            part, if D is not C, or if each row has a bias. Beta of the real product is then 1.
 *
 * Scalars in device memory: scale writes those of the real product, and the factor of B.
 */
#include "lib/complex_args.h"
#include "lib/launch_order.h"

#ifndef DOUBLE
#define DOUBLE 0 /* 1: c128 */
#endif
#ifndef PARTS
#define PARTS 0
#endif

#if PARTS < 0 || PARTS > 2
#error "PARTS: 0, 1 or 2"
#endif

#define THREADS    256
#define PER_THREAD 4 /* elements of a thread of expand, with all loads in flight at once */

#if DOUBLE
typedef double real;
typedef double2 pair;
#define make_pair make_double2
#else
typedef float real;
typedef float2 pair;
#define make_pair make_float2
#endif

/* Elements are aligned as their parts are; pairs that begin elsewhere are loaded in two halves. */
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

/* A scalar in device memory or by value. */
static __device__ __forceinline__ pair scalar_of(const double value[2], const void *at)
{
    if (at) return make_pair(((const real *)at)[0], ((const real *)at)[1]);
    return make_pair((real)value[0], (real)value[1]);
}

/* x*y. An x with imaginary part 0 is a real number. */
static __device__ __forceinline__ pair times(pair x, pair y)
{
    if (x.y == 0) return make_pair(x.x * y.x, x.x * y.y);
    return make_pair(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}

/* ---- Expand ---------------------------------------------------------------------------------- */

/* Writes an element of a line. first, second: the two lines of the result. */
static __device__ __forceinline__ void put(real *first, real *second, long long at, pair v,
                                           const struct tgl_expand_args *args)
{
#if PARTS == 2
    first[at] = v.x;
    second[at] = v.y;
#else
    const real sign = args->conj_other ? -1 : 1;
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
    let_later_launches_start();
    const long long matrix = blockIdx.x / args.blocks, block = blockIdx.x % args.blocks;
    const pair factor = scalar_of(args.factor, args.factor_at);
    real *to = (real *)args.to + matrix * args.to_stride;
    if (args.from_array && block == 0 && threadIdx.x == 0) args.to_array[matrix] = to;
    if (factor.x == 0 && factor.y == 0) return;
    const void *from = args.from_array
                           ? args.from_array[matrix]
                           : (const void *)((const pair *)args.from + matrix * args.stride);
    const long long all = args.lines * args.length;
    const long long start = block * (THREADS * PER_THREAD) + threadIdx.x;
    const bool is_scaled = PARTS != 2 && factor.y != 0;
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
        put(first, first + args.to_ld, at[i], is_scaled ? times(factor, v[i]) : v[i], &args);
    }
}

/* ---- Scale ----------------------------------------------------------------------------------- */

/* As alpha_power() of launch_fill.c. */
static __device__ __forceinline__ real power_of(pair alpha)
{
    const real most = (real)85070591730234615865843651857942052864.0; /* 2^126 */
    real x = alpha.x < 0 ? -alpha.x : alpha.x, power = 1;
    const real y = alpha.y < 0 ? -alpha.y : alpha.y;
    if (y > x) x = y;
    if (x + y - (x + y) != 0) return 1; /* not finite */
    while (x >= (real)0.5 && power < most) {
        x *= (real)0.5;
        power *= 2;
    }
    while (x > 0 && x < (real)0.25) {
        x *= 2;
        power *= (real)0.5;
    }
    return power;
}

__global__ void __launch_bounds__(THREADS) scale(const struct tgl_scale_args args)
{
    wait_for_earlier_launches();
    let_later_launches_start();
    const pair zero = make_pair(0, 0);
    const pair beta = args.alpha_at && !args.beta_at ? zero : scalar_of(args.beta, args.beta_at);
    const bool has_beta = beta.x != 0 || beta.y != 0;
    const bool is_needed = args.bias || beta.y != 0 || (args.separate_d && has_beta);
    if (args.alpha_at && blockIdx.x == 0 && threadIdx.x == 0) {
        const real *alpha = (const real *)args.alpha_at;
        real *scalars = (real *)args.scalars;
        const real power = power_of(make_pair(alpha[0], alpha[1]));
        scalars[0] = alpha[1] != 0 ? power : alpha[0];
        scalars[1] = is_needed ? 1 : beta.x;
        scalars[2] = alpha[0] / power;
        scalars[3] = alpha[1] / power;
    }
    if (!is_needed) return;
    const long long each = args.m * args.n, all = each * args.batch;
    for (long long number = (long long)blockIdx.x * THREADS + threadIdx.x; number < all;
         number += (long long)gridDim.x * THREADS) {
        const long long matrix = number / each, in_it = number - matrix * each;
        const long long row = in_it / args.n, col = in_it - row * args.n;
        void *D = args.D_array ? args.D_array[matrix] : (pair *)args.D + matrix * args.stride_d;
        pair v = zero;
        if (has_beta) {
            const void *C = !args.separate_d ? D
                            : args.C_array   ? args.C_array[matrix]
                                             : (const pair *)args.C + matrix * args.stride_c;
            const long long ld = args.separate_d ? args.ldc : args.ldd;
            v = times(beta, load_pair(C, row * ld + col));
        }
        if (args.bias) {
            const pair b = load_pair(args.bias, matrix * args.stride_bias + row);
            v = make_pair(v.x + b.x, v.y + b.y);
        }
        store_pair(D, row * args.ldd + col, v);
    }
}
