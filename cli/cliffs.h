/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula bench --cliffs`: whether a shape is far slower than its neighbour.
 */
#ifndef CLI_CLIFFS_H
#define CLI_CLIFFS_H

#include "suite.h"

/* Times each shape, and those with one more row, column and step of k, and prints where a step
 * costs more than a tenth beyond the work that it adds. Returns an exit code: EXIT_FAILED if a call
 * failed, or no step could be timed. */
int cliffs_find(tgl_device *dev, const suite *s);

#endif
