/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps that a complex product adds before and after its real product: see complex.h.
 */
#include "plan/complex.h"
#include "base/integers.h"
#include "plan/limits.h"

#include "../../kernels/lib/complex_args.h"

#include <stddef.h>
#include <string.h>

typedef struct tgl_expand_args expand_args;
typedef struct tgl_combine_args combine_args;

enum { THREADS = 256, PER_BLOCK = 4 * THREADS }; /* constants of gemm/complex.cu */

/* An operand that a pre-pass expands to a real matrix. A line is a contiguous row of the stored
 * matrix. Each complex line becomes two lines of `length` real numbers. */
typedef struct expansion {
    tgl_operand operand, array; /* TGL_AT_A and TGL_AT_A_ARRAY, or TGL_AT_B and TGL_AT_B_ARRAY */
    const char *what;
    int parts; /* macro PARTS of kernels/gemm/complex.cu: order of real and imaginary parts */
    bool conj, conj_other;
    int64_t lines, elements; /* complex matrix: number of lines, elements per line */
    int64_t ld, stride;      /* complex matrix: leading dimension and stride, in elements */
    int64_t length, pitch;   /* real matrix: numbers per line; numbers from line to line */
    int64_t count;           /* number of matrices; 1 if all problems of the batch share one */
    int64_t array_at, bytes; /* byte offset of the array of pointers to the real matrices; bytes of
                                the matrices and this array */
} expansion;

/* ---- Layout ---------------------------------------------------------------------------------- */

static int64_t number_bytes(const tgl_shape *s)
{
    return (int64_t)tgl_type_alignment(s->type_a);
}

/* Computes the members from `pitch` on: the layout of the real matrices. */
static void lay_out(const tgl_shape *s, expansion *e)
{
    enum { TMA_ALIGNMENT = 16, LINE_OF_L2 = 128, LONG = 1024 }; /* bytes */
    const int64_t bytes = e->length * number_bytes(s);
    e->pitch = tgl_round_up(bytes, bytes >= LONG ? LINE_OF_L2 : TMA_ALIGNMENT) / number_bytes(s);
    e->count = s->pointers || e->stride != 0 ? s->batch : 1;
    const int64_t matrices = e->count * 2 * e->lines * e->pitch * number_bytes(s);
    e->array_at = tgl_round_up(matrices, TGL_WORKSPACE_ALIGNMENT);
    const int64_t pointers = s->pointers ? e->count * (int64_t)sizeof(void *) : 0;
    e->bytes = tgl_round_up(e->array_at + pointers, TGL_WORKSPACE_ALIGNMENT);
}

static expansion expansion_of_b(const tgl_shape *s)
{
    expansion e = {.operand = TGL_AT_B,
                   .array = TGL_AT_B_ARRAY,
                   .what = "expand B",
                   .parts = s->trans_b ? 1 : 0,
                   .conj = s->conj_b,
                   .conj_other = s->conj_a,
                   .lines = s->trans_b ? s->n : s->k,
                   .elements = s->trans_b ? s->k : s->n,
                   .ld = s->ldb,
                   .stride = s->stride_b};
    e.length = 2 * e.elements;
    lay_out(s, &e);
    return e;
}

/* The expansion of a transposed A. It does not conjugate A: the expansion of B takes this into
 * account (conj_other). */
static expansion expansion_of_a(const tgl_shape *s)
{
    expansion e = {.operand = TGL_AT_A,
                   .array = TGL_AT_A_ARRAY,
                   .what = "expand A",
                   .parts = 2,
                   .lines = s->k,
                   .elements = s->m,
                   .ld = s->lda,
                   .stride = s->stride_a,
                   .length = s->m};
    lay_out(s, &e);
    return e;
}

static int64_t stride_of(const expansion *e)
{
    return 2 * e->lines * e->pitch;
}

/* The operands of a complex product that a pre-pass expands, and their number: 0 for a real shape,
 * or if k is 0. */
