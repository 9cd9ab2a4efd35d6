/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared memory of the processes of one host: a file in /dev/shm. shm_open() would open the same
 * file, but older C libraries have this function in librt, which would have to be linked.
 *
 * An all-gather goes in rounds. In round t, a rank writes its bytes, sets its counter to t, and
 * waits until the counters of the other ranks are at least t. It may overwrite these bytes in round
 * t+2: once all ranks have arrived in round t+1, all have read them.
 */
#include "rendezvous.h"

#include "dist_error.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { ROUND_BYTES = 1024 };

/* The shared memory that one rank writes, on cache lines of its own. */
typedef struct place {
    _Alignas(64) _Atomic uint64_t round;
    _Atomic bool has_given_up;
    size_t count[2]; /* number of valid bytes in bytes[0] (even rounds) and bytes[1] (odd rounds) */
    _Alignas(64) char bytes[2][ROUND_BYTES];
} place;

/* A ring buffer of the receive buffers that one rank has announced to another. Slot: an index in
 * `list`. */
typedef struct mailbox {
    _Alignas(64) _Atomic uint64_t posted;
    _Alignas(64) _Atomic uint64_t taken;
    rendezvous_buffer list[RENDEZVOUS_SLOTS];
} mailbox;

struct rendezvous {
    int rank, ranks;
    double timeout_s;
    size_t bytes;
    uint64_t round;
    place *places;      /* [ranks] */
    mailbox *mailboxes; /* [ranks that send][ranks that receive] */
};

/* ---- The memory ------------------------------------------------------------------------------ */

static rendezvous *map(int fd, int rank, int ranks, double timeout_s)
{
    const size_t places = sizeof(place) * (size_t)ranks;
    const size_t bytes = places + sizeof(mailbox) * (size_t)ranks * (size_t)ranks;
    rendezvous *r = malloc(sizeof *r);
    const bool has_room = rank != 0 || posix_fallocate(fd, 0, (off_t)bytes) == 0;
    char *memory = r != NULL && has_room
                       ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                       : MAP_FAILED;
    close(fd);
    if (memory == MAP_FAILED || r == NULL) {
        free(r);
        return NULL;
    }
    *r = (rendezvous){rank,
                      ranks,
                      timeout_s,
                      bytes,
                      0,
                      (place *)(void *)memory,
                      (mailbox *)(void *)(memory + places)};
    return r;
}

rendezvous *rendezvous_make(int ranks, double timeout_s, char name[RENDEZVOUS_NAME])
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number) return NULL;
    snprintf(name, RENDEZVOUS_NAME, "/dev/shm/tegula-%016llx", (unsigned long long)number);
    const int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    rendezvous *r = fd >= 0 ? map(fd, 0, ranks, timeout_s) : NULL;
    if (r == NULL) rendezvous_unlink(name);
    return r;
}

rendezvous *rendezvous_join(int rank, int ranks, double timeout_s, const char *name)
{
    const int fd = name[0] != '\0' ? open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
    return fd >= 0 ? map(fd, rank, ranks, timeout_s) : NULL;
}

void rendezvous_unlink(const char *name)
{
    unlink(name);
}

void rendezvous_close(rendezvous *r)
{
    if (r == NULL) return;
    munmap(r->places, r->bytes);
    free(r);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void rendezvous_give_up(rendezvous *r)
{
    atomic_store_explicit(&r->places[r->rank].has_given_up, true, memory_order_release);
}

tgl_status rendezvous_check(const rendezvous *r)
{
    for (int rank = 0; rank < r->ranks; rank++)
        if (atomic_load_explicit(&r->places[rank].has_given_up, memory_order_acquire))
            return dist_fail(TGL_COMMUNICATION,
                             "rank %d has given up; the communicator can only be closed", rank);
    return TGL_OK;
}

/* Waits until the counter is at least `value`. After each ATTEMPTS attempts it checks the time, and
 * yields to other processes. rank: the rank that raises the counter, for the error message. */
static tgl_status wait_for(const rendezvous *r, const _Atomic uint64_t *counter, uint64_t value,
                           int rank)
{
    enum { ATTEMPTS = 2000 };
    double deadline = 0;
    for (;;) {
        for (int i = 0; i < ATTEMPTS; i++)
            if (atomic_load_explicit(counter, memory_order_acquire) >= value) return TGL_OK;
        DIST_TRY(rendezvous_check(r));
        if (deadline == 0) deadline = now() + r->timeout_s;
        if (now() > deadline)
            return dist_fail(TGL_COMMUNICATION,
                             "rank %d did not answer within the timeout; the communicator can only "
                             "be closed",
                             rank);
        sched_yield();
    }
}

/* ---- All-gather ------------------------------------------------------------------------------ */

/* One round of an all-gather of at most ROUND_BYTES per rank. stride: bytes from rank to rank in
 * `all`. */
static tgl_status gather_round(rendezvous *r, const char *mine, char *all, size_t stride,
                               size_t bytes)
{
    const uint64_t round = ++r->round;
    place *own = &r->places[r->rank];
    memcpy(own->bytes[round & 1], mine, bytes);
    own->count[round & 1] = bytes;
    atomic_store_explicit(&own->round, round, memory_order_release);
    for (int rank = 0; rank < r->ranks; rank++) {
        const place *other = &r->places[rank];
        DIST_TRY(wait_for(r, &other->round, round, rank));
        if (other->count[round & 1] != bytes)
            return dist_fail(
                TGL_COMMUNICATION,
                "rank %d calls another function at the same time; the communicator can "
                "only be closed",
                rank);
        memcpy(all + (size_t)rank * stride, other->bytes[round & 1], bytes);
    }
    return TGL_OK;
}

tgl_status rendezvous_gather(rendezvous *r, const void *mine, void *all, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += ROUND_BYTES) {
        const size_t count = bytes - at < ROUND_BYTES ? bytes - at : ROUND_BYTES;
        DIST_TRY(gather_round(r, (const char *)mine + at, (char *)all + at, bytes, count));
    }
    return TGL_OK;
}

/* ---- Buffers --------------------------------------------------------------------------------- */

static mailbox *mailbox_of(const rendezvous *r, int sender, int receiver)
{
    return &r->mailboxes[sender * r->ranks + receiver];
}

tgl_status rendezvous_post(rendezvous *r, int from, const rendezvous_buffer *buffer, int *slot)
{
    mailbox *box = mailbox_of(r, from, r->rank);
    const uint64_t number = atomic_load_explicit(&box->posted, memory_order_relaxed);
    if (number >= RENDEZVOUS_SLOTS)
        DIST_TRY(wait_for(r, &box->taken, number - RENDEZVOUS_SLOTS + 1, from));
    *slot = (int)(number % RENDEZVOUS_SLOTS);
    box->list[*slot] = *buffer;
    atomic_store_explicit(&box->posted, number + 1, memory_order_release);
    return TGL_OK;
}

tgl_status rendezvous_take(rendezvous *r, int to, rendezvous_buffer *buffer, int *slot)
{
    mailbox *box = mailbox_of(r, r->rank, to);
    const uint64_t number = atomic_load_explicit(&box->taken, memory_order_relaxed);
    DIST_TRY(wait_for(r, &box->posted, number + 1, to));
    *slot = (int)(number % RENDEZVOUS_SLOTS);
    *buffer = box->list[*slot];
    atomic_store_explicit(&box->taken, number + 1, memory_order_release);
    return TGL_OK;
}
