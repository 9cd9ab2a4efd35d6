/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of kernels and groups of kernels on the command line, and the options of kernel strings.
 * Which kernel has which options is known by the library, and asked of it.
 */
#ifndef CLI_KERNEL_NAMES_H
#define CLI_KERNEL_NAMES_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* Whether `asked` names one kernel of the device, alone or in a kernel string,
 * "simt_128x256x8:splits=4". */
bool kernel_is_one(const tgl_device *dev, const char *asked);

/* Whether the kernel `name` of the device is meant by what was asked for: one kernel, or a group:
 * "all"; "gemm", all but the ladder's; or how names begin, up to a "/" or "_": "simt", "ladder". */
bool kernel_is_asked(const tgl_device *dev, const char *asked, const char *name);

/* Whether the planner's choice is tried, too: it is for "auto" and for groups. */
bool kernel_is_auto_asked(const tgl_device *dev, const char *asked);

/* Whether the kernel takes these options, "splits=2,whole=1". kernel: its name; what follows a
 * colon does not count. */
bool kernel_has_option(const char *kernel, const char *options);

/* True for the kernels of the ladder, which only run on request. */
bool kernel_is_rung(const char *name);

#endif
