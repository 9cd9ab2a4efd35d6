/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of gemm/repack.cu, one struct by value: plain C, shared by the host that fills it
 * and the kernel that reads it.
 */
#ifndef TGL_REPACK_ARGS_H
#define TGL_REPACK_ARGS_H

/* A matrix, or as many as there are in a batch: `lines` lines, each with `length` neighbours in the
 * result. All distances in elements. */
struct tgl_repack_job {
    const void *from;
    void *to; /* lines begin on 16 bytes, and are filled with zeros up to 16 bytes */
    long long ld,
        pitch; /* distances of lines: of those in memory, transposed or not; of the result */
    long long stride_from, stride_to; /* of matrices */
    int lines, length;
    int blocks_along; /* blocks that share a line */
    int blocks_down;  /* and those that share all lines of a matrix */
};

struct tgl_repack_args {
    struct tgl_repack_job jobs[2];
    int first_blocks; /* blocks of the first job; the others do the second one */
    const float
        *alpha_at; /* in device memory; the matrices are not read if it is 0. NULL: they are */
};

#endif
