/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's words as C, for the simulator: included before a kernel file, which gcc or clang then
 * compiles with -O0 -fsanitize=thread. What is more than a word is in run_time.h. No system header
 * is included: a kernel has none under NVRTC either.
 */
#ifndef TGL_CUDA_WORDS_H
#define TGL_CUDA_WORDS_H

#include "sim/hooks.h"

/* ---- Qualifiers ------------------------------------------------------------------------------ */

/* Device functions are always inlined, as NVRTC does: each use is then an instruction of its own to
 * the counts, and gcc does not lose sight of a float4 that is stored as a call returns it. */
#define __global__
#define __device__      __attribute__((always_inline, unused))
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes)  __attribute__((aligned(bytes)))
#define __constant__      static const
#define __grid_constant__ /* a parameter whose address the kernel uses */

/* Shared memory is a section of the object, found by the names that the linker gives its ends. One
 * block runs at a time. The guard sees to it that there always is a section, and lies between the
 * arrays and whatever the linker puts before. */
#define __shared__ static __attribute__((section("tgl_shared")))
extern char __start_tgl_shared[] __attribute__((visibility("hidden")));
extern char __stop_tgl_shared[] __attribute__((visibility("hidden")));
static char tgl_sim_guard[256] __attribute__((section("tgl_shared"), aligned(256), used));

#define bool _Bool
#define true 1
#define false 0
typedef __SIZE_TYPE__ size_t;

/* ---- Vectors --------------------------------------------------------------------------------- */

/* A vector is read and written in one piece, as the hardware does. gcc does so with structs; clang
 * may split them, and has vectors with members instead. */
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

/* Through a variable, so that storing the result is one access and not one a member. */
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

uint3 tgl_sim_thread_index(void);
uint3 tgl_sim_block_index(void);
uint3 tgl_sim_block_size(void);
uint3 tgl_sim_grid_size(void);
#define threadIdx tgl_sim_thread_index()
#define blockIdx  tgl_sim_block_index()
#define blockDim  tgl_sim_block_size()
#define gridDim   tgl_sim_grid_size()
#define warpSize  32

/* ---- Arithmetic ------------------------------------------------------------------------------ */

/* One rounding but for rare double ones, and no call into the mathematics library. */
#define fmaf(a, b, c)      ((float)((double)(a) * (double)(b) + (double)(c)))
#define fma(a, b, c)       __builtin_fma((a), (b), (c))
#define __fmaf_rn(a, b, c) fmaf(a, b, c)
#define __fmul_rn(a, b)    ((float)(a) * (float)(b))
#define __fadd_rn(a, b)    ((float)(a) + (float)(b))
#define fabsf(x)           __builtin_fabsf(x)
#define fmaxf(a, b)        __builtin_fmaxf((a), (b))
#define fminf(a, b)        __builtin_fminf((a), (b))
#define sqrtf(x)           __builtin_sqrtf(x)
#define expf(x)            __builtin_expf(x)
#define erff(x)            __builtin_erff(x)
#define tanhf(x)           __builtin_tanhf(x)
#define __expf(x)          __builtin_expf(x)
#define __fdividef(a, b)   ((float)(a) / (float)(b))

#define TGL_SIM_PICK(a, b, relation)                                                               \
    __extension__({                                                                                \
        __typeof__((a) + (b)) tgl_a = (a), tgl_b = (b);                                            \
        tgl_a relation tgl_b ? tgl_a : tgl_b;                                                      \
    })
#define min(a, b) TGL_SIM_PICK(a, b, <)
#define max(a, b) TGL_SIM_PICK(a, b, >)

#define __clz(x) ((x) == 0 ? 32 : __builtin_clz((unsigned)(x)))

/* Cache hints change no result. */
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

/* Any 4-byte type. */
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
