/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula tune` on a CUDA device: measures the plans of products for the wisdom.
 */
#ifndef CLI_TUNE_PLANS_H
#define CLI_TUNE_PLANS_H

#include "suite.h"

typedef struct tune_settings {
    double minutes; /* no further product is begun after this time */
    double seconds; /* GPU time to spend on the candidates for each product */
    bool has_peer;  /* whether cuBLAS is timed in turn with the plan, and the ratio is stored */
} tune_settings;

/* Makes a plan of each product with TGL_EFFORT_MEASURE, and prints it. Returns an exit code; errors
 * have been printed. */
int tune_plans(tgl_device *dev, const suite *s, const tune_settings *settings);

#endif
