/* SPDX-License-Identifier: Apache-2.0
 *
 * wgmma (sm_90a): the four warps of a warpgroup multiply two tiles of shared memory together,
 * asynchronously:
 *     acc (64 x N) := acc * scale_d + left (64 x K) * right (K x N),   K of 32 bytes.
 * The file that includes this one defines the variant of wgmma:
 *
 *     WGMMA_TYPE           TYPE_F16, TYPE_BF16, TYPE_E4M3, TYPE_E5M2, TYPE_I8, or TYPE_F32, which
 *                          is read as TF32: without its low 13 bits
 *     WGMMA_RIGHT_TYPE     the type of the right tile, WGMMA_TYPE by default; TYPE_E4M3 may be
 *                          combined with TYPE_E5M2
 *     WGMMA_N              16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 192, 224 or 256
 *     WGMMA_LEFT_K_MAJOR   1: the left tile is K-major in shared memory; 0: M-major
 *     WGMMA_RIGHT_K_MAJOR  1: the right tile is K-major; 0: N-major. TF32 and 8-bit types: both 1
 *     WGMMA_LEFT_IN_REGISTERS  1: the left tile is in registers, TF32 only; 0 by default
 *
 * With WGMMA_LEFT_IN_REGISTERS each thread passes unsigned left[4] to each wgmma. The thread must
 * not access these registers before the wait for the group. left[i] is the element
 *     row = 16 * warp + lane / 4 + 8 * (i % 2),   k = lane % 4 + 4 * (i / 2).
 *
 * The accumulator is accumulate_t acc[WGMMA_N / 2] of each thread: float, or for int8 32-bit
 * integers that wrap. It has to stay in registers. With warp = threadIdx.x / 32 % 4 and lane =
 * threadIdx.x % 32, acc[i] is the element
 *     row = 16 * warp + lane / 4 + 8 * (i / 2 % 2)
 *     col = 8 * (i / 4) + 2 * (lane % 4) + i % 2
 * (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16": matrix D, and "m64nNk8": matrix A).
 *
 *     wgmma_fence();                       // before the first wgmma, and after the threads have
 *                                          // written to acc or left fragments
 *     for (int i = 0; i < 4; i++)          // BK of 128 bytes
 *         wgmma(acc, moved_tile(left, i * LEFT_STEP), moved_tile(right, i * RIGHT_STEP), 1);
 *     wgmma_commit();                      // the wgmmas above form a group
 *     WGMMA_WAIT(acc, 0);                  // now acc may be read, and the tiles overwritten
 *
 * All threads of the warpgroup execute these calls together. If threads have written a tile, they
 * call fence_proxy_async() (lib/tma.h) before the wgmma that reads it. A tile that TMA has written
 * needs no fence.
 */
#ifndef TGL_WGMMA_H
#define TGL_WGMMA_H

#include "lib/element.h"
#include "lib/set_registers.h"

#ifndef WGMMA_RIGHT_TYPE
#define WGMMA_RIGHT_TYPE WGMMA_TYPE
#endif
#define WGMMA_IS_F8     (WGMMA_TYPE == TYPE_E4M3 || WGMMA_TYPE == TYPE_E5M2)
#define WGMMA_IS_8_BITS (WGMMA_IS_F8 || WGMMA_TYPE == TYPE_I8)
#if WGMMA_TYPE != TYPE_F16 && WGMMA_TYPE != TYPE_BF16 && WGMMA_TYPE != TYPE_F32 && !WGMMA_IS_8_BITS
#error "WGMMA_TYPE: TYPE_F16, TYPE_BF16, TYPE_E4M3, TYPE_E5M2, TYPE_I8 or TYPE_F32"
#endif
#if WGMMA_RIGHT_TYPE != WGMMA_TYPE &&                                                              \
    !(WGMMA_IS_F8 && (WGMMA_RIGHT_TYPE == TYPE_E4M3 || WGMMA_RIGHT_TYPE == TYPE_E5M2))
