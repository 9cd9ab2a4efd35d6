/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA keywords, types and functions as C, for the simulator: included before a kernel file, which
 * gcc or clang compiles with -O0 -fsanitize=thread. Functions that need the host are in run_time.h.
 * No system header is included, because kernels have none with NVRTC either.
 */
#ifndef TGL_CUDA_WORDS_H
#define TGL_CUDA_WORDS_H

#include "sim/hooks.h"

/* ---- Qualifiers ------------------------------------------------------------------------------ */

/* Device functions are always inlined, as by NVRTC. Each use then has its own instructions in the
 * counts, and gcc instruments a float4 that is stored directly from a call's return value. */
#define __global__
#define __device__      __attribute__((always_inline, unused))
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes)  __attribute__((aligned(bytes)))
#define __constant__      static const
#define __grid_constant__ /* a parameter whose address the kernel uses */

/* Shared memory is a section of the object. The linker defines symbols for its start and end. One
 * block runs at a time. The guard makes the section exist in kernels without shared memory, and
 * separates the arrays from the data that the linker places before them. */
#define __shared__ static __attribute__((section("tgl_shared")))
extern char __start_tgl_shared[] __attribute__((visibility("hidden")));
extern char __stop_tgl_shared[] __attribute__((visibility("hidden")));
static char tgl_sim_guard[256] __attribute__((section("tgl_shared"), aligned(256), used));

#define bool _Bool
#define true 1
#define false 0
typedef __SIZE_TYPE__ size_t;

/* ---- Vectors --------------------------------------------------------------------------------- */

/* A vector is loaded and stored in one access, as by the hardware. gcc does so with structs; clang
 * may split them, but has vector types with members. */
#ifdef __clang__
#define TGL_SIM_VECTOR2(name, type)                                                                \
    typedef type name __attribute__((ext_vector_type(2), aligned(2 * sizeof(type))))
#define TGL_SIM_VECTOR4(name, type)                                                                \
    typedef type name __attribute__((ext_vector_type(4), aligned(4 * sizeof(type))))
#else
#define TGL_SIM_VECTOR2(name, type)                                                                \
    typedef struct __attribute__((aligned(2 * sizeof(type)))) {                                    \
        type x, y;                                                                                 \
    } name
#define TGL_SIM_VECTOR4(name, type)                                                                \
    typedef struct __attribute__((aligned(4 * sizeof(type)))) {                                    \
        type x, y, z, w;                                                                           \
    } name
#endif
TGL_SIM_VECTOR2(float2, float);
TGL_SIM_VECTOR4(float4, float);
TGL_SIM_VECTOR2(int2, int);
TGL_SIM_VECTOR4(int4, int);
TGL_SIM_VECTOR2(uint2, unsigned);
TGL_SIM_VECTOR4(uint4, unsigned);
TGL_SIM_VECTOR2(double2, double);

/* The variable makes the compiler store the result by one access instead of one per member. */
#define TGL_SIM_MAKE(type, ...)                                                                    \
    __extension__({                                                                                \
        type tgl_made = {__VA_ARGS__};                                                             \
        tgl_made;                                                                                  \
    })
#define make_float2(x, y)       TGL_SIM_MAKE(float2, (x), (y))
#define make_float4(x, y, z, w) TGL_SIM_MAKE(float4, (x), (y), (z), (w))
#define make_int2(x, y)         TGL_SIM_MAKE(int2, (x), (y))
#define make_int4(x, y, z, w)   TGL_SIM_MAKE(int4, (x), (y), (z), (w))
#define make_uint2(x, y)        TGL_SIM_MAKE(uint2, (x), (y))
#define make_uint4(x, y, z, w)  TGL_SIM_MAKE(uint4, (x), (y), (z), (w))
#define make_double2(x, y)      TGL_SIM_MAKE(double2, (x), (y))

/* ---- Where a thread is ----------------------------------------------------------------------- */

typedef struct uint3 {
    unsigned x, y, z;
} uint3;
typedef uint3 dim3;

extern tgl_sim_hooks tgl_sim;
uint3 tgl_sim_uint3(const unsigned *v);
#define threadIdx tgl_sim_uint3(tgl_sim.thread)
#define blockIdx  tgl_sim_uint3(tgl_sim.block)
#define blockDim  tgl_sim_uint3(tgl_sim.block_dim)
#define gridDim   tgl_sim_uint3(tgl_sim.grid_dim)
#define warpSize  32

/* ---- Arithmetic ------------------------------------------------------------------------------ */

/* The functions of C's <math.h>, which NVRTC declares itself. */
double acos(double), acosh(double), asin(double), asinh(double), atan(double), atanh(double),
    cbrt(double), ceil(double), cos(double), cosh(double), erf(double), erfc(double), exp(double),
    exp2(double), expm1(double), fabs(double), floor(double), lgamma(double), log(double),
    log10(double), log1p(double), log2(double), nearbyint(double), rint(double), round(double),
    sin(double), sinh(double), sqrt(double), tan(double), tanh(double), tgamma(double),
    trunc(double), atan2(double, double), copysign(double, double), fdim(double, double),
    fmax(double, double), fmin(double, double), fmod(double, double), hypot(double, double),
    pow(double, double), remainder(double, double);
