/* SPDX-License-Identifier: Apache-2.0
 *
 * The encoded tensor maps of a plan. An encoding contains the address of the tensor, so the latest
 * few are cached for each map.
 */
#ifndef TGL_CUDA_TENSOR_MAP_H
#define TGL_CUDA_TENSOR_MAP_H

#include "cuda/cuda_state.h"
#include "plan/launch_list.h"

typedef struct tgl_tensor_maps tgl_tensor_maps;

/* Creates caches for `count` maps, at least 1. NULL: no memory. Destroying NULL is allowed. */
tgl_tensor_maps *tgl_tensor_maps_create(tgl_device *dev, int count);
void tgl_tensor_maps_destroy(tgl_tensor_maps *maps);

/* A tgl_encode_fn; context: the tgl_tensor_maps. A NULL address gives zeros: no kernel reads that
 * map. */
tgl_status tgl_tensor_map_encode(void *context, const tgl_tensor *tensor, int map,
                                 const void *address, void *to);

#endif
