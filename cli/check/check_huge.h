/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula check --huge`: products whose matrices have more than 2^31 or 2^32 elements, or whose
 * leading dimensions are as large.
 */
#ifndef CLI_CHECK_HUGE_H
#define CLI_CHECK_HUGE_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* Runs those shapes that fit in device memory with `kernel` (see kernel_names.h). Compares samples
 * of C, among them the corners and, except for the largest k, the places where an index crosses
 * 2^31 or 2^32. rehearsal: true: all sizes above 4096 are divided by 1024. Returns an exit code. */
int check_huge(tgl_device *dev, const char *kernel, tgl_compute compute, bool rehearsal);

#endif
