/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans complex products and products of weights by the functions of complex.h and widen.h, which
 * do nothing for other shapes.
 */
#include "plan/planned_shape.h"
#include "plan/complex.h"

bool tgl_direct_is_for(tgl_direct direct, const tgl_shape *s)
{
    if (direct == TGL_DIRECT_NONE) return true;
    return direct == TGL_DIRECT_WEIGHTS ? tgl_shape_has_weights(s) : tgl_type_is_complex(s->type_a);
}

tgl_direct tgl_family_direct(const tgl_family *family, const tgl_shape *s)
{
    return tgl_direct_is_for(family->reads, s) ? family->reads : TGL_DIRECT_NONE;
}

tgl_shape tgl_planned_shape(const tgl_shape *s, tgl_direct direct)
{
    if (direct == TGL_DIRECT_WEIGHTS) return *s;
    return tgl_shape_has_weights(s) ? tgl_widened_shape(s) : tgl_pairs_shape(s, direct);
}

int64_t tgl_planned_rest(const tgl_shape *s, int64_t limit, tgl_direct direct)
{
    if (direct == TGL_DIRECT_WEIGHTS) return limit;
    return tgl_shape_has_weights(s) ? tgl_widened_rest(s, limit)
                                    : tgl_complex_rest(s, limit, direct);
}

double tgl_planned_seconds(const tgl_chip *chip, const tgl_shape *s, tgl_direct direct)
{
    if (direct == TGL_DIRECT_WEIGHTS) return 0;
    return tgl_widen_seconds(chip, s) + tgl_complex_seconds(chip, s, direct);
}

tgl_widening tgl_planned_begin(const tgl_shape *s, tgl_direct direct, bool has_overlap,
                               tgl_list_builder *builder)
{
    if (direct == TGL_DIRECT_WEIGHTS) return (tgl_widening){0, 0};
    tgl_complex_begin(s, direct, has_overlap, builder);
    return tgl_widen_begin(s, has_overlap, builder);
}

void tgl_planned_end(const tgl_shape *s, tgl_direct direct, tgl_widening widening, bool has_overlap,
                     tgl_list_builder *builder)
{
    if (direct == TGL_DIRECT_WEIGHTS) return;
    tgl_widen_end(s, widening, builder);
    tgl_complex_end(s, direct, has_overlap, builder);
}
