/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula check --accuracy`: how far FP32 products are from the truth, beside cuBLAS's on the same
 * inputs and beside a sum taken one product after another.
 */
#ifndef CLI_CHECK_ACCURACY_H
#define CLI_CHECK_ACCURACY_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* small: only products that a simulator can take. csv may be NULL. Returns an exit code. */
int check_accuracy(tgl_device *dev, tgl_compute compute, int64_t seed, bool small, const char *csv);

#endif
