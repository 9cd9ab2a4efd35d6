/* SPDX-License-Identifier: Apache-2.0
 *
 * Other libraries that multiply matrices, found by dlopen when the program runs, so that it can be
 * timed beside them without being linked to any.
 */
#ifndef CLI_PEERS_H
#define CLI_PEERS_H

#include "cublas.h"
#include "tegula/tegula.h"

#include <stdbool.h>
#include <stddef.h>

enum { PEERS_MAX = 16 }; /* maximum number of peers (other libraries) in one run */

typedef struct peer {
    char name[64];     /* the name given to peer_open(); for a path, the name of the file */
    char version[160]; /* version, and name of the kernels in use, as the library reports them; may
                          be empty */
    void *handle;
    void *sgemm, *dgemm;      /* cblas_sgemm() and cblas_dgemm(); NULL: the library lacks it */
    void *cgemm, *zgemm;      /* cblas_cgemm() and cblas_zgemm(); NULL: the library lacks it */
    void *onednn;             /* dnnl_sgemm(), for a library without cblas_sgemm() */
    void *mkl_bf16, *mkl_f16; /* cblas_gemm_bf16bf16f32(), cblas_gemm_f16f16f32(): C is f32 */
    void *onednn_bf16;        /* tegula_peer_bf16() of bench/peers/onednn.c: C is bf16 or f32 */
    void *onednn_i8;          /* dnnl_gemm_s8s8s32(): A and B are i8, C is i32 */
    cublas *cublas; /* not NULL if the peer is cuBLAS; of the other members only `name`, `version`
                       and `way` are then used */
    cublas_way way;
} peer;

/* The names that peer_open() accepts: for index 0, 1, ...; NULL after the last one. */
const char *peer_known(int index);

/* Whether the text is a name of peer_known(), or a path (has a '/'). */
bool peer_is_name(const char *text);

/* Loads a library, given by a name of peer_known() or by the path of any library that exports
 * cblas_sgemm(), cblas_dgemm() or dnnl_sgemm(). Libraries stay loaded until the program ends,
 * because their threads may still run. False: failed, and message says why. */
bool peer_open(const char *name_or_path, peer *p, char *message, size_t message_size);

/* Makes *p the peer cuBLAS on the CUDA device of `lib`. The caller opens `lib`, and closes it after
 * the last use of *p. */
void peer_from_cublas(peer *p, cublas *lib, cublas_way way);

/* Sets the number of threads that every loaded library and OpenMP runtime uses. */
void peers_set_threads(const peer *peers, int count, int threads);

/* Whether the peer supports the problem: it has a function for the types, and the sizes fit its
 * integer type. Always true for cuBLAS, which cublas_prepare() examines. */
bool peer_takes(const peer *p, const tgl_problem *problem);

/* C := op(A)*op(B) for row-major, tight matrices in host memory. The products of a batch are
 * computed one after another. */
void peer_run(const peer *p, const tgl_problem *problem, const void *A, const void *B, void *C);

#endif
