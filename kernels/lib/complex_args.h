/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of the kernels of gemm/complex.cu, structs by value: plain C, shared by the host
 * that fills them and the kernels that read them. A `const void *` points to complex elements.
 * ..._array: NULL, or the pointers to the matrices of a batch. alpha, beta: the real part, then the
 * imaginary part. ..._at: NULL, or the address of the scalar in device memory.
 */
#ifndef TGL_COMPLEX_ARGS_H
#define TGL_COMPLEX_ARGS_H

/* A or B of all problems of a batch, or of one if all share it: `lines` contiguous lines of
 * `length` elements. The kernel expand writes two lines of a real matrix for each of them. */
struct tgl_expand_args {
    const void *from;
    const void *const *from_array;
    void *to;
    void **to_array;      /* with from_array: expand writes pointers to the real matrices here */
    long long ld, stride; /* strides of `from`, in complex elements */
    long long to_ld, to_stride; /* strides of `to`, in real elements */
    long long lines, length;
    int blocks;           /* blocks for each matrix */
    int conj, conj_other; /* the product uses conj() of this matrix; of the other matrix */
    const void *alpha_at; /* NULL, or alpha in device memory: if it is 0, `from` is not read */
};

/* D := alpha*D + beta*C + bias + residual, m x n. The kernels save and combine run only if the real
 * product cannot apply alpha, beta and these operands itself (gemm/complex.cu). */
struct tgl_combine_args {
    const void *C;
    const void *const *C_array;
    void *D;
    void *const *D_array;
    void *saved;          /* if D is C: memory for C, without padding */
    const void *bias;     /* NULL, or one element for each row or column */
    const void *residual; /* NULL, or a matrix of D's sizes */
    long long ldc, ldd, ld_residual;
    long long stride_c, stride_d, stride_bias, stride_residual;
    long long m, n, batch;
    int separate_d, bias_of_row; /* D is not C; the bias has an element for each row */
    int has_product;             /* k > 0; else alpha counts as 0 */
    double alpha[2], beta[2];
    const void *alpha_at, *beta_at; /* if only beta_at is NULL, beta is 0 */
    void *scalars;                  /* with alpha_at: save writes alpha and beta of the real product
                                       here */
};

#endif
