/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of kernels and groups of kernels on the command line, and the options of kernel strings.
 * The library tells which kernel has which options.
 */
#ifndef CLI_KERNEL_NAMES_H
#define CLI_KERNEL_NAMES_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* Whether `asked` names one kernel of the device, alone or in a kernel string,
 * "simt_128x256x8:splits=4". */
bool kernel_is_one(const tgl_device *dev, const char *asked);

/* Whether the requested kernel or group `asked` includes the kernel `name` of the device. Groups
 * are "all"; "gemm", all kernels except the ladder's; and the beginning of names up to a "/" or
 * "_": "simt", "ladder". */
bool kernel_is_asked(const tgl_device *dev, const char *asked, const char *name);

/* Whether `asked` includes the planner's choice, as "auto" and groups do. */
bool kernel_is_auto_asked(const tgl_device *dev, const char *asked);

/* Whether the kernel has these options, "splits=2,whole=1". kernel: its name; text after a colon is
 * ignored. */
bool kernel_has_option(const char *kernel, const char *options);

/* True for the kernels of the ladder, which only run on request. */
bool kernel_is_rung(const char *name);

#endif
