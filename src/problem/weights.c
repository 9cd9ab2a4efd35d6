/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the members of a problem that describe weights: see weights.h.
 */
#include "problem/weights.h"
#include "base/error.h"
#include "base/integers.h"
#include "problem/extent.h"
#include "problem/scales.h"
#include "problem/type_names.h"

static bool has_weights(const tgl_problem *p)
{
    return p->type_b != p->type_a && (p->type_b == TGL_I8 || p->type_b == TGL_I4);
}

/* Refuses members that only weights may have. */
static tgl_status check_no_weights(const tgl_problem *p)
{
    if (p->scaling_a == TGL_SCALING_GROUP || p->scaling_d == TGL_SCALING_GROUP)
        return tgl_fail(TGL_UNSUPPORTED, "%s is for groups; only the weights, B, have such factors",
                        p->scaling_a == TGL_SCALING_GROUP ? "scaling_a" : "scaling_d");
    if (has_weights(p)) return TGL_OK;
    if (p->scaling_b == TGL_SCALING_GROUP)
        return tgl_fail(TGL_UNSUPPORTED, "factors of groups are for B of i8 or i4 and A of f16 or "
                                         "bf16");
    if (p->type_zero_b != 0)
        return tgl_fail(TGL_BAD_SCALE, "type_zero_b is given, and B has no weights of i8 or i4");
    if (p->stride_scale_b != 0)
        return tgl_fail(TGL_BAD_SCALE, "stride_scale_b is given, and B has no weights of i8 or i4");
    return TGL_OK;
}

static tgl_status check_group(const tgl_problem *p)
{
    const int group = p->scale_group;
    if (p->scaling_b != TGL_SCALING_GROUP && group != 0)
        return tgl_fail(TGL_BAD_SCALE,
                        "scale_group is %d; it must be 0, because no factors are of "
                        "groups",
                        group);
    if (p->scaling_b == TGL_SCALING_GROUP && group != 32 && group != 64 && group != 128)
        return tgl_fail(TGL_BAD_SCALE, "scale_group is %d; it must be 32, 64 or 128", group);
    return TGL_OK;
}

static tgl_status check_zeros(const tgl_problem *p)
{
    if (p->scaling_b == TGL_SCALING_NONE && p->stride_scale_b != 0)
        return tgl_fail(TGL_BAD_SCALE, "stride_scale_b is given, and B has no factors");
    if (p->type_zero_b == 0) return TGL_OK;
    if (p->type_zero_b != TGL_I8)
        return tgl_fail(TGL_BAD_TYPE, "type_zero_b is %d; it must be 0 or TGL_I8",
                        (int)p->type_zero_b);
    if (p->scaling_b == TGL_SCALING_NONE)
        return tgl_fail(TGL_BAD_SCALE, "B has zero points and no factors: give both");
    return TGL_OK;
}

/* Two elements of I4 are in one byte. After an odd distance a row or a matrix would begin within a
 * byte. */
static tgl_status check_even(const tgl_problem *p)
{
    if (p->type_b != TGL_I4) return TGL_OK;
    if (p->ldb % 2 != 0)
        return tgl_fail(TGL_BAD_LDB, "ldb is %lld; it must be even, because B is i4",
                        (long long)p->ldb);
    if (p->batching == TGL_STRIDED && p->stride_b % 2 != 0)
        return tgl_fail(TGL_BAD_STRIDE_B, "stride_b is %lld; it must be even, because B is i4",
                        (long long)p->stride_b);
    return TGL_OK;
}

static const char *unsupported_reason(const tgl_problem *p)
{
    if (p->scaling_a != TGL_SCALING_NONE || p->scaling_d != TGL_SCALING_NONE)
        return "in products of weights only B, the weights, has factors";
    if (tgl_scaling_is_blocked(p->scaling_b))
        return "factors of weights are TGL_SCALING_TENSOR, _LINE or _GROUP";
    if (p->batching != TGL_STRIDED) return "weights are supported for TGL_STRIDED only";
    if (p->grouping != TGL_GROUPED_NONE)
        return "weights are not supported in products with a grouping";
    return NULL;
}

/* Checks that the factors of all matrices of the batch fit in memory. */
static tgl_status check_factors(const tgl_problem *p)
{
    if (p->stride_scale_b < 0)
        return tgl_fail(TGL_BAD_SCALE, "stride_scale_b is %lld; it must not be negative",
                        (long long)p->stride_scale_b);
    const tgl_weights w = tgl_weights_of(p);
    const int64_t extent =
        tgl_extent(tgl_ceil_div(p->k, w.group), w.line_step != 0 ? p->n : 1, w.ld);
    if (w.has_factors && !tgl_is_addressable(extent, p->batch, w.stride, TGL_F32))
        return tgl_fail(TGL_BAD_SCALE, "the factors of B would not fit in memory");
    return TGL_OK;
}

tgl_status tgl_weights_check(const tgl_problem *p)
{
    TGL_TRY(check_no_weights(p));
    TGL_TRY(check_group(p));
    if (!has_weights(p)) return TGL_OK;
    const char *why = unsupported_reason(p);
    if (why != NULL) return tgl_fail(TGL_UNSUPPORTED, "%s", why);
    TGL_TRY(check_zeros(p));
    TGL_TRY(check_even(p));
    return check_factors(p);
}

tgl_weights tgl_weights_of(const tgl_problem *p)
{
    if (!has_weights(p)) return (tgl_weights){.type = 0};
    const bool has_groups = p->scaling_b == TGL_SCALING_GROUP;
    return (tgl_weights){
        .type = p->type_b,
        .is_a = p->order == TGL_COL_MAJOR,
        .has_factors = p->scaling_b != TGL_SCALING_NONE,
        .has_zeros = p->type_zero_b != 0,
        .group = has_groups ? p->scale_group
                 : p->k > 0 ? p->k
                            : 1,
        .ld = has_groups ? tgl_scales_ld(p, true) : 0,
        .line_step = has_groups || p->scaling_b == TGL_SCALING_LINE,
        .stride = p->stride_scale_b,
    };
}
