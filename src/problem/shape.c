/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks a problem and normalises it to row-major.
 */
#include "problem/shape.h"
#include "base/error.h"
#include "base/integers.h"
#include "problem/struct_size.h"

#include <stddef.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* The smallest accepted size of tgl_problem: the size in its first version. */
static const size_t least_size = TGL_SIZE_UP_TO(tgl_problem, type_scale);

/* ---- Types ----------------------------------------------------------------------------------- */

#define BIT(type) (1U << (type))

/* The valid combinations of types, as in the table at tgl_type in tegula.h. Columns: types of A and
 * B; further types of B alone, the weights; accumulation type; types of C and D; types of C and D
 * that require a scale factor. Sets of types are bit masks. */
static const struct type_row {
    unsigned inputs, weights;
    tgl_type accumulate;
    unsigned results, scaled_results;
} type_rows[] = {
    {BIT(TGL_F32), 0, TGL_F32, BIT(TGL_F32), 0},
    {BIT(TGL_F64), 0, TGL_F64, BIT(TGL_F64), 0},
    {BIT(TGL_F16), BIT(TGL_I8) | BIT(TGL_I4), TGL_F32, BIT(TGL_F16) | BIT(TGL_F32), 0},
    {BIT(TGL_BF16), BIT(TGL_I8) | BIT(TGL_I4), TGL_F32, BIT(TGL_BF16) | BIT(TGL_F32), 0},
    {BIT(TGL_F8_E4M3) | BIT(TGL_F8_E5M2), 0, TGL_F32, BIT(TGL_F16) | BIT(TGL_BF16) | BIT(TGL_F32),
     BIT(TGL_F8_E4M3) | BIT(TGL_F8_E5M2)},
    {BIT(TGL_C64), 0, TGL_C64, BIT(TGL_C64), 0},
    {BIT(TGL_C128), 0, TGL_C128, BIT(TGL_C128), 0},
    {BIT(TGL_I8), 0, TGL_I32, BIT(TGL_I32),
     BIT(TGL_I8) | BIT(TGL_F16) | BIT(TGL_BF16) | BIT(TGL_F32)},
};

/* The row for these types of A and B; NULL: they cannot be combined. */
static const struct type_row *find_types(tgl_type a, tgl_type b)
{
    for (size_t i = 0; i < COUNT_OF(type_rows); i++)
        if ((type_rows[i].inputs & BIT(a)) != 0 &&
            ((type_rows[i].inputs | type_rows[i].weights) & BIT(b)) != 0)
            return &type_rows[i];
    return NULL;
}

/* The error of types of A and B that cannot be combined. */
static tgl_status refuse_inputs(tgl_type a, tgl_type b)
{
    const char *why = "these types cannot be combined";
    if (tgl_type_is_complex(a) != tgl_type_is_complex(b))
        why = "a real matrix is not multiplied by a complex one; convert the real one to the "
              "other's type";
    else if (a == TGL_I4 || b == TGL_I4)
        why = "i4 is for weights: B is i4, and A is f16 or bf16";
    else if (a == TGL_I8 && find_types(b, a) != NULL)
        why = "weights are B: exchange A and B, and transpose the product";
    return tgl_fail(TGL_BAD_TYPE, "A is %s and B is %s: %s", tgl_type_name(a), tgl_type_name(b),
                    why);
}

static bool has_scale(const tgl_problem *p)
{
    return p->scaling_a != TGL_SCALING_NONE || p->scaling_b != TGL_SCALING_NONE ||
           p->scaling_d != TGL_SCALING_NONE;
}

