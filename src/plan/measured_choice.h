/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the kernel of a product by measured times, which are stored in the wisdom (wisdom.h),
 * instead of predicted ones. Also lists the candidates that are worth measuring.
 */
#ifndef TGL_MEASURED_CHOICE_H
#define TGL_MEASURED_CHOICE_H

#include "plan/planner.h"

/* The best candidate for a request: the result of tgl_planner_estimate(), or the candidate that was
 * measured to be fastest according to request->wisdom. */
tgl_status tgl_planner_choose(const tgl_chip *chip, const tgl_shape *shape,
                              const tgl_request *request, tgl_candidate *choice);

/* What the wisdom says about a product. The wisdom (wisdom.h) is a file in which each line has the
 * measured time of one kernel for one product. */
typedef struct tgl_consulted {
    tgl_measured chosen; /* the line that determined the choice; chosen.kernel NULL: none */
    int measured; /* number of lines that may be used. A candidate may have two lines, one of them
                     measured at the power limit */
    int stale, unusable;   /* stale: lines of another driver, library or kernel source; unusable:
                              lines of kernels that this request cannot use */
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

/* As tgl_planner_promising(), but *list := variants of the candidate with this kernel string. In
 * each variant one option has another value. Returns 0 also if no variant is worth measuring. */
int tgl_planner_variants(const tgl_chip *chip, const tgl_shape *shape, const tgl_request *request,
                         const tgl_candidate *choice, const char *kernel, tgl_candidate **list);

/* source := tgl_wisdom_source() of the launches of a candidate, which must not be rejected. False:
 * the launch list cannot be made, for example because memory is exhausted; source is then "". */
bool tgl_planner_source(const tgl_chip *chip, const tgl_shape *shape,
                        const tgl_candidate *candidate, char source[TGL_SOURCE_SIZE]);

#endif
