/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the partitions of the operands, and the reasons why an operand must not be read.
 */
#include "sim/launch_regions.h"

#include <string.h>

/* The region of a batch of matrices, stored as rows x cols. The launch may access the partition
 * `part` of each matrix. */
static tgl_sim_region matrix_region(const char *name, const void *base, int64_t element,
                                    int64_t rows, int64_t cols, int64_t ld, int64_t stride,
                                    const tgl_rectangle *part, const tgl_launch_extent *e)
{
    const int64_t offset = (part->row * ld + part->col) * element;
    if (base == NULL || part->m == 0 || part->n == 0) return (tgl_sim_region){.extent = 0};
    return (tgl_sim_region){
        .name = name,
        .label = name,
        .base = (uintptr_t)base + (uintptr_t)(offset + e->first * stride * element),
        .partition_offset = offset,
        .element = (int)element,
        .rows = part->m,
        .row_bytes = part->n * element,
        .ld_bytes = ld * element,
        .extent = ((part->m - 1) * ld + part->n) * element,
        .batch = e->count,
        .stride_bytes = stride * element,
        .first_row = part->row,
        .first_col = part->col,
        .all_rows = rows,
        .all_cols = cols,
    };
}

static const tgl_launch_extent once = {.count = 1};

/* The region of a batch of vectors of `count` elements. element: bytes of an element. */
static tgl_sim_region vector_region(const char *name, const char *label, const void *base,
                                    int64_t count, int element, int64_t stride,
                                    const tgl_launch_extent *e)
{
    const tgl_rectangle whole = {0, 0, 1, count};
    tgl_sim_region x = matrix_region(name, base, element, 1, count, count, stride, &whole, e);
    if (x.extent > 0) x.label = label;
    x.is_list = x.extent > 0;
    return x;
}

/* If the batch is given by an array of pointers: sets x->bases, so that x is a partition within
 * each matrix, and sets *pointers, the region of the array itself. */
static void set_array(const tgl_run *run, tgl_operand array, const char *name, const char *label,
                      const tgl_launch_extent *e, tgl_sim_region *x, tgl_sim_region *pointers)
{
    const void *const *bases = run->at[array];
    if (bases == NULL) return;
    *pointers = vector_region(name, label, bases + e->first, e->count, sizeof(void *), 0, &once);
    x->bases = bases + e->first;
}

/* Address of the first matrix of a batch, strided or given by an array of pointers. */
static const void *base_of(const tgl_run *run, tgl_operand matrix, tgl_operand array)
{
    const void *const *bases = run->at[array];
    return bases != NULL ? bases[0] : run->at[matrix];
}

/* Why A and B must not be read; NULL: they may be. Device scalars can be read here, because the
 * simulated device's memory is host memory. A run that prepares an operand has no alpha. */
static const char *why_no_product(const tgl_shape *s, const tgl_run *run)
{
    const void *alpha = run->at[TGL_AT_ALPHA];
    if (!run->has_product) return "alpha is 0";
    if (s->device_scalars && alpha != NULL && tgl_scalar_is_zero(alpha, tgl_shape_scalar_type(s)))
        return "alpha is 0";
    return NULL;
}

static const char *why_no_c(const tgl_shape *s, const tgl_run *run)
{
    const void *beta = run->at[TGL_AT_BETA];
    const bool is_absent = s->device_scalars
                               ? beta == NULL || tgl_scalar_is_zero(beta, tgl_shape_scalar_type(s))
                               : !tgl_run_has_beta(run);
    return is_absent ? "beta is 0" : NULL;
}

/* The number of real numbers in an element of D: 2 if D is complex, else 1. Launches divide D in
 * units of real numbers. */
static int64_t parts_of(const tgl_shape *s)
{
    return (int64_t)(tgl_type_size(s->type_d) / tgl_type_alignment(s->type_d));
}

/* The region of A (is_a) or B: the partition `part` of a stored matrix of rows x cols. The region
 * of I4, which has two elements in a byte, has columns of whole bytes. */
static tgl_sim_region input_region(const tgl_shape *s, const tgl_run *run, bool is_a, int64_t rows,
                                   int64_t cols, const tgl_rectangle *part,
                                   const tgl_launch_extent *e)
{
    const tgl_type type = tgl_shape_stored_type(s, is_a);
    const int64_t ld = is_a ? s->lda : s->ldb, stride = is_a ? s->stride_a : s->stride_b;
    const void *base =
        is_a ? base_of(run, TGL_AT_A, TGL_AT_A_ARRAY) : base_of(run, TGL_AT_B, TGL_AT_B_ARRAY);
    const char *name = is_a ? "A" : "B";
    if (type != TGL_I4)
        return matrix_region(name, base, (int64_t)tgl_type_size(type), rows, cols, ld, stride, part,
                             e);
    const int64_t first = part->col / 2, end = tgl_type_bytes(type, part->col + part->n);
    const tgl_rectangle bytes = {part->row, first, part->m, end - first};
    return matrix_region(name, base, 1, rows, tgl_type_bytes(type, cols), ld / 2, stride / 2,
                         &bytes, e);
}