#error "WGMMA_RIGHT_TYPE: the type of the left tile, or another 8-bit floating-point type"
#endif
#if (WGMMA_TYPE == TYPE_I8) != (ACCUMULATE == TYPE_I32)
#error "ACCUMULATE: int32 for int8, else FP32"
#endif
#ifndef WGMMA_LEFT_IN_REGISTERS
#define WGMMA_LEFT_IN_REGISTERS 0
#endif
#if (WGMMA_TYPE == TYPE_F32 || WGMMA_IS_8_BITS) &&                                                 \
    !((WGMMA_LEFT_K_MAJOR || WGMMA_LEFT_IN_REGISTERS) && WGMMA_RIGHT_K_MAJOR)
#error "WGMMA_LEFT_K_MAJOR, WGMMA_RIGHT_K_MAJOR: TF32 and 8-bit tiles in shared memory are K-major"
#endif
#if WGMMA_LEFT_IN_REGISTERS && WGMMA_TYPE != TYPE_F32
#error "WGMMA_LEFT_IN_REGISTERS: left fragments are TF32"
#endif

/* ---- Descriptors ----------------------------------------------------------------------------- */

/* A tile in shared memory, as TMA writes it with a swizzle (PTX ISA, "Matrix Descriptor Format").
 * An atom is 8 lines of `swizzle` bytes (128, 64 or 32), and begins at a multiple of its size:
 *
 *   K-major   A line is one row of the tile, and holds `swizzle` bytes of its K. group_bytes: from
 *             8 rows to the next 8. atom_bytes is not used.
 *   MN-major  A line is one k, and holds `swizzle` bytes of M or N. group_bytes: from 8 k to the
 *             next 8. atom_bytes: from `swizzle` bytes of M or N to the next ones, if the tile is
 *             wider.
 *
 * Bits: 0..13 address, 16..29 atom_bytes (leading byte offset), 32..45 group_bytes (stride byte
 * offset), each without its low four bits; 62..63: 1, 2, 3 for a swizzle of 128, 64, 32 bytes. The
 * base offset (49..51) is 0, because atoms are aligned. Adding n / 16 to a descriptor moves the
 * tile by n bytes. In a K-major tile the next K begins 32 bytes later, in the same lines: the
 * hardware applies the swizzle after this addition. */
typedef unsigned long long wgmma_tile;

#ifdef TGL_SIM
wgmma_tile tgl_sim_wgmma_tile(const void *shared, int swizzle, int atom_bytes, int group_bytes);
#define make_wgmma_tile(shared, swizzle, atom_bytes, group_bytes)                                  \
    tgl_sim_wgmma_tile(shared, swizzle, atom_bytes, group_bytes)
#else
static __device__ __forceinline__ wgmma_tile make_wgmma_tile(const void *shared, const int swizzle,
                                                             const int atom_bytes,
                                                             const int group_bytes)
{
    const unsigned long long kind = swizzle == 128 ? 1 : swizzle == 64 ? 2 : 3;
    return (unsigned long long)((unsigned)__cvta_generic_to_shared(shared) >> 4 & 0x3fff) |
           (unsigned long long)(atom_bytes >> 4) << 16 |
           (unsigned long long)(group_bytes >> 4) << 32 | kind << 62;
}
#endif

/* The descriptor of the tile that begins `bytes` bytes later in shared memory, a multiple of 16.
 * The 14 address bits cover 256 KB, so the addition cannot carry into other fields: 32-bit
 * arithmetic suffices. */
static __device__ __forceinline__ wgmma_tile moved_tile(wgmma_tile tile, unsigned bytes)
{
    return (tile & 0xffffffff00000000ull) | ((unsigned)tile + bytes / 16);
}

/* ---- Instructions ---------------------------------------------------------------------------- */

