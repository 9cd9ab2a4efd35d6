/* SPDX-License-Identifier: Apache-2.0
 *
 * wmma (sm_70 and later): a warp multiplies 16 x 16 matrices of f16 with sums in FP32. The
 * instructions load and store whole matrices in shared memory, and PTX does not say which lane
 * holds which element: fragments can only be passed from one of these functions to another.
 *
 * Matrices are row-major; ld: elements from one row to the next. A matrix begins at a multiple of
 * 32 bytes, and rows are multiples of 16 bytes apart (PTX ISA, "wmma.load").
 */
#ifndef TGL_WMMA_H
#define TGL_WMMA_H

#include "lib/half.h"
#include "lib/mma.h"

/* Registers of a lane. */
typedef struct wmma_a {
    unsigned r[8];
} wmma_a;

typedef struct wmma_b {
    unsigned r[8];
} wmma_b;

typedef struct wmma_sums {
    float r[8];
} wmma_sums;

#ifdef TGL_SIM

/* On the simulator the elements are distributed over the lanes as for two mma.m16n8k16 (lib/mma.h),
 * and only the first four registers of a and of b are used. The simulator counts the scalar loads
 * below, where the chip executes LDSM. */
static __device__ __forceinline__ void wmma_load_a(wmma_a *a, const struct f16 *from, int ld)
{
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
    for (int i = 0; i < 4; i++)
        a->r[i] = *(const unsigned *)&from[(g + i % 2 * 8) * ld + 2 * t + i / 2 * 8];
}

static __device__ __forceinline__ void wmma_load_b(wmma_b *b, const struct f16 *from, int ld)
{
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
    for (int i = 0; i < 4; i++) {
        const struct f16 *first = &from[(2 * t + i % 2 * 8) * ld + g + i / 2 * 8];
        b->r[i] = first[0].bits | (unsigned)first[ld].bits << 16;
    }
}

static __device__ __forceinline__ void wmma_store(float *to, const wmma_sums *sums, int ld)
{
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
    for (int i = 0; i < 8; i++)
        to[(g + i / 2 % 2 * 8) * ld + 2 * t + i % 2 + i / 4 * 8] = sums->r[i];
}

#define wmma_multiply(sums, a, b)                                                                  \
    (mma_f16(&(sums)->r[0], (a)->r, &(b)->r[0]), mma_f16(&(sums)->r[4], (a)->r, &(b)->r[2]))

#else

#define TGL_WMMA_LOAD(matrix, x, from, ld)                                                         \
    asm volatile("wmma.load." matrix ".sync.aligned.row.m16n16k16.shared.f16 "                     \
                 "{%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"                                     \
                 : "=r"((x)->r[0]), "=r"((x)->r[1]), "=r"((x)->r[2]), "=r"((x)->r[3]),             \
                   "=r"((x)->r[4]), "=r"((x)->r[5]), "=r"((x)->r[6]), "=r"((x)->r[7])              \
                 : "r"((unsigned)__cvta_generic_to_shared(from)), "r"(ld)                          \
                 : "memory")

/* A 16 x 16 matrix of A: rows are M, columns K. */
static __device__ __forceinline__ void wmma_load_a(wmma_a *a, const struct f16 *from, int ld)
{
    TGL_WMMA_LOAD("a", a, from, ld);
}

/* A 16 x 16 matrix of B: rows are K, columns N. */
static __device__ __forceinline__ void wmma_load_b(wmma_b *b, const struct f16 *from, int ld)
{
    TGL_WMMA_LOAD("b", b, from, ld);
}

static __device__ __forceinline__ void wmma_store(float *to, const wmma_sums *sums, int ld)
{
    asm volatile(
        "wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 "
        "[%0], {%1, %2, %3, %4, %5, %6, %7, %8}, %9;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
        "f"(sums->r[0]), "f"(sums->r[1]), "f"(sums->r[2]), "f"(sums->r[3]), "f"(sums->r[4]),
        "f"(sums->r[5]), "f"(sums->r[6]), "f"(sums->r[7]), "r"(ld)
        : "memory");
}

/* sums += a * b. */
static __device__ __forceinline__ void wmma_multiply(wmma_sums *sums, const wmma_a *a,
                                                     const wmma_b *b)
{
    asm("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11, %12, %13, %14, %15}, "
        "{%16, %17, %18, %19, %20, %21, %22, %23}, {%0, %1, %2, %3, %4, %5, %6, %7};"
        : "+f"(sums->r[0]), "+f"(sums->r[1]), "+f"(sums->r[2]), "+f"(sums->r[3]), "+f"(sums->r[4]),
          "+f"(sums->r[5]), "+f"(sums->r[6]), "+f"(sums->r[7])
        : "r"(a->r[0]), "r"(a->r[1]), "r"(a->r[2]), "r"(a->r[3]), "r"(a->r[4]), "r"(a->r[5]),
          "r"(a->r[6]), "r"(a->r[7]), "r"(b->r[0]), "r"(b->r[1]), "r"(b->r[2]), "r"(b->r[3]),
          "r"(b->r[4]), "r"(b->r[5]), "r"(b->r[6]), "r"(b->r[7]));
}

#endif

#endif
