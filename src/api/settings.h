/* SPDX-License-Identifier: Apache-2.0
 *
 * Measured plans of a device without a chip, the cpu. Its candidates are settings: kernel strings
 * that name other values of its planner, "cpu/avx2:row=3". The wisdom (plan/wisdom.h) has a line
 * for each product and setting. A product that was measured takes its fastest setting. Other
 * products take the setting that is fastest in the mean over all products that were measured, as
 * far as the file had them when the device was opened.
 */
#ifndef TGL_API_SETTINGS_H
#define TGL_API_SETTINGS_H

#include "api/handles.h"

/* The least number of samples of a time that decides between the planner's own choice and another
 * setting. */
enum { TGL_SETTING_SAMPLES = 3 };

/* Sets dev->usual from the wisdom: for each type of A the setting that is fastest in the mean. On a
 * device without settings it stays NULL. */
void tgl_usual_settings_find(tgl_device *dev);

/* The kernel string for a plan: that of the caller; else what the wisdom says, in `kernel`; else
 * NULL, the planner's own choice. */
const char *tgl_settings_choose(const tgl_plan *plan, const tgl_plan_options *options,
                                char kernel[TGL_KERNEL_STRING_SIZE]);

/* Measures the settings for the product and adds their times to the wisdom, if the options ask for
 * it, unless they are known. A failure is no error. */
void tgl_settings_measure(tgl_device *dev, const tgl_shape *shape, const tgl_plan_options *options);

/* Writes what the wisdom says about the product of a plan; nothing if it is empty. It may say more
 * than when the plan was made: what it would choose now is written only if the plan has it. */
void tgl_settings_explain(const tgl_plan *plan, tgl_text *out);

#endif
