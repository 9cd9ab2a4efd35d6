/* SPDX-License-Identifier: Apache-2.0
 *
 * The communicator, and agreements between its ranks.
 */
#include "dist_comm.h"

#include "dist_error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The machine that is assumed by default: each rank is one core of a server processor, and the
 * ranks share its memory. The numbers are modelled, not measured. */
static const tgl_dist_machine default_machine = {.flops_per_s = 50e9,
                                                 .f32_rate = 2,
                                                 .half_rate = 4,
                                                 .bytes_per_s = 4e9,
                                                 .latency_s = 5e-6,
                                                 .memory_per_s = 8e9};

static double given_or(double given, double otherwise)
{
    return given > 0 ? given : otherwise;
}

tgl_dist_machine dist_machine_of(const tgl_dist_machine *given)
{
    const tgl_dist_machine none = {0}, *m = given != NULL ? given : &none;
    return (tgl_dist_machine){.size = sizeof(tgl_dist_machine),
                              .flops_per_s = given_or(m->flops_per_s, default_machine.flops_per_s),
                              .f32_rate = given_or(m->f32_rate, default_machine.f32_rate),
                              .half_rate = given_or(m->half_rate, default_machine.half_rate),
                              .operand_bytes_per_s = given_or(m->operand_bytes_per_s, 0),
                              .product_s = given_or(m->product_s, 0),
                              .moves_alone = m->moves_alone,
                              .bytes_per_s = given_or(m->bytes_per_s, default_machine.bytes_per_s),
                              .latency_s = given_or(m->latency_s, default_machine.latency_s),
                              .memory_per_s =
                                  given_or(m->memory_per_s, default_machine.memory_per_s),
                              .collective_s = given_or(m->collective_s, 0),
                              .wave_elements = given_or(m->wave_elements, 0)};
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static const char *transport_error(const tgl_dist_transport *t)
{
    if (t->size < sizeof *t) return "the size of the transport is wrong";
    if (t->rank < 0 || t->rank >= t->ranks) return "the rank is outside the communicator";
    if (t->gather == NULL || t->begin == NULL || t->wait == NULL || t->close == NULL)
        return "the transport lacks a function";
    if ((t->allocate == NULL) != (t->release == NULL)) return "allocate() or release() is missing";
    if (t->collect != NULL && (t->copy == NULL || t->add == NULL))
        return "a transport with collect() needs copy() and add()";
    return NULL;
}

tgl_dist *dist_reserve(int ranks)
{
    tgl_dist *dist = calloc(1, sizeof *dist);
    if (dist == NULL) return NULL;
    dist->room = malloc((size_t)DIST_ROOM * (size_t)ranks);
    if (dist->room != NULL) return dist;
    free(dist);
    return NULL;
}

void dist_fill(tgl_dist *reserved, const tgl_dist_transport *transport, tgl_device *dev,
               const tgl_dist_machine *machine)
{
    reserved->transport = *transport;
    reserved->dev = dev;
    reserved->machine = dist_machine_of(machine);
    if (transport->collect == NULL) reserved->machine.collective_s = 0;
}

void dist_discard(tgl_dist *dist)
{
    if (dist == NULL) return;
    free(dist->room);
    free(dist);
}

/* Collective: fails if `status` of a rank is not TGL_OK. all: memory for a status of each rank;
 * NULL: none, and `status` is not TGL_OK. */
static tgl_status agree_to_open(const tgl_dist_transport *t, tgl_status status, int *all)
{
    const int mine = (int)status;
    const tgl_status link = t->gather(t->state, &mine, all, sizeof mine);
    if (status != TGL_OK || link != TGL_OK) return status != TGL_OK ? status : link;
    for (int rank = 0; rank < t->ranks; rank++)
        if (all[rank] != TGL_OK)
            return dist_fail((tgl_status)all[rank], "rank %d cannot open the communicator: %s",
                             rank, tgl_status_text((tgl_status)all[rank]));
    return TGL_OK;
}

tgl_status tgl_dist_open(const tgl_dist_transport *transport, tgl_device *dev,
                         const tgl_dist_machine *machine, tgl_dist **dist)
{
    if (dist != NULL) *dist = NULL;
    if (transport == NULL) return dist_fail(TGL_BAD_ARGUMENT, "the transport is NULL");
    const char *error = transport_error(transport);
    if (error == NULL && dist == NULL) error = "dist is NULL";
    if (error != NULL) {
        if (transport->close != NULL) transport->close(transport->state);
        return dist_fail(TGL_BAD_ARGUMENT, "%s", error);
    }
    tgl_dist *made = dist_reserve(transport->ranks);
    tgl_status status = TGL_OK;
    if (made == NULL) status = dist_fail(TGL_NO_MEMORY, "no memory for a communicator");
    if (dev == NULL) status = dist_fail(TGL_BAD_ARGUMENT, "the device is NULL");
    status = agree_to_open(transport, status, made != NULL ? made->room : NULL);
    if (status != TGL_OK) {
        transport->close(transport->state);
        dist_discard(made);
        return status;
    }
    dist_fill(made, transport, dev, machine);
    *dist = made;
    return TGL_OK;
}

void tgl_dist_close(tgl_dist *dist)
{
    if (dist == NULL) return;
    dist->transport.close(dist->transport.state);
    dist_discard(dist);
}

int tgl_dist_rank(const tgl_dist *dist)
{
    return dist->transport.rank;
}

int tgl_dist_ranks(const tgl_dist *dist)
{
    return dist->transport.ranks;
}

tgl_status tgl_dist_synchronize(tgl_dist *dist)
{
    if (dist == NULL) return dist_fail(TGL_BAD_ARGUMENT, "dist is NULL");
    if (dist->is_broken) return dist_fail(TGL_COMMUNICATION, "the communicator lost a rank before");
    if (dist->transport.synchronize == NULL) return TGL_OK;
    const tgl_status status = dist->transport.synchronize(dist->transport.state);
    return status == TGL_COMMUNICATION ? dist_check_link(dist, status) : status;
}

tgl_status tgl_dist_set_stream(tgl_dist *dist, void *stream)
{
    if (dist == NULL) return dist_fail(TGL_BAD_ARGUMENT, "dist is NULL");
    if (dist->transport.set_stream == NULL)
        return dist_fail(TGL_UNSUPPORTED, "this transport has no streams");
    dist->transport.set_stream(dist->transport.state, stream);
    dist->transport.stream = stream;
    return TGL_OK;
}

/* ---- Agreements ------------------------------------------------------------------------------ */

tgl_status dist_check_link(tgl_dist *dist, tgl_status status)
{
    if (status != TGL_OK) dist->is_broken = true;
    return status;
}

tgl_status dist_gather(tgl_dist *dist, const void *mine, size_t bytes, const void **all)
{
    *all = dist->room;
    if (dist->is_broken)
        return dist_fail(TGL_COMMUNICATION,
                         "the communicator lost a rank before: it can only be closed");
    return dist_check_link(dist,
                           dist->transport.gather(dist->transport.state, mine, dist->room, bytes));
}

tgl_status dist_exchange(tgl_dist *dist, const tgl_dist_message *messages, int count)
{
    const tgl_dist_transport *t = &dist->transport;
    void *group;
    if (t->exchange != NULL) return dist_check_link(dist, t->exchange(t->state, messages, count));
    DIST_TRY(dist_check_link(dist, t->begin(t->state, messages, count, &group)));
    return dist_check_link(dist, t->wait(t->state, group));
}

typedef struct verdict {
    int status;
    char message[DIST_MESSAGE_SIZE];
} verdict;

/* Moves 4 bytes per rank in the common case. The error messages are gathered only after a
 * failure. */
tgl_status dist_agree(tgl_dist *dist, tgl_status status)
{
    const int ranks = dist->transport.ranks, mine = (int)status;
    const void *all;
    int first = 0;
    DIST_TRY(dist_gather(dist, &mine, sizeof mine, &all));
    while (first < ranks && ((const int *)all)[first] == TGL_OK)
        first++;
    if (first == ranks) return TGL_OK;
    verdict own = {.status = mine};
    snprintf(own.message, sizeof own.message, "%s", mine == TGL_OK ? "" : dist_error());
    DIST_TRY(dist_gather(dist, &own, sizeof own, &all));
    const verdict *failed = (const verdict *)all + first;
    dist_set_error("rank %d: %.370s", first, failed->message);
    return (tgl_status)failed->status;
}

static const char *describe_call(const dist_call *call, char text[32])
{
    if (call->plan == 0) return "creates a plan";
    snprintf(text, 32, "runs plan %lld", (long long)call->plan);
    return text;
}

static tgl_status fail_different(const dist_call *all, int rank)
{
    char text[2][32];
    return dist_fail(TGL_BAD_ARGUMENT, "rank 0 %s, while rank %d %s",
                     describe_call(&all[0], text[0]), rank, describe_call(&all[rank], text[1]));
}

tgl_status dist_begin_call(tgl_dist *dist, const dist_call *mine)
{
    const void *gathered;
    DIST_TRY(dist_gather(dist, mine, sizeof *mine, &gathered));
    const dist_call *all = gathered;
    bool failed = false;
    int other = 0;
    for (int rank = 0; rank < dist->transport.ranks; rank++) {
        if (all[rank].plan != all[0].plan) return fail_different(all, rank);
        failed |= all[rank].status != TGL_OK;
        if (all[rank].alpha != all[0].alpha || all[rank].beta != all[0].beta) other = rank;
    }
    if (failed) return dist_agree(dist, (tgl_status)mine->status);
    if (other > 0)
        return dist_fail(TGL_BAD_SCALAR, "alpha or beta of rank %d differs from that of rank 0",
                         other);
    return TGL_OK;
}
