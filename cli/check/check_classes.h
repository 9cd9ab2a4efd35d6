/* SPDX-License-Identifier: Apache-2.0
 *
 * The second part of `tegula check --accuracy`: F32 products of all classes of inputs
 * (input_classes.h). Tegula's errors are compared with those of cuBLAS, of compute mode ieee of the
 * same device, and of FFMA, a loop of fused multiply-adds on the host.
 */
#ifndef CLI_CHECK_CLASSES_H
#define CLI_CHECK_CLASSES_H

#include "cublas.h"
#include "output_file.h"
#include "tegula/tegula.h"

#include <stdbool.h>

/* Settings of the check. The compute mode must be one that keeps the error bound of FP32 sums. */
typedef struct class_settings {
    tgl_device *dev;
    cublas *lib; /* NULL: there is no cuBLAS */
    tgl_compute compute;
    const char *kernel; /* a kernel string; NULL: the planner's choice */
    int64_t seed;
    int threads;      /* number of host threads that compare results */
    bool small;       /* whether only products run that are quick on the simulator */
    output_file *csv; /* gets a line for each product, if it is open */
} class_settings;

/* Runs all classes. *passes := whether all rules at the head of check_classes.c hold. Returns a
 * status other than TGL_OK if a product could not be computed. */
tgl_status check_classes(const class_settings *settings, bool *passes);

#endif
