/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor maps of a plan, encoded by the driver. An encoded map holds the address of its tensor, so
 * that the latest few are kept for each map of the plan.
 */
#ifndef TGL_CUDA_TENSOR_MAP_H
#define TGL_CUDA_TENSOR_MAP_H

#include "cuda/cuda_state.h"
#include "plan/launch_list.h"

typedef struct tgl_tensor_maps tgl_tensor_maps;

/* Caches for `count` maps, at least 1. NULL: no memory. NULL is destroyed silently. */
tgl_tensor_maps *tgl_tensor_maps_create(tgl_device *dev, int count);
void tgl_tensor_maps_destroy(tgl_tensor_maps *maps);

/* A tgl_encode_fn; context: the tgl_tensor_maps. A tensor at NULL becomes zeros: no kernel reads
 * it. */
tgl_status tgl_tensor_map_encode(void *context, const tgl_tensor *tensor, int map,
                                 const void *address, void *to);

#endif
