/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/extent.h"
#include "problem/type_names.h"

int64_t tgl_extent(int64_t lines, int64_t length, int64_t ld)
{
    int64_t last;
    if (lines == 0 || length == 0) return 0;
    if (__builtin_mul_overflow(lines - 1, ld, &last)) return -1;
    return __builtin_add_overflow(last, length, &last) ? -1 : last;
}

bool tgl_is_addressable(int64_t extent, int64_t batch, int64_t stride, tgl_type type)
{
    int64_t all;
    if (extent < 0) return false;
    if (extent == 0 || batch == 0) return true;
    return !__builtin_mul_overflow(batch - 1, stride, &all) &&
           !__builtin_add_overflow(all, extent, &all) &&
           !__builtin_mul_overflow(all, (int64_t)tgl_type_size(type), &all);
}
