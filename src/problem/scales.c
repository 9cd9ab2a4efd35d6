/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/scales.h"
#include "base/error.h"
#include "base/integers.h"
#include "problem/extent.h"
#include "problem/type_names.h"

#include <stddef.h>

static int64_t blocks_of(int64_t size)
{
    return tgl_ceil_div(size, TGL_SCALE_BLOCK);
}

/* Whether the factors of a matrix have a leading dimension. */
static bool has_ld(tgl_scaling scaling)
{
    return tgl_scaling_is_blocked(scaling) || scaling == TGL_SCALING_GROUP;
}

/* The minimum of ld_scale_a or ld_scale_b; 0 unless the factors are per block or per group. lines:
 * rows of op(A) or columns of op(B). */
static int64_t least_ld(tgl_scaling scaling, int64_t lines, int64_t k)
{
    return !has_ld(scaling) ? 0 : scaling == TGL_SCALING_BLOCK ? blocks_of(k) : lines;
}

tgl_scale_layout tgl_scales_lay_out(tgl_scaling scaling, int64_t lines, int64_t k, int64_t ld)
{
    switch (scaling) {
    case TGL_SCALING_NONE:
        break;
    case TGL_SCALING_TENSOR:
        return (tgl_scale_layout){1, 1, 1};
    case TGL_SCALING_LINE:
        return (tgl_scale_layout){1, lines, lines};
    case TGL_SCALING_BLOCK:
        return (tgl_scale_layout){blocks_of(lines), blocks_of(k), ld};
    case TGL_SCALING_LINE_128:
        return (tgl_scale_layout){blocks_of(k), lines, ld};
    case TGL_SCALING_GROUP:
        break; /* only weights have such factors: weights.h */
    }
    return (tgl_scale_layout){0, 0, 0};
}

int64_t tgl_scales_ld(const tgl_problem *p, bool of_b)
{
    const int64_t given = of_b ? p->ld_scale_b : p->ld_scale_a;
    if (given != 0) return given;
    return least_ld(of_b ? p->scaling_b : p->scaling_a, of_b ? p->n : p->m, p->k);
}

static tgl_status check_kinds(const tgl_problem *p)
{
    const struct {
        const char *name;
        tgl_scaling value;
    } scalings[] = {
        {"scaling_a", p->scaling_a}, {"scaling_b", p->scaling_b}, {"scaling_d", p->scaling_d}};
    for (size_t i = 0; i < sizeof scalings / sizeof scalings[0]; i++)
        if ((int)scalings[i].value < TGL_SCALING_NONE || scalings[i].value > TGL_SCALING_GROUP)
            return tgl_fail(TGL_BAD_ARGUMENT, "%s is %d, which is not a tgl_scaling",
                            scalings[i].name, (int)scalings[i].value);
    if (p->type_scale != 0 && p->type_scale != TGL_F32)
        return tgl_fail(TGL_BAD_TYPE, "type_scale is %d; it must be 0 or TGL_F32",
                        (int)p->type_scale);
    return TGL_OK;
}

/* Why no device supports this combination of scale factors per block, a static text; NULL: a device
 * supports it. */
static const char *unsupported_blocks(const tgl_problem *p)
{
    const bool a = tgl_scaling_is_blocked(p->scaling_a), b = tgl_scaling_is_blocked(p->scaling_b);
    if (tgl_scaling_is_blocked(p->scaling_d))
        return "scaling_d is for blocks; D has factors for all of it or for its rows";
    if (a != b)
        return a ? "scaling_a is for blocks, and scaling_b is not: both or none must be"
                 : "scaling_b is for blocks, and scaling_a is not: both or none must be";
    if (a && !(tgl_type_is_f8(p->type_a) && tgl_type_is_f8(p->type_b)))
        return "factors of blocks are for products of F8_E4M3 and F8_E5M2";
    return NULL;
}

