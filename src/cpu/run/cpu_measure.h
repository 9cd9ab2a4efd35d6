/* SPDX-License-Identifier: Apache-2.0
 *
 * The upper bounds of the speed of products on this machine.
 */
#ifndef TGL_CPU_MEASURE_H
#define TGL_CPU_MEASURE_H

#include "backend/backend.h"

/* The member `measure` of tgl_backend (backend.h). *value := floating-point operations or bytes per
 * second. */
tgl_status tgl_cpu_measure(tgl_device *dev, tgl_ceiling ceiling, double *value);

#endif
