/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds matrices in device memory. An addition is a product with k = 0 and beta = 1, whose residual
 * (a matrix that the epilogue adds) is the source: target := 1*target + source.
 */
#ifndef GPU_ADD_H
#define GPU_ADD_H

#include "tegula/dist.h"

typedef struct gpu_sum gpu_sum;

/* The plans of the additions that have run on this device, one for each shape, strides and type. */
typedef struct gpu_sums {
    tgl_device *dev;
    void *stream;
    gpu_sum *list;
    int count, room;
} gpu_sums;

/* Enqueues target += source in sums->stream, for `lines` lines of `count` elements. Strides:
 * elements from one line to the next. Returns the statuses of tgl_dist_transport.add. */
tgl_status gpu_add(gpu_sums *sums, tgl_type type, void *target, int64_t target_stride,
                   const void *source, int64_t source_stride, int64_t lines, int64_t count);
void gpu_sums_free(gpu_sums *sums);

#endif
