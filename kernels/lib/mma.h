/* SPDX-License-Identifier: Apache-2.0
 *
 * mma.sync (sm_80 and later): acc += a * b by the tensor cores, a product of small matrices whose
 * elements are distributed over the lanes of a warp. All lanes call the same function together.
 *
 * One shape for all types: acc is 16 x 8, a is 16 x K, b is K x 8. K is 32 (s8), 16 (f16, bf16) or
 * 8 (tf32, f64). With g = lane / 4 and t = lane % 4 a lane holds:
 *
 *     a, 32-bit registers (s8: four neighbours in K each; f16, bf16: two; tf32: one) or doubles:
 *
 *                    k: s8      4t .. 4t+3    4t+16 .. 4t+19
 *                       16-bit  2t, 2t+1      2t+8, 2t+9
 *                       others  t             t+4
 *              row g            a[0]          a[2]
 *              row g+8          a[1]          a[3]
 *
 *     b, the same with columns for rows:
 *
 *              column g         b[0]          b[1]
 *
 *     acc, float, double or (s8) int32:
 *
 *                               column 2t     column 2t+1
 *
 *              row g            acc[0]        acc[1]
 *              row g+8          acc[2]        acc[3]
 *
 * PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", "mma.m16n8k8",
 * "mma.m16n8k32".
 *
 * Products of f16, bf16 and tf32 are exact and are accumulated in FP32. The rounding of the sums
 * depends on the chip (src/sim/tensor_cores.h has the model). f64 is a sequence of IEEE fused
 * multiply-adds with ascending k. s8 is exact modulo 2^32.
 */
#ifndef TGL_MMA_H
#define TGL_MMA_H

#ifdef TGL_SIM
/* acc[4], a[4], b[2] of the calling lane. */
void tgl_sim_mma_f16(float *acc, const unsigned *a, const unsigned *b);
void tgl_sim_mma_bf16(float *acc, const unsigned *a, const unsigned *b);
void tgl_sim_mma_tf32(float *acc, const unsigned *a, const unsigned *b);
void tgl_sim_mma_f64(double *acc, const double *a, const double *b);
void tgl_sim_mma_s8(unsigned *acc, const unsigned *a, const unsigned *b);
unsigned tgl_sim_round_to_tf32(unsigned bits); /* to nearest, ties away from zero */

/* These are macros, so that the simulator can report the source line of the call. The functions
 * below describe them.
 */
#define mma_f16(acc, a, b)  tgl_sim_mma_f16(acc, a, b)
#define mma_bf16(acc, a, b) tgl_sim_mma_bf16(acc, a, b)
#define mma_tf32(acc, a, b) tgl_sim_mma_tf32(acc, a, b)
#define mma_f64(acc, a, b)  tgl_sim_mma_f64(acc, a, b)
#define mma_s8(acc, a, b)   tgl_sim_mma_s8(acc, a, b)
#define round_to_tf32(bits) tgl_sim_round_to_tf32(bits)

#else

#define TGL_MMA_F32(shape, type, acc, a, b)                                                        \
    asm("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 "                            \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                          \
        : "+f"((acc)[0]), "+f"((acc)[1]), "+f"((acc)[2]), "+f"((acc)[3])                           \
        : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]))

/* m16n8k16. */
static __device__ __forceinline__ void mma_f16(float *acc, const unsigned *a, const unsigned *b)
{
    TGL_MMA_F32("m16n8k16", "f16", acc, a, b);
}

static __device__ __forceinline__ void mma_bf16(float *acc, const unsigned *a, const unsigned *b)
{
    TGL_MMA_F32("m16n8k16", "bf16", acc, a, b);
}

/* m16n8k8. The hardware ignores the last 13 bits of a and b: round_to_tf32() comes first. */
static __device__ __forceinline__ void mma_tf32(float *acc, const unsigned *a, const unsigned *b)
{
    TGL_MMA_F32("m16n8k8", "tf32", acc, a, b);
}

/* m16n8k32. */
static __device__ __forceinline__ void mma_s8(unsigned *acc, const unsigned *a, const unsigned *b)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#if __CUDA_ARCH__ < 900
/* m8n8k4: a lane has one double of a, one of b and two of acc. The table above shows which, for
 * rows 0..7 and k 0..3. */
static __device__ __forceinline__ void mma_f64_m8n8k4(double *acc, double a, double b)
{
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(acc[0]), "+d"(acc[1])
        : "d"(a), "d"(b));
}
#endif

/* m16n8k8: one instruction on sm_90 and later, four on earlier chips. */
static __device__ __forceinline__ void mma_f64(double *acc, const double *a, const double *b)
{
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(acc[0]), "+d"(acc[1]), "+d"(acc[2]), "+d"(acc[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
    mma_f64_m8n8k4(&acc[0], a[0], b[0]);
    mma_f64_m8n8k4(&acc[2], a[1], b[0]);
    mma_f64_m8n8k4(&acc[0], a[2], b[1]);
    mma_f64_m8n8k4(&acc[2], a[3], b[1]);
#endif
}

/* Rounds a float to nearest, to the 10 bits of tf32's fraction. bits: the float's bits. Ties go to
 * even on sm_90 and later, which have an instruction for this, and away from zero on earlier
 * chips. */
static __device__ __forceinline__ unsigned round_to_tf32(unsigned bits)
{
    unsigned rounded;
#if __CUDA_ARCH__ >= 900
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(bits)));
#else
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(bits)));
#endif
    return rounded;
}

#endif

#endif
