/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and adds rectangles of matrices in the memory of a rank's device. A rectangle consists of
 * `lines` lines, each contiguous in memory. If the transport has functions for this (the transport
 * between GPUs has), they are called. Else the memory is host memory, and plain loops run.
 */
#ifndef DIST_COPY_H
#define DIST_COPY_H

#include "tegula/dist.h"

/* target := source, for lines of `bytes` bytes. Strides: bytes from one line to the next. */
tgl_status dist_copy(const tgl_dist_transport *transport, void *target, size_t target_stride,
                     const void *source, size_t source_stride, int64_t lines, size_t bytes);

/* target += source, for lines of `count` elements of type F32, F64 or I32. Strides: elements from
 * one line to the next. Returns TGL_OK; TGL_UNSUPPORTED (another type); the failures of
 * tgl_dist_transport.add. */
tgl_status dist_add(const tgl_dist_transport *transport, tgl_type type, void *target,
                    int64_t target_stride, const void *source, int64_t source_stride, int64_t lines,
                    int64_t count);

#endif
