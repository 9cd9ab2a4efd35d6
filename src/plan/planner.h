/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: which configuration of which family a problem gets on a chip. A pure function of the
 * problem, the chip's facts and the tuned table. It lists the candidates, predicts how long each
 * takes, and takes the least, unless this shape or one nearby was measured. It knows no device.
 */
#ifndef TGL_PLANNER_H
#define TGL_PLANNER_H

#include "families/family.h"

/* What a plan is asked to be: a kernel string, taken apart. */
typedef struct tgl_request {
    bool is_named;         /* choice.family and configuration are given */
    tgl_choice choice;     /* options that are given; all TGL_UNSET if none is named */
    int strips;            /* -1: the planner chooses; 0: none; 1: they are demanded */
    int64_t workspace_max; /* bytes */
} tgl_request;

/* Parses a kernel string, "simt_128x256x8:splits=4,strips=0"; NULL: the planner chooses all.
 * workspace_limit: as in tgl_plan_options. TGL_UNKNOWN_KERNEL; TGL_BAD_ARGUMENT. */
tgl_status tgl_request_make(const char *kernel, int64_t workspace_limit, tgl_request *request);

/* The kernel string that asks for just this candidate. Returns text. */
const char *tgl_candidate_string(const tgl_candidate *candidate, char *text, size_t size);
enum { TGL_KERNEL_STRING_SIZE = 160 };

/* The best candidate for a request. TGL_OK; TGL_GRID_TOO_LARGE; TGL_UNSUPPORTED. */
tgl_status tgl_planner_choose(const tgl_chip *chip, const tgl_shape *shape,
                              const tgl_request *request, tgl_candidate *choice);

/* The best candidate of one configuration, rejected or not; strips as in tgl_request. */
void tgl_planner_best_of(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                         int strips, int64_t workspace_max, tgl_candidate *best);

/* What of D a candidate's own family computes: all but the strips. */
tgl_rectangle tgl_candidate_tiles(const tgl_shape *shape, const tgl_candidate *candidate);

/* *list := the launches of a candidate that can serve, which the caller frees. TGL_NO_MEMORY;
 * TGL_GRID_TOO_LARGE. */
tgl_status tgl_planner_list(const tgl_chip *chip, const tgl_shape *shape,
                            const tgl_candidate *candidate, tgl_launch_list *list);

/* plan_text.c: the problem; one launch; the candidates, the choice and the ceiling that binds it.
 */
void tgl_text_problem(tgl_text *out, const tgl_shape *shape);
void tgl_text_launch(tgl_text *out, const tgl_step *step, const tgl_launch *launch);
void tgl_text_choice(tgl_text *out, const tgl_chip *chip, const tgl_shape *shape,
                     const tgl_candidate *choice);

#endif
