/* SPDX-License-Identifier: Apache-2.0
 *
 * How the cpu device times plans: its tables of the functions that backend.h describes.
 */
#ifndef TGL_CPU_TRIAL_H
#define TGL_CPU_TRIAL_H

#include "backend/backend.h"

extern const tgl_trials tgl_cpu_trials;
extern const tgl_settings tgl_cpu_device_settings;

#endif
