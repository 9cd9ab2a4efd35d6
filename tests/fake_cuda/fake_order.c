/* SPDX-License-Identifier: Apache-2.0
 *
 * libfake_cuda.so (see fake_cuda.h): the order of work in different streams, and copies of pinned
 * memory. Work is executed at once, in the order of the calls; this file finds calls that a real
 * device could execute in another order. A clock is a vector clock (Mattern 1988): it has, for each
 * stream, the number of the latest work that is known to be complete.
 */
#include "fake_state.h"

#include <stdlib.h>
#include <string.h>

enum { ACCESSES_MAX = 4096, COPIES_MAX = 256, SIGNALS_MAX = 1024, UNDELIVERED = 0x5a };

typedef uint64_t order_clock[FAKE_STREAMS_MAX];

static uint64_t
    *clocks[FAKE_STREAMS_MAX]; /* the clock of each stream, by its id; NULL: not made yet */
static order_clock host;       /* the clock of all host threads together */
static uint64_t ids;           /* 1 + the greatest id of a stream with a clock */

/* blocking: streams that wait for the default stream, and for which the default stream waits. */
static bool blocking[FAKE_STREAMS_MAX], is_default[FAKE_STREAMS_MAX];

static uint64_t *clock_of(CUstream stream)
{
    if (stream->id >= FAKE_STREAMS_MAX) abort(); /* no test makes so many streams */
    if (clocks[stream->id] == NULL) clocks[stream->id] = calloc(1, sizeof(order_clock));
    if (stream->id >= ids) ids = stream->id + 1;
    blocking[stream->id] = stream->is_blocking;
    is_default[stream->id] =
        stream == &fake_contexts[0].default_stream || stream == &fake_contexts[1].default_stream ||
        stream == &fake_contexts[2].default_stream || stream == &fake_contexts[3].default_stream;
    return clocks[stream->id];
}

static void merge(uint64_t *clock, const uint64_t *other)
{
    for (uint64_t i = 0; i < ids; i++)
        if (other[i] > clock[i]) clock[i] = other[i];
}

/* ---- Accesses -------------------------------------------------------------------------------- */

typedef struct access {
    const char *first, *end;
    bool writes;
    uint64_t stream, work;
} access;

static access accesses[ACCESSES_MAX]; /* accesses by work that the host has not waited for */
static int access_count;

static void drop_passed_accesses(void)
{
    int kept = 0;
    for (int i = 0; i < access_count; i++)
        if (accesses[i].work > host[accesses[i].stream]) accesses[kept++] = accesses[i];
    access_count = kept;
}

static void check_access(const access *a, const uint64_t *clock)
{
    for (int i = 0; i < access_count; i++) {
        const access *b = &accesses[i];
        if (b->first >= a->end || a->first >= b->end || (!a->writes && !b->writes)) continue;
        if (clock[b->stream] < b->work)
            fake_misuse("stream %d %s memory that stream %d may still %s", (int)a->stream,
                        a->writes ? "writes" : "reads", (int)b->stream,
                        b->writes ? "write" : "read");
    }
}

/* The row of an earlier access by the same stream to the same memory or, if there is none, a new
 * row. */
static access *row_of_access(const access *a)
{
    for (int i = 0; i < access_count; i++) {
        access *b = &accesses[i];
        if (b->first == a->first && b->end == a->end && b->writes == a->writes &&
            b->stream == a->stream)
            return b;
    }
    if (access_count == ACCESSES_MAX) abort(); /* the test never waits for the device */
    return &accesses[access_count++];
}

void fake_access(const void *first, size_t bytes, bool writes, CUstream stream)
{
    pthread_mutex_lock(&fake_lock);
    block *it = fake_block_of(first);
    if (it != NULL) {
        fake_raise(&it->latest_work, stream->latest_work);
        const access a = {first, (const char *)first + bytes, writes, stream->id,
                          stream->latest_work};
        check_access(&a, clock_of(stream));
        *row_of_access(&a) = a;
    }
    pthread_mutex_unlock(&fake_lock);
}

/* ---- Copies of pinned memory ----------------------------------------------------------------- */

/* A copy that the host has not waited for. */
typedef struct pinned_copy {
    char *pinned, *data; /* the pinned memory, and the data that it must still have (upload) or will
                            get (download) */
    size_t bytes;
    bool is_download;
    uint64_t stream, work;
} pinned_copy;

static pinned_copy copies[COPIES_MAX];
static int copy_count;

static void complete(pinned_copy *copy)
{
    if (copy->is_download)
        memcpy(copy->pinned, copy->data, copy->bytes);
    else if (memcmp(copy->pinned, copy->data, copy->bytes) != 0)
        fake_misuse("pinned memory was overwritten before the copy from it was waited for");
    free(copy->data);
}

/* Completes the copies that the host has waited for, in the order of the calls. */
static void complete_passed(void)
{
    int kept = 0;
    for (int i = 0; i < copy_count; i++)
        if (copies[i].work <= host[copies[i].stream])
            complete(&copies[i]);
        else
            copies[kept++] = copies[i];
    copy_count = kept;
    drop_passed_accesses();
}

