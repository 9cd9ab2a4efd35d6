/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the operands of a run, and exchanges A and B if the normalised shape has them exchanged.
 */
#include "base/error.h"
#include "base/integers.h"
#include "problem/run.h"
#include "problem/struct_size.h"

#include <math.h>
#include <stddef.h>

/* ---- Scale factors --------------------------------------------------------------------------- */

/* The number of factors, or of zero points, of weights. */
static int64_t weights_count(const tgl_shape *s)
{
    const tgl_weights *w = &s->weights;
    const int64_t lines = w->line_step == 0 ? 1 : w->is_a ? s->m : s->n;
    const int64_t one = tgl_extent(tgl_ceil_div(s->k, w->group), lines, w->ld);
    return one == 0 ? 0 : one + (s->batch - 1) * w->stride;
}

static tgl_scale_layout layout_of(const tgl_shape *s, tgl_operand operand)
{
    const bool is_a = operand == TGL_AT_SCALE_A, is_d = operand == TGL_AT_SCALE_D;
    const tgl_scaling scaling = is_a ? s->scaling_a : is_d ? s->scaling_d : s->scaling_b;
    const int64_t lines = is_a || (is_d && !s->swapped) ? s->m : s->n;
    return tgl_scales_lay_out(scaling, lines, s->k, is_a ? s->ld_scale_a : s->ld_scale_b);
}

int64_t tgl_scales_stride(const tgl_shape *s, tgl_operand operand)
{
    const tgl_scale_layout x = layout_of(s, operand);
    const bool is_of_each = s->grouping == TGL_GROUPED_MASKED ||
                            (s->grouping == TGL_GROUPED_ROWS && operand == TGL_AT_SCALE_B);
    return is_of_each ? x.rows * x.ld : 0;
}

int64_t tgl_scales_count(const tgl_shape *s, tgl_operand operand)
{
    const tgl_operand of_weights = s->weights.is_a ? TGL_AT_SCALE_A : TGL_AT_SCALE_B;
    if (s->weights.has_factors && operand == of_weights) return weights_count(s);
    if (operand == TGL_AT_ZEROS) return s->weights.has_zeros ? weights_count(s) : 0;
    const tgl_scale_layout x = layout_of(s, operand);
    return (s->batch - 1) * tgl_scales_stride(s, operand) + tgl_extent(x.rows, x.row, x.ld);
}

/* ---- Pointers -------------------------------------------------------------------------------- */

/* The smallest accepted size of tgl_operands: the size in its first version. */
static const size_t least_size = TGL_SIZE_UP_TO(tgl_operands, workspace_bytes);

/* The fault of a pointer to elements of this type, a static text for the message; NULL: it is
 * valid. */
static const char *pointer_fault(const void *pointer, tgl_type type)
{
    if (pointer == NULL) return "is NULL";
    if (((uintptr_t)pointer & (tgl_type_alignment(type) - 1)) == 0) return NULL;
    return tgl_type_is_complex(type) ? "is not aligned to the size of a part of its elements"
                                     : "is not aligned to its element size";
}

tgl_status tgl_pointer_check(const char *name, tgl_status status, const void *pointer,
                             tgl_type type)
{
    const char *fault = pointer_fault(pointer, type);
    return fault == NULL ? TGL_OK : tgl_fail(status, "%s %s", name, fault);
}

/* ---- Scalars --------------------------------------------------------------------------------- */

/* Rounds to f32. Without `volatile`, GCC 12 at -O3 keeps alpha and beta in one vector register and
 * omits the conversion. */
static double rounded_to_f32(double value)
{
    volatile float narrow = (float)value;
    return narrow;
}

double tgl_scalar_round(const tgl_shape *shape, double value)
{
    return tgl_type_is_single(tgl_shape_scalar_type(shape)) ? rounded_to_f32(value) : value;
}

bool tgl_scalar_is_zero(const void *scalar, tgl_type type)
{
    const float *singles = scalar;
    const double *doubles = scalar;
    if (type == TGL_I32) return *(const int32_t *)scalar == 0;
    const bool is_complex = tgl_type_is_complex(type);
    if (tgl_type_is_single(type)) return singles[0] == 0 && !(is_complex && singles[1] != 0);
    return doubles[0] == 0 && !(is_complex && doubles[1] != 0);
}

