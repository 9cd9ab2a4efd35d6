/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the effort from the environment and from options.
 */
#include "api/effort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double seconds_default = 0.2;

/* Reads "0.25" with digits and one point, whatever the locale. False: it is no such number. */
static bool read_seconds(const char *text, double *seconds)
{
    const size_t whole = strspn(text, "0123456789");
    const char *rest = text + whole;
    const size_t decimals = *rest == '.' ? strspn(rest + 1, "0123456789") : 0;
    double unit = 1;
    *seconds = 0;
    if (whole + decimals == 0 || whole > 6 || rest[*rest == '.' ? decimals + 1 : 0] != '\0')
        return false;
    for (size_t i = 0; i < whole; i++)
        *seconds = 10 * *seconds + (text[i] - '0');
    for (size_t i = 0; i < decimals; i++)
        *seconds += (unit /= 10) * (rest[1 + i] - '0');
    return *seconds > 0;
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
