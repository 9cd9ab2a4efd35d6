/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic on sizes.
 */
#ifndef TGL_INTEGERS_H
#define TGL_INTEGERS_H

#include <stdint.h>

static inline int64_t tgl_ceil_div(int64_t x, int64_t y)
{
    return x / y + (x % y != 0);
}

static inline int64_t tgl_round_up(int64_t x, int64_t unit)
{
    return tgl_ceil_div(x, unit) * unit;
}

static inline int64_t tgl_min64(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

#endif
