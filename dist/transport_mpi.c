/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport for MPI: nonblocking sends and receives of host memory. Waiting for messages is a
 * loop of MPI_Testall() with a deadline, so that a rank that has died gives a status and not a
 * hang. All memory is allocated when the transport is made, before the ranks agree that all have
 * it: later a rank without memory would leave the others waiting.
 */
#include "tegula/mpi.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MESSAGE_MAX = 1 << 30, /* maximum bytes of a message that MPI counts in bytes: the count is an
                              int */
    BLOCK = 1 << 20,       /* longer messages are counted in blocks of this many bytes */
    ROUND_BYTES = 1024,    /* of a rank, in a round of an all-gather */
    TAG = 1,
    GROUPS = 8, /* maximum number of groups of messages that are under way at the same time. A, B
                   and C in two steps need six */
};

typedef struct group {
    bool is_used;
    int count;
    MPI_Request *requests; /* [requests_of_group()] */
} group;

typedef struct state {
    MPI_Comm comm;
    MPI_Datatype block; /* BLOCK bytes */
    int ranks;
    double timeout_s;
    bool is_broken;
    bool owns_mpi; /* MPI was initialised here */
    group groups[GROUPS];
    int words[2];          /* of agree_on_memory() */
    MPI_Request *requests; /* of all groups */
    char *copies; /* of an all-gather: ROUND_BYTES of each rank, then ROUND_BYTES of this rank */
} state;

/* The most requests of a group: a message to each rank and one from each rank, in at most two parts
 * each (begin_message()). */
static size_t requests_of_group(int ranks)
{
    return 4 * (size_t)ranks;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static tgl_status fail(state *s, const char *message)
{
    s->is_broken = true;
    tgl_dist_set_error(message);
    return TGL_COMMUNICATION;
}

static const char failed[] =
    "MPI reported an error of a link or of another process; the communicator "
    "can only be closed";

/* Waits for all requests, until the timeout. Yields between two tests, because ranks may share a
 * processor. */
static tgl_status wait_all(state *s, int count, MPI_Request *requests)
{
    const double deadline = now() + s->timeout_s;
    for (;;) {
        int done = 0;
        if (MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
            return fail(s, failed);
        if (done) return TGL_OK;
        if (now() > deadline)
            return fail(s, "a rank did not answer within the timeout; the communicator can only be "
                           "closed");
        sched_yield();
    }
}

static int begin_part(state *s, const tgl_dist_message *m, size_t at, size_t count,
                      MPI_Datatype type, group *g)
{
    MPI_Request *request = &g->requests[g->count++];
    if (m->send != NULL)
        return MPI_Isend((const char *)m->send + at, (int)count, type, m->rank, TAG, s->comm,
                         request);
    return MPI_Irecv((char *)m->receive + at, (int)count, type, m->rank, TAG, s->comm, request);
}

/* Starts a message: a part of whole blocks if it is long, and a part that is counted in bytes.
 * False: MPI has failed. */
static bool begin_message(state *s, const tgl_dist_message *m, group *g)
{
    const size_t blocks = m->bytes > MESSAGE_MAX ? m->bytes / BLOCK : 0, at = blocks * BLOCK;
    if (blocks > 0 && begin_part(s, m, 0, blocks, s->block, g) != MPI_SUCCESS) return false;
    return at == m->bytes || begin_part(s, m, at, m->bytes - at, MPI_BYTE, g) == MPI_SUCCESS;
}

static tgl_status mpi_begin(void *given, const tgl_dist_message *messages, int count, void **begun)
{
    state *s = given;
    group *g = s->groups;
    while (g < s->groups + GROUPS && g->is_used)
        g++;
    if (g == s->groups + GROUPS || count > 2 * s->ranks)
        return fail(s, "too many groups of messages, or messages in a group");
    g->is_used = true;
    g->count = 0;
    for (int i = 0; i < count; i++)
        if (!begin_message(s, &messages[i], g)) return fail(s, failed);
    *begun = g;
    return TGL_OK;
}

static tgl_status mpi_wait(void *given, void *begun)
{
    group *g = begun;
    const tgl_status status = wait_all(given, g->count, g->requests);
    if (status == TGL_OK) g->is_used = false;
    return status;
}

/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): wait_all() waits by MPI_Testall() */
/* A round of an all-gather. stride: bytes from rank to rank in `all`. MPI works on copies of `mine`
 * and `all`, because it may still use them after a failure. */
static tgl_status gather_round(state *s, const char *mine, char *all, size_t stride, size_t bytes)
{
    MPI_Request request;
    char *own = s->copies + (size_t)ROUND_BYTES * (size_t)s->ranks;
    memcpy(own, mine, bytes);
    if (MPI_Iallgather(own, (int)bytes, MPI_BYTE, s->copies, (int)bytes, MPI_BYTE, s->comm,
                       &request) != MPI_SUCCESS)
        return fail(s, failed);
    const tgl_status status = wait_all(s, 1, &request);
    for (int rank = 0; rank < s->ranks && all != NULL && status == TGL_OK; rank++)
        memcpy(all + (size_t)rank * stride, s->copies + (size_t)rank * bytes, bytes);
    return status;
}
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

static tgl_status mpi_gather(void *given, const void *mine, void *all, size_t bytes)
{
    tgl_status status = TGL_OK;
    for (size_t at = 0; at < bytes && status == TGL_OK; at += ROUND_BYTES)
        status = gather_round(given, (const char *)mine + at, all != NULL ? (char *)all + at : NULL,
                              bytes, bytes - at < ROUND_BYTES ? bytes - at : ROUND_BYTES);
    return status;
}

/* Lets MPI work: it moves messages only while one of its functions runs. */
static void mpi_progress(void *given)
{
    state *s = given;
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, s->comm, &flag, MPI_STATUS_IGNORE);
}

