/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with a short k.
 */
#ifndef TGL_CPU_STRIPS_H
#define TGL_CPU_STRIPS_H

#include "cpu/run/cpu_jobs.h"

/* Computes a job of a plan in strips (cpu_plan.in_strips): the function `compute` of a cpu_cut. */
void tgl_cpu_compute_strips(const cpu_product *product, const cpu_job *job);

#endif