/* Checks alpha or beta in host memory. It must be an integer if sums are int32 and not scaled. */
static tgl_status check_host_scalar(const tgl_shape *s, const char *name, double value, double imag)
{
    if (imag != 0 && !tgl_type_is_complex(s->type_accumulate))
        return tgl_fail(TGL_BAD_SCALAR, "%s_imag is %.9g; it must be 0 in products of %s", name,
                        imag, tgl_type_name(s->type_a));
    if (tgl_shape_scalar_type(s) != TGL_I32) return TGL_OK;
    if (value >= INT32_MIN && value <= INT32_MAX && value == trunc(value)) return TGL_OK;
    return tgl_fail(TGL_BAD_SCALAR, "%s is %.9g; products of i8 take integers of 32 bits", name,
                    value);
}

static tgl_status check_scalars(const tgl_shape *s, const tgl_operands *o)
{
    if (!s->device_scalars) {
        TGL_TRY(check_host_scalar(s, "alpha", o->alpha, o->alpha_imag));
        TGL_TRY(check_host_scalar(s, "beta", o->beta, o->beta_imag));
        if (o->alpha_at == NULL && o->beta_at == NULL) return TGL_OK;
        return tgl_fail(TGL_BAD_SCALAR, "%s is given, and scalars is TGL_SCALARS_HOST",
                        o->alpha_at != NULL ? "alpha_at" : "beta_at");
    }
    const tgl_type type = tgl_shape_scalar_type(s);
    TGL_TRY(tgl_pointer_check("alpha_at", TGL_BAD_SCALAR, o->alpha_at, type));
    if (o->beta_at == NULL) return TGL_OK;
    return tgl_pointer_check("beta_at", TGL_BAD_SCALAR, o->beta_at, type);
}

/* Sets the scalars and has_product of *run. Returns whether the run reads C. */
static bool take_scalars(const tgl_shape *s, const tgl_operands *o, tgl_run *run)
{
    run->at[TGL_AT_ALPHA] = o->alpha_at;
    run->at[TGL_AT_BETA] = o->beta_at;
    run->alpha_imag = run->beta_imag = 0;
    if (s->device_scalars) {
        run->alpha = run->beta = NAN;
        run->has_product = s->k > 0;
        return o->beta_at != NULL;
    }
    run->alpha = s->k > 0 ? tgl_scalar_round(s, o->alpha) : 0; /* with k == 0 the result is
                                                                  beta*C */
    run->beta = tgl_scalar_round(s, o->beta);
    if (tgl_type_is_complex(s->type_accumulate)) {
        run->alpha_imag = s->k > 0 ? tgl_scalar_round(s, o->alpha_imag) : 0;
        run->beta_imag = tgl_scalar_round(s, o->beta_imag);
    }
    run->has_product = run->alpha != 0 || run->alpha_imag != 0; /* true for a NaN alpha */
    return tgl_run_has_beta(run);
}

/* ---- Operands -------------------------------------------------------------------------------- */

/* Returns an error if an operand is given that the plan does not use. */
static tgl_status check_kinds(const tgl_shape *s, const tgl_operands *o)
{
    if (s->pointers && (o->A != NULL || o->B != NULL || o->C != NULL || o->D != NULL))
        return tgl_fail(TGL_BAD_BATCHING,
                        "a matrix is given, and batching is TGL_POINTERS: give arrays of pointers");
    if (!s->pointers &&
        (o->A_array != NULL || o->B_array != NULL || o->C_array != NULL || o->D_array != NULL))
        return tgl_fail(TGL_BAD_BATCHING,
                        "an array of pointers is given, and batching is TGL_STRIDED");
    if (s->in_place && (o->D != NULL || o->D_array != NULL))
        return tgl_fail(TGL_BAD_D, "%s is given, and D is C (type_d is 0)",
                        o->D != NULL ? "D" : "D_array");
    if (o->bias != NULL && s->epilogue.bias == TGL_BIAS_NONE)
        return tgl_fail(TGL_BAD_BIAS, "bias is given, and the plan's epilogue has none");
    if (o->residual != NULL && !s->epilogue.residual)
        return tgl_fail(TGL_BAD_RESIDUAL, "residual is given, and the plan's epilogue has none");
    return TGL_OK;
}

/* Checks the pointer to a scale, which must be NULL if the problem has no such scale. Factors per
 * block of K may be NULL if k is 0, because then there is no block. name: the pointer's name in
 * tgl_operands. */
static tgl_status check_scale(const char *name, const void *scale, tgl_scaling scaling,
                              const tgl_shape *s)
{
    if (scale == NULL && s->k == 0 && tgl_scaling_is_blocked(scaling)) return TGL_OK;
    if (scaling != TGL_SCALING_NONE)
        return tgl_pointer_check(name, TGL_BAD_SCALE, scale, s->type_scale);
    if (scale == NULL) return TGL_OK;
    return tgl_fail(TGL_BAD_SCALE, "%s is given, and the problem has none", name);
}

