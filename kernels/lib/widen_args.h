/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of gemm/widen.cu, one struct by value: plain C, shared by the host that fills it
 * and the kernel that reads it.
 */
#ifndef TGL_WIDEN_ARGS_H
#define TGL_WIDEN_ARGS_H

/* Weights of all matrices of a batch, or of one if all products share it: `lines` contiguous lines
 * of `length` elements. The factor of element (line, at) of matrix i, and its zero point, have the
 * index p / group * factor_ld + column * factor_step + i * factor_stride, where p is the element's
 * k, and column is its index along the other dimension. */
struct tgl_widen_args {
    const void *from;
    const float *factors;
    const signed char *zeros;
    void *to;                   /* lines begin at multiples of 16 bytes */
    const void *alpha_at;       /* NULL, or alpha in device memory: if it is 0, nothing is read */
    long long ld, stride;       /* of `from`, in elements */
    long long pitch, to_stride; /* of `to`, in elements */
    long long group, factor_ld, factor_stride;
    long long lines, length;
    int factor_step; /* 0: one factor for all columns; else 1 */
    int blocks;      /* blocks for each matrix */
};

#endif
