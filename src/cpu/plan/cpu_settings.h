/* SPDX-License-Identifier: Apache-2.0
 *
 * A setting is a blocking (cpu_blocking.h) that the planner can be asked for. This file lists the
 * settings that effort MEASURE and `tegula tune` time on this processor, to choose the fastest.
 */
#ifndef TGL_CPU_SETTINGS_H
#define TGL_CPU_SETTINGS_H

#include "cpu/plan/cpu_models.h"

enum { CPU_SETTINGS_MAX = 32 };

/* Lists the settings. own: the processor's row of tgl_cpu_models. The order: the planner's own
 * choice; the other rows of tgl_cpu_models that have other values; block sizes kc and mc, with all
 * other values from `own`. Returns their number. */
int tgl_cpu_settings(const cpu_model *own, cpu_blocking list[CPU_SETTINGS_MAX]);

/* Writes a setting as the options of a kernel string, such as ":row=3", ":kc=256" or ":mc=96"; "":
 * the planner's own choice. */
enum { CPU_SETTING_TEXT = 24 };
void tgl_cpu_setting_options(const cpu_blocking *setting, char text[CPU_SETTING_TEXT]);

#endif
