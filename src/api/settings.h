/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans that are chosen by measurement on a device without a chip, which is the cpu. Its candidates
 * are settings: kernel strings that name other values of its planner, "cpu/avx2:row=3". The wisdom
 * (plan/wisdom.h) has a line for each product and setting. A product that was measured takes its
 * fastest setting. Other products take the setting that is fastest in the mean over the products
 * that the file had when the device was opened. In both cases the planner's own choice remains if
 * the other setting is not faster by a minimum (settings.c).
 */
#ifndef TGL_API_SETTINGS_H
#define TGL_API_SETTINGS_H

#include "api/handles.h"

/* The minimum number of samples of a time that may decide between the planner's own choice and
 * another setting. */
enum { TGL_SETTING_SAMPLES = 3 };

/* Sets dev->usual from the wisdom: for each type of A the setting that is fastest in the mean. On a
 * device without settings, or without lines in the wisdom, it stays NULL. */
void tgl_usual_settings_find(tgl_device *dev);

/* The kernel string for a plan: the caller's (options->kernel); else the one that the wisdom
 * suggests, written to `kernel`; else NULL for the planner's own choice. */
const char *tgl_settings_choose(const tgl_plan *plan, const tgl_plan_options *options,
                                char kernel[TGL_KERNEL_STRING_SIZE]);

/* Measures the settings for the product and adds their times to the wisdom, if the options ask for
 * it. Measures nothing if the planner's own choice was measured before with enough samples, if the
 * file of the wisdom is read-only, or if k is 0. A failure is no error. */
void tgl_settings_measure(tgl_device *dev, const tgl_shape *shape, const tgl_plan_options *options);

/* Writes the setting that the wisdom suggests for the plan's product, its measured time, and the
 * path of the wisdom; nothing if the wisdom is empty. The wisdom may have grown since the plan was
 * made: the setting that it suggests now is written only if the plan uses this setting. */
void tgl_settings_explain(const tgl_plan *plan, tgl_text *out);

#endif
