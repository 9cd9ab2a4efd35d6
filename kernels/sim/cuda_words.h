/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's words as C, for the simulator: included before a kernel file, which gcc or clang then
 * compiles with -O0 -fsanitize=thread. The compiler calls __tsan_read4() and the like before each
 * access that the source makes; they are defined here and pass it on to the host, in place of the
 * sanitizer's run time. No system header is included: a kernel has none under NVRTC either.
 */
#ifndef TGL_CUDA_WORDS_H
#define TGL_CUDA_WORDS_H

#include "sim/hooks.h"

/* Code of the simulator itself, whose accesses are nobody's business. */
#define TGL_SIM_PLAIN __attribute__((no_sanitize("thread"), noinline, unused))
#define TGL_SIM_PC    __builtin_return_address(0)

static tgl_sim_hooks tgl_sim;

/* ---- Qualifiers ------------------------------------------------------------------------------ */

/* Device functions are always inlined, as NVRTC does: each use is then an instruction of its own to
 * the counts, and gcc does not lose sight of a float4 that is stored as a call returns it. */
#define __global__
#define __device__      __attribute__((always_inline, unused))
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __constant__     static const

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

static TGL_SIM_PLAIN uint3 tgl_sim_uint3(const unsigned *v)
{
    const uint3 r = {v[0], v[1], v[2]};
    return r;
}

#define threadIdx tgl_sim_uint3(tgl_sim.thread)
#define blockIdx  tgl_sim_uint3(tgl_sim.block)
#define blockDim  tgl_sim_uint3(tgl_sim.block_dim)
#define gridDim   tgl_sim_uint3(tgl_sim.grid_dim)
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

/* Cache hints change no result. */
#define __ldg(p)     (*(p))
#define __ldcg(p)    (*(p))
#define __ldca(p)    (*(p))
#define __ldcs(p)    (*(p))
#define __stcg(p, v) ((void)(*(p) = (v)))
#define __stcs(p, v) ((void)(*(p) = (v)))

/* ---- Accesses -------------------------------------------------------------------------------- */

void __tsan_init(void);
TGL_SIM_PLAIN void __tsan_init(void) {}
void __tsan_func_entry(void *);
TGL_SIM_PLAIN void __tsan_func_entry(void *caller)
{
    (void)caller;
}
void __tsan_func_exit(void);
TGL_SIM_PLAIN void __tsan_func_exit(void) {}

#define TGL_SIM_ACCESS(name, bytes, is_write)                                                      \
    void name(void *);                                                                             \
    TGL_SIM_PLAIN void name(void *address)                                                         \
    {                                                                                              \
        tgl_sim.access(tgl_sim.run, address, bytes, is_write, TGL_SIM_PC);                         \
    }
TGL_SIM_ACCESS(__tsan_read1, 1, 0)
TGL_SIM_ACCESS(__tsan_read2, 2, 0)
TGL_SIM_ACCESS(__tsan_read4, 4, 0)
TGL_SIM_ACCESS(__tsan_read8, 8, 0)
TGL_SIM_ACCESS(__tsan_read16, 16, 0)
TGL_SIM_ACCESS(__tsan_write1, 1, 1)
TGL_SIM_ACCESS(__tsan_write2, 2, 1)
TGL_SIM_ACCESS(__tsan_write4, 4, 1)
TGL_SIM_ACCESS(__tsan_write8, 8, 1)
TGL_SIM_ACCESS(__tsan_write16, 16, 1)
/* "unaligned": the compiler could not prove the alignment; the host looks at the address. */
TGL_SIM_ACCESS(__tsan_unaligned_read2, 2, 0)
TGL_SIM_ACCESS(__tsan_unaligned_read4, 4, 0)
TGL_SIM_ACCESS(__tsan_unaligned_read8, 8, 0)
TGL_SIM_ACCESS(__tsan_unaligned_read16, 16, 0)
TGL_SIM_ACCESS(__tsan_unaligned_write2, 2, 1)
TGL_SIM_ACCESS(__tsan_unaligned_write4, 4, 1)
TGL_SIM_ACCESS(__tsan_unaligned_write8, 8, 1)
TGL_SIM_ACCESS(__tsan_unaligned_write16, 16, 1)