enum { EXPANSIONS_MAX = 2 };
static int expansions_of(const tgl_shape *s, tgl_direct direct, expansion of[EXPANSIONS_MAX])
{
    int count = 0;
    if (!tgl_type_is_complex(s->type_a) || s->k == 0) return 0;
    if (direct == TGL_DIRECT_NONE) of[count++] = expansion_of_b(s);
    if (s->trans_a && direct != TGL_DIRECT_PAIRS) of[count++] = expansion_of_a(s);
    return count;
}

/* Bytes for a copy of C. It is needed if D is C, because the real product overwrites D before the
 * last step reads C. */
static int64_t saved_bytes(const tgl_shape *s)
{
    const int64_t elements = s->m * s->n * s->batch;
    if (!tgl_type_is_complex(s->type_a) || !s->in_place) return 0;
    return tgl_round_up(elements * (int64_t)tgl_type_size(s->type_d), TGL_WORKSPACE_ALIGNMENT);
}

/* Bytes of the scalars of the real product, which a pre-pass writes. */
static int64_t scalar_bytes(const tgl_shape *s)
{
    return tgl_type_is_complex(s->type_a) && s->device_scalars ? 2 * number_bytes(s) : 0;
}

int64_t tgl_complex_workspace(const tgl_shape *s, tgl_direct direct)
{
    expansion of[EXPANSIONS_MAX];
    int64_t bytes = saved_bytes(s) + tgl_round_up(scalar_bytes(s), TGL_WORKSPACE_ALIGNMENT);
    for (int i = expansions_of(s, direct, of) - 1; i >= 0; i--)
        bytes += of[i].bytes;
    return bytes;
}

int64_t tgl_complex_rest(const tgl_shape *shape, int64_t limit, tgl_direct direct)
{
    if (limit == TGL_WORKSPACE_DEFAULT) return limit;
    const int64_t rest = limit - tgl_complex_workspace(shape, direct);
    return rest >= 0 ? rest : TGL_WORKSPACE_EXCEEDED;
}

/* In which runs the last step `combine` (kernels/gemm/complex.cu) is needed, as far as it is known
 * when the plan is made. */
static tgl_combining combining_of(const tgl_shape *s)
{
    if (s->device_scalars || s->epilogue.bias != TGL_BIAS_NONE || s->epilogue.residual)
        return TGL_COMBINES_ALWAYS;
    return s->in_place ? TGL_COMBINES_IF_COMPLEX : TGL_COMBINES_IF_BETA;
}

tgl_shape tgl_real_shape(const tgl_shape *s)
{
    tgl_shape real = *s;
    if (!tgl_type_is_complex(s->type_a)) return real;
    const tgl_type type = s->type_a == TGL_C128 ? TGL_F64 : TGL_F32;
    const expansion a = expansion_of_a(s), b = expansion_of_b(s);
    const bool shares_a = a.count == 1, shares_b = b.count == 1;
    real.n = 2 * s->n;
    real.k = 2 * s->k;
    real.conj_a = real.conj_b = false;
    real.in_place = true;
    real.type_a = real.type_b = real.type_c = real.type_d = real.type_accumulate = type;
    real.lda = s->trans_a ? a.pitch : 2 * s->lda;
    real.ldb = b.pitch;
    real.ldc = real.ldd = 2 * s->ldd;
    real.stride_a = s->pointers || shares_a ? 0 : s->trans_a ? stride_of(&a) : 2 * s->stride_a;
    real.stride_b = s->pointers || shares_b ? 0 : stride_of(&b);
    real.stride_c = real.stride_d = 2 * s->stride_d;
    real.epilogue = (tgl_shape_epilogue){.bias = TGL_BIAS_NONE};
    return real;
}

tgl_shape tgl_pairs_shape(const tgl_shape *s, tgl_direct direct)
{
    tgl_shape real = tgl_real_shape(s);
    if (!tgl_type_is_complex(s->type_a) || direct == TGL_DIRECT_NONE) return real;
    real.pairs_b = 1 + (s->conj_b ? 1 : 0) + (s->conj_a ? 2 : 0);
    real.ldb = 2 * s->ldb;
    real.stride_b = 2 * s->stride_b;
    if (!s->trans_a || direct != TGL_DIRECT_PAIRS) return real;
    real.pairs_a = true;
    real.lda = 2 * s->lda;
    real.stride_a = 2 * s->stride_a;
    return real;
}

