/* SPDX-License-Identifier: Apache-2.0
 *
 * A set-associative table of plans: a shape maps to one set and may be in any slot of this set. A
 * new plan replaces the least recently used plan of its set. Plans are reference-counted: a plan
 * that is replaced is destroyed when the last call that runs it has returned.
 *
 * fork() copies the lock as it is at that moment. If another thread of the parent holds the lock,
 * no thread will ever release the copy in the child. The child then starts a new table and does not
 * touch the old one. A process also starts a new table if a signal handler has left the holder of
 * the lock by longjmp().
 */
#include "api/plan_cache.h"
#include "api/handles.h"
#include "base/process_number.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { SETS = 64, SLOTS = 8, ALL_SLOTS = SETS * SLOTS, ABANDONED_SECONDS = 1 };

typedef struct slot {
    tgl_plan *plan; /* the cached plan; NULL: the slot is free */
    uint64_t used;  /* value of the table's `clock` at the last use, for the LRU order; 0: free */
} slot;

typedef struct plan_table {
    pthread_mutex_t lock;
    unsigned process;             /* tgl_process() of the process that made the table */
    struct plan_table *inherited; /* abandoned table that this one replaced, kept because a thread
                                     may still use it; NULL: none */
    uint64_t clock;
    slot slots[ALL_SLOTS];
} plan_table;

struct tgl_plan_cache {
    _Atomic(plan_table *) table;
};

/* Compares all members but the epilogue and pairs_a, pairs_b, which shapes in this cache do not
 * have. */
static bool is_same_shape(const tgl_shape *x, const tgl_shape *y)
{
    return x->m == y->m && x->n == y->n && x->k == y->k && x->swapped == y->swapped &&
           x->trans_a == y->trans_a && x->trans_b == y->trans_b && x->conj_a == y->conj_a &&
           x->conj_b == y->conj_b && x->in_place == y->in_place && x->type_a == y->type_a &&
           x->type_b == y->type_b && x->type_c == y->type_c && x->type_d == y->type_d &&
           x->type_accumulate == y->type_accumulate && x->compute == y->compute &&
           x->device_scalars == y->device_scalars && x->lda == y->lda && x->ldb == y->ldb &&
           x->ldc == y->ldc && x->ldd == y->ldd && x->batch == y->batch &&
           x->stride_a == y->stride_a && x->stride_b == y->stride_b && x->stride_c == y->stride_c &&
           x->stride_d == y->stride_d && x->pointers == y->pointers &&
           x->unaligned == y->unaligned && x->alignment == y->alignment &&
           x->scaling_a == y->scaling_a && x->scaling_b == y->scaling_b &&
           x->scaling_d == y->scaling_d && x->type_scale == y->type_scale &&
           x->ld_scale_a == y->ld_scale_a && x->ld_scale_b == y->ld_scale_b &&
           x->grouping == y->grouping && x->group_form == y->group_form &&
           tgl_weights_is_same(&x->weights, &y->weights) && x->is_bundle == y->is_bundle;
}

/* The set for a shape, by a hash. The multiplier is Knuth's, 2^64 / golden ratio. The shift mixes
 * the high bits of the product, which depend on all bits of the key, into the low bits. */
static slot *set_of(plan_table *table, const tgl_shape *s)
{
    const uint64_t golden = 0x9e3779b97f4a7c15u;
    const int flags = s->conj_a * 32 + s->conj_b * 16 + s->pointers * 8 + s->trans_a * 4 +
                      s->trans_b * 2 + s->swapped;
    const int64_t words[] = {s->m,      s->n,        s->k,        s->lda,      s->ldb,    s->ldc,
                             s->batch,  s->stride_a, s->stride_b, s->stride_c, s->type_a, s->type_b,
                             s->type_c, s->compute,  flags,       s->alignment};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        hash = (hash ^ (uint64_t)words[i]) * golden;
        hash ^= hash >> 32;
    }
    return &table->slots[hash % SETS * SLOTS];
}

/* The slot that contains this shape, or else the slot to use for it: a free or the least recently
 * used one. */
static slot *choose_slot(plan_table *table, const tgl_shape *shape)
{
    slot *set = set_of(table, shape), *oldest = set;
    for (slot *s = set; s < set + SLOTS; s++) {
        if (s->plan != NULL && is_same_shape(&s->plan->shape, shape)) return s;
        if (s->used < oldest->used) oldest = s;
    }
    return oldest;
}

