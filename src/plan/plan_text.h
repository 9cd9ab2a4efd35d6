/* SPDX-License-Identifier: Apache-2.0
 *
 * Describes choices and launches for tgl_plan_explain().
 */
#ifndef TGL_PLAN_TEXT_H
#define TGL_PLAN_TEXT_H

#include "plan/planner.h"
#include "problem/describe.h"

/* tgl_text_launch() writes one launch; tgl_text_choice() writes the candidates, the choice, and the
 * resource that limits the choice; tgl_text_wisdom() writes what the wisdom (the file of measured
 * times, wisdom.h) says about a product. asked: the shape of the caller, which may be complex. */
void tgl_text_launch(tgl_text *out, const tgl_step *step, const tgl_launch *launch);
void tgl_text_choice(tgl_text *out, const tgl_chip *chip, const tgl_shape *asked,
                     const tgl_candidate *choice);
void tgl_text_wisdom(tgl_text *out, const tgl_chip *chip, const tgl_shape *shape,
                     const tgl_request *request);

#endif
