/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula tune` on a CUDA device: measures the plans of products for the wisdom.
 */
#ifndef CLI_TUNE_PLANS_H
#define CLI_TUNE_PLANS_H

#include "suite.h"

/* Makes a plan with TGL_EFFORT_MEASURE of each product, and prints it. minutes: begins no further
 * product after that time; seconds: what candidates of a product may run on the GPU. Returns an
 * exit code; failures are reported. */
int tune_plans(tgl_device *dev, const suite *s, double minutes, double seconds);

#endif
