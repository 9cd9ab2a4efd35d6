/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula bench --cliffs`: finds shapes that are much faster than a slightly larger shape.
 */
#ifndef CLI_CLIFFS_H
#define CLI_CLIFFS_H

#include "suite.h"

/* Times each shape (m, n, k) of the suite and its neighbours (m+1, n, k), (m, n+1, k) and (m, n,
 * k+1). A neighbour is marked as a cliff if its time per operation is more than 10 % longer. Shapes
 * that the device does not support are left out. Returns an exit code: EXIT_FAILED if another call
 * of the library failed or no neighbour was timed. */
int cliffs_find(tgl_device *dev, const suite *s);

#endif
