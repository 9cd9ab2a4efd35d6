/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the planner's candidates, its choice and the launches of a plan as text.
 */
#include "plan/plan_text.h"
#include "base/integers.h"
#include "plan/measured_choice.h"
#include "plan/planned_shape.h"

#include <stdlib.h>

/* ---- Launches -------------------------------------------------------------------------------- */

void tgl_text_launch(tgl_text *out, const tgl_step *step, const tgl_launch *launch)
{
    const tgl_kernel *kernel = launch->kernel;
    const unsigned *grid = launch->grid, *cluster = launch->cluster;
    tgl_text_add(out, "step        %s\n", step->what);
    tgl_text_add(out, "kernel      %s: %s in kernels/%s\n", kernel->name, kernel->symbol,
                 kernel->file);
    if (kernel->macros[0] != '\0') tgl_text_add(out, "macros      %s\n", kernel->macros);
    tgl_text_add(out, "launch      %u x %u x %u blocks of %u threads", grid[0], grid[1],
                 launch->count_in_grid_z ? (unsigned)launch->count : grid[2], launch->threads);
    if (cluster[0] * cluster[1] * cluster[2] > 1)
        tgl_text_add(out, " in clusters of %u", cluster[0] * cluster[1] * cluster[2]);
    if (launch->repeats > 1) tgl_text_add(out, ", %lld times", (long long)launch->repeats);
    tgl_text_add(out, "\n");
}

/* ---- Candidates ------------------------------------------------------------------------------ */

static double peak(const tgl_chip *chip)
{
    return 2e6 * chip->clock_mhz * chip->fp32_lanes * chip->sms;
}

static void add_chip(tgl_text *out, const tgl_chip *chip)
{
    tgl_text_add(out,
                 "chip        %s: %d SMs, %.1f TFLOP/s at %d MHz, %.0f GB/s of memory, "
                 "%.0f of L2; memory binds below %.1f FLOP/byte\n",
                 chip->text, chip->sms, 1e-12 * peak(chip), chip->clock_mhz,
                 1e-9 * chip->memory_rate, 1e-9 * chip->l2_rate, peak(chip) / chip->memory_rate);
}

static int by_seconds(const void *x, const void *y)
{
    const tgl_candidate *a = x, *b = y;
    if ((a->rejected != NULL) != (b->rejected != NULL)) return a->rejected != NULL ? 1 : -1;
    return a->seconds < b->seconds ? -1 : a->seconds > b->seconds;
}

static const char *ceiling(const tgl_candidate *c)
{
    if (c->overhead > 0.5 * c->seconds) return "launch";
    if (c->compute >= c->memory && c->compute >= c->l2) return "arithmetic";
    return c->memory >= c->l2 ? "memory" : "L2";
}

static void add_candidate(tgl_text *out, const tgl_candidate *c)
{
    const char *name = tgl_choice_name(&c->choice);
    if (c->rejected != NULL)
        tgl_text_add(out, "  %-22s rejected: %s\n", name, c->rejected);
    else
        tgl_text_add(out, "  %-22s %10.2f us %6d %6d  %6d %8.2f  %s\n", name, 1e6 * c->seconds,
                     c->splits, c->strip_count, c->resident, c->waves, ceiling(c));
}

/* Lists the candidates of each configuration that the planner may choose: the best one without
 * strips, which may be rejected, and the best one with strips, if there is one. Returns their
 * number. */
static int list_candidates(const tgl_chip *chip, const tgl_shape *shape, tgl_candidate *candidates)
{
    tgl_choice choice;
    int count = 0;
    for (int i = 0; tgl_configuration_at(i, &choice); i++) {
        if (choice.family->is_on_request) continue;
        tgl_planner_best_of(chip, shape, &choice, 0, TGL_WORKSPACE_DEFAULT, &candidates[count++]);
        tgl_planner_best_of(chip, shape, &choice, 1, TGL_WORKSPACE_DEFAULT, &candidates[count]);
        if (candidates[count].rejected == NULL) count++;
    }
    return count;
}

/* Writes the table of candidates, sorted by predicted time. */
static void add_candidates(tgl_text *out, const tgl_chip *chip, const tgl_shape *shape)
{
    tgl_choice choice;
    size_t rows = 1;
    while (tgl_configuration_at((int)rows, &choice))
        rows++;
    tgl_candidate *candidates = calloc(2 * rows, sizeof *candidates);
    if (candidates == NULL) {
        tgl_text_add(out, "candidates  there is no memory to list them\n");
        return;
    }
    const int count = list_candidates(chip, shape, candidates);
    qsort(candidates, (size_t)count, sizeof *candidates, by_seconds);
    tgl_text_add(out,
                 "candidates              predicted    splits strips  blocks    waves  bound by\n"
                 "                                                   per SM\n");
    for (int i = 0; i < count; i++)
        add_candidate(out, &candidates[i]);
    free(candidates);
}

/* ---- The choice ------------------------------------------------------------------------------ */

