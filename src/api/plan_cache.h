/* SPDX-License-Identifier: Apache-2.0
 *
 * The plans that tgl_gemm() keeps from call to call, so that a repeated shape is planned once.
 */
#ifndef TGL_PLAN_CACHE_H
#define TGL_PLAN_CACHE_H

#include "api/shape.h"

typedef struct tgl_plan_cache tgl_plan_cache;

tgl_status tgl_plan_cache_create(tgl_plan_cache **cache);

/* Destroys the plans too; none may be in use. */
void tgl_plan_cache_destroy(tgl_plan_cache *cache);

/* Lets go of all plans, and so of the memory of those that are not in use. */
void tgl_plan_cache_clear(tgl_plan_cache *cache);

/* The kept plan of this shape, which has no epilogue, or NULL. Give it back with
 * tgl_plan_release(). */
tgl_plan *tgl_plan_cache_find(tgl_plan_cache *cache, const tgl_shape *shape);

/* Keeps `plan`, which has no epilogue, besides its present owner, in place of another if need be.
 */
void tgl_plan_cache_keep(tgl_plan_cache *cache, tgl_plan *plan);

#endif
