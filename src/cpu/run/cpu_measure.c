/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the upper bounds of the speed of products by FMAs: the rate of the tier's multiply-adds
 * in registers, and the rate of copying memory. Each rate is the best of several repeats, because
 * interruptions only make a repeat slower.
 */
#include "cpu/run/cpu_measure.h"
#include "base/clock.h"
#include "cpu/kernels/shares.h"
#include "cpu/run/cpu_state.h"

#include <stdlib.h>
#include <string.h>

enum { REPEATS = 25 };

/* The data of the threads that measure. They are allocated, because a signal handler may leave the
 * caller's stack frames by longjmp() while workers still use the task. */
typedef struct measuring {
    thread_pool_task task;
    const cpu_kernels *kernels;
    int64_t rounds;
    double *flops; /* number of floating-point operations, one entry per thread */
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

/* Runs `body` on all threads of the device, and returns the seconds. */
static double time_team(tgl_device *dev, measuring *m, thread_pool_fn *body)
{
    cpu_device *cpu = dev->state;
    m->task = (thread_pool_task){.body = body, .context = m};
    const double start = tgl_clock();
    tgl_thread_pool_run(&cpu->threads, cpu->threads.threads, &m->task);
    return tgl_clock() - start;
}

static double measure_fma(tgl_device *dev, measuring *m)
{
    const cpu_device *cpu = dev->state;
    const size_t threads = (size_t)cpu->threads.threads;
    double best = 0;
    m->rounds = 100000;
    m->flops = malloc(threads * sizeof *m->flops);
    for (int repeat = 0; m->flops != NULL && repeat < REPEATS; repeat++) {
        memset(m->flops, 0, threads * sizeof *m->flops);
        const double seconds = time_team(dev, m, run_fma_loop);
        double sum = 0;
        for (size_t i = 0; i < threads; i++)
            sum += m->flops[i];
        if (sum / seconds > best) best = sum / seconds;
    }
    free(m->flops);
    return best;
}

static double measure_copy(tgl_device *dev, measuring *m)
{
    const cpu_device *cpu = dev->state;
    /* The copied memory must exceed the caches: 4 times L3, from 128 to 512 MB. */
    m->bytes = 4 * cpu->machine.facts.l3;
    if (m->bytes < (size_t)128 << 20) m->bytes = (size_t)128 << 20;
    if (m->bytes > (size_t)512 << 20) m->bytes = (size_t)512 << 20;
    m->from = malloc(m->bytes);
    m->to = malloc(m->bytes);
    double best = 0;
    if (m->from != NULL && m->to != NULL) {
        memset(m->from, 1, m->bytes); /* without writing, all pages would map to one zero page */
        memset(m->to, 2, m->bytes);
        for (int repeat = 0; repeat < 3; repeat++) {
            const double rate = 2.0 * (double)m->bytes / time_team(dev, m, copy_share);
            if (rate > best) best = rate;
        }
    }
    free(m->from);
    free(m->to);
    return best;
}

tgl_status tgl_cpu_measure(tgl_device *dev, tgl_ceiling ceiling, double *value)
{
    const cpu_device *cpu = dev->state;
    if (ceiling != TGL_CEILING_FMA_F32 && ceiling != TGL_CEILING_FMA_F64 &&
        ceiling != TGL_CEILING_COPY)
        return tgl_fail(TGL_BAD_ARGUMENT, "%d is not a tgl_ceiling", (int)ceiling);
    double best = 0;
    measuring *m = calloc(1, sizeof *m);
    if (m != NULL) {
        m->kernels = ceiling == TGL_CEILING_FMA_F64 ? cpu->tiers[0]->f64 : cpu->tiers[0]->f32;
        best = ceiling == TGL_CEILING_COPY ? measure_copy(dev, m) : measure_fma(dev, m);
    }
    free(m);
    if (best == 0) return tgl_fail(TGL_NO_MEMORY, "no memory for a measurement");
    *value = best;
    return TGL_OK;
}
