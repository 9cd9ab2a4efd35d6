/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: which configuration of the production families a problem gets on a chip. A pure
 * function of the problem, the chip's facts and the tuned table: it lists the candidates, predicts
 * how long each takes (cost.c), and takes the least, unless a shape nearby was measured.
 */
#ifndef TGL_PLAN_PLANNER_H
#define TGL_PLAN_PLANNER_H

#include "plan/chips.h"
#include "plan/gemm.h"
#include "text.h"

/* A part of C that gemm/skinny.cu or matvec.cu computes beside the tiles of gemm/simt.cu, and what
 * it is predicted to take alone, and to add to the time of the tiles. */
typedef struct tgl_strip {
    tgl_gemm_part part;
    double seconds, adds;
} tgl_strip;

/* A configuration with a way to split k, the strips beside its tiles, and what it is predicted to
 * take. */
typedef struct tgl_candidate {
    tgl_gemm_plan plan;   /* of the tiles: plan.row names the configuration */
    const char *rejected; /* why it cannot serve, static text; NULL: it can */
    int resident;         /* blocks that a multiprocessor holds at once */
    double blocks, waves; /* of the grid; over those that the chip holds at once */
    double seconds; /* predicted: the longest of the next three, the overhead, what strips add */
    double compute, memory, l2, overhead;
    tgl_strip strips[TGL_STRIPS_MOST];
    int strip_count;
    bool is_tuned; /* chosen because a measurement says so */
} tgl_candidate;

/* cost.c: predicts one candidate. */
void tgl_candidate_make(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                        const tgl_gemm_row *row, const tgl_gemm_split *split, tgl_candidate *c);

/* cost.c: how deep a piece of a gemm/simt.cu tile would be that took as long as the rest of a
 * piece: its launch, its first tiles of k, leaving its sums. `resident` of them share a
 * multiprocessor. */
double tgl_piece_overhead(const tgl_chip_facts *chip, const tgl_gemm_plan *plan, int resident);

/* cost.c: adds a strip, given the best candidate for it alone. */
void tgl_candidate_add_strip(const tgl_chip_facts *chip, const tgl_gemm_part *part,
                             const tgl_candidate *alone, tgl_candidate *c);

/* The best candidate of a configuration, with what the options ask of splits, whole_tiles,
 * split_depth and strips. */
void tgl_planner_best_of_row(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                             const tgl_gemm_row *row, const tgl_plan_options *asked,
                             tgl_candidate *best);

/* The best candidate of all, with what the options ask of splits and strips; whole_tiles and
 * split_depth are for tiles of a kernel that is named. best->rejected: none can serve, and why the
 * first could not. */
void tgl_planner_choose(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                        const tgl_plan_options *asked, tgl_candidate *best);

/* The parts of a plan in the order of their launches: the tiles, then the strips. Returns how
 * many. */
int tgl_candidate_parts(const tgl_candidate *c, const tgl_gemm_shape *shape,
                        tgl_gemm_part parts[TGL_PARTS_MOST]);

/* The choice for a plan's options: the best candidate, or the best of the configuration that
 * options->kernel names, which is not of the ladder. TGL_OK; TGL_UNKNOWN_KERNEL;
 * TGL_GRID_TOO_LARGE; TGL_UNSUPPORTED; with the sentence in message. */
tgl_status tgl_planner_plan(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                            const tgl_plan_options *options, tgl_candidate *choice, char *message,
                            size_t message_size);

/* explain.c: the problem; a kernel and its grid; the candidates, the choice and the ceiling that
 * binds it, as text. */
void tgl_planner_explain_problem(tgl_text *out, const tgl_gemm_shape *shape);
void tgl_planner_explain_launch(tgl_text *out, const tgl_kernel *kernel, const unsigned grid[3]);
void tgl_planner_explain(tgl_text *out, const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                         const tgl_candidate *choice);

#endif
