/* SPDX-License-Identifier: Apache-2.0
 *
 * A transport between threads. A message that a rank sends is an offer in a list, which one lock
 * guards, until the receiver takes it.
 */
#include "thread_transport.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct offer {
    int from, to;
    const void *memory;
    size_t bytes;
    bool taken;
    struct offer *next;
} offer;

typedef struct wanted {
    tgl_dist_message message;
    offer *offer; /* the offer of a send */
} wanted;

typedef struct group {
    int count;
    wanted list[];
} group;

struct thread_world {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int ranks;
    double timeout_s;
    offer *offers, **end;
    char *gathered; /* the data of the current all-gather */
    int arrived, left, round;
};

typedef struct member {
    thread_world *world;
    int rank;
} member;

thread_world *thread_world_create(int ranks, double timeout_s)
{
    thread_world *w = calloc(1, sizeof *w);
    w->ranks = ranks;
    w->timeout_s = timeout_s;
    w->end = &w->offers;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    return w;
}

void thread_world_destroy(thread_world *w)
{
    while (w->offers != NULL) {
        offer *next = w->offers->next;
        free(w->offers);
        w->offers = next;
    }
    free(w->gathered);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    free(w);
}

static struct timespec deadline_of(const thread_world *w)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    const double end = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + w->timeout_s;
    return (struct timespec){(time_t)end, (long)((end - (double)(time_t)end) * 1e9)};
}

/* Waits for a change. The caller holds the lock. False: the deadline has passed without one. */
static bool wait_for_change(thread_world *w, const struct timespec *deadline)
{
    return pthread_cond_timedwait(&w->changed, &w->lock, deadline) == 0;
}

static tgl_status thread_gather(void *state, const void *mine, void *all, size_t bytes)
{
    const member *me = state;
    thread_world *w = me->world;
    const struct timespec deadline = deadline_of(w);
    tgl_status status = TGL_OK;
    pthread_mutex_lock(&w->lock);
    while (status == TGL_OK && w->left > 0) /* ranks are still in the previous all-gather */
        if (!wait_for_change(w, &deadline)) status = TGL_COMMUNICATION;
    if (status == TGL_OK) {
        if (w->arrived == 0) w->gathered = realloc(w->gathered, bytes * (size_t)w->ranks);
        memcpy(w->gathered + bytes * (size_t)me->rank, mine, bytes);
        const int round = w->round;
        if (++w->arrived == w->ranks) {
            w->left = w->ranks;
            w->arrived = 0;
            w->round++;
            pthread_cond_broadcast(&w->changed);
        }
        while (status == TGL_OK && w->round == round)
            if (!wait_for_change(w, &deadline)) status = TGL_COMMUNICATION;
    }
    if (status == TGL_OK) {
        if (all != NULL) memcpy(all, w->gathered, bytes * (size_t)w->ranks);
        if (--w->left == 0) pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return status;
}

static tgl_status thread_begin(void *state, const tgl_dist_message *messages, int count,
                               void **begun)
{
    const member *me = state;
    thread_world *w = me->world;
    group *g = malloc(sizeof *g + sizeof(wanted) * (size_t)count);
    g->count = count;
    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < count; i++) {
        g->list[i] = (wanted){messages[i], NULL};
        if (messages[i].send == NULL) continue;
        offer *o = malloc(sizeof *o);
        *o = (offer){me->rank, messages[i].rank, messages[i].send, messages[i].bytes, false, NULL};
        *w->end = o;
        w->end = &o->next;
        g->list[i].offer = o;
    }
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    *begun = g;
    return TGL_OK;
}

static offer *find(const thread_world *w, int from, int to)
{
    for (offer *o = w->offers; o != NULL; o = o->next)
        if (o->from == from && o->to == to && !o->taken) return o;
    return NULL;
}

/* Removes an offer that was taken. */
static void remove_offer(thread_world *w, offer *gone)
{
    offer **at = &w->offers;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    if (w->end == &gone->next) w->end = at;
    free(gone);
}

static tgl_status thread_wait(void *state, void *begun)
{
    const member *me = state;
    thread_world *w = me->world;
    group *g = begun;
    const struct timespec deadline = deadline_of(w);
    tgl_status status = TGL_OK;
    pthread_mutex_lock(&w->lock);
    for (int i = 0; status == TGL_OK && i < g->count; i++) { /* receives before sends */
        const tgl_dist_message *m = &g->list[i].message;
        if (m->receive == NULL) continue;
        offer *o;
        while ((o = find(w, m->rank, me->rank)) == NULL)
            if (!wait_for_change(w, &deadline)) break;
        if (o == NULL) {
            status = TGL_COMMUNICATION;
            break;
        }
        if (o->bytes != m->bytes) {
            fprintf(stderr, "rank %d sends %zu bytes to rank %d, which expects %zu\n", m->rank,
                    o->bytes, me->rank, m->bytes);
            abort();
        }
        memcpy(m->receive, o->memory, m->bytes);
        o->taken = true;
        pthread_cond_broadcast(&w->changed);
    }
    for (int i = 0; status == TGL_OK && i < g->count; i++) {
        offer *o = g->list[i].offer;
        if (o == NULL) continue;
        while (!o->taken && status == TGL_OK)
            if (!wait_for_change(w, &deadline)) status = TGL_COMMUNICATION;
        if (o->taken) remove_offer(w, o);
    }
    pthread_mutex_unlock(&w->lock);
    free(g);
    return status;
}

static void thread_close(void *state)
{
    free(state);
}

tgl_status thread_open(thread_world *world, int rank, tgl_device *dev, tgl_dist **dist)
{
    member *me = malloc(sizeof *me);
    *me = (member){world, rank};
    const tgl_dist_transport transport = {.size = sizeof transport,
                                          .name = "threads",
                                          .rank = rank,
                                          .ranks = world->ranks,
                                          .state = me,
                                          .gather = thread_gather,
                                          .begin = thread_begin,
                                          .wait = thread_wait,
                                          .close = thread_close};
    return tgl_dist_open(&transport, dev, NULL, dist);
}

/* ---- A thread for each rank ------------------------------------------------------------------ */

typedef struct starter {
    thread_world *world;
    int rank;
    thread_rank *function;
    void *argument;
} starter;

static void *start(void *given)
{
    const starter *s = given;
    const tgl_device_options options = {.size = sizeof options, .threads = 1};
    tgl_device *dev;
    tgl_dist *dist;
    if (tgl_device_open("cpu", &options, &dev) != TGL_OK ||
        thread_open(s->world, s->rank, dev, &dist) != TGL_OK)
        abort();
    s->function(s->rank, dist, dev, s->argument);
    tgl_dist_close(dist);
    tgl_device_close(dev);
    return NULL;
}

void thread_run(int ranks, double timeout_s, thread_rank *function, void *argument)
{
    enum { RANKS_MAX = 16 };
    thread_world *world = thread_world_create(ranks, timeout_s);
    pthread_t threads[RANKS_MAX];
    starter starters[RANKS_MAX];
    for (int rank = 0; rank < ranks; rank++) {
        starters[rank] = (starter){world, rank, function, argument};
        if (pthread_create(&threads[rank], NULL, start, &starters[rank]) != 0) abort();
    }
    for (int rank = 0; rank < ranks; rank++)
        pthread_join(threads[rank], NULL);
    thread_world_destroy(world);
}