float acosf(float), acoshf(float), asinf(float), asinhf(float), atanf(float), atanhf(float),
    cbrtf(float), ceilf(float), cosf(float), coshf(float), erff(float), erfcf(float), expf(float),
    exp2f(float), expm1f(float), fabsf(float), floorf(float), lgammaf(float), logf(float),
    log10f(float), log1pf(float), log2f(float), nearbyintf(float), rintf(float), roundf(float),
    sinf(float), sinhf(float), sqrtf(float), tanf(float), tanhf(float), tgammaf(float),
    truncf(float), atan2f(float, float), copysignf(float, float), fdimf(float, float),
    fmaxf(float, float), fminf(float, float), fmodf(float, float), hypotf(float, float),
    powf(float, float), remainderf(float, float);

/* fmaf() rounds once, except for rare double roundings (to double, then to float). It does not call
 * the mathematics library, unlike C's fmaf(). */
#define fmaf(a, b, c)      ((float)((double)(a) * (double)(b) + (double)(c)))
#define fma(a, b, c)       __builtin_fma((a), (b), (c))
#define __fmaf_rn(a, b, c) fmaf(a, b, c)
#define __fmul_rn(a, b)    ((float)(a) * (float)(b))
#define __fadd_rn(a, b)    ((float)(a) + (float)(b))
#define fabsf(x)           __builtin_fabsf(x)
#define fmaxf(a, b)        __builtin_fmaxf((a), (b))
#define fminf(a, b)        __builtin_fminf((a), (b))
#define sqrtf(x)           __builtin_sqrtf(x)
#define __expf(x)          expf(x)
#define __fdividef(a, b)   ((float)(a) / (float)(b))

#define TGL_SIM_PICK(a, b, relation)                                                               \
    __extension__({                                                                                \
        __typeof__((a) + (b)) tgl_a = (a), tgl_b = (b);                                            \
        tgl_a relation tgl_b ? tgl_a : tgl_b;                                                      \
    })
#define min(a, b) TGL_SIM_PICK(a, b, <)
#define max(a, b) TGL_SIM_PICK(a, b, >)

#define TGL_SIM_BITS(to, from, x)                                                                  \
    __extension__({                                                                                \
        union {                                                                                    \
            from from_;                                                                            \
            to to_;                                                                                \
        } tgl_bits = {(x)};                                                                        \
        tgl_bits.to_;                                                                              \
    })
#define __uint_as_float(x) TGL_SIM_BITS(float, unsigned, x)
#define __float_as_uint(x) TGL_SIM_BITS(unsigned, float, x)
#define __int_as_float(x)  TGL_SIM_BITS(float, int, x)
#define __float_as_int(x)  TGL_SIM_BITS(int, float, x)

#define __clz(x)  ((x) == 0 ? 32 : __builtin_clz((unsigned)(x)))
#define __popc(x) __builtin_popcount(x)
#define __ffs(x)  __builtin_ffs(x)

/* Cache hints do not change results. */
#define __ldg(p)     (*(p))
#define __ldcg(p)    (*(p))
#define __ldca(p)    (*(p))
#define __ldcs(p)    (*(p))
#define __stcg(p, v) ((void)(*(p) = (v)))
#define __stcs(p, v) ((void)(*(p) = (v)))

/* ---- Atomics and fences ---------------------------------------------------------------------- */

unsigned atomicAdd(unsigned *address, unsigned value);
unsigned atomicOr(unsigned *address, unsigned value);
unsigned atomicAnd(unsigned *address, unsigned value);
unsigned atomicMax(unsigned *address, unsigned value);
unsigned atomicExch(unsigned *address, unsigned value);

void __threadfence(void);

/* ---- Threads that wait for each other -------------------------------------------------------- */

void __syncthreads(void);
void tgl_sim_syncwarp(unsigned lanes);
#define __syncwarp(...) tgl_sim_syncwarp((0xffffffffu, ##__VA_ARGS__))

unsigned tgl_sim_shuffle(unsigned lanes, unsigned value, int source);
int tgl_sim_lane(void);
int tgl_sim_in_segment(int source, int width);

/* `value` may have any 4-byte type. */
#define TGL_SIM_SHUFFLE(lanes, value, source)                                                      \
    __extension__({                                                                                \
        union {                                                                                    \
            __typeof__((value) + 0) value_;                                                        \
            unsigned bits;                                                                         \
        } tgl_word = {(value)};                                                                    \
        _Static_assert(sizeof tgl_word == 4, "shuffles move 4 bytes");                             \
        tgl_word.bits = tgl_sim_shuffle((lanes), tgl_word.bits, (source));                         \
        tgl_word.value_;                                                                           \
    })
#define TGL_SIM_WIDTH(...) (32, ##__VA_ARGS__)
#define __shfl_sync(lanes, value, lane, ...)                                                       \
    TGL_SIM_SHUFFLE(lanes, value,                                                                  \
                    tgl_sim_lane() / TGL_SIM_WIDTH(__VA_ARGS__) * TGL_SIM_WIDTH(__VA_ARGS__) +     \
                        (lane) % TGL_SIM_WIDTH(__VA_ARGS__))
#define __shfl_xor_sync(lanes, value, bits_flipped, ...)                                           \
    TGL_SIM_SHUFFLE(lanes, value, tgl_sim_lane() ^ (int)(bits_flipped))
#define __shfl_up_sync(lanes, value, by, ...)                                                      \
    TGL_SIM_SHUFFLE(lanes, value,                                                                  \
                    tgl_sim_in_segment(tgl_sim_lane() - (int)(by), TGL_SIM_WIDTH(__VA_ARGS__)))
#define __shfl_down_sync(lanes, value, by, ...)                                                    \
    TGL_SIM_SHUFFLE(lanes, value,                                                                  \
                    tgl_sim_in_segment(tgl_sim_lane() + (int)(by), TGL_SIM_WIDTH(__VA_ARGS__)))

#endif