void fake_copy(void *dst, const void *src, size_t bytes, CUstream stream)
{
    pthread_mutex_lock(&fake_lock);
    const block *to = fake_block_of(dst), *from = fake_block_of(src);
    const bool is_download = to != NULL && to->is_pinned;
    const bool is_upload = from != NULL && from->is_pinned;
    if (is_download || is_upload) {
        if (copy_count == COPIES_MAX) abort();
        pinned_copy *copy = &copies[copy_count++];
        *copy = (pinned_copy){.pinned = is_download ? dst : (char *)src,
                              .data = malloc(bytes),
                              .bytes = bytes,
                              .is_download = is_download,
                              .stream = stream->id,
                              .work = stream->latest_work};
        memcpy(copy->data, src, bytes);
    }
    if (is_download)
        memset(dst, UNDELIVERED, bytes);
    else
        memcpy(dst, src, bytes);
    pthread_mutex_unlock(&fake_lock);
}

static bool is_in(const block *it, const char *address)
{
    const char *first = (const char *)it + BLOCK_ROOM;
    return address >= first && address < first + it->bytes;
}

static void forget_accesses(const block *it)
{
    int kept = 0;
    for (int i = 0; i < access_count; i++)
        if (!is_in(it, accesses[i].first)) accesses[kept++] = accesses[i];
    access_count = kept;
}

static void forget_copies(const block *it, bool is_lost)
{
    int kept = 0;
    for (int i = 0; i < copy_count; i++) {
        if (is_in(it, copies[i].pinned)) {
            if (!is_lost) fake_misuse("pinned memory is freed before a copy of it was waited for");
            free(copies[i].data);
        } else {
            copies[kept++] = copies[i];
        }
    }
    copy_count = kept;
}

/* A word in memory that a stream has written. */
typedef struct signal {
    const void *address;
    uint64_t *passed; /* an order_clock: the work that was complete at the latest write */
} signal;

static signal signals[SIGNALS_MAX];

static uint64_t *signal_of(const void *address)
{
    signal *s = signals, *end = signals + SIGNALS_MAX, *unused = NULL;
    while (s < end && s->address != address) {
        if (s->address == NULL && unused == NULL) unused = s;
        s++;
    }
    if (s == end) s = unused;
    if (s == NULL) abort(); /* no test has so many words */
    s->address = address;
    if (s->passed == NULL) s->passed = calloc(1, sizeof(order_clock));
    return s->passed;
}

static void forget_signals(const block *it)
{
    for (int i = 0; i < SIGNALS_MAX; i++)
        if (is_in(it, signals[i].address)) {
            free(signals[i].passed);
            signals[i] = (signal){NULL, NULL};
        }
}

void fake_forget(const block *it)
{
    pthread_mutex_lock(&fake_lock);
    forget_accesses(it);
    forget_signals(it);
    forget_copies(it, false);
    pthread_mutex_unlock(&fake_lock);
}

void fake_lose(const block *it)
{
    forget_accesses(it);
    forget_copies(it, true);
}

/* ---- Order ----------------------------------------------------------------------------------- */

/* Adds the clocks of the streams for which this stream waits implicitly: blocking streams and the
 * default stream wait for each other. */
static void merge_default(CUstream stream, uint64_t *clock)
{
    for (uint64_t i = 0; i < ids; i++)
        if (clocks[i] != NULL &&
            ((is_default[stream->id] && blocking[i]) || (stream->is_blocking && is_default[i])))
            merge(clock, clocks[i]);
}

void fake_order_work(CUstream stream)
{
    pthread_mutex_lock(&fake_lock);
    uint64_t *clock = clock_of(stream);
    fake_raise(&stream->latest_work, fake_next_work());
    merge(clock, host);
    merge_default(stream, clock);
    clock[stream->id] = stream->latest_work;
    pthread_mutex_unlock(&fake_lock);
}

void fake_order_record(CUevent event, CUstream stream)
{
    pthread_mutex_lock(&fake_lock);
    memcpy(event->passed, clock_of(stream), sizeof event->passed);
    pthread_mutex_unlock(&fake_lock);
}

void fake_order_wait(CUstream stream, CUevent event)
{
    pthread_mutex_lock(&fake_lock);
    merge(clock_of(stream), event->passed);
    pthread_mutex_unlock(&fake_lock);
}

void fake_order_signal(const void *address, CUstream stream)
{
    pthread_mutex_lock(&fake_lock);
    memcpy(signal_of(address), clock_of(stream), sizeof(order_clock));
    pthread_mutex_unlock(&fake_lock);
}

void fake_order_await(CUstream stream, const void *address)
{
    pthread_mutex_lock(&fake_lock);
    merge(clock_of(stream), signal_of(address));
    pthread_mutex_unlock(&fake_lock);
}

void fake_host_waits_for_stream(CUstream stream)
{
    pthread_mutex_lock(&fake_lock);
    merge(host, clock_of(stream));
    complete_passed();
    pthread_mutex_unlock(&fake_lock);
}

void fake_host_waits_for_event(CUevent event)
{
    pthread_mutex_lock(&fake_lock);
    merge(host, event->passed);
    complete_passed();
    pthread_mutex_unlock(&fake_lock);
}

void fake_host_waits_for_all(void)
{
    pthread_mutex_lock(&fake_lock);
    for (uint64_t i = 0; i < ids; i++)
        if (clocks[i] != NULL) merge(host, clocks[i]);
    complete_passed();
    pthread_mutex_unlock(&fake_lock);
}