#if WGMMA_LEFT_IN_REGISTERS
typedef const unsigned *wgmma_left;
#else
typedef wgmma_tile wgmma_left;
#endif

#ifdef TGL_SIM

/* acc receives its values in tgl_sim_wgmma_wait(), which leaves at most `pending` groups
 * unfinished. Between tgl_sim_wgmma() and the wait, acc must not be accessed, and the tiles must
 * not be written. left_fragment: the left tile in registers; NULL: `left` is the left tile. */
void tgl_sim_wgmma(float *acc, const unsigned *left_fragment, wgmma_tile left, wgmma_tile right,
                   int type, int right_type, int n, int left_k_major, int right_k_major,
                   int scale_d);
void tgl_sim_wgmma_fence(void);
void tgl_sim_wgmma_commit(void);
void tgl_sim_wgmma_wait(int pending);

#if WGMMA_LEFT_IN_REGISTERS
#define wgmma(acc, left, right, scale_d)                                                           \
    tgl_sim_wgmma((float *)(acc), left, 0, right, WGMMA_TYPE, WGMMA_RIGHT_TYPE, WGMMA_N, 1,        \
                  WGMMA_RIGHT_K_MAJOR, scale_d)
#else
#define wgmma(acc, left, right, scale_d)                                                           \
    tgl_sim_wgmma((float *)(acc), 0, left, right, WGMMA_TYPE, WGMMA_RIGHT_TYPE, WGMMA_N,           \
                  WGMMA_LEFT_K_MAJOR, WGMMA_RIGHT_K_MAJOR, scale_d)
#endif
#define wgmma_fence()            tgl_sim_wgmma_fence()
#define wgmma_hold_left(left)    (void)0
#define wgmma_commit()           tgl_sim_wgmma_commit()
#define WGMMA_WAIT(acc, pending) tgl_sim_wgmma_wait(pending)
#define WGMMA_HOLD(acc)          (void)0

#else

/* Rn(t): the text that names n operands of an asm statement, from number 10 * t on: R2(3) is "%30,
 * %31". */
#define R2(t)  "%" #t "0, %" #t "1"
#define R4(t)  R2(t) ", %" #t "2, %" #t "3"
#define R6(t)  R4(t) ", %" #t "4, %" #t "5"
#define R8(t)  R6(t) ", %" #t "6, %" #t "7"
#define R10(t) R8(t) ", %" #t "8, %" #t "9"
#define R40    R10() ", " R10(1) ", " R10(2) ", " R10(3)
#define R80    R40 ", " R10(4) ", " R10(5) ", " R10(6) ", " R10(7)

/* ACCn(i): the n operands acc[i], acc[i + 1], ... of an asm statement. */
#if WGMMA_TYPE == TYPE_I8
#define ACC1 "+r"
#else
#define ACC1 "+f"
#endif
#define ACC4(i)  ACC1(acc[i]), ACC1(acc[i + 1]), ACC1(acc[i + 2]), ACC1(acc[i + 3])
#define ACC8(i)  ACC4(i), ACC4(i + 4)
#define ACC16(i) ACC8(i), ACC8(i + 8)
#define ACC32(i) ACC16(i), ACC16(i + 16)
#define ACC64(i) ACC32(i), ACC32(i + 32)

#define WGMMA_TEXT(x)  #x
#define WGMMA_SHAPE(n) "m64n" WGMMA_TEXT(n)

/* WGMMA_REGISTERS: the names of acc's registers in the asm text. WGMMA_ACC: acc's operands.
 * WGMMA_NEXT: applies the macro `use` to the names of the six operands that follow acc's. */
