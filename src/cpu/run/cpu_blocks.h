/* SPDX-License-Identifier: Apache-2.0
 *
 * Products that are computed in blocks: products of types shorter than f32, and products of f32 by
 * words (kernels/cpu_words.h).
 */
#ifndef TGL_CPU_BLOCKS_H
#define TGL_CPU_BLOCKS_H

#include "cpu/run/cpu_product.h"

/* Runs a plan of tgl_cpu_plan_blocks(): D := epilogue(alpha*op(A)*op(B) + beta*C). */
void tgl_cpu_blocks(const cpu_product *product);

#endif
