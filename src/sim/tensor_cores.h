/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of tensor cores, bit for bit. The models are those of microsoft/MMA-Sim (arXiv
 * 2511.10909), which were measured on the chips.
 *
 * f16, bf16, tf32: an instruction divides its K into one or more steps. Each step adds the products
 * of the step to the accumulator in one fused sum. The products are exact. Each term is aligned to
 * the largest exponent of all terms, and truncated to a number of fraction bits; the exponent of a
 * product is the sum of the exponents of its factors. The aligned terms are summed exactly, and the
 * sum is truncated to FP32. A sum that is NaN is 0x7fffffff.
 * e4m3, e5m2: the same, but with fewer fraction bits in the terms and in the sum.
 * f64: a sequence of IEEE fused multiply-adds, with ascending k.
 * s8: exact modulo 2^32.
 */
#ifndef TGL_SIM_TENSOR_CORES_H
#define TGL_SIM_TENSOR_CORES_H

#include <stdint.h>

typedef enum tgl_tensor_type {
    TGL_TENSOR_F16,
    TGL_TENSOR_BF16,
    TGL_TENSOR_TF32, /* the bits of a float, of which the last 13 are ignored */
    TGL_TENSOR_E4M3,
    TGL_TENSOR_E5M2,
} tgl_tensor_type;

/* How the tensor cores of a chip add products. Each sum is fused: its terms are aligned to the
 * largest exponent and truncated, then added exactly (see above). */
typedef struct tgl_tensor_model {
    int fraction_bits; /* fraction bits of a term after alignment */
    int sum_bits;      /* fraction bits of a sum; 23 for FP32 */
    int steps;         /* number of fused sums, one after the other, into which an instruction
                          divides its K */
} tgl_tensor_model;

extern const tgl_tensor_model tgl_tensor_hopper;    /* wgmma and mma.sync on sm_90 */
extern const tgl_tensor_model tgl_tensor_hopper_f8; /* wgmma on sm_90 with e4m3 and e5m2 */
extern const tgl_tensor_model tgl_tensor_ampere; /* mma.sync with K of 32 bytes, sm_80 to sm_89 */

enum { TGL_TENSOR_K_MAX = 32 }; /* maximum K of an instruction, in elements */

/* sums (m x n) += a (m x k) * b (k x n); all row-major without gaps. Each uint32_t of a and b has
 * the bits of one element. k: a multiple of the model's steps, at most TGL_TENSOR_K_MAX. */
void tgl_tensor_multiply(const tgl_tensor_model *model, tgl_tensor_type type, int m, int n, int k,
                         const uint32_t *a, const uint32_t *b, float *sums);

/* As tgl_tensor_multiply(), with different types of a and b. */
void tgl_tensor_multiply_mixed(const tgl_tensor_model *model, tgl_tensor_type type_a,
                               tgl_tensor_type type_b, int m, int n, int k, const uint32_t *a,
                               const uint32_t *b, float *sums);

/* Like tgl_tensor_multiply(), for f64. */
void tgl_tensor_multiply_f64(int m, int n, int k, const double *a, const double *b, double *sums);

/* As tgl_tensor_multiply(), for signed 8-bit integers, in the lowest byte of each uint32_t of a and
 * b. */
void tgl_tensor_multiply_s8(int m, int n, int k, const uint32_t *a, const uint32_t *b,
                            uint32_t *sums);

/* cvt.rna.tf32: rounds to 10 fraction bits, to nearest, ties away from zero; the last 13 bits
 * become 0. Inf and NaN are unchanged. */
uint32_t tgl_tensor_round_tf32(uint32_t bits);

#endif
