/* SPDX-License-Identifier: Apache-2.0
 *
 * The upper bounds of the speed of products on this machine.
 */
#ifndef TGL_CPU_MEASURE_H
#define TGL_CPU_MEASURE_H

#include "backend/backend.h"

/* tgl_backend.measure. */
tgl_status tgl_cpu_measure(tgl_device *dev, tgl_ceiling ceiling, double *value);

#endif