static tgl_status check_amax(const tgl_shape *s, const tgl_operands *o)
{
    if (s->epilogue.amax) return tgl_pointer_check("amax_d", TGL_BAD_SCALE, o->amax_d, TGL_F32);
    if (o->amax_d == NULL) return TGL_OK;
    return tgl_fail(TGL_BAD_SCALE, "amax_d is given, and the plan's epilogue has none");
}

/* Checks the pointers to the factors and zero points of weights. They may be NULL if k is 0. */
static tgl_status check_weights(const tgl_shape *s, const tgl_operands *o)
{
    if (!s->weights.has_zeros && o->zero_b != NULL)
        return tgl_fail(TGL_BAD_SCALE, "zero_b is given, and the problem has none");
    if (s->k == 0) return TGL_OK;
    if (s->weights.has_zeros)
        TGL_TRY(tgl_pointer_check("zero_b", TGL_BAD_SCALE, o->zero_b, TGL_I8));
    if (!s->weights.has_factors) return TGL_OK;
    return tgl_pointer_check("scale_b", TGL_BAD_SCALE, o->scale_b, s->type_scale);
}

static tgl_status check_scales(const tgl_shape *s, const tgl_operands *o)
{
    TGL_TRY(check_weights(s, o));
    const tgl_scaling a = s->swapped ? s->scaling_b : s->scaling_a;
    const tgl_scaling b = s->swapped ? s->scaling_a : s->scaling_b;
    TGL_TRY(check_scale("scale_a", o->scale_a, a, s));
    if (!s->weights.has_factors) TGL_TRY(check_scale("scale_b", o->scale_b, b, s));
    return check_scale("scale_d", o->scale_d, s->scaling_d, s);
}

static tgl_status check_groups(const tgl_shape *s, const tgl_operands *o)
{
    if (s->grouping != TGL_GROUPED_NONE)
        return tgl_pointer_check("groups", TGL_BAD_GROUPS, o->groups, TGL_I32);
    if (o->groups == NULL) return TGL_OK;
    return tgl_fail(TGL_BAD_GROUPS, "groups is given, and the problem has no grouping");
}

static tgl_status check_pointers_array(const char *name, tgl_status status, const void *array)
{
    if (array == NULL) return tgl_fail(status, "%s is NULL", name);
    if ((uintptr_t)array % sizeof(void *) == 0) return TGL_OK;
    return tgl_fail(status, "%s is not aligned to its element size", name);
}

/* Checks the pointer to A, B, C or D, or to the array of pointers to matrices. */
static tgl_status check_matrix(const tgl_shape *s, const char *name, const char *array_name,
                               tgl_status status, const void *matrix, const void *array,
                               tgl_type type)
{
    if (s->pointers) return check_pointers_array(array_name, status, array);
    return tgl_pointer_check(name, status, matrix, type);
}