/* Checks the type of C or D. name: 'C' or 'D'. */
static tgl_status check_result_type(const tgl_problem *p, const struct type_row *row, char name,
                                    tgl_type type)
{
    if ((row->results & BIT(type)) != 0) return TGL_OK;
    if ((row->scaled_results & BIT(type)) == 0)
        return tgl_fail(
            TGL_BAD_TYPE, "A is %s, B is %s, and %c is %s: these types cannot be combined",
            tgl_type_name(p->type_a), tgl_type_name(p->type_b), name, tgl_type_name(type));
    if (has_scale(p)) return TGL_OK;
    return tgl_fail(TGL_BAD_TYPE, "A is %s, B is %s, and %c is %s: that needs a scale",
                    tgl_type_name(p->type_a), tgl_type_name(p->type_b), name, tgl_type_name(type));
}

static tgl_status check_types(const tgl_problem *p)
{
    const struct {
        const char *name;
        tgl_type type;
        bool is_optional;
    } types[] = {{"type_a", p->type_a, false},
                 {"type_b", p->type_b, false},
                 {"type_c", p->type_c, false},
                 {"type_d", p->type_d, true},
                 {"type_accumulate", p->type_accumulate, true}};
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (!tgl_type_is_valid(types[i].type) && !(types[i].is_optional && types[i].type == 0))
            return tgl_fail(TGL_BAD_TYPE, "%s is %d, which is not a tgl_type", types[i].name,
                            (int)types[i].type);

    const struct type_row *row = find_types(p->type_a, p->type_b);
    if (row == NULL) return refuse_inputs(p->type_a, p->type_b);
    TGL_TRY(check_result_type(p, row, 'C', p->type_c));
    if (p->type_d != 0) TGL_TRY(check_result_type(p, row, 'D', p->type_d));
    if (p->type_accumulate != 0 && p->type_accumulate != row->accumulate)
        return tgl_fail(TGL_BAD_TYPE,
                        "type_accumulate is %s; products of %s and %s are accumulated in %s",
                        tgl_type_name(p->type_accumulate), tgl_type_name(p->type_a),
                        tgl_type_name(p->type_b), tgl_type_name(row->accumulate));
    return TGL_OK;
}

/* ---- Enums and counts ------------------------------------------------------------------------ */

tgl_status tgl_problem_init(tgl_problem *problem, size_t size, tgl_type type, int64_t m, int64_t n,
                            int64_t k)
{
    if (problem == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "problem is NULL");
    if (size < least_size)
        return tgl_fail(TGL_BAD_ARGUMENT, "size is %zu; a tgl_problem has at least %zu bytes", size,
                        least_size);
    const tgl_problem start = {
        .size = size,
        .m = m,
        .n = n,
        .k = k,
        .order = TGL_ROW_MAJOR,
        .trans_a = TGL_NO_TRANS,
        .trans_b = TGL_NO_TRANS,
        .type_a = type,
        .type_b = type,
        .type_c = type == TGL_I8         ? TGL_I32
                  : tgl_type_is_f8(type) ? TGL_BF16
                                         : type,
        .batch = 1,
    };
    memset(problem, 0, size);
    memcpy(problem, &start, size < sizeof start ? size : sizeof start);
    return TGL_OK;
}

static bool is_transpose(tgl_transpose trans)
{
    return trans >= TGL_NO_TRANS && trans <= TGL_CONJ_NO_TRANS;
}

static bool is_transposed(tgl_transpose trans)
{
    return trans == TGL_TRANS || trans == TGL_CONJ_TRANS;
}

static bool is_conjugated(tgl_transpose trans)
{
    return trans == TGL_CONJ_TRANS || trans == TGL_CONJ_NO_TRANS;
}

