/* SPDX-License-Identifier: Apache-2.0
 *
 * The effort of a plan: an option, or what the environment says. Measuring candidates.
 */
#ifndef TGL_EFFORT_H
#define TGL_EFFORT_H

#include "api/handles.h"

/* Sets dev->effort and dev->measure_seconds from TEGULA_EFFORT. Returns TGL_OK or
 * TGL_BAD_SETTING. */
tgl_status tgl_effort_of_environment(tgl_device *dev);

/* Checks the effort in the options. Returns TGL_OK or TGL_BAD_ARGUMENT. */
tgl_status tgl_effort_check(const tgl_plan_options *options);

/* Whether a plan with these options measures the product: the effort is TGL_EFFORT_MEASURE, the
 * kernel is not chosen by the caller, and the device can measure such products now. *budget := the
 * seconds for it. */
bool tgl_effort_measures(tgl_device *dev, const tgl_shape *shape, const tgl_plan_options *options,
                         double *budget);

/* On a device with a chip: measures candidates for the product and adds their times to dev->wisdom
 * (plan/wisdom.h), if the effort is TGL_EFFORT_MEASURE, the planner's choice is not among the
 * measured candidates yet, and nothing prevents it. A failure is no error: the planner then chooses
 * without these measurements.
 */
void tgl_plan_measure(tgl_device *dev, const tgl_shape *shape, const tgl_request *request,
                      const tgl_plan_options *options);

#endif
