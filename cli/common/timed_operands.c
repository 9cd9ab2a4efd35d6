/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocates and fills the sets of matrices of a problem. A set is one copy of A, B and the result;
 * successive calls use different sets.
 */
#include "timed_operands.h"
#include "cli.h"
#include "elements.h"
#include "problem_options.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256 };

/* ---- Layouts --------------------------------------------------------------------------------- */

static stored_matrix stored(const tgl_problem *p, tgl_type type, tgl_transpose trans, int64_t rows,
                            int64_t cols, int64_t ld, int64_t stride)
{
    const bool is_transposed = trans == TGL_TRANS || trans == TGL_CONJ_TRANS;
    const bool lines_are_rows = is_transposed != (p->order == TGL_ROW_MAJOR);
    if (ld == 0) ld = lines_are_rows ? cols : rows;
    const int64_t extent = stored_extent(p->order, trans, rows, cols, ld, p->batch, stride);
    return (stored_matrix){type, p->order, trans, rows, cols, ld, stride, extent};
}

stored_matrix stored_a(const tgl_problem *p)
{
    return stored(p, p->type_a, p->trans_a, p->m, p->k, p->lda, p->stride_a);
}

stored_matrix stored_b(const tgl_problem *p)
{
    return stored(p, p->type_b, p->trans_b, p->k, p->n, p->ldb, p->stride_b);
}

stored_matrix stored_result(const tgl_problem *p)
{
    if (p->type_d != 0) return stored(p, p->type_d, TGL_NO_TRANS, p->m, p->n, p->ldd, p->stride_d);
    return stored(p, p->type_c, TGL_NO_TRANS, p->m, p->n, p->ldc, p->stride_c);
}

int64_t stored_place(const stored_matrix *x, int64_t b, int64_t i, int64_t j)
{
    return b * x->stride + stored_index(x->order, x->trans, x->ld, i, j);
}

