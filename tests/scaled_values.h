/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks special values of 8-bit types and of their factors on any device.
 */
#ifndef TGL_SCALED_VALUES_H
#define TGL_SCALED_VALUES_H

#include "tegula/tegula.h"

/* Fails unless products of single elements have the right values: of a sample of the elements of
 * e4m3, e5m2 and i8, Inf and NaN among them, of results that saturate, and of factors that are 0,
 * Inf or NaN. kernels: kernel strings; a NULL among them is the planner's choice. */
void check_scaled_values(tgl_device *dev, const char *const *kernels, size_t count);

#endif