/* ---- Predicted time -------------------------------------------------------------------------- */

/* A launch of the kernel `expand` reads a complex matrix, and writes as many bytes (A) or twice as
 * many (B). In addition it takes EXPAND_SECONDS, with the wait of the next launch for it: fitted to
 * small products of c128 on an H200 (docs/notes/2026-11-29-gpu.md). */
static const double EXPAND_SECONDS = 4.5e-6;

double tgl_complex_seconds(const tgl_chip *chip, const tgl_shape *s, tgl_direct direct)
{
    expansion of[EXPANSIONS_MAX];
    double seconds = 0;
    for (int i = expansions_of(s, direct, of) - 1; i >= 0; i--) {
        const double elements = (double)of[i].lines * (double)of[i].elements * (double)of[i].count;
        const double read = elements * (double)tgl_type_size(s->type_a);
        seconds += EXPAND_SECONDS + (read + (double)of[i].bytes) / chip->memory_rate;
    }
    return seconds;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static tgl_launch launch_of(const tgl_shape *s, const tgl_kernel *kernel, int64_t blocks,
                            bool has_overlap)
{
    /* One block more than a grid can have: tgl_list_check() rejects a launch of so many blocks. */
    const int64_t blocks_max = (int64_t)TGL_GRID_X_MAX + 1;
    return (tgl_launch){
        .kernel = kernel,
        .grid = {(unsigned)tgl_min64(blocks, blocks_max), 1, 1},
        .cluster = {1, 1, 1},
        .threads = THREADS,
        .order = has_overlap ? TGL_WAITS : TGL_AFTER_ALL,
        .flag = -1,
        .repeats = 1,
        .count = (int)s->batch,
        .last_count = (int)s->batch,
    };
}

/* name: name of the __global__ function in gemm/complex.cu. */
static const tgl_kernel *kernel_of(const tgl_shape *s, const char *name, const char *parameters,
                                   tgl_list_builder *builder)
{
    const tgl_kernel kernel = {
        .name = name, .file = "gemm/complex.cu", .symbol = name, .parameters = parameters};
    tgl_list_macro(builder, "DOUBLE", s->type_a == TGL_C128);
    return tgl_list_kernel(builder, &kernel);
}

static void add_expansion(const tgl_shape *s, const expansion *e, bool has_overlap,
                          tgl_list_builder *builder)
{
    const int64_t blocks = tgl_ceil_div(e->lines * e->elements, PER_BLOCK);
    const expand_args args = {.ld = e->ld,
                              .stride = e->stride,
                              .to_ld = e->pitch,
                              .to_stride = stride_of(e),
                              .lines = e->lines,
                              .length = e->elements,
                              .blocks = (int)blocks,
                              .conj = e->conj,
                              .conj_other = e->conj_other};
    const double all = (double)blocks * (double)e->count;
    tgl_list_macro(builder, "PARTS", e->parts);
    tgl_launch launch =
        launch_of(s, kernel_of(s, "expand", "struct tgl_expand_args", builder),
                  all > TGL_GRID_X_MAX ? INT64_MAX : blocks * e->count, has_overlap);
    launch.conditions[launch.condition_count++].kind = TGL_IF_PRODUCT;
    launch.conditions[launch.condition_count++] =
        (tgl_condition){.kind = TGL_IF_NOT_KEPT, .operand = e->operand};
    tgl_list_step(builder, e->what);
    tgl_list_launch(builder, &launch, &args, sizeof args);
    tgl_list_patch_value(builder, TGL_VALUE_OPERAND, (int)e->operand, offsetof(expand_args, from),
                         0);
    tgl_list_patch_value(builder, TGL_VALUE_KEPT, (int)e->operand, offsetof(expand_args, to), 0);
    if (s->device_scalars)
        tgl_list_patch_value(builder, TGL_VALUE_OPERAND, TGL_AT_ALPHA,
                             offsetof(expand_args, alpha_at), 0);
    if (!s->pointers) return;
    tgl_list_patch_value(builder, TGL_VALUE_OPERAND, (int)e->array,
                         offsetof(expand_args, from_array), 0);
    tgl_list_patch_value(builder, TGL_VALUE_KEPT, (int)e->operand, offsetof(expand_args, to_array),
                         e->array_at);
}

/* The values that a run fills into the arguments of `save` and `combine`. Columns: value; operand;
 * offset in the arguments; whether the value is filled in only with scalars in device memory;
 * whether only if D is not C. */
static const struct combine_patch {
    tgl_value value;
    int operand;
    size_t at;
    bool needs_device_scalars, needs_d;
} combine_patches[] = {
    {TGL_VALUE_OPERAND, TGL_AT_C, offsetof(combine_args, C), false, true},
    {TGL_VALUE_OPERAND, TGL_AT_C_ARRAY, offsetof(combine_args, C_array), false, true},
    {TGL_VALUE_OPERAND, TGL_AT_D, offsetof(combine_args, D), false, false},
    {TGL_VALUE_OPERAND, TGL_AT_D_ARRAY, offsetof(combine_args, D_array), false, false},
    {TGL_VALUE_OPERAND, TGL_AT_BIAS, offsetof(combine_args, bias), false, false},
    {TGL_VALUE_OPERAND, TGL_AT_RESIDUAL, offsetof(combine_args, residual), false, false},
    {TGL_VALUE_SAVED_C, 0, offsetof(combine_args, saved), false, false},
    {TGL_VALUE_COMPLEX_ALPHA, 0, offsetof(combine_args, alpha), false, false},
    {TGL_VALUE_COMPLEX_BETA, 0, offsetof(combine_args, beta), false, false},
    {TGL_VALUE_OPERAND, TGL_AT_ALPHA, offsetof(combine_args, alpha_at), true, false},
    {TGL_VALUE_OPERAND, TGL_AT_BETA, offsetof(combine_args, beta_at), true, false},
    {TGL_VALUE_SCRATCH, 0, offsetof(combine_args, scalars), true, false},
};

/* Adds a step that launches the kernel `save` or `combine`. */
static void add_combination(const tgl_shape *s, const char *what, const char *name,
                            bool has_overlap, tgl_list_builder *builder)
{
    enum { BLOCKS_MAX = 1 << 16 }; /* if there are more elements, each block loops over several */
    const combine_args args = {.ldc = s->ldc,
                               .ldd = s->ldd,
                               .ld_residual = s->epilogue.ld_residual,
                               .stride_c = s->stride_c,
                               .stride_d = s->stride_d,
                               .stride_bias = s->epilogue.stride_bias,
                               .stride_residual = s->epilogue.stride_residual,
                               .m = s->m,
                               .n = s->n,
                               .batch = s->batch,
                               .separate_d = !s->in_place,
                               .bias_of_row = s->epilogue.bias == TGL_BIAS_ROW,
                               .has_product = s->k > 0};
    const double blocks = (double)s->m * (double)s->n * (double)s->batch / THREADS;
    const bool is_save = strcmp(name, "save") == 0;
    tgl_launch launch =
        launch_of(s, kernel_of(s, name, "struct tgl_combine_args", builder),
                  blocks >= BLOCKS_MAX ? BLOCKS_MAX : (int64_t)blocks + 1, has_overlap);
    launch.part = (tgl_rectangle){0, 0, s->m, 2 * s->n};
    launch.conditions[launch.condition_count++] =
        (tgl_condition){.kind = TGL_IF_COMBINED, .combining = combining_of(s)};
    if (is_save) launch.conditions[launch.condition_count++].kind = TGL_IF_BETA;
    tgl_list_step(builder, what);
    tgl_list_launch(builder, &launch, &args, sizeof args);
    for (size_t i = 0; i < sizeof combine_patches / sizeof *combine_patches; i++) {
        const struct combine_patch *p = &combine_patches[i];
        if ((p->needs_device_scalars && !s->device_scalars) || (p->needs_d && s->in_place))
            continue;
        tgl_list_patch_value(builder, p->value, p->operand, p->at,
                             p->value == TGL_VALUE_SCRATCH ? builder->list->scalars_at : 0);
    }
}

void tgl_complex_begin(const tgl_shape *s, tgl_direct direct, bool has_overlap,
                       tgl_list_builder *builder)
{
    expansion of[EXPANSIONS_MAX];
    const int count = expansions_of(s, direct, of);
    tgl_launch_list *list = builder->list;
    if (!tgl_type_is_complex(s->type_a)) return;
    list->combining = combining_of(s);
    list->is_complex = true;
    list->saved_bytes = (size_t)saved_bytes(s);
    list->scalars_at = s->device_scalars ? tgl_list_scratch(builder, scalar_bytes(s)) : 0;
    if (s->in_place || s->device_scalars)
        add_combination(s, "save C", "save", has_overlap, builder);
    for (int i = 0; i < count; i++)
        add_expansion(s, &of[i], has_overlap, builder);
    list->complex_steps = list->step_count;
}

/* ---- The real product ------------------------------------------------------------------------ */

static void redirect_conditions(const expansion *e, tgl_launch *launch)
{
    for (int i = 0; i < launch->condition_count; i++) {
        tgl_condition *c = &launch->conditions[i];
        if (c->operand == e->operand && c->kind != TGL_IF_NOT_KEPT) c->is_in_block = true;
    }
}

static void redirect_operand(const expansion *e, tgl_patch *p)
{
    if (p->value == TGL_VALUE_KEPT && p->index == (int)e->operand) {
        p->offset += e->bytes;
    } else if (p->value == TGL_VALUE_OPERAND && p->index == (int)e->operand) {
        p->value = TGL_VALUE_KEPT;
    } else if (p->value == TGL_VALUE_OPERAND && p->index == (int)e->array) {
        p->value = TGL_VALUE_KEPT;
        p->index = (int)e->operand;
        p->offset += e->array_at;
    }
}

static void redirect_scalar(const tgl_shape *s, int64_t scratch, tgl_patch *p)
{
    if (p->value != TGL_VALUE_OPERAND || (p->index != TGL_AT_ALPHA && p->index != TGL_AT_BETA))
        return;
    p->value = TGL_VALUE_SCALARS;
    p->offset = scratch + (p->index == TGL_AT_BETA ? number_bytes(s) : 0);
}

static void redirect_map(const expansion *e, tgl_tensor *map)
{
    if (map->operand != (int)e->operand) return;
    if (map->base == TGL_VALUE_KEPT) map->offset += e->bytes;
    if (map->base == TGL_VALUE_OPERAND) map->base = TGL_VALUE_KEPT;
}

static void redirect_launch(const tgl_shape *s, const expansion *of, int count, int64_t scratch,
                            tgl_launch *launch)
{
    for (int i = 0; i < count; i++)
        redirect_conditions(&of[i], launch);
    for (int j = 0; j < launch->patch_count; j++) {
        for (int i = 0; i < count; i++)
            redirect_operand(&of[i], &launch->patches[j]);
        redirect_scalar(s, scratch, &launch->patches[j]);
    }
}

/* Lets the main kernel, unless it is persistent, start after the expansion has ended. If the two
 * overlapped, the expansion's many blocks would force the blocks of the main kernel, about one per
 * SM, into an uneven distribution over the SMs. */
static void start_late(tgl_launch *launch)
{
    if (!launch->is_persistent && launch->order == TGL_WAITS) launch->order = TGL_AFTER_ALL;
}

void tgl_complex_end(const tgl_shape *s, tgl_direct direct, bool has_overlap,
                     tgl_list_builder *builder)
{
    tgl_launch_list *list = builder->list;
    expansion of[EXPANSIONS_MAX];
    const int count = expansions_of(s, direct, of);
    if (!list->is_complex || builder->status != TGL_OK) return;
    for (int i = list->complex_steps; i < list->step_count; i++)
        for (int j = 0; j < list->steps[i].launch_count; j++)
            redirect_launch(s, of, count, list->scalars_at, &list->steps[i].launches[j]);
    for (int i = 0; count > 0 && i < list->steps[list->complex_steps].launch_count; i++)
        start_late(&list->steps[list->complex_steps].launches[i]);
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < list->map_count; j++)
            redirect_map(&of[i], &list->maps[j]);
        tgl_list_keep(builder, of[i].operand, of[i].bytes + list->kept_bytes[of[i].operand]);
    }
    add_combination(s, "combine D", "combine", has_overlap, builder);
}
