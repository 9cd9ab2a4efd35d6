/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport for MPI: nonblocking sends and receives of host memory. Waiting
 * for messages is a loop of MPI_Testall() with a deadline, so that a rank that has died gives a
 * status and not a hang.
 */
#include "tegula/mpi.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MESSAGE_MAX = 1 << 30, /* maximum bytes of one MPI message, because MPI counts in int */
    TAG = 1,
    GROUPS = 8, /* maximum number of groups of messages that are under way at the same time. A, B
                   and C in two steps need six */
};

typedef struct group {
    MPI_Request *requests; /* NULL: the group is unused */
    int count;
    char *copies; /* of an all-gather: memory for the data of all ranks, then for the data of this
                     rank; of other groups: NULL */
} group;

typedef struct state {
    MPI_Comm comm;
    double timeout_s;
    bool is_broken;
    bool owns_mpi; /* MPI was initialised here */
    group groups[GROUPS];
} state;

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

/* Starts a message, in parts of at most MESSAGE_MAX bytes. False: MPI has failed. */
static bool begin_message(state *s, const tgl_dist_message *m, group *g)
{
    for (size_t at = 0; at < m->bytes; at += MESSAGE_MAX) {
        const int bytes = m->bytes - at < MESSAGE_MAX ? (int)(m->bytes - at) : MESSAGE_MAX;
        MPI_Request *request = &g->requests[g->count++];
        const int code = m->send != NULL ? MPI_Isend((const char *)m->send + at, bytes, MPI_BYTE,
                                                     m->rank, TAG, s->comm, request)
                                         : MPI_Irecv((char *)m->receive + at, bytes, MPI_BYTE,
                                                     m->rank, TAG, s->comm, request);
        if (code != MPI_SUCCESS) return false;
    }
    return true;
}

/* Finds an unused group and allocates `requests` requests. NULL: all groups are in use, or out of
 * memory; the transport can then only be closed. */
static group *new_group(state *s, size_t requests)
{
    group *g = s->groups;
    while (g < s->groups + GROUPS && g->requests != NULL)
        g++;
    MPI_Request *list = g < s->groups + GROUPS ? calloc(requests, sizeof(MPI_Request)) : NULL;
    if (list == NULL) {
        s->is_broken = true;
        tgl_dist_set_error("no memory for the requests of MPI");
        return NULL;
    }
    *g = (group){list, 0, NULL};
    return g;
}

static tgl_status mpi_begin(void *given, const tgl_dist_message *messages, int count, void **begun)
{
    state *s = given;
    size_t requests = 1;
    for (int i = 0; i < count; i++)
        requests += (messages[i].bytes - 1) / MESSAGE_MAX + 1;
    group *g = new_group(s, requests);
    if (g == NULL) return TGL_NO_MEMORY;
    for (int i = 0; i < count; i++)
        if (!begin_message(s, &messages[i], g)) return fail(s, failed);
    *begun = g;
    return TGL_OK;
}

static tgl_status mpi_wait(void *given, void *begun)
{
    state *s = given;
    group *g = begun;
    const tgl_status status = wait_all(s, g->count, g->requests);
    if (status != TGL_OK)
        return status; /* the requests are not freed, because MPI may still use
                          them */
    free(g->requests);
    g->requests = NULL;
    return TGL_OK;
}

/* A group for an all-gather of `bytes` bytes per rank; NULL: out of memory. */
static group *new_gathering(state *s, int ranks, size_t bytes)
{
    group *g = new_group(s, 1);
    if (g == NULL) return NULL;
    g->copies = malloc(bytes * ((size_t)ranks + 1));
    if (g->copies != NULL) return g;
    s->is_broken = true;
    tgl_dist_set_error("no memory for an all-gather of MPI");
    return NULL;
}

/* MPI works on copies of `mine` and `all`. After a failure MPI may still use the copies, so the
 * group keeps them; the caller may free `mine` and `all`. */
static tgl_status mpi_gather(void *given, const void *mine, void *all, size_t bytes)
{
    state *s = given;
    int ranks = 0;
    MPI_Comm_size(s->comm, &ranks);
    group *g = new_gathering(s, ranks, bytes);
    if (g == NULL) return TGL_NO_MEMORY;
    char *copies = g->copies, *own = copies + bytes * (size_t)ranks;
    memcpy(own, mine, bytes);
    if (MPI_Iallgather(own, (int)bytes, MPI_BYTE, copies, (int)bytes, MPI_BYTE, s->comm,
                       &g->requests[g->count++]) != MPI_SUCCESS)
        return fail(s, failed);
    const tgl_status status = mpi_wait(s, g);
    if (status != TGL_OK) return status;
    memcpy(all, copies, bytes * (size_t)ranks);
    free(copies);
    return TGL_OK;
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

/* Frees the communicator, but not after a failure, because MPI_Comm_free() is collective and a rank
 * may be lost. */
static void mpi_close(void *given)
{
    state *s = given;
    if (s->is_broken) return;
    if (!mpi_is_finalized()) {
        MPI_Comm_free(&s->comm);
        if (s->owns_mpi) MPI_Finalize();
    }
    free(s);
}

/* Makes the transport for the ranks of a communicator, which is duplicated. */
static tgl_status make_transport(MPI_Comm comm, double timeout_s, tgl_dist_transport *transport)
{
    MPI_Comm own; /* duplicated first: MPI_Comm_dup() is collective, and a later failure may be on
                     one rank only */
    if (MPI_Comm_dup(comm, &own) != MPI_SUCCESS)
        return tgl_dist_set_error("MPI_Comm_dup() failed"), TGL_COMMUNICATION;
    state *s = calloc(1, sizeof *s);
    if (s == NULL) {
        MPI_Comm_free(&own);
        return tgl_dist_set_error("no memory for a transport"), TGL_NO_MEMORY;
    }
    s->comm = own;
    s->timeout_s = timeout_s > 0 ? timeout_s : 300;
    MPI_Comm_set_errhandler(s->comm, MPI_ERRORS_RETURN);
    *transport = (tgl_dist_transport){.size = sizeof *transport,
                                      .name = "mpi",
                                      .state = s,
                                      .gather = mpi_gather,
                                      .begin = mpi_begin,
                                      .wait = mpi_wait,
                                      .progress = mpi_progress,
                                      .close = mpi_close};
    MPI_Comm_rank(s->comm, &transport->rank);
    MPI_Comm_size(s->comm, &transport->ranks);
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
