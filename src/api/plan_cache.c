/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of plans in sets of a few: a shape belongs to one set and has room in any slot of it; the
 * one used longest ago gives way. Plans are counted by their users: one that loses its slot lives
 * on until the last call that runs it has returned.
 */
#include "api/plan_cache.h"
#include "api/backend.h"

#include <stdlib.h>

enum { SETS = 64, SLOTS = 8, ALL_SLOTS = SETS * SLOTS };

typedef struct slot {
    tgl_plan *plan; /* NULL: free */
    uint64_t used;  /* the cache's clock when it was used last; 0 while free */
} slot;

struct tgl_plan_cache {
    pthread_mutex_t lock;
    uint64_t clock;
    slot slots[ALL_SLOTS];
};

/* All members but the epilogue, which no plan here has. */
static bool is_same_shape(const tgl_shape *x, const tgl_shape *y)
{
    return x->m == y->m && x->n == y->n && x->k == y->k && x->swapped == y->swapped &&
           x->trans_a == y->trans_a && x->trans_b == y->trans_b && x->in_place == y->in_place &&
           x->type_a == y->type_a && x->type_b == y->type_b && x->type_c == y->type_c &&
           x->type_d == y->type_d && x->type_accumulate == y->type_accumulate &&
           x->compute == y->compute && x->device_scalars == y->device_scalars && x->lda == y->lda &&
           x->ldb == y->ldb && x->ldc == y->ldc && x->ldd == y->ldd && x->batch == y->batch &&
           x->stride_a == y->stride_a && x->stride_b == y->stride_b && x->stride_c == y->stride_c &&
           x->stride_d == y->stride_d && x->pointers == y->pointers &&
           x->alignment == y->alignment && x->scaling_a == y->scaling_a &&
           x->scaling_b == y->scaling_b && x->scaling_d == y->scaling_d &&
           x->type_scale == y->type_scale;
}

/* The multiplier is that of Knuth's multiplicative hashing, 2^64 / golden ratio; the shift brings
 * the high bits, which all of a word has gone into, back to where the next multiplication spreads
 * them. */
static slot *set_of(tgl_plan_cache *cache, const tgl_shape *s)
{
    const uint64_t golden = 0x9e3779b97f4a7c15u;
    const int flags = s->pointers * 8 + s->trans_a * 4 + s->trans_b * 2 + s->swapped;
    const int64_t words[] = {s->m,      s->n,        s->k,        s->lda,      s->ldb,    s->ldc,
                             s->batch,  s->stride_a, s->stride_b, s->stride_c, s->type_a, s->type_b,
                             s->type_c, s->compute,  flags,       s->alignment};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        hash = (hash ^ (uint64_t)words[i]) * golden;
        hash ^= hash >> 32;
    }
    return &cache->slots[hash % SETS * SLOTS];
}

/* The slot that holds this shape; else the one to give to it. */
static slot *choose_slot(tgl_plan_cache *cache, const tgl_shape *shape)
{
    slot *set = set_of(cache, shape), *oldest = set;
    for (slot *s = set; s < set + SLOTS; s++) {
        if (s->plan != NULL && is_same_shape(&s->plan->shape, shape)) return s;
        if (s->used < oldest->used) oldest = s;
    }
    return oldest;
}

tgl_status tgl_plan_cache_create(tgl_plan_cache **cache)
{
    *cache = calloc(1, sizeof **cache);
    if (*cache == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for the plans of a device");
    pthread_mutex_init(&(*cache)->lock, NULL);
    return TGL_OK;
}

void tgl_plan_cache_destroy(tgl_plan_cache *cache)
{
    if (cache == NULL) return;
    tgl_plan_cache_clear(cache);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* Empties a slot and returns its plan; NULL: there was none. The caller holds the lock, and
 * releases the plan when it no longer does: that may take long. */
static tgl_plan *take(slot *s)
{
    tgl_plan *plan = s->plan;
    *s = (slot){.plan = NULL};
    return plan;
}

void tgl_plan_cache_clear(tgl_plan_cache *cache)
{
    for (int i = 0; i < ALL_SLOTS; i++) {
        pthread_mutex_lock(&cache->lock);
        tgl_plan *plan = take(&cache->slots[i]);
        pthread_mutex_unlock(&cache->lock);
        tgl_plan_release(plan);
    }
}

tgl_plan *tgl_plan_cache_find(tgl_plan_cache *cache, const tgl_shape *shape)
{
    pthread_mutex_lock(&cache->lock);
    slot *s = choose_slot(cache, shape);
    tgl_plan *plan = s->plan;
    if (plan != NULL && is_same_shape(&plan->shape, shape)) {
        tgl_plan_retain(plan);
        s->used = ++cache->clock;
    } else {
        plan = NULL;
    }
    pthread_mutex_unlock(&cache->lock);
    return plan;
}

void tgl_plan_cache_keep(tgl_plan_cache *cache, tgl_plan *plan)
{
    tgl_plan_retain(plan);
    pthread_mutex_lock(&cache->lock);
    slot *s = choose_slot(cache, &plan->shape);
    tgl_plan *old = take(s);
    *s = (slot){plan, ++cache->clock};
    pthread_mutex_unlock(&cache->lock);
    tgl_plan_release(old);
}