/* Structs of other sizes are moved in words. */
static TGL_SIM_PLAIN void tgl_sim_range(const char *p, size_t bytes, int is_write, const void *pc)
{
    for (; bytes >= 4; p += 4, bytes -= 4)
        tgl_sim.access(tgl_sim.run, p, 4, is_write, pc);
    for (; bytes > 0; p++, bytes--)
        tgl_sim.access(tgl_sim.run, p, 1, is_write, pc);
}
void __tsan_read_range(void *, size_t);
TGL_SIM_PLAIN void __tsan_read_range(void *p, size_t bytes)
{
    tgl_sim_range(p, bytes, 0, TGL_SIM_PC);
}
void __tsan_write_range(void *, size_t);
TGL_SIM_PLAIN void __tsan_write_range(void *p, size_t bytes)
{
    tgl_sim_range(p, bytes, 1, TGL_SIM_PC);
}

/* clang turns copies of structs into calls of one of these. */
static TGL_SIM_PLAIN void *tgl_sim_memcpy(void *to, const void *from, size_t bytes, const void *pc)
{
    tgl_sim_range(from, bytes, 0, pc);
    tgl_sim_range(to, bytes, 1, pc);
    for (size_t i = 0; i < bytes; i++)
        ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}
static TGL_SIM_PLAIN void *tgl_sim_memset(void *to, int value, size_t bytes, const void *pc)
{
    tgl_sim_range(to, bytes, 1, pc);
    for (size_t i = 0; i < bytes; i++)
        ((volatile char *)to)[i] = (char)value;
    return to;
}
void *memcpy(void *, const void *, size_t);
TGL_SIM_PLAIN void *memcpy(void *to, const void *from, size_t bytes)
{
    return tgl_sim_memcpy(to, from, bytes, TGL_SIM_PC);
}
void *memset(void *, int, size_t);
TGL_SIM_PLAIN void *memset(void *to, int value, size_t bytes)
{
    return tgl_sim_memset(to, value, bytes, TGL_SIM_PC);
}
void *__tsan_memcpy(void *, const void *, size_t);
TGL_SIM_PLAIN void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    return tgl_sim_memcpy(to, from, bytes, TGL_SIM_PC);
}
void *__tsan_memset(void *, int, size_t);
TGL_SIM_PLAIN void *__tsan_memset(void *to, int value, size_t bytes)
{
    return tgl_sim_memset(to, value, bytes, TGL_SIM_PC);
}

/* ---- Atomics: a load and a store to the counts, and nobody comes between
 * -------------------------
 */

static TGL_SIM_PLAIN unsigned atomicAdd(unsigned *address, unsigned value)
{
    tgl_sim.access(tgl_sim.run, address, 4, 0, TGL_SIM_PC);
    tgl_sim.access(tgl_sim.run, address, 4, 1, TGL_SIM_PC);
    const unsigned old = *address;
    *address = old + value;
    return old;
}

/* Blocks run one after the other, and see all that those before have written. */
#define __threadfence() ((void)0)

/* ---- Threads that wait for each other -------------------------------------------------------- */

static TGL_SIM_PLAIN void __syncthreads(void)
{
    tgl_sim.barrier(tgl_sim.run, TGL_SIM_PC);
}

static TGL_SIM_PLAIN void tgl_sim_syncwarp(unsigned lanes)
{
    tgl_sim.warp_barrier(tgl_sim.run, lanes, TGL_SIM_PC);
}
#define __syncwarp(...) tgl_sim_syncwarp((0xffffffffu, ##__VA_ARGS__))

static TGL_SIM_PLAIN unsigned tgl_sim_shuffle(unsigned lanes, unsigned value, int source)
{
    return tgl_sim.shuffle(tgl_sim.run, lanes, value, source, TGL_SIM_PC);
}

static TGL_SIM_PLAIN int tgl_sim_lane(void)
{
    return (int)(tgl_sim.thread[0] % 32);
}

/* The lane to read from, within segments of `width` lanes; out of the segment: the lane's own. */
static TGL_SIM_PLAIN int tgl_sim_in_segment(int source, int width)
{
    const int lane = tgl_sim_lane();
    return source >= 0 && source / width == lane / width ? source : lane;
}

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

/* ---- cp.async, for lib/async_copy.h ---------------------------------------------------------- */

static TGL_SIM_PLAIN void tgl_sim_async_copy(void *shared, const void *global, int bytes,
                                             int valid_bytes)
{
    tgl_sim.async_copy(tgl_sim.run, shared, global, bytes, valid_bytes, TGL_SIM_PC);
}

static TGL_SIM_PLAIN void tgl_sim_async_commit(void)
{
    tgl_sim.async_commit(tgl_sim.run);
}

static TGL_SIM_PLAIN void tgl_sim_async_wait(int groups_pending)
{
    tgl_sim.async_wait(tgl_sim.run, groups_pending);
}

#endif
