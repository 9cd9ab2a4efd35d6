/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of kernels and groups of kernels on the command line, and the options of kernel strings.
 * The library tells which kernel has which options.
 */
#ifndef CLI_KERNEL_NAMES_H
#define CLI_KERNEL_NAMES_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* Whether `asked` is the name of one kernel of the device, or a kernel string such as
 * "simt_128x256x8:splits=4". */
bool kernel_is_one(const tgl_device *dev, const char *asked);

/* Whether `asked`, a kernel or a group of kernels, includes the kernel `name` of the device. Groups
 * are: "all"; "gemm", all kernels except those of the ladder; and the beginning of names up to a
 * "/" or "_", such as "simt" or "ladder". */
bool kernel_is_asked(const tgl_device *dev, const char *asked, const char *name);

/* Whether `asked` includes the planner's choice. It does if it is "auto" or a group, not one
 * kernel. */
bool kernel_is_auto_asked(const tgl_device *dev, const char *asked);

/* Whether the kernel accepts these options, such as "splits=2,whole=1". kernel: its name; a colon
 * and the text after it are ignored. */
bool kernel_has_option(const char *kernel, const char *options);

/* Whether this is a kernel of the ladder; these run only if they are requested. */
bool kernel_is_rung(const char *name);

#endif