#if WGMMA_N == 16
#define WGMMA_REGISTERS R8()
#define WGMMA_ACC       ACC8(0)
#define WGMMA_NEXT(use) use("%8", "%9", "%10", "%11", "%12", "%13")
#elif WGMMA_N == 32
#define WGMMA_REGISTERS R10() ", " R6(1)
#define WGMMA_ACC       ACC16(0)
#define WGMMA_NEXT(use) use("%16", "%17", "%18", "%19", "%20", "%21")
#elif WGMMA_N == 48
#define WGMMA_REGISTERS R10() ", " R10(1) ", " R4(2)
#define WGMMA_ACC       ACC16(0), ACC8(16)
#define WGMMA_NEXT(use) use("%24", "%25", "%26", "%27", "%28", "%29")
#elif WGMMA_N == 64
#define WGMMA_REGISTERS R10() ", " R10(1) ", " R10(2) ", " R2(3)
#define WGMMA_ACC       ACC32(0)
#define WGMMA_NEXT(use) use("%32", "%33", "%34", "%35", "%36", "%37")
#elif WGMMA_N == 80
#define WGMMA_REGISTERS R40
#define WGMMA_ACC       ACC32(0), ACC8(32)
#define WGMMA_NEXT(use) use("%40", "%41", "%42", "%43", "%44", "%45")
#elif WGMMA_N == 96
#define WGMMA_REGISTERS R40 ", " R8(4)
#define WGMMA_ACC       ACC32(0), ACC16(32)
#define WGMMA_NEXT(use) use("%48", "%49", "%50", "%51", "%52", "%53")
#elif WGMMA_N == 112
#define WGMMA_REGISTERS R40 ", " R10(4) ", " R6(5)
#define WGMMA_ACC       ACC32(0), ACC16(32), ACC8(48)
#define WGMMA_NEXT(use) use("%56", "%57", "%58", "%59", "%60", "%61")
#elif WGMMA_N == 128
#define WGMMA_REGISTERS R40 ", " R10(4) ", " R10(5) ", " R4(6)
#define WGMMA_ACC       ACC64(0)
#define WGMMA_NEXT(use) use("%64", "%65", "%66", "%67", "%68", "%69")
#elif WGMMA_N == 144
#define WGMMA_REGISTERS R40 ", " R10(4) ", " R10(5) ", " R10(6) ", " R2(7)
#define WGMMA_ACC       ACC64(0), ACC8(64)
#define WGMMA_NEXT(use) use("%72", "%73", "%74", "%75", "%76", "%77")
#elif WGMMA_N == 160
#define WGMMA_REGISTERS R80
#define WGMMA_ACC       ACC64(0), ACC16(64)
#define WGMMA_NEXT(use) use("%80", "%81", "%82", "%83", "%84", "%85")
#elif WGMMA_N == 192
#define WGMMA_REGISTERS R80 ", " R10(8) ", " R6(9)
#define WGMMA_ACC       ACC64(0), ACC32(64)
#define WGMMA_NEXT(use) use("%96", "%97", "%98", "%99", "%100", "%101")
#elif WGMMA_N == 224
#define WGMMA_REGISTERS R80 ", " R10(8) ", " R10(9) ", " R10(10) ", " R2(11)
#define WGMMA_ACC       ACC64(0), ACC32(64), ACC16(96)
#define WGMMA_NEXT(use) use("%112", "%113", "%114", "%115", "%116", "%117")
#elif WGMMA_N == 256
#define WGMMA_REGISTERS R80 ", " R10(8) ", " R10(9) ", " R10(10) ", " R10(11) ", " R8(12)
#define WGMMA_ACC       ACC64(0), ACC64(64)
#define WGMMA_NEXT(use) use("%128", "%129", "%130", "%131", "%132", "%133")
#else
#error "WGMMA_N: 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 192, 224 or 256"
#endif

/* These macros select from the six operands of WGMMA_NEXT. INPUTS_OF: the text for left and right,
 * and the predicate p. SCALE_D_OF: the name of scale_d. */
