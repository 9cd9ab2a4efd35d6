/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and adds rectangles of matrices.
 */
#include "dist_copy.h"

#include "dist_error.h"

#include <string.h>

tgl_status dist_copy(const tgl_dist_transport *transport, void *target, size_t target_stride,
                     const void *source, size_t source_stride, int64_t lines, size_t bytes)
{
    if (transport->copy != NULL)
        return transport->copy(transport->state, target, target_stride, source, source_stride,
                               lines, bytes);
    if (target_stride == bytes && source_stride == bytes) {
        memcpy(target, source, (size_t)lines * bytes);
        return TGL_OK;
    }
    for (int64_t i = 0; i < lines; i++)
        memcpy((char *)target + (size_t)i * target_stride,
               (const char *)source + (size_t)i * source_stride, bytes);
    return TGL_OK;
}

/* Adds lines of elements of type T: target += source. For int32 T is uint32_t, whose overflow wraps
 * around. */
#define ADD_LINES(T)                                                                               \
    do {                                                                                           \
        T *to = target;                                                                            \
        const T *from = source;                                                                    \
        for (int64_t i = 0; i < lines; i++, to += target_stride, from += source_stride)            \
            for (int64_t j = 0; j < count; j++)                                                    \
                to[j] += from[j];                                                                  \
    } while (0)

tgl_status dist_add(const tgl_dist_transport *transport, tgl_type type, void *target,
                    int64_t target_stride, const void *source, int64_t source_stride, int64_t lines,
                    int64_t count)
{
    if (transport->add != NULL)
        return transport->add(transport->state, type, target, target_stride, source, source_stride,
                              lines, count);
    if (type == TGL_F64)
        ADD_LINES(double);
    else if (type == TGL_F32)
        ADD_LINES(float);
    else if (type == TGL_I32)
        ADD_LINES(uint32_t);
    else
        return dist_fail(TGL_UNSUPPORTED, "sums of this type");
    return TGL_OK;
}