static void add_strips(tgl_text *out, const tgl_candidate *c)
{
    for (int i = 0; i < c->strip_count; i++) {
        const tgl_strip *strip = &c->strips[i];
        const tgl_rectangle *part = &strip->part;
        tgl_text_add(out,
                     "strip       %lld x %lld of C from row %lld, column %lld on: %s; "
                     "alone %.2f us, here %.2f us more\n",
                     (long long)part->m, (long long)part->n, (long long)part->row,
                     (long long)part->col, tgl_choice_name(&strip->choice), 1e6 * strip->seconds,
                     1e6 * strip->adds);
    }
}

static void add_prediction(tgl_text *out, const tgl_chip *chip, const tgl_shape *s,
                           const tgl_candidate *c)
{
    const int threads = c->resident * c->threads;
    tgl_text_add(out, "block       %d threads of %d registers, %d bytes of shared memory\n",
                 c->threads, c->registers, c->shared_bytes);
    tgl_text_add(out, "occupancy   %d block%s per SM: %d of %d threads (%.0f %%)\n", c->resident,
                 c->resident == 1 ? "" : "s", threads, chip->threads_per_sm,
                 100.0 * threads / chip->threads_per_sm);
    tgl_text_add(out, "waves       %.2f (%.0f blocks)\n", c->waves, c->blocks);
    tgl_text_add(
        out,
        "predicted   %.2f us, %.2f TFLOP/s: arithmetic %.2f us, memory %.2f us, L2 %.2f us, "
        "launch %.2f us\n",
        1e6 * c->seconds, 1e-12 * tgl_shape_flops(s) / c->seconds, 1e6 * c->compute,
        1e6 * c->memory, 1e6 * c->l2, 1e6 * c->overhead);
    tgl_text_add(out, "ceiling     %s\n", ceiling(c));
}

static const char *why(const tgl_candidate *c)
{
    if (c->is_measured) return "measured to be fastest";
    if (!c->is_predicted) return "as asked";
    return c->is_tuned ? "measured to be best near this shape" : "predicted to be fastest";
}

void tgl_text_choice(tgl_text *out, const tgl_chip *chip, const tgl_shape *asked,
                     const tgl_candidate *c)
{
    const tgl_direct direct = tgl_candidate_direct(asked, c);
    const tgl_shape planned = tgl_planned_shape(asked, direct), *s = &planned;
    char kernel[TGL_KERNEL_STRING_SIZE];
    const tgl_rectangle tiles = tgl_candidate_tiles(s, c);
    const tgl_shape of_tiles = tgl_part_shape(s, &tiles);
    if (tgl_type_is_complex(asked->type_a))
        tgl_text_add(out, "complex     as %lld x %lld x %lld in %s\n", (long long)s->m,
                     (long long)s->n, (long long)s->k, tgl_type_name(s->type_a));
    if (tgl_shape_has_weights(asked))
        tgl_text_add(out, "weights     %s\n",
                     direct == TGL_DIRECT_WEIGHTS ? "read by the kernel"
                                                  : "expanded to 16 bits by a pre-pass");
    if (c->is_predicted) {
        add_chip(out, chip);
        add_candidates(out, chip, asked);
    }
    tgl_text_add(out, "choice      %s, %s\n", tgl_candidate_string(c, kernel, sizeof kernel),
                 why(c));
    if (c->choice.family->explain != NULL)
        c->choice.family->explain(chip, &of_tiles, &c->choice, out);
    add_strips(out, c);
    if (c->is_predicted) add_prediction(out, chip, s, c);
}

/* ---- The wisdom ------------------------------------------------------------------------------ */

void tgl_text_wisdom(tgl_text *out, const tgl_chip *chip, const tgl_shape *s,
                     const tgl_request *request)
{
    tgl_candidate choice;
    tgl_consulted said;
    tgl_measured peer;
    if (request->wisdom == NULL || tgl_planner_estimate(chip, s, request, &choice) != TGL_OK)
        return;
    tgl_planner_consult(chip, s, request, true, &choice, &said);
    tgl_text_add(out, "wisdom      %s\n", tgl_wisdom_describe(request->wisdom));
    if (said.chosen.kernel != NULL)
        tgl_text_add(
            out, "measured    %.2f us %s, %d sample%s, spread %.1f %%; candidates measured: %d\n",
            1e6 * said.chosen.seconds,
            said.chosen.is_sustained ? "at the power limit" : "in bursts", said.chosen.samples,
            said.chosen.samples == 1 ? "" : "s", 100 * said.chosen.spread, said.measured);
    if (said.chosen.kernel != NULL &&
        tgl_wisdom_peer(request->wisdom, s, said.chosen.is_sustained, &peer))
        tgl_text_add(out, "peer        %.2f us\n", 1e6 * peer.seconds);
    if (said.stale > 0)
        tgl_text_add(out, "stale       %d line%s of the wisdom not used: %s\n", said.stale,
                     said.stale == 1 ? "" : "s", said.why_stale);
    if (said.unusable > 0)
        tgl_text_add(out,
                     "unusable    %d line%s of the wisdom: the kernel does not serve this plan\n",
                     said.unusable, said.unusable == 1 ? "" : "s");
}
