/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of kernels and groups of kernels on the command line, and the options of kernel strings.
 * The ladder is the series of teaching kernels, from a naive one to a fast one, whose names begin
 * with "ladder/".
 */
#ifndef CLI_KERNEL_NAMES_H
#define CLI_KERNEL_NAMES_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* Whether `asked` is the name of one kernel of the device, or a kernel string such as
 * "simt_128x256x8:splits=4". */
bool kernel_is_one(const tgl_device *dev, const char *asked);

/* Whether `asked`, a kernel or a group of kernels, includes the kernel `name` of the device. A
 * group is "all", or "gemm" for all kernels except those of the ladder, or the part before a "/" or
 * "_" that kernel names have in common, such as "simt" or "ladder". */
bool kernel_is_asked(const tgl_device *dev, const char *asked, const char *name);

/* Whether `asked` includes the kernel that the library's planner chooses. It does if it is "auto"
 * or a group, not one kernel. */
bool kernel_is_auto_asked(const tgl_device *dev, const char *asked);

/* Whether a kernel of CUDA devices accepts these options, such as "splits=2,whole=1"; false for
 * other kernels. kernel: its name or a kernel string; options in it are ignored. */
bool kernel_has_option(const char *kernel, const char *options);

/* Whether this is a kernel of the ladder, which the planner never chooses. */
bool kernel_is_rung(const char *name);

#endif
