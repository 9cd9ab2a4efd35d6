/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the settings (cpu_settings.h) that are worth measuring.
 */
#include "cpu/plan/cpu_settings.h"

#include <stdio.h>
#include <string.h>

/* Whether this row of tgl_cpu_models has the values of `own` or of an earlier row. */
static bool is_repeated(const cpu_model *row, const cpu_model *own)
{
    char values[CPU_MODEL_TEXT], others[CPU_MODEL_TEXT];
    tgl_cpu_model_values(row, values);
    tgl_cpu_model_values(own, others);
    for (const cpu_model *other = tgl_cpu_models; strcmp(values, others) != 0; other++) {
        if (other == row) return false;
        tgl_cpu_model_values(other, others);
    }
    return true;
}

int tgl_cpu_settings(const cpu_model *own, cpu_blocking list[CPU_SETTINGS_MAX])
{
    static const cpu_blocking blockings[] = {{.kc = 128}, {.kc = 192}, {.kc = 256}, {.kc = 384},
                                             {.kc = 512}, {.kc = 768}, {.mc = 48},  {.mc = 96},
                                             {.mc = 192}, {.mc = 384}};
    enum { BLOCKINGS = sizeof blockings / sizeof blockings[0] };
    int count = 0;
    list[count++] = (cpu_blocking){.row = 0};
    for (int row = 1; row <= tgl_cpu_model_count() && count < CPU_SETTINGS_MAX - BLOCKINGS; row++)
        if (!is_repeated(&tgl_cpu_models[row - 1], own)) list[count++] = (cpu_blocking){.row = row};
    memcpy(list + count, blockings, sizeof blockings);
    return count + BLOCKINGS;
}

void tgl_cpu_setting_options(const cpu_blocking *setting, char text[CPU_SETTING_TEXT])
{
    text[0] = '\0';
    if (setting->row > 0) snprintf(text, CPU_SETTING_TEXT, ":row=%d", setting->row);
    if (setting->kc > 0) snprintf(text, CPU_SETTING_TEXT, ":kc=%d", setting->kc);
    if (setting->mc > 0) snprintf(text, CPU_SETTING_TEXT, ":mc=%d", setting->mc);
}
