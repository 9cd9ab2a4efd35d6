/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares candidates. family.h declares the functions for families, tgl_search_try() and
 * tgl_search_excludes().
 */
#ifndef TGL_SEARCH_H
#define TGL_SEARCH_H

#include "plan/family.h"

/* tgl_candidate.rejected of a candidate that needs more workspace than the limit. */
extern const char tgl_needs_workspace[];

/* Bytes of the limit that a candidate's workspace leaves free; negative: it exceeds the limit. */
int64_t tgl_room_beside(const tgl_candidate *candidate, int64_t workspace_max);

/* Replaces *best and returns true if the candidate is better, or if *best has none yet. one_block:
 * factor on the time of candidates with one block per SM. */
bool tgl_take_better(const tgl_candidate *candidate, double one_block, tgl_candidate *best);

/* Whether a candidate that takes at least `seconds` cannot be the best. limit: the predicted
 * seconds of a candidate that was found. */
bool tgl_is_slower(double seconds, double limit);

#endif
