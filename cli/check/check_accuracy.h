/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula check --accuracy`, in three parts. The first compares the errors of products with those
 * of cuBLAS and of a loop of fused multiply-adds on the same inputs. The others are for F32 only:
 * the errors of products of hard inputs (check_classes.h), and the error of the solution of a
 * system of linear equations (check_lu.h).
 */
#ifndef CLI_CHECK_ACCURACY_H
#define CLI_CHECK_ACCURACY_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* Runs the three parts of the check. type: the type of A and B. type_c: the type of C; 0: the type
 * of A and B. The second and third part run only for f32 without TF32. kernel: NULL: the planner's
 * choice; else a kernel string for the second and third part, and the first part does not run.
 * threads: number of host threads that compute references in the second part. small: runs only
 * products that are quick on the simulator. csv: path of the CSV file; NULL: none. Returns an exit
 * code. */
int check_accuracy(tgl_device *dev, tgl_type type, tgl_type type_c, tgl_compute compute,
                   const char *kernel, int64_t seed, int threads, bool small, const char *csv);

#endif
