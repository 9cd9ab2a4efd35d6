/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner chooses a configuration of a kernel family for a problem on a chip. The choice
 * depends only on the problem, the request, the properties of the chip and the tuned table. The
 * planner enumerates the candidates, predicts the time of each whose lower bound does not exclude
 * it, and takes the fastest, unless the tuned table has an entry for this shape or a similar one.
 * It contains no device code.
 */
#ifndef TGL_PLANNER_H
#define TGL_PLANNER_H

#include "plan/kernel_string.h"

/* The best candidate for a request, without the measured times of the wisdom: tgl_planner_choose()
 * (measured_choice.h) uses those times, too. Returns TGL_OK, TGL_GRID_TOO_LARGE or TGL_UNSUPPORTED.
 */
tgl_status tgl_planner_estimate(const tgl_chip *chip, const tgl_shape *asked,
                                const tgl_request *request, tgl_candidate *choice);

/* The best candidate of one configuration; it may be rejected. strips: as in tgl_request. */
void tgl_planner_best_of(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                         int strips, int64_t workspace_max, tgl_candidate *best);

/* The part of D that the candidate's own family computes, which is D without the strips
 * (family.h). */
tgl_rectangle tgl_candidate_tiles(const tgl_shape *shape, const tgl_candidate *candidate);

/* What the candidate reads without a pre-pass. TGL_DIRECT_NONE if it has strips, because the
 * families that compute strips read expanded operands. */
tgl_direct tgl_candidate_direct(const tgl_shape *asked, const tgl_candidate *candidate);

/* Makes the launch list of a candidate, which must not be rejected. asked: the shape of the caller,
 * which may be complex or have weights. The caller frees *list with tgl_list_free(). Returns what
 * tgl_list_end() returns, such as TGL_NO_MEMORY or TGL_GRID_TOO_LARGE. */
tgl_status tgl_planner_list(const tgl_chip *chip, const tgl_shape *asked,
                            const tgl_candidate *candidate, tgl_launch_list *list);

#endif
