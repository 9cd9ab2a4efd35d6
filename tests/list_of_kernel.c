/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes plans of single kernels (list_of_kernel.h).
 */
#include "list_of_kernel.h"

#include "base/integers.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct arguments {
    int m, n, k;
    float alpha;
    const float *A;
    long long lda;
    const float *B;
    long long ldb;
    float beta;
    float *C;
    long long ldc;
    float *scratch; /* only with a workspace */
    unsigned *counters;
} arguments;

#define PARAMETERS                                                                                 \
    "int|int|int|float|const float *|long long|const float *|long long|float|float *|long long"

static void add_launch(tgl_list_builder *b, const tgl_shape *s, const tgl_launch *launch,
                       bool has_workspace, bool has_product)
{
    const arguments values = {.m = (int)s->m,
                              .n = (int)s->n,
                              .k = has_product ? (int)s->k : 0,
                              .lda = s->lda,
                              .ldb = s->ldb,
                              .ldc = s->ldc};
    const size_t size = has_workspace ? sizeof values : offsetof(arguments, scratch);
    tgl_list_launch(b, launch, &values, size);
    tgl_list_patch_value(b, TGL_VALUE_ALPHA_F32, 0, offsetof(arguments, alpha), 0);
    tgl_list_patch_value(b, TGL_VALUE_BETA_F32, 0, offsetof(arguments, beta), 0);
    tgl_list_patch_value(b, TGL_VALUE_OPERAND, TGL_AT_A, offsetof(arguments, A), 0);
    tgl_list_patch_value(b, TGL_VALUE_OPERAND, TGL_AT_B, offsetof(arguments, B), 0);
    tgl_list_patch_value(b, TGL_VALUE_OPERAND, TGL_AT_D, offsetof(arguments, C), 0);
    if (!has_workspace) return;
    tgl_list_patch_value(b, TGL_VALUE_SCRATCH, 0, offsetof(arguments, scratch), 0);
    tgl_list_patch_value(b, TGL_VALUE_COUNTERS, 0, offsetof(arguments, counters), 0);
}

static void add_step(tgl_list_builder *b, const tgl_shape *s, const lone_kernel *k,
                     bool has_workspace)
{
    const tgl_kernel kernel = {.name = k->name,
                               .file = k->file,
                               .symbol = k->symbol,
                               .source = k->source,
                               .parameters =
                                   has_workspace ? PARAMETERS "|float *|unsigned *" : PARAMETERS};
    tgl_list_macro(b, "UNUSED", 1);
    tgl_launch launch = {
        .kernel = tgl_list_kernel(b, &kernel),
        .grid = {(unsigned)tgl_ceil_div(s->n, k->block_n), (unsigned)tgl_ceil_div(s->m, k->block_m),
                 1},
        .cluster = {k->cluster > 0 ? k->cluster : 1, 1, 1},
        .threads = (unsigned)k->threads,
        .order = k->order,
        .flag = -1,
        .part = {0, 0, s->m, s->n},
        .repeats = 1,
        .count = 1,
        .last_count = 1,
        .conditions = {{.kind = TGL_IF_NO_PRODUCT}},
    };
    tgl_list_step(b, "tiles");
    launch.condition_count = 1;
    add_launch(b, s, &launch, has_workspace, false);
    launch.condition_count = 0;
    add_launch(b, s, &launch, has_workspace, true);
}

tgl_status plan_of_kernels(tgl_device *dev, const tgl_problem *problem, const lone_kernel *kernels,
                           int count, tgl_plan **plan)
{
    const bool has_workspace = kernels[0].scratch_bytes > 0 || kernels[0].counter_bytes > 0;
    tgl_shape shape;
    tgl_launch_list list;
    tgl_list_builder builder;
    *plan = NULL;
    TGL_TRY(tgl_shape_make(problem, true, &shape));
    tgl_list_begin(&builder, &list);
    tgl_list_scratch(&builder, kernels[0].scratch_bytes);
    tgl_list_counters(&builder, kernels[0].counter_bytes);
    for (int i = 0; i < count; i++)
        add_step(&builder, &shape, &kernels[i], has_workspace);
    TGL_TRY(tgl_list_end(&builder));
    return tgl_plan_of_list(dev, &shape, &list, plan);
}

tgl_status plan_of_kernel(tgl_device *dev, const tgl_problem *problem, const lone_kernel *kernel,
                          tgl_plan **plan)
{
    return plan_of_kernels(dev, problem, kernel, 1, plan);
}

char *read_text(const char *folder, const char *name)
{
    enum { ROOM = 1 << 16 };
    char path[512];
    snprintf(path, sizeof path, "%s/%s.cu", folder, name);
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, ROOM);
    const size_t size = file != NULL && text != NULL ? fread(text, 1, ROOM - 1, file) : 0;
    if (file != NULL) fclose(file);
    if (size > 0) return text;
    free(text);
    return NULL;
}