/* Checks the enums of tgl_problem that come before the leading dimensions. */
static tgl_status check_enums(const tgl_problem *p)
{
    if (p->order != TGL_ROW_MAJOR && p->order != TGL_COL_MAJOR)
        return tgl_fail(TGL_BAD_ORDER, "order is %d; use TGL_ROW_MAJOR or TGL_COL_MAJOR",
                        (int)p->order);
    if (!is_transpose(p->trans_a))
        return tgl_fail(TGL_BAD_TRANS_A, "trans_a is %d, which is not a tgl_transpose",
                        (int)p->trans_a);
    if (!is_transpose(p->trans_b))
        return tgl_fail(TGL_BAD_TRANS_B, "trans_b is %d, which is not a tgl_transpose",
                        (int)p->trans_b);
    TGL_TRY(check_types(p));
    if ((int)p->compute < TGL_COMPUTE_DEFAULT || p->compute > TGL_COMPUTE_FAST)
        return tgl_fail(TGL_BAD_COMPUTE, "compute is %d, which is not a tgl_compute",
                        (int)p->compute);
    if (p->scalars != TGL_SCALARS_HOST && p->scalars != TGL_SCALARS_DEVICE)
        return tgl_fail(TGL_BAD_ARGUMENT, "scalars is %d, which is not a tgl_scalars",
                        (int)p->scalars);
    return TGL_OK;
}

/* A size or count to check: its name, its value, and the status if it is negative. */
typedef struct count {
    const char *name;
    int64_t value;
    tgl_status status;
} count;

static tgl_status check_counts(const count *counts, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (counts[i].value < 0)
            return tgl_fail(counts[i].status, "%s is %lld; it must not be negative", counts[i].name,
                            (long long)counts[i].value);
    return TGL_OK;
}

/* Checks the members that describe a batch. Strides are not used if the batch is given by
 * pointers. */