/* Why no device supports these scale factors in a grouped product, a static text; NULL: a device
 * supports them. */
static const char *unsupported_groups(const tgl_problem *p)
{
    const bool has_scales = p->scaling_a != TGL_SCALING_NONE || p->scaling_b != TGL_SCALING_NONE ||
                            p->scaling_d != TGL_SCALING_NONE;
    if (p->grouping == TGL_GROUPED_DEPTH && has_scales)
        return "products with TGL_GROUPED_DEPTH have no scales";
    if (p->grouping == TGL_GROUPED_ROWS && p->scaling_a == TGL_SCALING_BLOCK)
        return "scaling_a is TGL_SCALING_BLOCK, and a block of 128 rows would have rows of several "
               "groups: use TGL_SCALING_LINE_128";
    return NULL;
}

/* name: "ld_scale_a" or "ld_scale_b". lines: rows of op(A) or columns of op(B). */
static tgl_status check_ld(const char *name, int64_t ld, tgl_scaling scaling, int64_t lines,
                           int64_t k)
{
    const int64_t least = least_ld(scaling, lines, k);
    if (ld == 0) return TGL_OK;
    if (!has_ld(scaling))
        return tgl_fail(TGL_BAD_SCALE, "%s is %lld; it must be 0, because no factors are of blocks",
                        name, (long long)ld);
    if (ld < least)
        return tgl_fail(TGL_BAD_SCALE, "%s is %lld; it must be 0 or at least %lld", name,
                        (long long)ld, (long long)least);
    if (scaling == TGL_SCALING_GROUP) return TGL_OK; /* tgl_weights_check() checks the extent */
    const tgl_scale_layout x = tgl_scales_lay_out(scaling, lines, k, ld);
    if (!tgl_is_addressable(tgl_extent(x.rows, x.row, x.ld), 1, 0, TGL_F32))
        return tgl_fail(TGL_BAD_SCALE, "%s is %lld: the factors would not fit in memory", name,
                        (long long)ld);
    return TGL_OK;
}

/* Checks that the factors of all groups fit in memory. */
static tgl_status check_groups(const tgl_problem *p)
{
    const int64_t matrices = p->grouping == TGL_GROUPED_ROWS ? 1 : p->batch; /* A and D */
    const struct {
        const char *name;
        tgl_scale_layout layout;
        int64_t count;
    } scales[] = {
        {"scale_a", tgl_scales_lay_out(p->scaling_a, p->m, p->k, tgl_scales_ld(p, false)),
         matrices},
        {"scale_b", tgl_scales_lay_out(p->scaling_b, p->n, p->k, tgl_scales_ld(p, true)), p->batch},
        {"scale_d", tgl_scales_lay_out(p->scaling_d, p->m, 0, 0), matrices},
    };
    if (p->grouping == TGL_GROUPED_NONE) return TGL_OK;
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        const tgl_scale_layout *x = &scales[i].layout;
        const int64_t extent = tgl_extent(x->rows, x->row, x->ld);
        if (!tgl_is_addressable(extent, 1, 0, TGL_F32) ||
            !tgl_is_addressable(extent, scales[i].count, x->rows * x->ld, TGL_F32))
            return tgl_fail(TGL_TOO_LARGE, "the bytes of %s do not fit in 63 bits", scales[i].name);
    }
    return TGL_OK;
}

tgl_status tgl_scales_check(const tgl_problem *p)
{
    TGL_TRY(check_kinds(p));
    const char *why = unsupported_blocks(p);
    if (why == NULL) why = unsupported_groups(p);
    if (why != NULL) return tgl_fail(TGL_UNSUPPORTED, "%s", why);
    TGL_TRY(check_ld("ld_scale_a", p->ld_scale_a, p->scaling_a, p->m, p->k));
    TGL_TRY(check_ld("ld_scale_b", p->ld_scale_b, p->scaling_b, p->n, p->k));
    return check_groups(p);
}
