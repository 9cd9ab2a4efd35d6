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

/* Runs the three parts of the check. type: the type of A and B. type_c: the type of C; 0: the type
 * of A and B. The second and third part run only for f32 without TF32. kernel: a kernel string for
 * these two, in which case the first part is left out; NULL: the planner's choice. threads: number
 * of host threads that compute references in the second part. small: runs only products that are
 * quick on the simulator. csv: path of the CSV file; NULL: none. Returns an exit code. */
int check_accuracy(tgl_device *dev, tgl_type type, tgl_type type_c, tgl_compute compute,
                   const char *kernel, int64_t seed, int threads, bool small, const char *csv);

#endif
