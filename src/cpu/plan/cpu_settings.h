/* SPDX-License-Identifier: Apache-2.0
 *
 * A setting is a blocking (cpu_blocking.h) that the planner can be asked for. This file lists the
 * settings that effort MEASURE and `tegula tune` time on this processor, to choose the fastest.
 */
#ifndef TGL_CPU_SETTINGS_H
#define TGL_CPU_SETTINGS_H

#include "cpu/plan/cpu_models.h"

enum { CPU_SETTINGS_MAX = 32 };

/* Writes the settings to `list` and returns their number. own: the processor's row of
 * tgl_cpu_models. In this order: the planner's own choice; each row of tgl_cpu_models whose values
 * differ from those of `own` and of the rows before it; several values of kc, then of mc, each with
 * all other values from `own`. */
int tgl_cpu_settings(const cpu_model *own, cpu_blocking list[CPU_SETTINGS_MAX]);

/* Writes a setting as the options of a kernel string, such as ":row=3", ":kc=256" or ":mc=96"; "":
 * the planner's own choice. */
enum { CPU_SETTING_TEXT = 24 };
void tgl_cpu_setting_options(const cpu_blocking *setting, char text[CPU_SETTING_TEXT]);

#endif
