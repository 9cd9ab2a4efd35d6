/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the effort from the environment and from options.
 */
#include "api/effort.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double seconds_default = 0.2;
static const double LOCK_SECONDS_MAX = 60; /* longest wait for dev->measuring: even several
                                              threads in turn hold it for seconds only */

/* Parses a number of seconds. False: the text is not a decimal number above 0. */
static bool read_seconds(const char *text, double *seconds)
{
    int64_t ns;
    if (!tgl_read_decimal(text, 9, &ns) || ns == 0) return false;
    *seconds = 1e-9 * (double)ns;
    return true;
}

tgl_status tgl_effort_of_environment(tgl_device *dev)
{
    static const char measure[] = "measure";
    const size_t length = strlen(measure);
    const char *text = getenv("TEGULA_EFFORT");
    dev->effort = TGL_EFFORT_ESTIMATE;
    dev->measure_seconds = seconds_default;
    if (text == NULL || text[0] == '\0' || strcmp(text, "estimate") == 0) return TGL_OK;
    dev->effort = TGL_EFFORT_MEASURE;
    if (strcmp(text, measure) == 0) return TGL_OK;
    if (strncmp(text, measure, length) == 0 && text[length] == ':' &&
        read_seconds(text + length + 1, &dev->measure_seconds))
        return TGL_OK;
    return tgl_fail(TGL_BAD_SETTING,
                    "TEGULA_EFFORT is \"%s\"; it must be estimate, measure, or measure:SECONDS",
                    text);
}

tgl_status tgl_effort_check(const tgl_plan_options *options)
{
    if ((int)options->effort < TGL_EFFORT_DEFAULT || options->effort > TGL_EFFORT_MEASURE)
        return tgl_fail(TGL_BAD_ARGUMENT, "options.effort is %d, which is no tgl_effort",
                        (int)options->effort);
    if (!(options->measure_seconds >= 0) || isinf(options->measure_seconds))
        return tgl_fail(TGL_BAD_ARGUMENT,
                        "options.measure_seconds is %g; it must be a finite number of at least 0",
                        options->measure_seconds);
    return TGL_OK;
}

bool tgl_effort_measures(tgl_device *dev, const tgl_shape *shape, const tgl_plan_options *options,
                         double *budget)
{
    const tgl_effort effort = options->effort != TGL_EFFORT_DEFAULT ? options->effort : dev->effort;
    *budget = options->measure_seconds > 0 ? options->measure_seconds : dev->measure_seconds;
    return effort == TGL_EFFORT_MEASURE && dev->wisdom != NULL && options->kernel == NULL &&
           !shape->pointers && shape->grouping == TGL_GROUPED_NONE &&
           !tgl_shape_has_scales(shape) && !tgl_shape_has_weights(shape) &&
           !dev->backend->trials->is_captured(dev, NULL);
}

bool tgl_effort_lock(tgl_device *dev, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1 + (time_t)fmin(seconds, LOCK_SECONDS_MAX);
    const int error = pthread_mutex_timedlock(&dev->measuring, &until);
    return error == 0 || error == EDEADLK;
}

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

void tgl_effort_summarise(double *samples, int count, tgl_measured *line)
{
    qsort(samples, (size_t)count, sizeof samples[0], by_value);
    line->samples = count;
    line->seconds = samples[(count - 1) / 2];
    line->spread = (samples[count - 1] - samples[0]) / line->seconds;
}
