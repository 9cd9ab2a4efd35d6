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
    char name[64];     /* "openblas", or the file's name for a path */
    char version[160]; /* as the library reports it, with the name of its kernels; may be empty */
    void *handle;
    void *sgemm, *dgemm;      /* cblas_sgemm and cblas_dgemm; NULL where the library has none */
    void *cgemm, *zgemm;      /* cblas_cgemm and cblas_zgemm; likewise */
    void *onednn;             /* dnnl_sgemm, for a library without cblas_sgemm */
    void *mkl_bf16, *mkl_f16; /* cblas_gemm_bf16bf16f32, cblas_gemm_f16f16f32: a result of f32 */
    void *onednn_bf16; /* tegula_peer_bf16 of bench/peers/onednn.c: a result of bf16 or f32 */
    void *onednn_i8;   /* dnnl_gemm_s8s8s32: i8 with a result of i32 */
    cublas *cublas;    /* set if the peer is cuBLAS, which uses only `name` and `version` above */
    cublas_way way;
} peer;

/* The names that peer_open() knows: index 0, 1, ... until NULL. */
const char *peer_known(int index);

/* Whether the text is one of those names, or a path. */
bool peer_is_name(const char *text);

/* Loads a library: by one of those names, or by the path of any library that exports cblas_sgemm or
 * cblas_dgemm. Libraries stay loaded until the program ends, because their threads may still
 * run. */
bool peer_open(const char *name_or_path, peer *p, char *message, size_t message_size);

/* Sets *p to cuBLAS on its CUDA device. The caller opens cuBLAS and closes it. */
void peer_from_cublas(peer *p, cublas *lib, cublas_way way);

/* Sets the number of threads of every loaded library and OpenMP run-time. */
void peers_set_threads(const peer *peers, int count, int threads);

/* Whether the peer supports the problem: its types, and sizes that fit the integers of the peer. */
bool peer_takes(const peer *p, const tgl_problem *problem);

/* C := op(A)*op(B) in row-major host memory. The products of a batch are computed one after
 * another. */
void peer_run(const peer *p, const tgl_problem *problem, const void *A, const void *B, void *C);

#endif
