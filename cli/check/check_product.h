/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one case of `tegula check` with one kernel.
 */
#ifndef CLI_CHECK_PRODUCT_H
#define CLI_CHECK_PRODUCT_H

#include "check_memory.h"
#include "check_subjects.h"

/* Makes a plan, runs it and checks the result: *verdict says what is wrong. Records in *tally which
 * properties the case covers (check_tally_case()). Returns a status other than TGL_OK if the
 * product was not computed: *verdict is then not meaningful. TGL_UNSUPPORTED: the kernel does not
 * support the case.
 */
tgl_status check_product(tgl_device *dev, const check_case *c, const case_memory *memory,
                         const check_subject *s, check_tally *tally, check_verdict *verdict);

#endif
