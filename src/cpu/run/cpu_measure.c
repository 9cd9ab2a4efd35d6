/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the upper bounds of the speed of products: the rate of the tier's multiply-adds in
 * registers, and the rate of copying memory. Each is the best of several repeats, because
 * interruptions only make a repeat slower.
 */
#include "cpu/run/cpu_measure.h"
#include "base/clock.h"
#include "cpu/kernels/shares.h"
#include "cpu/run/cpu_device.h"

#include <stdlib.h>
#include <string.h>

enum { REPEATS = 25 };

typedef struct measuring {
    const cpu_kernels *kernels;
    int64_t rounds;
    double *flops; /* by thread */
    char *from, *to;
    size_t bytes;
} measuring;

static void run_fma_loop(void *context, int thread, int team)
{
    const measuring *m = context;
    (void)team;
    double sink = 1.0;
    m->flops[thread] = m->kernels->fma_loop(m->rounds, &sink);
}

static void copy_share(void *context, int thread, int team)
{
    const measuring *m = context;
    const size_t begin = (size_t)cpu_share((int64_t)(m->bytes / 64), team, thread) * 64;
    const size_t end = (size_t)cpu_share((int64_t)(m->bytes / 64), team, thread + 1) * 64;
    memcpy(m->to + begin, m->from + begin, end - begin);
}

static tgl_status measure_fma(tgl_device *dev, const cpu_kernels *kernels, double *value)
{
    cpu_device *cpu = dev->state;
    const int threads = cpu->threads.threads;
    double *flops = calloc((size_t)threads, sizeof *flops);
    if (flops == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for a measurement");
    measuring m = {.kernels = kernels, .rounds = 100000, .flops = flops};
    double best = 0;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        memset(flops, 0, (size_t)threads * sizeof *flops);
        const double start = tgl_clock();
        tgl_thread_pool_run(&cpu->threads, threads, run_fma_loop, &m);
        const double seconds = tgl_clock() - start;
        double sum = 0;
        for (int i = 0; i < threads; i++)
            sum += flops[i];
        if (sum / seconds > best) best = sum / seconds;
    }
    free(flops);
    *value = best;
    return TGL_OK;
}

static tgl_status measure_copy(tgl_device *dev, double *value)
{
    cpu_device *cpu = dev->state;
    /* Larger than the last cache, at most 512 MB. */
    size_t bytes = 4 * cpu->machine.facts.l3;
    if (bytes < (size_t)128 << 20) bytes = (size_t)128 << 20;
    if (bytes > (size_t)512 << 20) bytes = (size_t)512 << 20;
    measuring m = {.from = malloc(bytes), .to = malloc(bytes), .bytes = bytes};
    double best = 0;
    if (m.from != NULL && m.to != NULL) {
        memset(m.from, 1, bytes); /* without this all its pages would be the same zero page */
        memset(m.to, 2, bytes);
        for (int repeat = 0; repeat < 3; repeat++) {
            const double start = tgl_clock();
            tgl_thread_pool_run(&cpu->threads, cpu->threads.threads, copy_share, &m);
            const double rate = 2.0 * (double)bytes / (tgl_clock() - start);
            if (rate > best) best = rate;
        }
    }
    free(m.from);
    free(m.to);
    if (best == 0) return tgl_fail(TGL_NO_MEMORY, "no memory for a measurement");
    *value = best;
    return TGL_OK;
}

tgl_status tgl_cpu_measure(tgl_device *dev, tgl_ceiling ceiling, double *value)
{
    const cpu_device *cpu = dev->state;
    switch (ceiling) {
    case TGL_CEILING_FMA_F32:
        return measure_fma(dev, cpu->tiers[0]->f32, value);
    case TGL_CEILING_FMA_F64:
        return measure_fma(dev, cpu->tiers[0]->f64, value);
    case TGL_CEILING_COPY:
        return measure_copy(dev, value);
    }
    return tgl_fail(TGL_BAD_ARGUMENT, "%d is not a tgl_ceiling", (int)ceiling);
}
