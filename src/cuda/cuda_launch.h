/* SPDX-License-Identifier: Apache-2.0
 *
 * The alternatives of a plan's launch list, prepared for the driver. A list is a sequence of steps.
 * Each step has one or more alternative launches, of which a run takes one or none
 * (plan/launch_list.h).
 */
#ifndef TGL_CUDA_LAUNCH_H
#define TGL_CUDA_LAUNCH_H

#include "cuda/cuda_state.h"
#include "plan/launch_list.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { PARAMETERS_MAX = 24 }; /* maximum number of parameters of a kernel that takes tensor maps */

/* One alternative of a step, ready to be launched. */
typedef struct cuda_launch {
    const tgl_launch *of;
    atomic_bool is_ready; /* false: the members below are not filled in yet */
    const tgl_module *module;
    unsigned grid_x;
    /* attributes[0]: programmatic stream serialization if is_early, else the cluster dimension.
     * attributes[1]: the cluster dimension if is_early. A run skips programmatic stream
     * serialization if there is no previous launch to overlap with. */
    CUlaunchAttribute attributes[2];
    unsigned attribute_count;
    bool is_early; /* attributes[0] is programmatic stream serialization */
    /* For a kernel that takes tensor maps: byte offset of each parameter in of->arguments. */
    int parameter_at[PARAMETERS_MAX];
    int parameter_count; /* 0: the arguments are passed as one block of bytes */
} cuda_launch;

/* Fills in parameter_at and parameter_count for a kernel that takes tensor maps. For other kernels,
 * checks the size of the arguments. Returns TGL_OK; TGL_UNSUPPORTED (the driver is too old for
 * tensor maps); TGL_BAD_ARGUMENT (the arguments do not fit the kernel). */
tgl_status tgl_cuda_find_arguments(const tgl_driver *driver, cuda_launch *launch);

#endif
