/* SPDX-License-Identifier: Apache-2.0
 *
 * Two looks at Tegula alone: whether a shape is far slower than its neighbour, and what a call
 * costs the host.
 */
#ifndef CLI_CLIFFS_H
#define CLI_CLIFFS_H

#include "suite.h"

/* Times each shape, and those with one more row, column and step of k, and prints where a step
 * costs more than a tenth beyond the work that it adds. Returns an exit code: EXIT_FAILED if a call
 * failed. */
int cliffs_find(tgl_device *dev, const suite *s);

/* Prints the host's microseconds of a call: of a kept plan, one that splits k, and tgl_gemm(). */
int overhead_measure(tgl_device *dev);

#endif