static tgl_status check_batch(const tgl_problem *p)
{
    const bool strided = p->batching == TGL_STRIDED;
    const count counts[] = {{"batch", p->batch, TGL_BAD_BATCH},
                            {"stride_a", strided ? p->stride_a : 0, TGL_BAD_STRIDE_A},
                            {"stride_b", strided ? p->stride_b : 0, TGL_BAD_STRIDE_B},
                            {"stride_c", strided ? p->stride_c : 0, TGL_BAD_STRIDE_C},
                            {"stride_d", strided ? p->stride_d : 0, TGL_BAD_STRIDE_D}};
    TGL_TRY(check_counts(counts, COUNT_OF(counts)));
    if (p->type_d == 0 && p->stride_d != 0)
        return tgl_fail(TGL_BAD_STRIDE_D,
                        "stride_d is %lld; it must be 0 because D is C (type_d is 0)",
                        (long long)p->stride_d);
    if (!strided && p->batching != TGL_POINTERS)
        return tgl_fail(TGL_BAD_BATCHING, "batching is %d; use TGL_STRIDED or TGL_POINTERS",
                        (int)p->batching);
    if (p->alignment < 0 || (p->alignment & (p->alignment - 1)) != 0)
        return tgl_fail(TGL_BAD_ALIGNMENT, "alignment is %lld; it must be 0 or a power of two",
                        (long long)p->alignment);
    return TGL_OK;
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static const char *grouping_fault(const tgl_problem *p)
{
    const bool is_masked = p->grouping == TGL_GROUPED_MASKED;
    if ((int)p->grouping < TGL_GROUPED_NONE || p->grouping > TGL_GROUPED_MASKED)
        return "grouping is not a tgl_grouping";
    if (p->group_form != TGL_GROUP_ENDS && p->group_form != TGL_GROUP_SIZES)
        return "group_form is not a tgl_group_form";
    if (p->grouping == TGL_GROUPED_NONE)
        return p->group_form != 0 ? "group_form is given, and the problem has no grouping" : NULL;
    if (is_masked && p->group_form != TGL_GROUP_SIZES)
        return "TGL_GROUPED_MASKED takes TGL_GROUP_SIZES";
    if (p->grouping != TGL_GROUPED_DEPTH && p->order != TGL_ROW_MAJOR)
        return "groups of rows are for TGL_ROW_MAJOR: describe the transposed product";
    if (p->batching != TGL_STRIDED) return "a grouping is for TGL_STRIDED";
    return NULL;
}

/* Checks the grouping. A matrix that contains all groups must have the stride 0. */
static tgl_status check_grouping(const tgl_problem *p)
{
    const char *fault = grouping_fault(p);
    const bool rows = p->grouping == TGL_GROUPED_ROWS, depth = p->grouping == TGL_GROUPED_DEPTH;
    const struct {
        const char *name;
        int64_t stride;
        bool is_common;
        tgl_status status;
    } strides[] = {{"stride_a", p->stride_a, rows || depth, TGL_BAD_STRIDE_A},
                   {"stride_b", p->stride_b, depth, TGL_BAD_STRIDE_B},
                   {"stride_c", p->stride_c, rows, TGL_BAD_STRIDE_C},
                   {"stride_d", p->stride_d, rows, TGL_BAD_STRIDE_D}};
    if (fault != NULL) return tgl_fail(TGL_BAD_GROUPS, "%s", fault);
    for (size_t i = 0; i < COUNT_OF(strides); i++)
        if (strides[i].is_common && strides[i].stride != 0)
            return tgl_fail(strides[i].status,
                            "%s is %lld; it must be 0, because one matrix has all groups",
                            strides[i].name, (long long)strides[i].stride);
    return TGL_OK;
}

tgl_shape tgl_shape_of_even_groups(const tgl_shape *s)
{
    /* If groups are along a contiguous dimension, a group may begin at any element. An odd stride
     * makes the planner treat the groups as unaligned. */
    tgl_shape even = *s;
    if (s->batch < 1) return even;
    if (s->grouping == TGL_GROUPED_ROWS) {
        even.m = (s->m - 1) / s->batch + 1;
        even.stride_a = s->trans_a ? even.m | 1 : even.m * s->lda;
        even.stride_c = even.m * s->ldc;
        even.stride_d = even.m * s->ldd;
    } else if (s->grouping == TGL_GROUPED_DEPTH && s->k > 0) {
        even.k = (s->k - 1) / s->batch + 1;
        even.stride_a = s->trans_a ? even.k * s->lda : even.k | 1;
        even.stride_b = s->trans_b ? even.k | 1 : even.k * s->ldb;
    }
    return even;
}

/* ---- Matrices as they are stored ------------------------------------------------------------- */

/* A matrix as it is stored: `rows` lines of `row` elements, `ld` elements apart. Matrices of a
 * batch are `stride` elements apart. */
typedef struct stored {
    int64_t rows, row, ld, stride;
    tgl_type type;
} stored;

/* Indices of the matrices of a problem. */
enum { A, B, C, D, MATRICES };

static const struct {
    char name;
    const char *ld, *stride;
    tgl_status bad_ld, bad_stride;
} matrices[MATRICES] = {
    [A] = {'A', "lda", "stride_a", TGL_BAD_LDA, TGL_BAD_STRIDE_A},
    [B] = {'B', "ldb", "stride_b", TGL_BAD_LDB, TGL_BAD_STRIDE_B},
    [C] = {'C', "ldc", "stride_c", TGL_BAD_LDC, TGL_BAD_STRIDE_C},
    [D] = {'D', "ldd", "stride_d", TGL_BAD_LDD, TGL_BAD_STRIDE_D},
};

/* How a matrix X with op(X) of rows x cols is stored. */
static stored stored_as(int64_t rows, int64_t cols, bool transposed, bool col_major, int64_t ld,
                        int64_t stride, tgl_type type)
{
    const bool flip = transposed != col_major;
    return (stored){flip ? cols : rows, flip ? rows : cols, ld, stride, type};
}

/* The smallest valid leading dimension. */
static int64_t tight_ld(const stored *x)
{
    if (x->type == TGL_I4) return x->row > 0 ? tgl_round_up(x->row, 2) : 2;
    return x->row > 0 ? x->row : 1;
}

static int64_t extent(const stored *x)
{
    return tgl_extent(x->rows, x->row, x->ld);
}

/* Sets x[A] to x[D]: how the matrices are stored. x[D] is x[C] if the problem has no D. */
static void lay_out(const tgl_problem *p, bool zero_is_tight, stored x[MATRICES])
{
    const bool col_major = p->order == TGL_COL_MAJOR, pointers = p->batching == TGL_POINTERS;
    x[A] = stored_as(p->m, p->k, is_transposed(p->trans_a), col_major, p->lda,
                     pointers ? 0 : p->stride_a, p->type_a);
    x[B] = stored_as(p->k, p->n, is_transposed(p->trans_b), col_major, p->ldb,
                     pointers ? 0 : p->stride_b, p->type_b);
    x[C] = stored_as(p->m, p->n, false, col_major, p->ldc, pointers ? 0 : p->stride_c, p->type_c);
    x[D] = p->type_d == 0 ? x[C]
                          : stored_as(p->m, p->n, false, col_major, p->ldd,
                                      pointers ? 0 : p->stride_d, p->type_d);
    for (int i = 0; i < MATRICES; i++)
        if (zero_is_tight && x[i].ld == 0) x[i].ld = tight_ld(&x[i]);
}

static tgl_status check_leading_dimensions(const tgl_problem *p, const stored x[MATRICES])
{
    for (int i = 0; i < MATRICES; i++)
        if (x[i].ld < 1 || x[i].ld < x[i].row)
            return tgl_fail(matrices[i].bad_ld, "%s is %lld; it must be at least %lld",
                            matrices[i].ld, (long long)x[i].ld,
                            (long long)(x[i].row > 1 ? x[i].row : 1));
    if (p->type_d == 0 && p->ldd != 0)
        return tgl_fail(TGL_BAD_LDD, "ldd is %lld; it must be 0 because D is C (type_d is 0)",
                        (long long)p->ldd);
    return TGL_OK;
}

/* Returns an error if results of a batch overlap. Two layouts are valid: each result begins behind
 * the end of the previous one; or the results are interleaved, so that each group of `ld` elements
 * has one row of every result. result: C or D. The sizes cannot overflow, because
 * tgl_is_addressable() has been checked. */
static tgl_status check_overlap(int result, const stored *x, int64_t batch)
{
    if (batch < 2 || x->stride >= extent(x)) return TGL_OK;
    /* the largest stride of interleaved results: the rows of all of them fit in ld */
    const int64_t stride_max = (x->ld - x->row) / (batch - 1);
    if (x->stride >= x->row && x->stride <= stride_max) return TGL_OK;
    if (stride_max < x->row)
        return tgl_fail(matrices[result].bad_stride,
                        "%s is %lld; it must be at least %lld so that no two %c overlap",
                        matrices[result].stride, (long long)x->stride, (long long)extent(x),
                        matrices[result].name);
    return tgl_fail(matrices[result].bad_stride,
                    "%s is %lld; it must be at least %lld, or %lld to %lld within %s, so that no "
                    "two %c overlap",
                    matrices[result].stride, (long long)x->stride, (long long)extent(x),
                    (long long)x->row, (long long)stride_max, matrices[result].ld,
                    matrices[result].name);
}

static tgl_status check_extents(const tgl_problem *p, const stored x[MATRICES])
{
    const bool pointers = p->batching == TGL_POINTERS;
    if (pointers && p->batch > INT64_MAX / (int64_t)sizeof(void *))
        return tgl_fail(TGL_TOO_LARGE, "the bytes of an array of pointers do not fit in 63 bits");
    const int64_t batch = pointers && p->batch > 1 ? 1 : p->batch; /* strided matrices to check */
    for (int i = 0; i < MATRICES; i++)
        if (!tgl_is_addressable(extent(&x[i]), batch, x[i].stride, x[i].type))
            return tgl_fail(TGL_TOO_LARGE, "the bytes of matrix %c do not fit in 63 bits",
                            matrices[i].name);
    const int result = p->type_d == 0 ? C : D;
    const bool is_one = p->grouping == TGL_GROUPED_ROWS; /* one matrix has all results */
    return check_overlap(result, &x[result], is_one ? 1 : batch);
}

/* ---- The shape ------------------------------------------------------------------------------- */

/* Normalises to row-major: a column-major product becomes D^T = op(B)^T * op(A)^T, with A and B,
 * and m and n, exchanged. */
static tgl_shape normalise(const tgl_problem *p, const stored x[MATRICES])
{
    const bool swapped = p->order == TGL_COL_MAJOR, pointers = p->batching == TGL_POINTERS;
    const bool trans_a = is_transposed(p->trans_a), trans_b = is_transposed(p->trans_b);
    const bool conj_a = tgl_type_is_complex(p->type_a) && is_conjugated(p->trans_a);
    const bool conj_b = tgl_type_is_complex(p->type_b) && is_conjugated(p->trans_b);
    const int a = swapped ? B : A, b = swapped ? A : B;
    const tgl_weights weights = tgl_weights_of(p);
    const bool scales_sums =
        weights.type == 0; /* factors of weights are not scale factors of sums */
    return (tgl_shape){
        .m = swapped ? p->n : p->m,
        .n = swapped ? p->m : p->n,
        .k = p->k,
        .swapped = swapped,
        .trans_a = swapped ? trans_b : trans_a,
        .trans_b = swapped ? trans_a : trans_b,
        .conj_a = swapped ? conj_b : conj_a,
        .conj_b = swapped ? conj_a : conj_b,
        .in_place = p->type_d == 0,
        .type_a = swapped && scales_sums ? p->type_b : p->type_a,
        .type_b = !swapped && scales_sums ? p->type_b : p->type_a,
        .type_c = p->type_c,
        .type_d = p->type_d == 0 ? p->type_c : p->type_d,
        .type_accumulate = find_types(p->type_a, p->type_b)->accumulate,
        .compute = p->compute,
        .device_scalars = p->scalars == TGL_SCALARS_DEVICE,
        .lda = x[a].ld,
        .ldb = x[b].ld,
        .ldc = x[C].ld,
        .ldd = x[D].ld,
        .batch = p->batch,
        .stride_a = x[a].stride,
        .stride_b = x[b].stride,
        .stride_c = x[C].stride,
        .stride_d = x[D].stride,
        .pointers = pointers,
        .alignment = pointers ? p->alignment : 0,
        .scaling_a = swapped && scales_sums ? p->scaling_b : p->scaling_a,
        .scaling_b = !swapped && scales_sums ? p->scaling_b : p->scaling_a,
        .scaling_d = p->scaling_d,
        .type_scale = TGL_F32,
        .ld_scale_a = scales_sums ? tgl_scales_ld(p, swapped) : 0,
        .ld_scale_b = scales_sums ? tgl_scales_ld(p, !swapped) : 0,
        .weights = weights,
        .grouping = p->grouping,
        .group_form = p->group_form,
        .epilogue = {.type_bias = p->type_d == 0 ? p->type_c : p->type_d,
                     .type_residual = p->type_d == 0 ? p->type_c : p->type_d},
    };
}

tgl_status tgl_shape_make(const tgl_problem *problem, bool zero_is_tight, tgl_shape *shape)
{
    tgl_problem copy;
    const void *read;
    TGL_TRY(tgl_struct_read(problem, sizeof copy, least_size, "problem", &copy, &read));
    const tgl_problem *p = read;
    const count sizes[] = {{"m", p->m, TGL_BAD_M}, {"n", p->n, TGL_BAD_N}, {"k", p->k, TGL_BAD_K}};
    TGL_TRY(check_counts(sizes, COUNT_OF(sizes)));
    TGL_TRY(check_enums(p));

    stored x[MATRICES];
    lay_out(p, zero_is_tight, x);
    TGL_TRY(check_leading_dimensions(p, x));
    TGL_TRY(check_batch(p));
    TGL_TRY(tgl_scales_check(p));
    TGL_TRY(tgl_weights_check(p));
    TGL_TRY(check_grouping(p));
    TGL_TRY(check_extents(p, x));
    *shape = normalise(p, x);
    return TGL_OK;
}

tgl_status tgl_problem_check(const tgl_problem *problem)
{
    tgl_shape shape;
    return tgl_shape_make(problem, true, &shape);
}
