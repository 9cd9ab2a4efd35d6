/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula bench --host-overhead`: the time that a call takes on the host.
 */
#ifndef CLI_OVERHEAD_H
#define CLI_OVERHEAD_H

#include "tegula/tegula.h"

/* Prints the microseconds of a call of tgl_plan_run() and tgl_gemm(); on a CUDA device also with
 * its context current, and of cuBLAS if it is installed. Returns an exit code. */
int overhead_measure(tgl_device *dev);

#endif
