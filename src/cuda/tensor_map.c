/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes tensor maps: converts the description of a tensor, which is in the launch list, to the
 * 128 bytes that the hardware reads.
 */
#include "cuda/tensor_map.h"

#include <stdlib.h>
#include <string.h>

enum { KEPT = 4 }; /* cached encodings per tensor map of a plan */

/* The cached encodings of one map, one for each address. A new one replaces the oldest. */
typedef struct encoded {
    const void *address[KEPT]; /* NULL: the entry is free */
    CUtensorMap map[KEPT];
    int oldest;
} encoded;

struct tgl_tensor_maps {
    tgl_device *dev;
    pthread_mutex_t lock;
    encoded *of; /* indexed by map */
};

tgl_tensor_maps *tgl_tensor_maps_create(tgl_device *dev, int count)
{
    const size_t bytes = (size_t)count * sizeof(encoded);
    tgl_tensor_maps *maps = calloc(1, sizeof *maps);
    encoded *of = aligned_alloc(_Alignof(encoded), bytes);
    if (maps == NULL || of == NULL) {
        free(maps);
        free(of);
        return NULL;
    }
    memset(of, 0, bytes);
    maps->dev = dev;
    maps->of = of;
    pthread_mutex_init(&maps->lock, NULL);
    return maps;
}

void tgl_tensor_maps_destroy(tgl_tensor_maps *maps)
{
    if (maps == NULL) return;
    pthread_mutex_destroy(&maps->lock);
    free(maps->of);
    free(maps);
}

static int type_of(const tgl_tensor *tensor)
{
    static const int types[] = {
        [TGL_F32] = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        [TGL_F64] = CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        [TGL_F16] = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        [TGL_BF16] = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        [TGL_F8_E4M3] = CU_TENSOR_MAP_DATA_TYPE_UINT8,
        [TGL_F8_E5M2] = CU_TENSOR_MAP_DATA_TYPE_UINT8,
        [TGL_I8] = CU_TENSOR_MAP_DATA_TYPE_UINT8,
        [TGL_I32] = CU_TENSOR_MAP_DATA_TYPE_INT32,
    };
    return tensor->round_to_tf32 && tensor->type == TGL_F32 ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
                                                            : types[tensor->type];
}

static int swizzle_of(const tgl_tensor *tensor)
{
    return tensor->swizzle_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
           : tensor->swizzle_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
           : tensor->swizzle_bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                         : CU_TENSOR_MAP_SWIZZLE_NONE;
}

/* Encodes a map. The driver takes no stride for dimension 0, which is contiguous. */
static CUresult encode(const tgl_driver *driver, const tgl_tensor *tensor, const void *address,
                       CUtensorMap *map)
{
    enum { NO_INTERLEAVE = 0, ZEROS_OUTSIDE = 0 };
    uint64_t size[TGL_TENSOR_RANK_MAX], stride[TGL_TENSOR_RANK_MAX] = {0};
    unsigned box[TGL_TENSOR_RANK_MAX], element_stride[TGL_TENSOR_RANK_MAX];
    for (int i = 0; i < tensor->rank; i++) {
        size[i] = (uint64_t)tensor->size[i];
        box[i] = (unsigned)tensor->box[i];
        element_stride[i] = 1;
        if (i > 0) stride[i - 1] = (uint64_t)tensor->stride[i];
    }
    return driver->cuTensorMapEncodeTiled(map, type_of(tensor), (unsigned)tensor->rank,
                                          (void *)address, size, stride, box, element_stride,
                                          NO_INTERLEAVE, swizzle_of(tensor),
                                          CU_TENSOR_MAP_L2_PROMOTION_L2_128B, ZEROS_OUTSIDE);
}

/* *found := the encoding of map number `map` for this address, from the cache or new. Must be
 * called with maps->lock held. */
static tgl_status find_or_encode(tgl_tensor_maps *maps, const tgl_tensor *tensor, int map,
                                 const void *address, const CUtensorMap **found)
{
    const tgl_driver *driver = &((tgl_cuda *)maps->dev->state)->driver;
    encoded *of = &maps->of[map];
    for (int i = 0; i < KEPT; i++) {
        *found = &of->map[i];
        if (of->address[i] == address) return TGL_OK;
    }
    CUtensorMap *room = &of->map[of->oldest];
    of->address[of->oldest] = NULL;
    TGL_TRY(
        tgl_cuda_check(maps->dev, encode(driver, tensor, address, room), "encoding a tensor map"));
    of->address[of->oldest] = address;
    of->oldest = (of->oldest + 1) % KEPT;
    *found = room;
    return TGL_OK;
}

tgl_status tgl_tensor_map_encode(void *context, const tgl_tensor *tensor, int map,
                                 const void *address, void *to)
{
    tgl_tensor_maps *maps = context;
    const CUtensorMap *found;
    memset(to, 0, sizeof *found);
    if (address == NULL) return TGL_OK;
    pthread_mutex_lock(&maps->lock);
    tgl_status status = find_or_encode(maps, tensor, map, address, &found);
    if (status == TGL_OK) memcpy(to, found, sizeof *found);
    pthread_mutex_unlock(&maps->lock);
    return status;
}
