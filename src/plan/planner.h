/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner chooses a configuration of a kernel family for a problem on a chip. It depends only
 * on the problem, the properties of the chip, the tuned table and the wisdom. It enumerates the
 * candidates, predicts the time of each, and takes the fastest, unless this shape or a similar one
 * was measured. It contains no device code.
 */
#ifndef TGL_PLANNER_H
#define TGL_PLANNER_H

#include "plan/family.h"
#include "plan/wisdom.h"
#include "problem/describe.h"

/* What a kernel string asks for. */
typedef struct tgl_request {
    bool is_named;         /* choice.family and choice.configuration are set */
    tgl_choice choice;     /* with the given options; all TGL_UNSET if no kernel is named */
    int strips;            /* -1: the planner chooses; 0: none; 1: required */
    int64_t workspace_max; /* bytes */
    tgl_wisdom *wisdom;    /* is asked unless a kernel is named; NULL: none */
} tgl_request;

/* Parses a kernel string, "simt_128x256x8:splits=4,strips=0"; NULL: the planner chooses all.
 * workspace_limit: as in tgl_plan_options. Returns TGL_OK, TGL_UNKNOWN_KERNEL or
 * TGL_BAD_ARGUMENT. */
tgl_status tgl_request_make(const char *kernel, int64_t workspace_limit, tgl_request *request);

/* The kernel string of exactly this candidate. Returns text. */
const char *tgl_candidate_string(const tgl_candidate *candidate, char *text, size_t size);
enum { TGL_KERNEL_STRING_SIZE = 160 };

/* The best candidate for a request. Returns TGL_OK, TGL_GRID_TOO_LARGE or TGL_UNSUPPORTED.
 * tgl_planner_choose() also uses the measured times of the wisdom (wisdom.h);
 * tgl_planner_estimate() does not. */
tgl_status tgl_planner_estimate(const tgl_chip *chip, const tgl_shape *asked,
                                const tgl_request *request, tgl_candidate *choice);
tgl_status tgl_planner_choose(const tgl_chip *chip, const tgl_shape *shape,
                              const tgl_request *request, tgl_candidate *choice);

/* The best candidate of one configuration, rejected or not; strips as in tgl_request. */
void tgl_planner_best_of(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                         int strips, int64_t workspace_max, tgl_candidate *best);

/* The partition of D that the candidate's own family computes: all of D except the strips. */
tgl_rectangle tgl_candidate_tiles(const tgl_shape *shape, const tgl_candidate *candidate);

/* *list := the launches of a candidate that is not rejected. The caller frees it. TGL_NO_MEMORY;
 * TGL_GRID_TOO_LARGE. */
tgl_status tgl_planner_list(const tgl_chip *chip, const tgl_shape *asked,
                            const tgl_candidate *candidate, tgl_launch_list *list);

/* ---- measured_choice.c ----------------------------------------------------------------------- */

/* What the wisdom (the file of measured kernel times, wisdom.h) says about a product. */
typedef struct tgl_consulted {
    tgl_measured chosen;   /* the line that determined the choice; chosen.kernel NULL: none */
    int measured;          /* candidates with a line that may be used */
    int stale, unusable;   /* lines that are stale; lines of kernels that cannot be chosen */
    const char *why_stale; /* why one of the stale lines is stale */
    bool has_choice;       /* the choice without the wisdom is among the measured candidates */
    bool has_sustained;    /* the choice without the wisdom was also measured at the power limit */
} tgl_consulted;

/* Replaces *choice, which the planner has chosen without measured times, by the candidate that was
 * measured to be fastest. Considers only candidates for exactly this product, with the arithmetic
 * of *choice, that respect the request. all: whether *said counts all lines, which takes longer. */
void tgl_planner_consult(const tgl_chip *chip, const tgl_shape *shape, const tgl_request *request,
                         bool all, tgl_candidate *choice, tgl_consulted *said);

/* *list := the candidates that are worth measuring, with the arithmetic of `choice`, in the order
 * in which they are to be measured: the choice, the best of each family, all others by predicted
 * time. The caller frees the list. Returns their number; 0: no memory. */
int tgl_planner_promising(const tgl_chip *chip, const tgl_shape *shape, const tgl_request *request,
                          const tgl_candidate *choice, tgl_candidate **list);

/* *list := variants of a candidate, given by its kernel string, in each of which one option has
 * another value. Otherwise as tgl_planner_promising(). */
int tgl_planner_variants(const tgl_chip *chip, const tgl_shape *shape, const tgl_request *request,
                         const tgl_candidate *choice, const char *kernel, tgl_candidate **list);

/* source := tgl_wisdom_source() of a candidate's launches (not rejected). False: no memory. */
bool tgl_planner_source(const tgl_chip *chip, const tgl_shape *shape,
                        const tgl_candidate *candidate, char source[TGL_SOURCE_SIZE]);

/* ---- plan_text.c ----------------------------------------------------------------------------- */

/* tgl_text_launch() writes one launch; tgl_text_choice() writes the candidates, the choice, and the
 * resource that limits the choice; tgl_text_wisdom() writes what the wisdom says about a product.
 */
void tgl_text_launch(tgl_text *out, const tgl_step *step, const tgl_launch *launch);
void tgl_text_choice(tgl_text *out, const tgl_chip *chip, const tgl_shape *asked,
                     const tgl_candidate *choice);
void tgl_text_wisdom(tgl_text *out, const tgl_chip *chip, const tgl_shape *shape,
                     const tgl_request *request);

#endif
