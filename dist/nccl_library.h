/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of NCCL that libtegula_dist uses. It is declared here and loaded at run time: no header
 * of NCCL is needed, and without NCCL everything else works. Types, names and values follow NCCL's
 * public documentation.
 */
#ifndef NCCL_LIBRARY_H
#define NCCL_LIBRARY_H

#include "gpu_driver.h"

typedef struct ncclComm *ncclComm_t;
typedef int ncclResult_t;
typedef struct ncclUniqueId {
    char internal[128];
} ncclUniqueId;

/* The configuration of a communicator, with the members of NCCL 2.14, which later versions
 * accept. */
typedef struct ncclConfig {
    size_t size;
    unsigned magic, version;
    int blocking;
} ncclConfig;
enum { NCCL_CONFIG_MAGIC = 0xcafebeef, NCCL_CONFIG_VERSION = 21400 };

enum { ncclSuccess = 0, ncclInvalidUsage = 5, ncclRemoteError = 6, ncclInProgress = 7 };
enum { ncclChar = 0, ncclInt32 = 2, ncclFloat16 = 6, ncclFloat32 = 7, ncclFloat64 = 8 };
enum { ncclBfloat16 = 9 };
enum { ncclSum = 0 };

typedef struct nccl_library {
    ncclResult_t (*ncclGetUniqueId)(ncclUniqueId *id);
    ncclResult_t (*ncclCommInitRankConfig)(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                           ncclConfig *config);
    ncclResult_t (*ncclCommDestroy)(ncclComm_t comm);
    ncclResult_t (*ncclCommAbort)(ncclComm_t comm);
    ncclResult_t (*ncclCommGetAsyncError)(ncclComm_t comm, ncclResult_t *error);
    ncclResult_t (*ncclCommCount)(const ncclComm_t comm, int *ranks);
    ncclResult_t (*ncclCommUserRank)(const ncclComm_t comm, int *rank);
    ncclResult_t (*ncclCommCuDevice)(const ncclComm_t comm, int *ordinal);
    ncclResult_t (*ncclGroupStart)(void);
    ncclResult_t (*ncclGroupEnd)(void);
    ncclResult_t (*ncclSend)(const void *from, size_t count, int type, int rank, ncclComm_t comm,
                             CUstream stream);
    ncclResult_t (*ncclRecv)(void *to, size_t count, int type, int rank, ncclComm_t comm,
                             CUstream stream);
    ncclResult_t (*ncclAllGather)(const void *from, void *to, size_t count, int type,
                                  ncclComm_t comm, CUstream stream);
    ncclResult_t (*ncclReduceScatter)(const void *from, void *to, size_t count, int type,
                                      int operation, ncclComm_t comm, CUstream stream);
    ncclResult_t (*ncclAllReduce)(const void *from, void *to, size_t count, int type, int operation,
                                  ncclComm_t comm, CUstream stream);
    const char *(*ncclGetErrorString)(ncclResult_t result);
} nccl_library;

/* Loads NCCL ($TEGULA_LIBNCCL, else libnccl.so.2) and finds its functions. Returns TGL_OK or
 * TGL_UNSUPPORTED. */
tgl_status nccl_library_open(nccl_library *nccl);

#endif
