/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache of plans that tgl_gemm() uses, so that a repeated shape is planned once.
 */
#ifndef TGL_PLAN_CACHE_H
#define TGL_PLAN_CACHE_H

#include "problem/shape.h"

typedef struct tgl_plan_cache tgl_plan_cache;

tgl_status tgl_plan_cache_create(tgl_plan_cache **cache);

/* Destroys the cache and its plans. No thread may be using any of them. */
void tgl_plan_cache_destroy(tgl_plan_cache *cache);

/* Empties the cache. A plan in use is destroyed when its last user releases it. */
void tgl_plan_cache_clear(tgl_plan_cache *cache);

/* The cached plan for a shape without an epilogue; NULL: there is none. Release it with
 * tgl_plan_release(). */
tgl_plan *tgl_plan_cache_find(tgl_plan_cache *cache, const tgl_shape *shape);

/* Adds a plan without an epilogue; the cache takes a reference. Another plan may be replaced. */
void tgl_plan_cache_keep(tgl_plan_cache *cache, tgl_plan *plan);

#endif
