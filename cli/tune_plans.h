/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula tune` without --output: measures the candidates of products for the wisdom, a file of
 * measured times from which later plans take the fastest.
 */
#ifndef CLI_TUNE_PLANS_H
#define CLI_TUNE_PLANS_H

#include "suite.h"

typedef struct tune_settings {
    double minutes; /* no further product is begun after this time */
    double seconds; /* maximum time that the candidates for a product run on the device */
    bool has_peer;  /* whether cuBLAS is timed too, alternating with the plan, and the ratio of the
                       two times is stored in the wisdom */
} tune_settings;

/* Makes a plan of each product with TGL_EFFORT_MEASURE, and prints it. Returns an exit code; errors
 * have been printed. */
int tune_plans(tgl_device *dev, const suite *s, const tune_settings *settings);

#endif
