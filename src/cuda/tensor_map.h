/* SPDX-License-Identifier: Apache-2.0
 *
 * The encoded tensor maps of a plan. An encoding contains the address of the tensor, so for each
 * map the encodings of the latest few addresses are cached.
 */
#ifndef TGL_CUDA_TENSOR_MAP_H
#define TGL_CUDA_TENSOR_MAP_H

#include "cuda/cuda_state.h"
#include "plan/launch_list.h"

typedef struct tgl_tensor_maps tgl_tensor_maps;

/* Creates caches for `count` maps. count: at least 1. NULL: no memory. Destroying NULL is
 * allowed. */
tgl_tensor_maps *tgl_tensor_maps_create(tgl_device *dev, int count);
void tgl_tensor_maps_destroy(tgl_tensor_maps *maps);

/* A tgl_encode_fn that writes the encoding of map number `map` for this address to *to. context:
 * the tgl_tensor_maps. address NULL: writes zeros; no kernel reads that map. */
tgl_status tgl_tensor_map_encode(void *context, const tgl_tensor *tensor, int map,
                                 const void *address, void *to);

#endif
