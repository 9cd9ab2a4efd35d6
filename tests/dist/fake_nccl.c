/* SPDX-License-Identifier: Apache-2.0
 *
 * libfake_nccl.so: a replacement of NCCL (TEGULA_LIBNCCL) whose ranks are threads or processes of
 * one host, and whose device memory is host memory. A message is a file in a folder that the unique
 * id names; a send writes it at once. With a non-blocking communicator, calls return ncclInProgress
 * as in NCCL, and receives are completed in ncclCommGetAsyncError(). With a blocking one, calls are
 * complete when they return.
 *
 * FAKE_NCCL_ERROR: the result of ncclCommGetAsyncError(), as after the failure of a link.
 * FAKE_NCCL_COLLECT: the result of operations of a blocking communicator.
 * FAKE_NCCL_FOLDER: the folder in which the folders of communicators are made (/dev/shm).
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
enum { SUCCESS = 0, INVALID_ARGUMENT = 4, REMOTE_ERROR = 6, IN_PROGRESS = 7 };
enum { RANKS = 16, PENDING = 128, PATH = 256 };
enum { SENDS, GATHERS, CHANNELS };

typedef struct receive {
    void *to;
    size_t bytes;
    int from, channel;
} receive;

typedef struct unique_id {
    char internal[128]; /* path of the folder */
} unique_id;

typedef struct comm {
    unique_id id;
    int rank, ranks, device;
    bool is_joined, is_blocking;
    int sent[CHANNELS][RANKS], received[CHANNELS][RANKS]; /* messages to and from each rank */
    receive pending[PENDING];
    int count;
} comm;

typedef struct config {
    size_t size;
    unsigned magic, version;
    int blocking;
} config;

enum { F32 = 7, F64 = 8, I32 = 2, SUM = 0 };

/* Numbers of operations of blocking communicators in this process. */
static atomic_int gathered, scattered, reduced;
API int fake_nccl_gathered(void)
{
    return gathered;
}

API int fake_nccl_scattered(void)
{
    return scattered;
}

API int fake_nccl_reduced(void)
{
    return reduced;
}

/* Number of messages that ncclSend() has sent in this process. */
static atomic_int messages;
API int fake_nccl_messages(void)
{
    return messages;
}

/* The name of a new folder. The first rank that joins makes the folder. */
API int ncclGetUniqueId(unique_id *id)
{
    static atomic_int count;
    struct timespec time;
    const char *folder = getenv("FAKE_NCCL_FOLDER");
    clock_gettime(CLOCK_REALTIME, &time);
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "%s/fake-nccl-%d-%d-%lld%09ld",
             folder != NULL ? folder : "/dev/shm", (int)getpid(), count++, (long long)time.tv_sec,
             time.tv_nsec);
    return SUCCESS;
}

/* ---- Joining and leaving --------------------------------------------------------------------- */

static void write_file(const char *path, const void *data, size_t bytes)
{
    char unfinished[PATH + 8];
    snprintf(unfinished, sizeof unfinished, "%s.part", path);
    const int fd = open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes || close(fd) != 0 ||
        rename(unfinished, path) != 0)
        abort();
}

/* Makes an empty file that says that this rank has joined or left. */
static void sign(const comm *c, const char *what)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s-%d", c->id.internal, what, c->rank);
    write_file(path, "", 0);
}

static bool all_have(const comm *c, const char *what)
{
    for (int rank = 0; rank < c->ranks; rank++) {
        char path[PATH];
        snprintf(path, sizeof path, "%s/%s-%d", c->id.internal, what, rank);
        if (access(path, F_OK) != 0) return false;
    }
    return true;
}

static int wait_for_all(comm *c)
{
    enum { SECONDS = 20 };
    const time_t end = time(NULL) + SECONDS;
    while (!all_have(c, "joined") && time(NULL) < end)
        sched_yield();
    c->is_joined = all_have(c, "joined");
    return c->is_joined ? SUCCESS : REMOTE_ERROR;
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
    if (c->size < sizeof *c || c->magic != 0xcafebeef || device < 0 || ranks > RANKS)
        return INVALID_ARGUMENT;
    *made = calloc(1, sizeof **made);
    **made = (comm){.id = id, .rank = rank, .ranks = ranks, .device = device};
    (*made)->is_blocking = c->blocking != 0;
    (void)mkdir(id.internal, 0700);
    sign(*made, "joined");
    return c->blocking != 0 ? wait_for_all(*made) : IN_PROGRESS;
}

/* Leaves the communicator. The last rank removes the folder. */
static int leave(comm *c)
{
    sign(c, "left");
    DIR *folder = all_have(c, "left") ? opendir(c->id.internal) : NULL;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder != NULL) closedir(folder), rmdir(c->id.internal);
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

/* ---- Messages -------------------------------------------------------------------------------- */

static void message_path(const comm *c, int from, int to, int channel, int number, char path[PATH])
{
    snprintf(path, PATH, "%s/%d-%d-%d-%d", c->id.internal, channel, from, to, number);
}

