/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads NCCL at run time.
 */
#include "nccl_library.h"

#include "dist_error.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

#define ENTRY(name)                                                                                \
    {                                                                                              \
        offsetof(nccl_library, name), #name                                                        \
    }

static const library_entry table[] = {
    ENTRY(ncclGetUniqueId),
    ENTRY(ncclCommInitRankConfig),
    ENTRY(ncclCommDestroy),
    ENTRY(ncclCommAbort),
    ENTRY(ncclCommGetAsyncError),
    ENTRY(ncclCommCount),
    ENTRY(ncclCommUserRank),
    ENTRY(ncclCommCuDevice),
    ENTRY(ncclGroupStart),
    ENTRY(ncclGroupEnd),
    ENTRY(ncclSend),
    ENTRY(ncclRecv),
    ENTRY(ncclAllGather),
    ENTRY(ncclReduceScatter),
    ENTRY(ncclAllReduce),
    ENTRY(ncclGetErrorString),
    {0, NULL},
};

/* The library is never closed, because NCCL has started threads that run its code. */
tgl_status nccl_library_open(nccl_library *nccl)
{
    const char *own = secure_getenv("TEGULA_LIBNCCL");
    void *library = dlopen(own != NULL && own[0] != '\0' ? own : "libnccl.so.2",
                           RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL)
        return dist_fail(TGL_UNSUPPORTED,
                         "NCCL was not found (%s); install Debian's libnccl2 or the Python package "
                         "nvidia-nccl-cu13, and put its folder into LD_LIBRARY_PATH",
                         dlerror());
    const char *missing = library_find(library, table, nccl);
    if (missing == NULL) return TGL_OK;
    return dist_fail(TGL_UNSUPPORTED,
                     "NCCL is too old: it has no %s; install version 2.14 or later", missing);
}
