/* SPDX-License-Identifier: Apache-2.0
 *
 * libfake_nccl.so, a replacement of NCCL (TEGULA_LIBNCCL) whose ranks are threads of a process, and
 * whose device memory is host memory. As in a communicator of NCCL that does not block, calls
 * return ncclInProgress; they go on in ncclCommGetAsyncError(). A send copies its data at once.
 *
 * FAKE_NCCL_ERROR: the result of ncclCommGetAsyncError(), as of a link that failed.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
enum { SUCCESS = 0, INVALID_ARGUMENT = 4, IN_PROGRESS = 7 };
enum { WORLDS = 512, RANKS = 16, PENDING = 128 };

typedef struct message {
    int from, to, channel; /* 0: sends, 1: all-gathers */
    size_t bytes;
    char *data;
    struct message *next;
} message;

typedef struct world {
    int joined, left;
    message *messages, **end;
} world;

typedef struct receive {
    void *to;
    size_t bytes;
    int from, channel;
} receive;

typedef struct comm {
    world *world;
    int rank, ranks, device;
    bool is_joined;
    receive pending[PENDING];
    int count;
} comm;

typedef struct unique_id {
    char internal[128];
} unique_id;

typedef struct config {
    size_t size;
    unsigned magic, version;
    int blocking;
} config;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static world worlds[WORLDS];
static int world_count;

API int ncclGetUniqueId(unique_id *id)
{
    memset(id, 0, sizeof *id);
    pthread_mutex_lock(&lock);
    if (world_count == WORLDS) abort();
    worlds[world_count].end = &worlds[world_count].messages;
    snprintf(id->internal, sizeof id->internal, "%d", world_count++);
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

static int current_device(void)
{
    int device = -1;
    void *library = dlopen(getenv("TEGULA_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD);
    int (*get)(int *) = library != NULL ? (int (*)(int *))dlsym(library, "cuCtxGetDevice") : NULL;
    if (get == NULL || get(&device) != 0) return -1;
    dlclose(library);
    return device;
}

API int ncclCommInitRankConfig(comm **made, int ranks, unique_id id, int rank, config *c)
{
    const int device = current_device();
    if (c->size < sizeof *c || c->magic != 0xcafebeef || c->blocking != 0 || device < 0)
        return INVALID_ARGUMENT;
    *made = calloc(1, sizeof **made);
    **made =
        (comm){.world = &worlds[atoi(id.internal)], .rank = rank, .ranks = ranks, .device = device};
    pthread_mutex_lock(&lock);
    (*made)->world->joined++;
    pthread_mutex_unlock(&lock);
    return IN_PROGRESS;
}

static int leave(comm *c)
{
    pthread_mutex_lock(&lock);
    world *w = c->world;
    if (++w->left == w->joined)
        while (w->messages != NULL) {
            message *next = w->messages->next;
            free(w->messages->data);
            free(w->messages);
            w->messages = next;
        }
    pthread_mutex_unlock(&lock);
    free(c);
    return SUCCESS;
}

API int ncclCommDestroy(comm *c)
{
    return leave(c);
}

API int ncclCommAbort(comm *c)
{
    return leave(c);
}

/* Whether the message of a receive has come. */
static bool receive_now(const comm *c, const receive *r)
{
    world *w = c->world;
    for (message **at = &w->messages; *at != NULL; at = &(*at)->next) {
        message *m = *at;
        if (m->from != r->from || m->to != c->rank || m->channel != r->channel) continue;
        if (m->bytes != r->bytes) abort();
        memcpy(r->to, m->data, m->bytes);
        *at = m->next;
        if (w->end == &m->next) w->end = at;
        free(m->data);
        free(m);
        return true;
    }
    return false;
}

API int ncclCommGetAsyncError(comm *c, int *error)
{
    const char *told = getenv("FAKE_NCCL_ERROR");
    pthread_mutex_lock(&lock);
    c->is_joined = c->is_joined || c->world->joined == c->ranks;
    int kept = 0;
    for (int i = 0; i < c->count; i++)
        if (kept > 0 || !receive_now(c, &c->pending[i])) c->pending[kept++] = c->pending[i];
    c->count = kept;
    *error = c->is_joined && kept == 0 ? SUCCESS : IN_PROGRESS;
    pthread_mutex_unlock(&lock);
    if (told != NULL) *error = atoi(told);
    return SUCCESS;
}

API int ncclCommCount(const comm *c, int *ranks)
{
    *ranks = c->ranks;
    return SUCCESS;
}

API int ncclCommUserRank(const comm *c, int *rank)
{
    *rank = c->rank;
    return SUCCESS;
}

API int ncclCommCuDevice(const comm *c, int *device)
{
    *device = c->device;
    return SUCCESS;
}

API int ncclGroupStart(void)
{
    return SUCCESS;
}

API int ncclGroupEnd(void)
{
    return IN_PROGRESS;
}

static int give(comm *c, const void *from, size_t bytes, int to, int channel)
{
    message *m = malloc(sizeof *m);
    *m = (message){c->rank, to, channel, bytes, malloc(bytes), NULL};
    memcpy(m->data, from, bytes);
    pthread_mutex_lock(&lock);
    *c->world->end = m;
    c->world->end = &m->next;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

static int expect(comm *c, void *to, size_t bytes, int from, int channel)
{
    if (c->count == PENDING) abort();
    c->pending[c->count++] = (receive){to, bytes, from, channel};
    return IN_PROGRESS;
}

API int ncclSend(const void *from, size_t bytes, int type, int rank, comm *c, void *stream)
{
    (void)stream;
    return type == 0 ? give(c, from, bytes, rank, 0) : INVALID_ARGUMENT;
}

API int ncclRecv(void *to, size_t bytes, int type, int rank, comm *c, void *stream)
{
    (void)stream;
    return type == 0 ? expect(c, to, bytes, rank, 0) : INVALID_ARGUMENT;
}

API int ncclAllGather(const void *from, void *to, size_t bytes, int type, comm *c, void *stream)
{
    (void)stream;
    if (type != 0) return INVALID_ARGUMENT;
    for (int rank = 0; rank < c->ranks; rank++)
        give(c, from, bytes, rank, 1);
    for (int rank = 0; rank < c->ranks; rank++)
        expect(c, (char *)to + (size_t)rank * bytes, bytes, rank, 1);
    return IN_PROGRESS;
}

API const char *ncclGetErrorString(int result)
{
    return result == 6 ? "remote process exited or there was a network error" : "an error";
}
