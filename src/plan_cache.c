/* SPDX-License-Identifier: Apache-2.0
 *
 * A direct-mapped table of plans. Plans are counted by their users: one that loses its slot lives
 * on until the last call that runs it has returned.
 */
#include "plan_cache.h"
#include "device.h"

#include <stdlib.h>

enum { SLOTS = 256 };

struct tgl_plan_cache {
    pthread_mutex_t lock;
    tgl_plan *slots[SLOTS];
};

static bool is_same_shape(const tgl_gemm_shape *x, const tgl_gemm_shape *y)
{
    return x->m == y->m && x->n == y->n && x->k == y->k && x->lda == y->lda && x->ldb == y->ldb &&
           x->ldc == y->ldc && x->trans_a == y->trans_a && x->trans_b == y->trans_b &&
           x->swapped == y->swapped && x->type_a == y->type_a && x->type_b == y->type_b &&
           x->type_c == y->type_c && x->compute == y->compute && x->batch == y->batch &&
           x->stride_a == y->stride_a && x->stride_b == y->stride_b && x->stride_c == y->stride_c;
}

/* The multiplier is that of Knuth's multiplicative hashing, 2^64 / golden ratio. */
static size_t slot_of(const tgl_gemm_shape *s)
{
    const uint64_t golden = 0x9e3779b97f4a7c15u;
    const int flags = s->trans_a * 4 + s->trans_b * 2 + s->swapped;
    const int64_t words[] = {s->m, s->n, s->k, s->lda, s->ldb, s->ldc, s->batch, s->type_c, flags};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = (hash ^ (uint64_t)words[i]) * golden;
    return (size_t)(hash >> 56) % SLOTS;
}

tgl_status tgl_plan_cache_create(tgl_plan_cache **cache)
{
    *cache = calloc(1, sizeof **cache);
    if (*cache == NULL) return TGL_NO_MEMORY;
    pthread_mutex_init(&(*cache)->lock, NULL);
    return TGL_OK;
}

void tgl_plan_cache_destroy(tgl_plan_cache *cache)
{
    if (cache == NULL) return;
    for (int i = 0; i < SLOTS; i++)
        tgl_plan_release(cache->slots[i]);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

tgl_plan *tgl_plan_cache_find(tgl_plan_cache *cache, const tgl_gemm_shape *shape)
{
    const size_t slot = slot_of(shape);
    pthread_mutex_lock(&cache->lock);
    tgl_plan *plan = cache->slots[slot];
    if (plan != NULL && !is_same_shape(&plan->shape, shape)) plan = NULL;
    if (plan != NULL) tgl_plan_retain(plan);
    pthread_mutex_unlock(&cache->lock);
    return plan;
}

void tgl_plan_cache_keep(tgl_plan_cache *cache, tgl_plan *plan)
{
    const size_t slot = slot_of(&plan->shape);
    tgl_plan_retain(plan);
    pthread_mutex_lock(&cache->lock);
    tgl_plan *old = cache->slots[slot];
    cache->slots[slot] = plan;
    pthread_mutex_unlock(&cache->lock);
    tgl_plan_release(old);
}
