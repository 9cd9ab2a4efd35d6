/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula bench --host-overhead`: the time on the host until a call returns.
 */
#ifndef CLI_OVERHEAD_H
#define CLI_OVERHEAD_H

#include "tegula/tegula.h"

/* Prints the host time, in microseconds, of a call of tgl_plan_run() and of tgl_gemm(). On a CUDA
 * device with cuBLAS it then makes the device's context current on the thread, and prints both
 * again with the time of a call of cuBLAS. Returns an exit code. */
int overhead_measure(tgl_device *dev);

#endif