static bool mpi_is_initialized(void)
{
    int flag = 0;
    MPI_Initialized(&flag);
    return flag;
}

static bool mpi_is_finalized(void)
{
    int flag = 0;
    MPI_Finalized(&flag);
    return flag;
}

static void free_state(state *s)
{
    if (s == NULL) return;
    if (s->block != MPI_DATATYPE_NULL) MPI_Type_free(&s->block);
    free(s->requests);
    free(s->copies);
    free(s);
}

/* Frees the communicator, but not after a failure, because MPI_Comm_free() is collective and a rank
 * may be lost, and MPI may still use the memory. */
static void mpi_close(void *given)
{
    state *s = given;
    if (s->is_broken) return;
    const bool is_live = !mpi_is_finalized(), ends = is_live && s->owns_mpi;
    if (is_live) MPI_Comm_free(&s->comm);
    if (!is_live) s->block = MPI_DATATYPE_NULL;
    free_state(s);
    if (ends) MPI_Finalize();
}

/* Allocates the state of a rank. NULL: no memory. */
static state *allocate(int ranks)
{
    state *s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    const size_t in_group = requests_of_group(ranks);
    s->block = MPI_DATATYPE_NULL;
    s->requests = malloc(sizeof(MPI_Request) * in_group * GROUPS);
    s->copies = malloc((size_t)ROUND_BYTES * ((size_t)ranks + 1));
    if (s->requests == NULL || s->copies == NULL ||
        MPI_Type_contiguous(BLOCK, MPI_BYTE, &s->block) != MPI_SUCCESS ||
        MPI_Type_commit(&s->block) != MPI_SUCCESS) {
        free_state(s);
        return NULL;
    }
    for (size_t i = 0; i < GROUPS; i++)
        s->groups[i].requests = s->requests + i * in_group;
    return s;
}

/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): wait_all() waits by MPI_Testall() */
/* Collective: whether all ranks have allocated their state. words: room for two numbers that MPI
 * may still use after the timeout. */
static tgl_status agree_on_memory(state *made, bool has_memory, int *words)
{
    MPI_Request request;
    words[0] = has_memory;
    if (MPI_Iallreduce(&words[0], &words[1], 1, MPI_INT, MPI_MIN, made->comm, &request) !=
        MPI_SUCCESS)
        return fail(made, failed);
    const tgl_status status = wait_all(made, 1, &request);
    if (status != TGL_OK || words[1]) return status;
    tgl_dist_set_error("a rank has no memory for a transport");
    return TGL_NO_MEMORY;
}
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