/* Makes a table that replaces `inherited`. NULL: out of memory. */
static plan_table *make_table(plan_table *inherited)
{
    plan_table *table = calloc(1, sizeof *table);
    if (table == NULL) return NULL;
    pthread_mutex_init(&table->lock, NULL);
    table->process = tgl_process();
    table->inherited = inherited;
    return table;
}

/* Tries to lock the table for at most ABANDONED_SECONDS. False: the caller now holds the lock.
 * True: the table is abandoned, because another process made it, or because the holder of its lock
 * seems to have left by longjmp() (a call normally holds the lock for less than 1 us). */
static bool is_abandoned(plan_table *table)
{
    struct timespec until;
    if (table->process != tgl_process()) return true;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ABANDONED_SECONDS;
    return pthread_mutex_timedlock(&table->lock, &until) != 0;
}

/* Returns the current table, locked; NULL: out of memory. Replaces an abandoned table. If the
 * holder of its lock continues after all, it finishes in the old table, which stays valid. */
static plan_table *lock_table(tgl_plan_cache *cache)
{
    for (;;) {
        plan_table *table = atomic_load(&cache->table);
        if (pthread_mutex_trylock(&table->lock) == 0 || !is_abandoned(table)) return table;
        plan_table *made = make_table(table);
        if (made == NULL) return NULL;
        if (atomic_compare_exchange_strong(&cache->table, &table, made)) continue;
        pthread_mutex_destroy(&made->lock); /* another thread has replaced the table meanwhile */
        free(made);
    }
}

tgl_status tgl_plan_cache_create(tgl_plan_cache **cache)
{
    *cache = calloc(1, sizeof **cache);
    plan_table *table = *cache != NULL ? make_table(NULL) : NULL;
    if (table == NULL) {
        free(*cache);
        *cache = NULL;
        return tgl_fail(TGL_NO_MEMORY, "no memory for the plans of a device");
    }
    atomic_init(&(*cache)->table, table);
    return TGL_OK;
}

/* Empties a slot. Returns its plan, or NULL. The caller holds the lock, if other threads may
 * use the cache, and must unlock before it releases the plan, because destroying a plan may take
 * long. */
static tgl_plan *take(slot *s)
{
    tgl_plan *plan = s->plan;
    *s = (slot){.plan = NULL};
    return plan;
}

void tgl_plan_cache_destroy(tgl_plan_cache *cache)
{
    if (cache == NULL) return;
    for (plan_table *table = atomic_load(&cache->table), *next; table != NULL; table = next) {
        next = table->inherited;
        for (int i = 0; i < ALL_SLOTS; i++)
            tgl_plan_release(take(&table->slots[i]));
        if (pthread_mutex_trylock(&table->lock) == 0) { /* the table was not abandoned */
            pthread_mutex_unlock(&table->lock);
            pthread_mutex_destroy(&table->lock);
        }
        free(table);
    }
    free(cache);
}

void tgl_plan_cache_clear(tgl_plan_cache *cache)
{
    for (int i = 0; i < ALL_SLOTS; i++) {
        plan_table *table = lock_table(cache);
        if (table == NULL) return;
        tgl_plan *plan = take(&table->slots[i]);
        pthread_mutex_unlock(&table->lock);
        tgl_plan_release(plan);
    }
}

tgl_plan *tgl_plan_cache_find(tgl_plan_cache *cache, const tgl_shape *shape)
{
    plan_table *table = lock_table(cache);
    if (table == NULL) return NULL;
    slot *s = choose_slot(table, shape);
    tgl_plan *plan = s->plan;
    if (plan != NULL && is_same_shape(&plan->shape, shape)) {
        tgl_plan_retain(plan);
        s->used = ++table->clock;
    } else {
        plan = NULL;
    }
    pthread_mutex_unlock(&table->lock);
    return plan;
}

void tgl_plan_cache_keep(tgl_plan_cache *cache, tgl_plan *plan)
{
    plan_table *table = lock_table(cache);
    if (table == NULL) return;
    tgl_plan_retain(plan);
    slot *s = choose_slot(table, &plan->shape);
    tgl_plan *old = take(s);
    *s = (slot){plan, ++table->clock};
    pthread_mutex_unlock(&table->lock);
    tgl_plan_release(old);
}
