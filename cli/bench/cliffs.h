/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula bench --cliffs`: finds shapes that are much faster than a slightly larger shape.
 */
#ifndef CLI_CLIFFS_H
#define CLI_CLIFFS_H

#include "suite.h"

/* Times each shape (m, n, k), then (m+1, n, k), (m, n+1, k) and (m, n, k+1), and marks the steps
 * where the time grows by 10 % more than the work. Returns an exit code: EXIT_FAILED if a call
 * failed, or no step could be timed. */
int cliffs_find(tgl_device *dev, const suite *s);

#endif
