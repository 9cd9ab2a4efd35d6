/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and sums of rectangles in the memory of a rank's device: by the transport, or in host
 * memory by loops.
 */
#ifndef DIST_COPY_H
#define DIST_COPY_H

#include "tegula/dist.h"

/* Copies a rectangle: target := source. Arguments as in tgl_dist_transport.copy. */
tgl_status dist_copy(const tgl_dist_transport *transport, void *target, size_t target_stride,
                     const void *source, size_t source_stride, int64_t lines, size_t bytes);

/* Adds a rectangle: target += source. Arguments as in tgl_dist_transport.add. */
tgl_status dist_add(const tgl_dist_transport *transport, tgl_type type, void *target,
                    int64_t target_stride, const void *source, int64_t source_stride, int64_t lines,
                    int64_t count);

#endif
