/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates and shows the progress of long products.
 */
#include "long_work.h"
#include "cli.h"
#include "problem_options.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Scalar multiplications per second that the simulator performs on one core of a 3 GHz processor:
 * 20 to 50 million were measured, depending on the kernel. */
static const double sim_rate = 3e7;
/* Typical rate of a large product, as a fraction of the device's measured FMA rate: 0.69 to 0.93
 * were measured with m = n = k = 2048 (bench/results, the files cpu.csv). */
static const double usual_efficiency = 0.7;
/* For products with fewer floating-point operations, nothing is estimated, because measuring the
 * FMA rate takes 0.1 s. The simulator needs no measurement, so the limit does not apply to it. */
static const double flops_worth_measuring = 2e11;
static const double seconds_worth_saying = 60, seconds_worth_showing = 2;

double long_work_estimate(tgl_device *dev, const tgl_problem *p)
{
    const double products = problem_flops(p) / 2;
    if (strcmp(tgl_device_name(dev), "sim") == 0) return products / sim_rate;
    if (2 * products < flops_worth_measuring) return 0;
    double rate;
    const tgl_ceiling ceiling =
        p->type_a == TGL_F64 || p->type_a == TGL_C128 ? TGL_CEILING_FMA_F64 : TGL_CEILING_FMA_F32;
    if (tgl_device_measure(dev, ceiling, &rate) != TGL_OK) return 0;
    return 2 * products / (usual_efficiency * rate);
}

static void *show(void *argument)
{
    long_work *w = argument;
    pthread_mutex_lock(&w->lock);
    while (!w->is_over) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&w->wake, &w->lock, &until);
        const double elapsed = cli_clock() - w->line.started;
        if (!w->is_over)
            progress_update(&w->line, elapsed < 0.99 * w->estimate ? elapsed : 0.99 * w->estimate,
                            "multiplying (estimated)");
    }
    progress_clear(&w->line);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

void long_work_start(long_work *w, tgl_device *dev, const tgl_problem *problem)
{
    *w = (long_work){.estimate = long_work_estimate(dev, problem)};
    if (w->estimate >= seconds_worth_saying)
        fprintf(stderr, "note: the product takes about %.0f minutes on %s\n", w->estimate / 60,
                tgl_device_name(dev));
    progress_start(&w->line, w->estimate);
    if (!w->line.shown || w->estimate < seconds_worth_showing) return;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    w->is_shown = pthread_create(&w->thread, NULL, show, w) == 0;
}

void long_work_end(long_work *w)
{
    if (!w->is_shown) return;
    pthread_mutex_lock(&w->lock);
    w->is_over = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
}