/* Makes the transport for the ranks of a communicator, which is duplicated. */
static tgl_status make_transport(MPI_Comm comm, double timeout_s, tgl_dist_transport *transport)
{
    state made = {.timeout_s = timeout_s > 0 ? timeout_s : 300};
    if (MPI_Comm_dup(comm, &made.comm) != MPI_SUCCESS)
        return tgl_dist_set_error("MPI_Comm_dup() failed"), TGL_COMMUNICATION;
    MPI_Comm_set_errhandler(made.comm, MPI_ERRORS_RETURN);
    MPI_Comm_size(made.comm, &made.ranks);
    static int without_memory[2];
    state *s = allocate(made.ranks);
    const tgl_status status =
        agree_on_memory(&made, s != NULL, s != NULL ? s->words : without_memory);
    if (made.is_broken) return status; /* MPI may still use *s */
    if (status != TGL_OK || s == NULL) {
        MPI_Comm_free(&made.comm);
        free_state(s);
        return status;
    }
    s->comm = made.comm;
    s->ranks = made.ranks;
    s->timeout_s = made.timeout_s;
    *transport = (tgl_dist_transport){.size = sizeof *transport,
                                      .name = "mpi",
                                      .ranks = s->ranks,
                                      .state = s,
                                      .gather = mpi_gather,
                                      .begin = mpi_begin,
                                      .wait = mpi_wait,
                                      .progress = mpi_progress,
                                      .close = mpi_close};
    MPI_Comm_rank(s->comm, &transport->rank);
    return TGL_OK;
}

/* Returns what is wrong with the arguments, for the error message; NULL: they are valid. */
static const char *argument_error(MPI_Comm comm, const tgl_device *dev,
                                  const tgl_mpi_options *options, tgl_dist **dist)
{
    if (dist == NULL || dev == NULL) return "the device or dist is NULL";
    if (!mpi_is_initialized() || mpi_is_finalized())
        return "MPI is not initialised, or is finalised";
    if (comm == MPI_COMM_NULL) return "the communicator is MPI_COMM_NULL";
    if (strcmp(tgl_device_name(dev), "cpu") != 0)
        return "MPI moves host memory: open the device cpu";
    if (options != NULL && (options->size < sizeof *options || !(options->timeout_s >= 0)))
        return "the size of the options is wrong, or the timeout is negative";
    return NULL;
}

tgl_status tgl_dist_open_mpi(MPI_Comm comm, tgl_device *dev, const tgl_mpi_options *options,
                             tgl_dist **dist)
{
    const char *error = argument_error(comm, dev, options, dist);
    if (dist != NULL) *dist = NULL;
    if (error != NULL) return tgl_dist_set_error(error), TGL_BAD_ARGUMENT;
    tgl_dist_transport transport;
    const tgl_status status =
        make_transport(comm, options != NULL ? options->timeout_s : 0, &transport);
    if (status != TGL_OK) return status;
    return tgl_dist_open(&transport, dev, options != NULL ? &options->machine : NULL, dist);
}

tgl_status tgl_dist_mpi_world(double timeout_s, tgl_dist_transport *transport)
{
    const char *error = transport == NULL    ? "the transport is NULL"
                        : !(timeout_s >= 0)  ? "the timeout is negative"
                        : mpi_is_finalized() ? "MPI is finalised, and cannot start again"
                                             : NULL;
    if (error != NULL) return tgl_dist_set_error(error), TGL_BAD_ARGUMENT;
    const bool starts = !mpi_is_initialized();
    if (starts && MPI_Init(NULL, NULL) != MPI_SUCCESS)
        return tgl_dist_set_error("MPI_Init() failed"), TGL_COMMUNICATION;
    const tgl_status status = make_transport(MPI_COMM_WORLD, timeout_s, transport);
    if (status == TGL_OK)
        ((state *)transport->state)->owns_mpi = starts;
    else if (starts)
        MPI_Finalize();
    return status;
}
