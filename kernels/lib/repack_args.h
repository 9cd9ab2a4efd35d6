/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of gemm/repack.cu, one struct by value: plain C, shared by the host that fills it
 * and the kernel that reads it.
 */
#ifndef TGL_REPACK_ARGS_H
#define TGL_REPACK_ARGS_H

/* The matrices of a batch, or a single one. A result has `lines` lines of `length` elements: a line
 * is a contiguous row of the result. ld, pitch and the strides are in elements. */
struct tgl_repack_job {
    const void *from;
    void *to;        /* lines begin at multiples of 16 bytes; the rest of their pitch is not used */
    long long ld;    /* distance between two rows of `from` in memory, whether it is transposed or
                        not */
    long long pitch; /* distance between two lines of the result */
    long long stride_from, stride_to; /* distance between two matrices of the batch */
    int lines, length;
    int blocks_along; /* number of blocks that divide the same lines among them */
    int blocks_down;  /* number of groups of lines in a matrix: blocks_along blocks copy each group
                       */
};

struct tgl_repack_args {
    struct tgl_repack_job jobs[2];
    int first_blocks; /* number of blocks of the first job; the other blocks do the second job */
    const void *alpha_at; /* NULL, or alpha in device memory; 0: the matrices are not read */
};

#endif