static size_t stored_bytes(const stored_matrix *x)
{
    return (size_t)x->extent * tgl_type_size(x->type);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static size_t align(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The size of the device's L2 cache in bytes; if it is not known, 256 MB, which is more than any
 * device has. */
static double cache_bytes(const tgl_device *dev)
{
    const double bytes = cli_device_number(dev, TGL_NUMBER_L2_BYTES);
    return bytes > 0 ? bytes : 256e6;
}

/* Chooses the number of sets. Between two uses of a set, calls use all other sets, which together
 * must be at least twice as large as the L2 cache. */
static int choose_sets(const operands *o)
{
    const double set = (double)o->step_a + (double)o->step_b + (double)o->step_c;
    return 1 + (int)(2 * cache_bytes(o->dev) / set + 1);
}

static tgl_status allocate_sets(operands *o)
{
    CLI_TRY(tgl_alloc(o->dev, o->step_a * (size_t)o->sets, &o->A));
    CLI_TRY(tgl_alloc(o->dev, o->step_b * (size_t)o->sets, &o->B));
    return tgl_alloc(o->dev, o->step_c * (size_t)o->sets, &o->C);
}

static void free_device(operands *o)
{
    tgl_free(o->dev, o->A);
    tgl_free(o->dev, o->B);
    tgl_free(o->dev, o->C);
    o->A = o->B = o->C = NULL;
}

/* Allocates o->sets sets. Halves o->sets until the sets fit in the device's memory. */
static tgl_status allocate_what_fits(operands *o)
{
    for (;; o->sets /= 2) {
        const tgl_status status = allocate_sets(o);
        if (status != TGL_NO_MEMORY || o->sets == 1) return status;
        free_device(o);
    }
}

/* Fills memory with random elements; the first `filled` bytes already have their elements. The
 * sequence of elements repeats after PERIOD elements, because drawing all elements of large
 * matrices would take longer than everything else. PERIOD is a prime, so that neighbouring rows
 * differ. */
static void fill_random(tgl_type type, uint64_t stream, char *elements, size_t filled, size_t bytes)
{
    enum { PERIOD = 1048583 };
    const size_t period = PERIOD * tgl_type_size(type);
    size_t at = filled / period * period;
    if (at == 0) {
        random_state r;
        random_seed(&r, 1, stream);
        at = bytes < period ? bytes : period;
        random_fill(&r, type, elements, (int64_t)(at / tgl_type_size(type)) * element_parts(type));
    }
    for (; at < bytes; at += period)
        memcpy(elements + at, elements, bytes - at < period ? bytes - at : period);
}

static tgl_status fill_host(void **host, void *device, bool is_host, size_t bytes, tgl_type type,
                            uint64_t stream)
{
    *host = is_host ? device : malloc(bytes + 1);
    if (*host == NULL) return bytes == 0 ? TGL_OK : TGL_NO_MEMORY;
    fill_random(type, stream, *host, 0, bytes);
    return TGL_OK;
}

static void *set_of(void *matrices, size_t step, int64_t set)
{
    return (char *)matrices + (size_t)set * step;
}

tgl_status operands_upload(const operands *o)
{
    for (int i = 0; i < o->sets; i++) {
        CLI_TRY(tgl_upload(o->dev, set_of(o->A, o->step_a, i), o->host_a, o->size_a, NULL));
        CLI_TRY(tgl_upload(o->dev, set_of(o->B, o->step_b, i), o->host_b, o->size_b, NULL));
    }
    return TGL_OK;
}

/* Sets the layouts, and allocates the matrices on the device without filling them. */
static tgl_status make_sets(operands *o, tgl_device *dev, const tgl_problem *problem, bool rotate)
{
    *o = (operands){.dev = dev, .problem = *problem, .sets = 1};
    o->a = stored_a(problem);
    o->b = stored_b(problem);
    o->result = stored_result(problem);
    o->size_a = stored_bytes(&o->a);
    o->size_b = stored_bytes(&o->b);
    o->size_c = stored_bytes(&o->result);
    o->step_a = align(o->size_a);
    o->step_b = align(o->size_b);
    o->step_c = align(o->size_c);
    if (rotate && !cli_device_is_host(dev)) o->sets = choose_sets(o);
    return allocate_what_fits(o);
}

tgl_status operands_make(operands *o, tgl_device *dev, const tgl_problem *problem, bool rotate)
{
    const bool is_host = cli_device_is_host(dev);
    CLI_TRY(make_sets(o, dev, problem, rotate));
    CLI_TRY(fill_host(&o->host_a, o->A, is_host, o->size_a, o->a.type, 1));
    CLI_TRY(fill_host(&o->host_b, o->B, is_host, o->size_b, o->b.type, 2));
    return is_host ? TGL_OK : operands_upload(o);
}

/* ---- Kept matrices --------------------------------------------------------------------------- */

void kept_matrices_free(kept_matrices *kept)
{
    free(kept->a.memory);
    free(kept->b.memory);
    free(kept->c.memory);
    *kept = (kept_matrices){0};
}

static bool reserve_host(kept_matrix *x, size_t bytes)
{
    if (bytes <= x->size) return true;
    void *larger = realloc(x->memory, bytes);
    if (larger == NULL) return false;
    x->memory = larger;
    x->size = bytes;
    return true;
}

/* Fills kept memory with random elements. The elements of a smaller matrix are the first ones of a
 * larger matrix, so they need not be drawn again. False: out of memory. */
static bool keep_random(kept_matrix *x, tgl_type type, uint64_t stream, size_t bytes)
{
    if (!reserve_host(x, bytes)) return false;
    if (x->type != type) x->filled = 0;
    x->type = type;
    if (bytes <= x->filled) return true;
    fill_random(type, stream, x->memory, x->filled, bytes);
    x->filled = bytes;
    return true;
}

tgl_status operands_make_kept(operands *o, tgl_device *dev, const tgl_problem *problem,
                              kept_matrices *kept)
{
    if (cli_device_is_host(dev)) {
        const tgl_status status = operands_make(o, dev, problem, false);
        o->host_c = o->C;
        return status;
    }
    CLI_TRY(make_sets(o, dev, problem, true));
    if (!keep_random(&kept->a, o->a.type, 1, o->size_a) ||
        !keep_random(&kept->b, o->b.type, 2, o->size_b) || !reserve_host(&kept->c, o->size_c))
        return TGL_NO_MEMORY;
    o->is_kept = true;
    o->host_a = kept->a.memory;
    o->host_b = kept->b.memory;
    o->host_c = kept->c.memory;
    return operands_upload(o);
}

/* ---- Epilogues ------------------------------------------------------------------------------- */

/* The size in bytes of the residual, whose rows have no gaps between them. */
static size_t residual_bytes(const operands *o)
{
    const tgl_problem *p = &o->problem;
    return (size_t)(p->m * p->n * p->batch) * tgl_type_size(o->result.type);
}

/* Allocates an operand of the epilogue, `sets` times, and fills each copy with the same random
 * elements. */
static tgl_status add_operand(const operands *o, void **device, void **host, size_t bytes, int sets,
                              uint64_t stream)
{
    const bool is_host = cli_device_is_host(o->dev);
    CLI_TRY(tgl_alloc(o->dev, align(bytes) * (size_t)sets, device));
    CLI_TRY(fill_host(host, *device, is_host, bytes, o->result.type, stream));
    for (int i = 0; !is_host && i < sets; i++)
        CLI_TRY(tgl_upload(o->dev, set_of(*device, align(bytes), i), *host, bytes, NULL));
    return TGL_OK;
}

tgl_status operands_add_epilogue(operands *o, const tgl_epilogue *e)
{
    const tgl_problem *p = &o->problem;
    const int64_t length = e->bias == TGL_BIAS_ROW ? p->m : p->n;
    const size_t bias = (size_t)length * tgl_type_size(o->result.type);
    if (e->bias != TGL_BIAS_NONE) CLI_TRY(add_operand(o, &o->bias, &o->host_bias, bias, 1, 3));
    if (e->residual)
        CLI_TRY(add_operand(o, &o->residual, &o->host_residual, residual_bytes(o), o->sets, 4));
    return TGL_OK;
}

/* ---- Sets ------------------------------------------------------------------------------------ */

tgl_status operands_prepare(operands *o, const tgl_plan *plan, tgl_side side)
{
    tgl_prepared **all = calloc((size_t)o->sets, sizeof(tgl_prepared *));
    if (all == NULL) return TGL_NO_MEMORY;
    o->prepared[side == TGL_SIDE_B] = all;
    for (int i = 0; i < o->sets; i++) {
        const operand_set set = operands_for(o, i);
        CLI_TRY(tgl_operand_prepare(plan, side, side == TGL_SIDE_A ? set.A : set.B, NULL, &all[i]));
    }
    return TGL_OK;
}

static void release_prepared(operands *o)
{
    for (int side = 0; side < 2; side++) {
        for (int i = 0; o->prepared[side] != NULL && i < o->sets; i++)
            tgl_prepared_destroy(o->prepared[side][i]);
        free(o->prepared[side]);
    }
}

void operands_release(operands *o)
{
    if (o->dev == NULL) return;
    release_prepared(o);
    if (!o->is_kept && o->host_a != o->A) free(o->host_a);
    if (!o->is_kept && o->host_b != o->B) free(o->host_b);
    if (o->host_bias != o->bias) free(o->host_bias);
    if (o->host_residual != o->residual) free(o->host_residual);
    tgl_free(o->dev, o->bias);
    tgl_free(o->dev, o->residual);
    free_device(o);
    *o = (operands){0};
}

operand_set operands_for(const operands *o, int64_t call)
{
    const int64_t set = call % o->sets;
    return (operand_set){
        .A = set_of(o->A, o->step_a, set),
        .B = set_of(o->B, o->step_b, set),
        .C = set_of(o->C, o->step_c, set),
        .prepared_a = o->prepared[0] != NULL ? o->prepared[0][set] : NULL,
        .prepared_b = o->prepared[1] != NULL ? o->prepared[1][set] : NULL,
        .bias = o->bias,
        .residual = o->residual != NULL ? set_of(o->residual, align(residual_bytes(o)), set) : NULL,
    };
}

/* ---- Products -------------------------------------------------------------------------------- */

tgl_status operands_run(const operands *o, const tgl_plan *plan, operand_set set)
{
    tgl_operands given = {.size = sizeof given,
                          .alpha = 1,
                          .A = set.A,
                          .B = set.B,
                          .prepared_a = set.prepared_a,
                          .prepared_b = set.prepared_b,
                          .bias = set.bias,
                          .residual = set.residual};
    if (o->problem.type_d != 0)
        given.D = set.C;
    else
        given.C = set.C;
    return tgl_plan_run_operands(plan, &given, NULL);
}

tgl_status operands_forget_result(const operands *o, void *C)
{
    memset(C, 0xff, o->size_c); /* a NaN in every floating-point type, -1 in integers */
    return C == o->C ? TGL_OK : tgl_upload(o->dev, o->C, C, o->size_c, NULL);
}

tgl_status operands_download_result(const operands *o, void *C)
{
    return C == o->C ? TGL_OK : tgl_download(o->dev, C, o->C, o->size_c, NULL);
}

static bool is_conjugated(const stored_matrix *x)
{
    return x->trans == TGL_CONJ_TRANS || x->trans == TGL_CONJ_NO_TRANS;
}

reference_element operands_expected(const operands *o, int64_t b, int64_t i, int64_t j, int part)
{
    const stored_matrix *x = &o->a, *y = &o->b;
    const int64_t k = o->problem.k, at_a = stored_place(x, b, i, 0),
                  at_b = stored_place(y, b, 0, j);
    const int64_t step_a = stored_place(x, b, i, 1) - at_a;
    const int64_t step_b = stored_place(y, b, 1, j) - at_b;
    if (element_parts(x->type) == 1)
        return reference_dot(k, x->type, o->host_a, at_a, step_a, y->type, o->host_b, at_b, step_b);
    const reference_complex sum =
        reference_complex_dot(k, x->type, o->host_a, at_a, step_a, is_conjugated(x), o->host_b,
                              at_b, step_b, is_conjugated(y));
    return part == 0 ? sum.re : sum.im;
}
