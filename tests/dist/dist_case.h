/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs random distributed products and compares them with the product of one device. All numbers
 * are small integers, so sums are exact in any order, and results must be equal bit by bit.
 */
#ifndef DIST_CASE_H
#define DIST_CASE_H

#include "tegula/dist.h"

#include <stdbool.h>

/* Runs the case that a seed determines. All ranks must call this together. False: the result is
 * wrong, which has been printed. */
bool dist_case_run(tgl_dist *dist, tgl_device *dev, unsigned seed);

#endif
