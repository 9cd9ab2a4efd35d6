/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula check --accuracy`: the error of products, beside that of cuBLAS on the same inputs and
 * that of a loop of fused multiply-adds; for F32 also of classes of hard inputs (check_classes.h),
 * and of a system of equations (check_lu.h).
 */
#ifndef CLI_CHECK_ACCURACY_H
#define CLI_CHECK_ACCURACY_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* Runs the three parts. type: type of A and B. type_c: type of C; 0: that of A and B. kernel: used
 * only for F32, in the parts check_classes() and check_lu(); NULL: the planner's choice. threads:
 * host threads that compute references in the second part. small: only products that are quick on
 * the simulator. csv: path of a file, or NULL. Returns an exit code. */
int check_accuracy(tgl_device *dev, tgl_type type, tgl_type type_c, tgl_compute compute,
                   const char *kernel, int64_t seed, int threads, bool small, const char *csv);

#endif
