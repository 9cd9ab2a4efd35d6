/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula bench --host-overhead`: what a call costs the host.
 */
#ifndef CLI_OVERHEAD_H
#define CLI_OVERHEAD_H

#include "tegula/tegula.h"

/* Prints the microseconds of a call: kept plans and tgl_gemm(); on a CUDA device also with its
 * context current, and beside cuBLAS where there is one. Returns an exit code. */
int overhead_measure(tgl_device *dev);

#endif
