/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of the planner among which effort MEASURE and `tegula tune` choose on this
 * processor.
 */
#ifndef TGL_CPU_SETTINGS_H
#define TGL_CPU_SETTINGS_H

#include "cpu/plan/cpu_models.h"

enum { CPU_SETTINGS_MAX = 32 };

/* Lists the settings on a processor whose row of the table is `own`: first the planner's own
 * choice, then the other rows of the table that have other values, then blockings with the values
 * of `own`. Returns their number. */
int tgl_cpu_settings(const cpu_model *own, cpu_blocking list[CPU_SETTINGS_MAX]);

/* Writes a setting as the options of a kernel string, ":row=3"; "": the planner's own choice. */
enum { CPU_SETTING_TEXT = 24 };
void tgl_cpu_setting_options(const cpu_blocking *setting, char text[CPU_SETTING_TEXT]);

#endif