/* Sets the partitions of A and B that the launch may read. A launch that computes no part of D,
 * such as a pre-pass, may read all of A and B. */
static void set_inputs(const tgl_shape *s, const tgl_run *run, const tgl_launch_extent *e,
                       tgl_sim_region *regions)
{
    const bool is_all = e->part.m == 0;
    const int64_t row = is_all ? 0 : e->part.row, m = is_all ? s->m : e->part.m;
    const int64_t col = is_all ? 0 : e->part.col, n = is_all ? s->n : e->part.n;
    const tgl_rectangle a =
        s->trans_a ? (tgl_rectangle){0, row, s->k, m} : (tgl_rectangle){row, 0, m, s->k};
    const tgl_rectangle b =
        s->trans_b ? (tgl_rectangle){col, 0, n, s->k} : (tgl_rectangle){0, col, s->k, n};
    regions[TGL_SIM_A] =
        input_region(s, run, true, s->trans_a ? s->k : s->m, s->trans_a ? s->m : s->k, &a, e);
    regions[TGL_SIM_B] =
        input_region(s, run, false, s->trans_b ? s->n : s->k, s->trans_b ? s->k : s->n, &b, e);
    regions[TGL_SIM_A].forbidden = regions[TGL_SIM_B].forbidden = why_no_product(s, run);
}

static void set_results(const tgl_shape *s, const tgl_run *run, const tgl_launch_extent *e,
                        tgl_sim_region *regions)
{
    const char *no_c = why_no_c(s, run);
    const int64_t parts = parts_of(s);
    const tgl_rectangle numbers = {e->part.row, parts * e->part.col, e->part.m, parts * e->part.n};
    regions[TGL_SIM_D] =
        matrix_region(s->in_place ? "C" : "D", base_of(run, TGL_AT_D, TGL_AT_D_ARRAY),
                      (int64_t)tgl_type_alignment(s->type_d), s->m, parts * s->n, parts * s->ldd,
                      parts * s->stride_d, &numbers, e);
    regions[TGL_SIM_D].forbidden =
        s->in_place ? no_c : "it is the result, which has not been written yet";
    if (s->in_place) return;
    regions[TGL_SIM_C] = matrix_region("C", base_of(run, TGL_AT_C, TGL_AT_C_ARRAY),
                                       (int64_t)tgl_type_size(s->type_c), s->m, s->n, s->ldc,
                                       s->stride_c, &e->part, e);
    regions[TGL_SIM_C].forbidden = no_c;
}

static void set_epilogue(const tgl_shape *s, const tgl_run *run, const tgl_launch_extent *e,
                         tgl_sim_region *regions)
{
    static const tgl_rectangle none = {.m = 0};
    const tgl_shape_epilogue *with = &s->epilogue;
    const tgl_rectangle whole = {0, 0, s->m, s->n};
    const int size = (int)tgl_type_size(with->type_bias);
    regions[TGL_SIM_BIAS] =
        vector_region("bias", "bias", run->at[TGL_AT_BIAS],
                      with->bias == TGL_BIAS_ROW ? s->m : s->n, size, with->stride_bias, e);
    regions[TGL_SIM_RESIDUAL] = matrix_region(
        "residual", run->at[TGL_AT_RESIDUAL], (int64_t)tgl_type_size(with->type_residual), s->m,
        s->n, with->ld_residual, with->stride_residual, with->residual ? &whole : &none, e);
}

static void set_scalars(const tgl_shape *s, const tgl_run *run, tgl_sim_region *regions)
{
    const int size = (int)tgl_type_size(tgl_shape_scalar_type(s));
    if (!s->device_scalars) return;
    regions[TGL_SIM_ALPHA] =
        vector_region("alpha", "alpha", run->at[TGL_AT_ALPHA], 1, size, 0, &once);
    regions[TGL_SIM_BETA] = vector_region("beta", "beta", run->at[TGL_AT_BETA], 1, size, 0, &once);
}

static void set_scales(const tgl_shape *s, const tgl_run *run, tgl_sim_region *regions)
{
    const int size = (int)tgl_type_size(s->type_scale);
    const struct {
        const char *name;
        tgl_operand operand;
    } scales[] = {
        {"scale_a", TGL_AT_SCALE_A}, {"scale_b", TGL_AT_SCALE_B}, {"scale_d", TGL_AT_SCALE_D}};
    for (int i = 0; i < 3; i++) {
        const int64_t count = tgl_scales_count(s, scales[i].operand);
        if (count > 0)
            regions[TGL_SIM_SCALE_A + i] = vector_region(
                scales[i].name, scales[i].name, run->at[scales[i].operand], count, size, 0, &once);
    }
    const int64_t zeros = tgl_scales_count(s, TGL_AT_ZEROS);
    if (zeros > 0)
        regions[TGL_SIM_ZEROS] =
            vector_region("zero_b", "zero_b", run->at[TGL_AT_ZEROS], zeros, 1, 0, &once);
}

