/* SPDX-License-Identifier: Apache-2.0
 *
 * Random distributed products, compared with the product of one device. All numbers are small
 * integers, so that sums in any order are exact, and results must be equal to the last bit.
 */
#ifndef DIST_CASE_H
#define DIST_CASE_H

#include "tegula/dist.h"

#include <stdbool.h>

/* Runs the case of a seed, which all ranks run together. false: a difference was printed. */
bool dist_case_run(tgl_dist *dist, tgl_device *dev, unsigned seed);

#endif
