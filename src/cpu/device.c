/* SPDX-License-Identifier: Apache-2.0
 *
 * The cpu backend: host memory, and plans for the host's processor.
 */
#include "../device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tgl_status cpu_open(tgl_device *dev, int index, const tgl_device_options *options)
{
    (void)options;
    if (index != 0)
        return tgl_fail(dev, TGL_NO_DEVICE, "there is one cpu device, not cpu:%d", index);
    return TGL_OK;
}

static void cpu_close(tgl_device *dev)
{
    (void)dev;
}

static tgl_status cpu_alloc(tgl_device *dev, size_t bytes, void **memory)
{
    const size_t alignment = 256;
    if (bytes <= SIZE_MAX - alignment)
        *memory = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    return *memory != NULL ? TGL_OK : tgl_fail(dev, TGL_NO_MEMORY, "no %zu bytes of memory", bytes);
}

static void cpu_free(tgl_device *dev, void *memory)
{
    (void)dev;
    free(memory);
}

static tgl_status cpu_copy(tgl_device *dev, void *dst, const void *src, size_t bytes)
{
    (void)dev;
    memcpy(dst, src, bytes);
    return TGL_OK;
}

static tgl_status cpu_sync(tgl_device *dev)
{
    (void)dev;
    return TGL_OK;
}

static tgl_status cpu_prepare(tgl_plan *plan, const char *kernel)
{
    (void)kernel;
    if (plan->shape.type_c != TGL_F32)
        return tgl_fail(plan->dev, TGL_UNSUPPORTED, "only f32 for now");
    plan->kernel = "reference";
    plan->state = plan;
    return TGL_OK;
}

static void cpu_unprepare(tgl_plan *plan)
{
    (void)plan;
}

static tgl_status cpu_run(const tgl_plan *plan, const tgl_run *run, void *stream)
{
    (void)stream;
    const tgl_gemm_shape *s = &plan->shape;
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t i = 0; i < s->m; i++)
            for (int64_t j = 0; j < s->n; j++) {
                const float *A = (const float *)run->A + b * s->stride_a;
                const float *B = (const float *)run->B + b * s->stride_b;
                float *c = (float *)run->C + b * s->stride_c + i * s->ldc + j;
                double sum = 0;
                if (run->alpha != 0)
                    for (int64_t p = 0; p < s->k; p++)
                        sum += (double)A[s->trans_a ? p * s->lda + i : i * s->lda + p] *
                               B[s->trans_b ? j * s->ldb + p : p * s->ldb + j];
                *c = (float)((run->alpha != 0 ? run->alpha * sum : 0) +
                             (run->beta != 0 ? run->beta * *c : 0));
            }
    return TGL_OK;
}

static size_t cpu_explain(const tgl_plan *plan, char *text, size_t size)
{
    return (size_t)snprintf(text, size, "kernel  %s\n", plan->kernel);
}

static const char *cpu_kernel_name(const tgl_device *dev, int index)
{
    (void)dev;
    return index == 0 ? "reference" : NULL;
}

static tgl_status cpu_property(const tgl_device *dev, int index, const char **key,
                               const char **value)
{
    (void)dev, (void)index, (void)key, (void)value;
    return TGL_BAD_ARGUMENT;
}

static tgl_status cpu_measure(tgl_device *dev, tgl_ceiling ceiling, double *value)
{
    (void)ceiling, (void)value;
    return tgl_fail(dev, TGL_UNSUPPORTED, "not measured");
}

const tgl_backend tgl_cpu_backend = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_copy,
    .download = cpu_copy,
    .sync = cpu_sync,
    .prepare = cpu_prepare,
    .unprepare = cpu_unprepare,
    .run = cpu_run,
    .explain = cpu_explain,
    .kernel_name = cpu_kernel_name,
    .property = cpu_property,
    .measure = cpu_measure,
};