static void set_workspace(const tgl_sim_memory *memory, tgl_sim_region *regions)
{
    regions[TGL_SIM_COUNTERS] = vector_region("the counters", "workspace", memory->counters,
                                              (int64_t)memory->counter_bytes / 4, 4, 0, &once);
    regions[TGL_SIM_SCRATCH] = vector_region("the scratch", "workspace", memory->scratch,
                                             (int64_t)memory->scratch_bytes / 4, 4, 0, &once);
}

/* Sets the regions of prepared operands. For a run that prepares an operand, the memory of that
 * operand is the run's scratch and has no region here. */
static void set_kept(const tgl_launch_list *list, const tgl_run *run, tgl_sim_region *regions)
{
    static const char *const names[] = {"the prepared A", "the prepared B"};
    for (int i = 0; i < TGL_KEPT_OPERANDS; i++)
        if (!run->is_preparation)
            regions[TGL_SIM_KEPT_A + i] = vector_region(names[i], names[i], run->kept[i],
                                                        list->kept_bytes[i] / 4, 4, 0, &once);
}

void tgl_launch_regions(const tgl_plan *plan, const tgl_run *run, const tgl_sim_memory *memory,
                        const tgl_launch_extent *of, tgl_sim_region *regions)
{
    const tgl_shape *s = &plan->shape;
    tgl_launch_extent extent = *of, *e = &extent;
    extent.part.col /= parts_of(s);
    extent.part.n /= parts_of(s);
    memset(regions, 0, TGL_SIM_REGIONS * sizeof *regions);
    set_inputs(s, run, e, regions);
    set_results(s, run, e, regions);
    set_array(run, TGL_AT_A_ARRAY, "the pointers to A", "A[i]", e, &regions[TGL_SIM_A],
              &regions[TGL_SIM_A_POINTERS]);
    set_array(run, TGL_AT_B_ARRAY, "the pointers to B", "B[i]", e, &regions[TGL_SIM_B],
              &regions[TGL_SIM_B_POINTERS]);
    set_array(run, TGL_AT_D_ARRAY, s->in_place ? "the pointers to C" : "the pointers to D",
              s->in_place ? "C[i]" : "D[i]", e, &regions[TGL_SIM_D], &regions[TGL_SIM_D_POINTERS]);
    if (!s->in_place)
        set_array(run, TGL_AT_C_ARRAY, "the pointers to C", "C[i]", e, &regions[TGL_SIM_C],
                  &regions[TGL_SIM_C_POINTERS]);
    set_epilogue(s, run, e, regions);
    set_scalars(s, run, regions);
    regions[TGL_SIM_GROUPS] =
        vector_region("the groups", "groups", run->at[TGL_AT_GROUPS], s->batch, 4, 0, &once);
    if (s->epilogue.amax)
        regions[TGL_SIM_AMAX] =
            vector_region("amax_d", "amax_d", run->at[TGL_AT_AMAX], 1, sizeof(float), 0, &once);
    set_scales(s, run, regions);
    set_workspace(memory, regions);
    set_kept(&plan->list, run, regions);
}

/* ---- Bundles --------------------------------------------------------------------------------- */

static tgl_sim_region whole_region(const char *name, const void *base, tgl_type type, int64_t rows,
                                   int64_t cols, int64_t ld)
{
    const tgl_rectangle whole = {0, 0, rows, cols};
    return matrix_region(name, base, (int64_t)tgl_type_size(type), rows, cols, ld, 0, &whole,
                         &once);
}

static tgl_sim_region bundle_region(const tgl_sim_region *members, const char *name, tgl_type type,
                                    int count)
{
    return (tgl_sim_region){.name = name,
                            .label = name,
                            .element = (int)tgl_type_size(type),
                            .extent = 1,
                            .members = members,
                            .member_count = count};
}

void tgl_launch_bundle_regions(const tgl_shape *s, const struct tgl_bundle_table *bundle,
                               tgl_bundle_regions *members, tgl_sim_region *regions)
{
    int64_t rows = 0;
    for (int i = 0; i < bundle->count; i++) {
        const struct tgl_bundle_member *x = &bundle->members[i];
        const double beta = s->type_accumulate == TGL_F64   ? x->beta.f64
                            : s->type_accumulate == TGL_I32 ? x->beta.i32
                                                            : (double)x->beta.f32;
        members->a[i] = whole_region("A", x->A, s->type_a, s->trans_a ? x->k : x->m,
                                     s->trans_a ? x->m : x->k, x->lda);
        members->b[i] = whole_region("B", x->B, s->type_b, s->trans_b ? x->n : x->k,
                                     s->trans_b ? x->k : x->n, x->ldb);
        members->d[i] = whole_region("C", x->D, s->type_d, x->m, x->n, x->ldd);
        members->d[i].forbidden = beta == 0 ? "beta is 0" : NULL;
        members->d[i].shadow_row = rows;
        rows += x->m;
    }
    memset(regions, 0, TGL_SIM_REGIONS * sizeof *regions);
    regions[TGL_SIM_A] = bundle_region(members->a, "A", s->type_a, bundle->count);
    regions[TGL_SIM_B] = bundle_region(members->b, "B", s->type_b, bundle->count);
    regions[TGL_SIM_D] = bundle_region(members->d, "C", s->type_d, bundle->count);
}
