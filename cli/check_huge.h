/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula check --huge`: products whose matrices have more than 2^31 or 2^32 elements, or rows that
 * lie as far apart.
 */
#ifndef CLI_CHECK_HUGE_H
#define CLI_CHECK_HUGE_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* Takes all of them that fit into the device's memory through `kernel` (see kernel_names.h), and
 * compares elements from all over C, corners and the places where an index passes 2^31 or 2^32
 * among them. rehearsal: the same shapes a thousandth as large. Returns an exit code. */
int check_huge(tgl_device *dev, const char *kernel, tgl_compute compute, bool rehearsal);

#endif