#if WGMMA_LEFT_IN_REGISTERS
#define INPUTS_OF(a, b, c, d, e, f)  "{" a ", " b ", " c ", " d "}, " e ", p"
#define SCALE_D_OF(a, b, c, d, e, f) f
#define WGMMA_LEFT(left)             "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3])
#else
#define INPUTS_OF(a, b, c, d, e, f)  a ", " b ", p"
#define SCALE_D_OF(a, b, c, d, e, f) c
#define WGMMA_LEFT(left)             "l"(left)
#endif

/* WGMMA_TYPES: the instruction's K and types. WGMMA_SUFFIX: the immediates after scale_d. Floating
 * point: the signs of both inputs (1: plus). 16-bit types: also whether each input is MN-major
 * (1). */
#if WGMMA_TYPE == TYPE_F32
#define WGMMA_TYPES  "k8.f32.tf32.tf32"
#define WGMMA_SUFFIX ", 1, 1;"
#elif WGMMA_TYPE == TYPE_I8
#define WGMMA_TYPES  "k32.s32.s8.s8"
#define WGMMA_SUFFIX ";"
#elif WGMMA_IS_F8
#define F8_NAME(type)  F8_PASTE(type)
#define F8_PASTE(type) F8_NAME_##type
#define F8_NAME_5      "e4m3"
#define F8_NAME_6      "e5m2"
#define WGMMA_TYPES    "k32.f32." F8_NAME(WGMMA_TYPE) "." F8_NAME(WGMMA_RIGHT_TYPE)
#define WGMMA_SUFFIX   ", 1, 1;"
#else
#if WGMMA_TYPE == TYPE_F16
#define WGMMA_TYPES "k16.f32.f16.f16"
#else
#define WGMMA_TYPES "k16.f32.bf16.bf16"
#endif
#if WGMMA_LEFT_K_MAJOR && WGMMA_RIGHT_K_MAJOR
#define WGMMA_SUFFIX ", 1, 1, 0, 0;"
#elif WGMMA_LEFT_K_MAJOR
#define WGMMA_SUFFIX ", 1, 1, 0, 1;"
#elif WGMMA_RIGHT_K_MAJOR
#define WGMMA_SUFFIX ", 1, 1, 1, 0;"
#else
#define WGMMA_SUFFIX ", 1, 1, 1, 1;"
#endif
#endif

/* Issues a wgmma: acc += left * right if scale_d is 1, acc := left * right if it is 0. */
static __device__ __forceinline__ void wgmma(accumulate_t *acc, wgmma_left left, wgmma_tile right,
                                             int scale_d)
{
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " WGMMA_NEXT(
                     SCALE_D_OF) ", 0;\n"
                                 "wgmma.mma_async.sync.aligned." WGMMA_SHAPE(WGMMA_N) WGMMA_TYPES
                 " {" WGMMA_REGISTERS "}, " WGMMA_NEXT(INPUTS_OF) WGMMA_SUFFIX " }"
                 : WGMMA_ACC
                 : WGMMA_LEFT(left), "l"(right), "r"(scale_d));
}

static __device__ __forceinline__ void wgmma_fence(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most `pending` groups, a constant, are unfinished. */
#define WGMMA_WAIT(acc, pending)                                                                   \
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory")

/* Emits no instruction. It prevents the compiler from moving reads of acc before the last wait: the
 * asm statement of the wait does not mention acc. */
static __device__ __forceinline__ void wgmma_hold(accumulate_t *acc)
{
    asm volatile("" : WGMMA_ACC::"memory");
}
#define WGMMA_HOLD(acc) wgmma_hold(acc)

#if WGMMA_LEFT_IN_REGISTERS
/* Emits no instruction. Called after the wait, it keeps the compiler from using the registers of a
 * left fragment for other values before the wait. The compiler assumes that the asm statement of
 * wgmma() reads them at once: without this call NVRTC 13.0 loaded the next fragment into them while
 * wgmma was reading them. */
static __device__ __forceinline__ void wgmma_hold_left(const unsigned *left)
{
    asm volatile("" ::"r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]) : "memory");
}
#endif

#endif

#endif