/* Reads the message of a receive. Returns whether it has arrived. */
static bool receive_now(comm *c, const receive *r)
{
    char path[PATH];
    struct stat file;
    message_path(c, r->from, c->rank, r->channel, c->received[r->channel][r->from], path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    if (fstat(fd, &file) != 0 || (size_t)file.st_size != r->bytes ||
        read(fd, r->to, r->bytes) != (ssize_t)r->bytes)
        abort();
    close(fd);
    unlink(path);
    c->received[r->channel][r->from]++;
    return true;
}

API int ncclCommGetAsyncError(comm *c, int *error)
{
    const char *told = getenv("FAKE_NCCL_ERROR");
    c->is_joined = c->is_joined || all_have(c, "joined");
    int kept = 0;
    for (int i = 0; i < c->count; i++)
        if (kept > 0 || !receive_now(c, &c->pending[i])) c->pending[kept++] = c->pending[i];
    c->count = kept;
    *error = c->is_joined && kept == 0 ? SUCCESS : IN_PROGRESS;
    if (told != NULL) *error = atoi(told);
    return SUCCESS;
}

static int give(comm *c, const void *from, size_t bytes, int to, int channel)
{
    char path[PATH];
    message_path(c, c->rank, to, channel, c->sent[channel][to]++, path);
    write_file(path, from, bytes);
    return SUCCESS;
}

static int expect(comm *c, void *to, size_t bytes, int from, int channel)
{
    if (c->count == PENDING) abort();
    c->pending[c->count++] = (receive){to, bytes, from, channel};
    return IN_PROGRESS;
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

API int ncclSend(const void *from, size_t bytes, int type, int rank, comm *c, void *stream)
{
    (void)stream;
    messages++;
    return type == 0 ? give(c, from, bytes, rank, SENDS) : INVALID_ARGUMENT;
}

API int ncclRecv(void *to, size_t bytes, int type, int rank, comm *c, void *stream)
{
    (void)stream;
    return type == 0 ? expect(c, to, bytes, rank, SENDS) : INVALID_ARGUMENT;
}

/* Waits until all pending receives are complete. */
static int finish(comm *c)
{
    enum { SECONDS = 20 };
    const time_t end = time(NULL) + SECONDS;
    int error = IN_PROGRESS;
    while (error == IN_PROGRESS && time(NULL) < end) {
        ncclCommGetAsyncError(c, &error);
        sched_yield();
    }
    return error == IN_PROGRESS ? REMOTE_ERROR : error;
}

/* Sends `bytes` bytes, at from + rank*stride, to each rank, and receives as many from each rank. */
static void give_all(comm *c, const char *from, size_t stride, char *to, size_t bytes)
{
    for (int rank = 0; rank < c->ranks; rank++)
        give(c, from + (size_t)rank * stride, bytes, rank, GATHERS);
    for (int rank = 0; rank < c->ranks; rank++)
        expect(c, to + (size_t)rank * bytes, bytes, rank, GATHERS);
}

API int ncclAllGather(const void *from, void *to, size_t bytes, int type, comm *c, void *stream)
{
    const char *told = getenv("FAKE_NCCL_COLLECT");
    (void)stream;
    if (type != 0) return INVALID_ARGUMENT;
    if (c->is_blocking && told != NULL) return atoi(told);
    give_all(c, from, 0, to, bytes);
    gathered += c->is_blocking;
    return c->is_blocking ? finish(c) : IN_PROGRESS;
}

static void add(void *to, const void *from, size_t count, int type)
{
    for (size_t i = 0; i < count; i++)
        if (type == F32)
            ((float *)to)[i] += ((const float *)from)[i];
        else if (type == F64)
            ((double *)to)[i] += ((const double *)from)[i];
        else
            ((unsigned *)to)[i] += ((const unsigned *)from)[i];
}

/* to := the sum, over all ranks, of the `count` elements at from + (this rank)*stride. */
static int reduce(const void *from, size_t stride, void *to, size_t count, int type, int operation,
                  comm *c)
{
    const char *told = getenv("FAKE_NCCL_COLLECT");
    const size_t element = type == F64 ? sizeof(double) : sizeof(float), bytes = count * element;
    if (told != NULL) return atoi(told);
    if (operation != SUM || !c->is_blocking || (type != F32 && type != F64 && type != I32))
        return INVALID_ARGUMENT;
    char *all = malloc(bytes * (size_t)c->ranks);
    give_all(c, from, stride * element, all, bytes);
    const int result = finish(c);
    memcpy(to, all, bytes);
    for (int rank = 1; rank < c->ranks; rank++)
        add(to, all + (size_t)rank * bytes, count, type);
    free(all);
    return result;
}

API int ncclReduceScatter(const void *from, void *to, size_t count, int type, int operation,
                          comm *c, void *stream)
{
    (void)stream;
    scattered++;
    return reduce(from, count, to, count, type, operation, c);
}

API int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation, comm *c,
                      void *stream)
{
    (void)stream;
    reduced++;
    return reduce(from, 0, to, count, type, operation, c);
}

API const char *ncclGetErrorString(int result)
{
    return result == 6 ? "remote process exited or there was a network error" : "an error";
}
