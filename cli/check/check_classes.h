/* SPDX-License-Identifier: Apache-2.0
 *
 * The second part of `tegula check --accuracy`: F32 products of all classes of inputs, beside FFMA
 * (compute mode ieee of the same device) and cuBLAS on the same inputs.
 */
#ifndef CLI_CHECK_CLASSES_H
#define CLI_CHECK_CLASSES_H

#include "cublas.h"
#include "output_file.h"
#include "tegula/tegula.h"

#include <stdbool.h>

/* The subject of the check: the planner's choice or a kernel, in a compute mode within the error
 * bound of FP32 sums. */
typedef struct class_settings {
    tgl_device *dev;
    cublas *lib; /* NULL: there is none */
    tgl_compute compute;
    const char *kernel; /* NULL: the planner's choice */
    int64_t seed;
    int threads;      /* threads of the host that compare results */
    bool small;       /* only products that are quick on the simulator */
    output_file *csv; /* gets a line for each product, if it is open */
} class_settings;

/* *passes := whether all rules hold. Returns a status other than TGL_OK if something could not be
 * computed. */
tgl_status check_classes(const class_settings *settings, bool *passes);

#endif
