/* SPDX-License-Identifier: Apache-2.0
 *
 * tegula/dist.h between the processes of an MPI program: libtegula_mpi, the only library of Tegula
 * that is linked with MPI.
 */
#ifndef TEGULA_MPI_H
#define TEGULA_MPI_H

#include "dist.h"

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tgl_mpi_options {
    size_t size;              /* sizeof(tgl_mpi_options) */
    double timeout_s;         /* how long a rank waits for another one; 0: 300 seconds;
                                 INFINITY: without limit */
    tgl_dist_machine machine; /* zeros: the defaults */
} tgl_mpi_options;

/* *dist := a communicator of the ranks of `comm`, which is duplicated. dev: a cpu device, which
 * stays the caller's. options may be NULL. The program must have initialised MPI, and only one
 * thread at a time may call MPI. Collective. Returns TGL_OK; TGL_BAD_ARGUMENT (NULL; options; MPI
 * is not initialised, or is finalised; not a cpu device); TGL_NO_MEMORY; TGL_COMMUNICATION. */
TGL_API tgl_status tgl_dist_open_mpi(MPI_Comm comm, tgl_device *dev, const tgl_mpi_options *options,
                                     tgl_dist **dist);

/* Fills *transport, which the caller then passes to tgl_dist_open(), for the ranks of
 * MPI_COMM_WORLD. It is meant for programs that load this library at run time. If the program has
 * not initialised MPI, this function does, and closing the transport finalises it, unless a rank
 * was lost. Collective.
 * timeout_s as in tgl_mpi_options. Returns TGL_OK; TGL_BAD_ARGUMENT (the transport is NULL, the
 * timeout is negative, or MPI is finalised); TGL_NO_MEMORY; TGL_COMMUNICATION. After a failure MPI
 * is finalised if this function had initialised it. */
TGL_API tgl_status tgl_dist_mpi_world(double timeout_s, tgl_dist_transport *transport);

#ifdef __cplusplus
}
#endif
#endif
