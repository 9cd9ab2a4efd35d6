/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula tune` on a CUDA device: measures the plans of products for the wisdom.
 */
#ifndef CLI_TUNE_PLANS_H
#define CLI_TUNE_PLANS_H

#include "suite.h"

typedef struct tune_settings {
    double minutes; /* no further product is begun after that time */
    double seconds; /* GPU time of the candidates of a product */
    bool has_peer;  /* cuBLAS is timed in turn with the plan, and its time is remembered */
} tune_settings;

/* Makes a plan with TGL_EFFORT_MEASURE of each product, and prints it. Returns an exit code;
 * failures are reported. */
int tune_plans(tgl_device *dev, const suite *s, const tune_settings *settings);

#endif
