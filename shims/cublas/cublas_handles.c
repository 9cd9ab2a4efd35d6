/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of handles that products need. cuBLAS has functions that return the stream and the
 * modes, but none for the workspace. So the functions that change the workspace are replaced:
 *
 *   cublasSetWorkspace()   sets the caller's workspace
 *   cublasSetStream()      ends the use of the caller's workspace
 *   cublasDestroy()        destroys the handle, whose address cuBLAS may give to a new handle. Also
 *                          waits for the GPU and frees the workspace that Tegula has allocated, as
 *                          cuBLAS frees its own.
 */
#include "cublas_shim.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct known_handle {
    cublasHandle_t handle; /* NULL: the row is free */
    cublas_workspace workspace;
} known_handle;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static known_handle *handles; /* handles for which the caller has set a workspace */
static int handle_count;

/* The locks of handles. A hash of the handle's address selects one. There are few, because
 * before_fork() takes all of them, and ThreadSanitizer supports at most 64 held locks per
 * thread. */
enum { LOCKS = 32 };
static pthread_mutex_t locks[LOCKS];

__attribute__((constructor)) static void make_locks(void)
{
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_init(&locks[i], NULL);
}

/* The lock of a handle; several handles may share one. The multiplier is Knuth's for multiplicative
 * hashing, 2^64 / golden ratio. */
static pthread_mutex_t *lock_of(cublasHandle_t handle)
{
    const uint64_t hash = (uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u;
    return &locks[hash >> 32 & (LOCKS - 1)];
}

void cublas_handles_lock(void)
{
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_lock(&locks[i]);
    pthread_mutex_lock(&lock);
}

void cublas_handles_unlock(void)
{
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_unlock(&locks[i]);
}

/* The entry of a handle; NULL: there is none. The caller must hold `lock`. */
static known_handle *find(cublasHandle_t handle)
{
    for (int i = 0; i < handle_count; i++)
        if (handles[i].handle == handle) return &handles[i];
    return NULL;
}

/* Adds an empty entry; NULL: out of memory. The caller must hold `lock`. */
static known_handle *add(void)
{
    known_handle *free_row = find(NULL);
    if (free_row != NULL) return free_row;
    known_handle *more = realloc(handles, (size_t)(handle_count + 1) * sizeof *handles);
    if (more == NULL) return NULL;
    handles = more;
    return &handles[handle_count++];
}

static void forget(cublasHandle_t handle)
{
    pthread_mutex_lock(&lock);
    known_handle *row = find(handle);
    if (row != NULL) *row = (known_handle){.handle = NULL};
    pthread_mutex_unlock(&lock);
}

/* Stores the workspace of a handle. If there is no memory for the entry, products use the workspace
 * of the device instead. */
static void remember(cublasHandle_t handle, const cublas_workspace *workspace)
{
    pthread_mutex_lock(&lock);
    known_handle *row = find(handle);
    if (row == NULL) row = add();
    if (row != NULL) *row = (known_handle){handle, *workspace};
    pthread_mutex_unlock(&lock);
}

/* ---- Replaced functions ---------------------------------------------------------------------- */

CUBLAS_EXPORT cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace,
                                                   size_t bytes)
{
    const cublasStatus_t status =
        CUBLAS_FORWARD(NULL, cublasSetWorkspace_v2, (handle, workspace, bytes));
    if (status == CUBLAS_STATUS_SUCCESS)
        remember(handle, &(cublas_workspace){true, bytes > 0 ? workspace : NULL, bytes});
    return status;
}

CUBLAS_EXPORT cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    const cublasStatus_t status = CUBLAS_FORWARD(NULL, cublasSetStream_v2, (handle, stream));
    if (status == CUBLAS_STATUS_SUCCESS) forget(handle);
    return status;
}

/* The entry is removed before the handle is destroyed, because cuBLAS may give the same address to
 * a new handle of another thread at once. */
CUBLAS_EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    if (handle != NULL) forget(handle);
    const cublasStatus_t status = CUBLAS_FORWARD(NULL, cublasDestroy_v2, (handle));
    if (status == CUBLAS_STATUS_SUCCESS) cublas_release_workspace();
    return status;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static cublas_workspace workspace_of(cublasHandle_t handle)
{
    pthread_mutex_lock(&lock);
    const known_handle *row = find(handle);
    const cublas_workspace workspace =
        row != NULL ? row->workspace : (cublas_workspace){.is_given = false};
    pthread_mutex_unlock(&lock);
    return workspace;
}

bool cublas_read_handle(cublasHandle_t handle, cublas_product *p)
{
    __typeof__(&cublasGetStream_v2) get_stream = CUBLAS_REAL(cublasGetStream_v2);
    __typeof__(&cublasGetPointerMode_v2) get_pointer_mode = CUBLAS_REAL(cublasGetPointerMode_v2);
    __typeof__(&cublasGetMathMode) get_math_mode = CUBLAS_REAL(cublasGetMathMode);
    __typeof__(&cublasGetSmCountTarget) get_sms = CUBLAS_REAL(cublasGetSmCountTarget);
    cublasPointerMode_t mode;
    int sms;
    if (get_stream == NULL || get_pointer_mode == NULL || get_math_mode == NULL || get_sms == NULL)
        return cublas_refuse(p, "cuBLAS lacks a function that reads the handle");
    if (handle == NULL || get_stream(handle, &p->stream) != CUBLAS_STATUS_SUCCESS ||
        get_pointer_mode(handle, &mode) != CUBLAS_STATUS_SUCCESS ||
        get_math_mode(handle, &p->math) != CUBLAS_STATUS_SUCCESS)
        return cublas_refuse(p, "the handle cannot be read");
    if (get_sms(handle, &sms) != CUBLAS_STATUS_SUCCESS || sms != 0)
        return cublas_refuse(p, "the handle limits the SMs");
    if (mode != CUBLAS_POINTER_MODE_HOST && mode != CUBLAS_POINTER_MODE_DEVICE)
        return cublas_refuse(p, "pointer mode %d", mode);
    p->has_device_scalars = mode == CUBLAS_POINTER_MODE_DEVICE;
    p->lock = lock_of(handle);
    p->workspace = workspace_of(handle);
    return true;
}
