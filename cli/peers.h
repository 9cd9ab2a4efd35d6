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

enum { PEERS_MAX = 16 }; /* in one run */

typedef struct peer {
    char name[64];     /* "openblas", or the file's name for a path */
    char version[160]; /* as the library gives it, its kernels' name included; may be empty */
    void *handle;
    void *sgemm, *dgemm; /* cblas_sgemm and cblas_dgemm; NULL where the library has none */
    void *onednn;        /* dnnl_sgemm, where it takes cblas_sgemm's place */
    cublas *cublas; /* a peer on CUDA devices: then nothing above but name and version is set */
    cublas_way way;
} peer;

/* The names that peer_open() knows: index 0, 1, ... until NULL. */
const char *peer_known(int index);

/* Loads a library by one of those names, or by path any that exports cblas_sgemm or cblas_dgemm.
 * Libraries stay loaded until the program ends: their threads would not survive an unloading. */
bool peer_open(const char *name_or_path, peer *p, char *message, size_t message_size);

/* cuBLAS, which is opened already and stays the caller's, as a peer on its CUDA device. */
void peer_from_cublas(peer *p, cublas *lib, cublas_way way);

/* Tells every library and OpenMP run-time that is loaded how many threads to use. */
void peers_set_threads(const peer *peers, int count, int threads);

/* Whether it can multiply this at all: type, and sizes that fit its integers. */
bool peer_takes(const peer *p, const tgl_problem *problem);

/* C := op(A)*op(B), host memory, row-major; a batch one after another. */
void peer_run(const peer *p, const tgl_problem *problem, const void *A, const void *B, void *C);

#endif
