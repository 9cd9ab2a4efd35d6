/* SPDX-License-Identifier: Apache-2.0
 *
 * Products in blocks: of short types, and by words.
 */
#ifndef TGL_CPU_BLOCKS_H
#define TGL_CPU_BLOCKS_H

#include "cpu/run/cpu_product.h"

/* Runs a plan of tgl_cpu_plan_blocks(): D := epilogue(alpha*op(A)*op(B) + beta*C). */
void tgl_cpu_blocks(const cpu_product *product);

#endif
