/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/planner_refuse.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/text.h"
#include "plan/complex.h"
#include "plan/limits.h"
#include "plan/planned_shape.h"
#include "plan/widen.h"
#include "problem/describe.h"

/* Why no kernel can compute these groups, a static text; NULL: no such reason. Here m and k are
 * those of all groups together, or m is that of one group (TGL_GROUPED_MASKED); the planner itself
 * sees a batch of groups of average size. */
static const char *groups_fault(const tgl_shape *s)
{
    if (s->grouping == TGL_GROUPED_NONE) return NULL;
    if (tgl_type_is_complex(s->type_a)) return "grouped products have no complex types here";
    _Static_assert(TGL_EXTENT_MAX == 2147482623, "the sentence says so");
    return s->m > TGL_EXTENT_MAX || s->k > TGL_EXTENT_MAX
               ? "the groups have together more than 2147482623 rows"
               : NULL;
}

/* The reason of the first family (*said_by) if no family that the planner may choose supports the
 * problem on the chip; NULL: some family does. */
static const char *unsupported_by_all(const tgl_chip *chip, const tgl_shape *shape,
                                      const tgl_family **said_by)
{
    const tgl_family *family;
    const char *first = NULL;
    *said_by = NULL;
    for (int i = 0; (family = tgl_family_at(i)) != NULL; i++) {
        if (family->is_on_request) continue;
        const char *reason = tgl_family_unsupported(family, shape, chip);
        if (reason == NULL) return NULL;
        if (first != NULL) continue;
        first = reason;
        *said_by = family;
    }
    return first;
}

tgl_status tgl_planner_check(const tgl_chip *chip, const tgl_shape *asked, const tgl_shape *shape,
                             const tgl_request *request)
{
    const tgl_family *family;
    const char *reason = groups_fault(asked);
    if (reason != NULL) return tgl_fail(TGL_UNSUPPORTED, "%s", reason);
    if (request->is_named) return TGL_OK;
    reason = unsupported_by_all(chip, shape, &family);
    if (reason == NULL) return TGL_OK;
    return tgl_fail(TGL_UNSUPPORTED,
                    "no kernel takes this product, of A in %s, B in %s and C in %s; %s, for "
                    "example: %s",
                    tgl_type_name(tgl_shape_stored_type(asked, true)),
                    tgl_type_name(tgl_shape_stored_type(asked, false)),
                    tgl_type_name(asked->type_c), family->name, reason);
}

/* The least bytes of workspace that a complex product needs on the chip, without those of its real
 * product: families differ in the operands that they read without expansion. */
static int64_t least_complex_workspace(const tgl_chip *chip, const tgl_shape *asked)
{
    const tgl_family *family;
    int64_t least = tgl_complex_workspace(asked, TGL_DIRECT_NONE);
    for (int i = 0; (family = tgl_family_at(i)) != NULL; i++) {
        const tgl_direct direct = tgl_family_direct(family, asked);
        const tgl_shape real = tgl_planned_shape(asked, direct);
        if (!family->is_on_request && tgl_family_unsupported(family, &real, chip) == NULL)
            least = tgl_min64(least, tgl_complex_workspace(asked, direct));
    }
    return least;
}

tgl_status tgl_planner_refuse(const tgl_chip *chip, const tgl_candidate *choice,
                              const tgl_shape *asked, const tgl_request *request)
{
    char types[80];
    tgl_text text = {types, sizeof types, 0};
    const tgl_direct direct = tgl_family_direct(choice->choice.family, asked);
    const int64_t limit = request->workspace_max;
    const int64_t needed = request->is_named ? tgl_complex_workspace(asked, direct)
                                             : least_complex_workspace(chip, asked);
    if (limit != TGL_WORKSPACE_DEFAULT && needed > limit)
        return tgl_fail(TGL_UNSUPPORTED,
                        "products of %s need workspace: here %lld bytes, and the limit is %lld",
                        tgl_type_name(asked->type_a), (long long)needed, (long long)limit);
    const bool expands = !request->is_named || direct == TGL_DIRECT_NONE;
    if (expands && tgl_widened_rest(asked, limit) == TGL_WORKSPACE_EXCEEDED)
        return tgl_fail(TGL_UNSUPPORTED,
                        "weights are expanded in workspace: here %lld bytes, and the limit is %lld",
                        (long long)tgl_widened_bytes(asked), (long long)limit);
    tgl_text_types(&text, asked);
    return tgl_fail(choice->rejected_status, "%s cannot serve %s, m=%lld n=%lld k=%lld: %s",
                    tgl_choice_name(&choice->choice), types, (long long)asked->m,
                    (long long)asked->n, (long long)asked->k, choice->rejected);
}
