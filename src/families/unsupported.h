/* SPDX-License-Identifier: Apache-2.0
 *
 * For tgl_family.unsupported_reason: why certain kernels do not support a problem. The functions
 * with `unsupported` in their names return the reason, a static text, or NULL if there is none.
 */
#ifndef TGL_UNSUPPORTED_H
#define TGL_UNSUPPORTED_H

#include "plan/family.h"

/* Why no kernel of kernels/gemm/ supports the problem. These kernels count m, n and k in 31 bits.
 * The next three functions call this one, too. */
const char *tgl_gemm_unsupported_reason(const tgl_shape *shape);

/* Why kernels that compute only FP32 products do not support the problem. */
const char *tgl_unsupported_unless_f32(const tgl_shape *shape, const tgl_chip *chip);

/* Why kernels on CUDA cores do not support the problem. In these kernels A and B have one type. If
 * it is F32 or F64, C, D and the sums have it too. If it is F16 or BF16, the sums are F32, and C
 * and D have the type of A and B, or F32. */
const char *tgl_unsupported_on_cuda_cores(const tgl_shape *shape, const tgl_chip *chip);

/* Why kernels that multiply by mma.sync do not support the problem. They support F16, BF16,
 * F8_E4M3, F8_E5M2, F32 in compute mode TF32, F64, and I8. */
const char *tgl_unsupported_by_mma_sync(const tgl_shape *shape, const tgl_chip *chip);

/* Whether A and B have an 8-bit type that the kernels can multiply. */
bool tgl_has_8_bits(const tgl_shape *shape);

/* Why kernels that multiply 8-bit types do not support the problem's scales or epilogue. */
const char *tgl_8_bits_unsupported_reason(const tgl_shape *shape);

/* The maximum stride of a tensor map, in elements: it is below 2^40 bytes (CUDA driver API,
 * cuTensorMapEncodeTiled). tgl_has_map_strides(): whether the strides of A and B are within it. */
int64_t tgl_map_stride_max(tgl_type type);
bool tgl_has_map_strides(const tgl_shape *shape);

#endif
