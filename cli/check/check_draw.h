/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws the cases (random problems) of `tegula check`: sizes, layouts, scalars and kernel
 * options.
 */
#ifndef CLI_CHECK_DRAW_H
#define CLI_CHECK_DRAW_H

#include "case_data.h"

/* Draws all of *c except the memory of its buffers and its reference result. */
void check_draw(const check_drawing *from, random_state *r, check_case *c);

#endif