/* Checks the pointers that this run uses. */
static tgl_status check_used(const tgl_shape *s, const tgl_operands *o, bool has_product,
                             bool reads_c)
{
    const tgl_type type_a = tgl_shape_stored_type(s, !s->swapped);
    const tgl_type type_b = tgl_shape_stored_type(s, s->swapped);
    if (has_product) {
        TGL_TRY(check_matrix(s, "A", "A_array", TGL_BAD_A, o->A, o->A_array, type_a));
        TGL_TRY(check_matrix(s, "B", "B_array", TGL_BAD_B, o->B, o->B_array, type_b));
    }
    if (reads_c || s->in_place)
        TGL_TRY(check_matrix(s, "C", "C_array", TGL_BAD_C, o->C, o->C_array, s->type_c));
    if (!s->in_place)
        TGL_TRY(check_matrix(s, "D", "D_array", TGL_BAD_D, o->D, o->D_array, s->type_d));
    if (s->epilogue.bias != TGL_BIAS_NONE)
        TGL_TRY(tgl_pointer_check("bias", TGL_BAD_BIAS, o->bias, s->epilogue.type_bias));
    if (s->epilogue.residual)
        TGL_TRY(tgl_pointer_check("residual", TGL_BAD_RESIDUAL, o->residual,
                                  s->epilogue.type_residual));
    return TGL_OK;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* Sets all pointers of *run but those of the scalars. */
static void take_pointers(const tgl_shape *s, const tgl_operands *o, bool reads_c, tgl_run *run)
{
    const bool swapped = s->swapped, has_product = run->has_product, in_place = s->in_place;
    const bool has_c = reads_c || in_place;
    run->at[TGL_AT_A] = !has_product ? NULL : swapped ? o->B : o->A;
    run->at[TGL_AT_B] = !has_product ? NULL : swapped ? o->A : o->B;
    run->at[TGL_AT_A_ARRAY] = !has_product ? NULL : swapped ? o->B_array : o->A_array;
    run->at[TGL_AT_B_ARRAY] = !has_product ? NULL : swapped ? o->A_array : o->B_array;
    run->at[TGL_AT_SCALE_A] = !has_product ? NULL : swapped ? o->scale_b : o->scale_a;
    run->at[TGL_AT_SCALE_B] = !has_product ? NULL : swapped ? o->scale_a : o->scale_b;
    run->at[TGL_AT_C] = has_c ? o->C : NULL;
    run->at[TGL_AT_C_ARRAY] = has_c ? o->C_array : NULL;
    run->at[TGL_AT_D] = in_place ? o->C : o->D;
    run->at[TGL_AT_D_ARRAY] = in_place ? o->C_array : o->D_array;
    run->at[TGL_AT_BIAS] = o->bias;
    run->at[TGL_AT_RESIDUAL] = o->residual;
    run->at[TGL_AT_SCALE_D] = o->scale_d;
    run->at[TGL_AT_GROUPS] = o->groups;
    run->at[TGL_AT_AMAX] = o->amax_d;
    run->at[TGL_AT_ZEROS] = has_product ? o->zero_b : NULL;
    run->workspace = o->workspace;
    run->workspace_bytes = o->workspace_bytes;
    run->kept[TGL_AT_A] = run->kept[TGL_AT_B] = NULL;
    run->is_preparation = false;
    run->prepares = TGL_AT_A;
    run->bundle = NULL;
}

tgl_status tgl_run_make(const tgl_shape *s, const tgl_operands *operands, tgl_run *run)
{
    tgl_operands copy;
    const void *read;
    TGL_TRY(tgl_struct_read(operands, sizeof copy, least_size, "operands", &copy, &read));
    const tgl_operands *o = read;
    if (tgl_shape_is_empty(s)) {
        *run = (tgl_run){.workspace = o->workspace, .workspace_bytes = o->workspace_bytes};
        return TGL_OK;
    }
    TGL_TRY(check_kinds(s, o));
    TGL_TRY(check_scalars(s, o));
    TGL_TRY(check_scales(s, o));
    TGL_TRY(check_groups(s, o));
    TGL_TRY(check_amax(s, o));
    const bool reads_c = take_scalars(s, o, run);
    TGL_TRY(check_used(s, o, run->has_product, reads_c));
    take_pointers(s, o, reads_c, run); /* sets all pointers that take_scalars() has not set, so that
                                          the run need not be cleared */
    return TGL_OK;
}

/* Checks each pointer of an array. name: the caller's letter for the matrices. promised: alignment
 * in bytes that the caller has guaranteed; 0: none. */
static tgl_status check_array(const tgl_shape *s, const void *pointers, char name,
                              tgl_status status, tgl_type type, int64_t promised)
{
    const void *const *array = pointers;
    for (int64_t i = 0; i < s->batch; i++) {
        const char *fault = pointer_fault(array[i], type);
        if (fault != NULL) return tgl_fail(status, "%c[%lld] %s", name, (long long)i, fault);
        if (promised > 0 && (uintptr_t)array[i] % (uintptr_t)promised != 0)
            return tgl_fail(status,
                            "%c[%lld] is not aligned to the %lld bytes of problem.alignment", name,
                            (long long)i, (long long)promised);
    }
    return TGL_OK;
}

tgl_status tgl_run_check_pointers(const tgl_shape *s, const tgl_run *run)
{
    if (!s->pointers || s->is_bundle) return TGL_OK;
    if (run->has_product) {
        TGL_TRY(check_array(s, run->at[TGL_AT_A_ARRAY], s->swapped ? 'B' : 'A',
                            s->swapped ? TGL_BAD_B : TGL_BAD_A, s->type_a, s->alignment));
        TGL_TRY(check_array(s, run->at[TGL_AT_B_ARRAY], s->swapped ? 'A' : 'B',
                            s->swapped ? TGL_BAD_A : TGL_BAD_B, s->type_b, s->alignment));
    }
    if (run->at[TGL_AT_C_ARRAY] != NULL)
        TGL_TRY(check_array(s, run->at[TGL_AT_C_ARRAY], 'C', TGL_BAD_C, s->type_c, 0));
    if (s->in_place) return TGL_OK;
    return check_array(s, run->at[TGL_AT_D_ARRAY], 'D', TGL_BAD_D, s->type_d, 0);
}
