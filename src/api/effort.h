/* SPDX-License-Identifier: Apache-2.0
 *
 * The effort of a plan decides whether candidates are measured before one is chosen.
 * tgl_plan_options.effort sets it, or else the environment variable TEGULA_EFFORT.
 */
#ifndef TGL_EFFORT_H
#define TGL_EFFORT_H

#include "api/handles.h"
#include "plan/wisdom.h"

/* Sets dev->effort and dev->measure_seconds from TEGULA_EFFORT. Returns TGL_OK or
 * TGL_BAD_SETTING. */
tgl_status tgl_effort_of_environment(tgl_device *dev);

/* Checks the effort in the options. Returns TGL_OK or TGL_BAD_ARGUMENT. */
tgl_status tgl_effort_check(const tgl_plan_options *options);

/* Whether a plan with these options measures the product: the effort is TGL_EFFORT_MEASURE, the
 * caller names no kernel, and the device can measure such products now. *budget := the limit of the
 * measuring time in seconds. */
bool tgl_effort_measures(tgl_device *dev, const tgl_shape *shape, const tgl_plan_options *options,
                         double *budget);

/* Locks dev->measuring, which a thread holds while it measures a product. Waits for at most
 * `seconds` + 1, and at most about a minute (INFINITY). False: another thread holds the lock for
 * longer. That thread still measures, or a signal handler has left its measurement by longjmp(), or
 * the thread exists only in the parent of a fork(). If the calling thread itself has left a
 * measurement, it still holds the lock, and the result is true. */
bool tgl_effort_lock(tgl_device *dev, double seconds);

/* Sets samples, seconds and spread of a line of the wisdom (plan/wisdom.h) from `count` measured
 * times, at least one, which it sorts. The line's seconds are the median. If `count` is even, it is
 * the smaller of the two samples in the middle: of two samples, the first is slow because caches
 * are cold. */
void tgl_effort_summarise(double *samples, int count, tgl_measured *line);

/* On a device with a chip: measures candidates for the product and adds their times to dev->wisdom
 * (plan/wisdom.h), if tgl_effort_measures(), unless the planner's choice was measured before or the
 * file is read-only. A failure is no error: the planner then chooses without these measurements. */
void tgl_plan_measure(tgl_device *dev, const tgl_shape *shape, const tgl_request *request,
                      const tgl_plan_options *options);

#endif
