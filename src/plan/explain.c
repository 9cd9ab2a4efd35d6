/* SPDX-License-Identifier: Apache-2.0
 *
 * What the planner thought, as text.
 */
#include "plan/planner.h"

#include <stdlib.h>

void tgl_planner_explain_problem(tgl_text *out, const tgl_gemm_shape *s)
{
    const double batch = (double)s->batch, m = (double)s->m, n = (double)s->n, k = (double)s->k;
    const double flops = 2 * batch * m * n * k;
    const double bytes = 4 * batch * (m * k + k * n + m * n);
    char epilogue[120];
    tgl_text_add(out, "problem     C := alpha*%s*%s + beta*C, f32, row-major, m=%lld n=%lld k=%lld",
                 s->trans_a ? "A^T" : "A", s->trans_b ? "B^T" : "B", (long long)s->m,
                 (long long)s->n, (long long)s->k);
    if (s->batch > 1) tgl_text_add(out, ", batch of %lld", (long long)s->batch);
    if (s->pointers) tgl_text_add(out, " by pointers");
    tgl_text_add(out, "%s\n",
                 s->swapped ? " (column-major given: A and B, m and n exchanged)" : "");
    tgl_text_add(out,
                 "intensity   %.1f FLOP/byte (%.4g GFLOP, %.4g MB if each matrix moves once)\n",
                 flops / bytes, 1e-9 * flops, 1e-6 * bytes);
    tgl_epilogue_describe(s, epilogue, sizeof epilogue);
    if (epilogue[0] != '\0') tgl_text_add(out, "epilogue    %s\n", epilogue);
}

void tgl_planner_explain_launch(tgl_text *out, const tgl_kernel *kernel, const unsigned grid[3])
{
    tgl_text_add(out, "kernel      %s: %s in kernels/%s\n", kernel->name, kernel->symbol,
                 kernel->file);
    tgl_text_add(out, "tiles       %s; a block computes %d x %d of C\n",
                 kernel->defines[0] != '\0' ? kernel->defines : "the file's defaults",
                 kernel->block_m, kernel->block_n);
    tgl_text_add(out, "launch      %u x %u x %u blocks of %d threads\n", grid[0], grid[1], grid[2],
                 kernel->threads);
}

static double peak(const tgl_chip_facts *chip)
{
    return 2e6 * chip->clock_mhz * chip->fp32_lanes * chip->multiprocessors;
}

static void explain_chip(tgl_text *out, const tgl_chip_facts *chip)
{
    tgl_text_add(out,
                 "planned for %s: %d multiprocessors, %.1f TFLOP/s at %d MHz, %.0f GB/s of memory, "
                 "%.0f of L2; memory binds below %.1f FLOP/byte\n",
                 chip->text, chip->multiprocessors, 1e-12 * peak(chip), chip->clock_mhz,
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

static void explain_candidate(tgl_text *out, const tgl_candidate *c)
{
    const tgl_gemm_plan *plan = &c->plan;
    if (c->rejected != NULL) {
        tgl_text_add(out, "  %-22s rejected: %s\n", plan->row->name, c->rejected);
        return;
    }
    tgl_text_add(out, "  %-22s %10.2f us %6d %6d  %6d %8.2f  %s\n", plan->row->name,
                 1e6 * c->seconds, plan->splits, c->strip_count, c->resident, c->waves, ceiling(c));
}

/* The best way of each configuration, without strips and with them: at most two each. Returns how
 * many. */
static int list_candidates(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                           tgl_candidate *candidates)
{
    static const tgl_plan_options whole = {.size = sizeof whole, .strips = TGL_STRIPS_NEVER},
                                  with_strips = {.size = sizeof with_strips,
                                                 .strips = TGL_STRIPS_ALWAYS};
    const tgl_gemm_row *row;
    int count = 0;
    for (int i = 0; (row = tgl_gemm_row_at(i)) != NULL; i++) {
        tgl_planner_best_of_row(chip, shape, row, &whole, &candidates[count++]);
        tgl_planner_best_of_row(chip, shape, row, &with_strips, &candidates[count]);
        if (candidates[count].rejected == NULL) count++;
    }
    return count;
}

/* The fastest first. */
static void explain_candidates(tgl_text *out, const tgl_chip_facts *chip,
                               const tgl_gemm_shape *shape)
{
    size_t rows = 1;
    while (tgl_gemm_row_at((int)rows) != NULL)
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
                 "                                                    an SM\n");
    for (int i = 0; i < count; i++)
        explain_candidate(out, &candidates[i]);
    free(candidates);
}

static void explain_strips(tgl_text *out, const tgl_candidate *c)
{
    for (int i = 0; i < c->strip_count; i++) {
        const tgl_strip *strip = &c->strips[i];
        const tgl_gemm_part *part = &strip->part;
        tgl_text_add(out,
                     "strip       %lld x %lld of C from row %lld, column %lld on: %s, splits %d; "
                     "alone %.2f us, here %.2f us more\n",
                     (long long)part->shape.m, (long long)part->shape.n, (long long)part->row,
                     (long long)part->col, part->plan.row->name, part->plan.splits,
                     1e6 * strip->seconds, 1e6 * strip->adds);
    }
}

static void explain_split(tgl_text *out, const tgl_gemm_shape *s, const tgl_gemm_plan *plan)
{
    const long long tiles = (long long)plan->tiles_m * plan->tiles_n;
    const long long first = tgl_gemm_first_depth(plan, s);
    tgl_text_add(out, "split       k %d ways, ", plan->splits);
    if (plan->row->family == TGL_SIMT && first > plan->k_chunk)
        tgl_text_add(out, "first %lld and then ", first);
    tgl_text_add(out, "%d deep", plan->k_chunk);
    if (plan->row->family == TGL_SIMT)
        tgl_text_add(out, ", in %lld of %lld tiles", tiles - plan->tiles_whole, tiles);
    tgl_text_add(out, "; %.2f MB of partial sums\n", 4e-6 * (double)plan->workspace_floats);
}

static void explain_choice(tgl_text *out, const tgl_chip_facts *chip, const tgl_gemm_shape *s,
                           const tgl_candidate *c)
{
    const tgl_gemm_plan *plan = &c->plan;
    const double flops = 2.0 * (double)s->batch * (double)s->m * (double)s->n * (double)s->k;
    const int threads = c->resident * plan->threads;
    tgl_text_add(out, "choice      %s, %s\n", plan->row->name,
                 c->is_tuned ? "measured to be best near this shape" : "predicted to be fastest");
    tgl_text_add(out, "block       %d threads of %d registers, %d bytes of shared memory\n",
                 plan->threads, plan->registers, plan->static_shared + plan->dynamic_shared);
    tgl_text_add(out, "occupancy   %d block%s a multiprocessor: %d of %d threads (%.0f %%)\n",
                 c->resident, c->resident == 1 ? "" : "s", threads, chip->threads_per_sm,
                 100.0 * threads / chip->threads_per_sm);
    tgl_text_add(out, "waves       %.2f (%.0f blocks)\n", c->waves, c->blocks);
    if (plan->splits > 1) explain_split(out, s, plan);
    explain_strips(out, c);
    if (plan->vec_a > 1 || plan->vec_b > 1)
        tgl_text_add(out, "alignment   copies of %d and %d floats of A and B at once%s\n",
                     plan->vec_a, plan->vec_b,
                     s->pointers ? ", as was promised of their pointers"
                                 : "; single ones for pointers that do not allow it");
    tgl_text_add(
        out,
        "predicted   %.2f us, %.2f TFLOP/s: arithmetic %.2f us, memory %.2f us, L2 %.2f us, "
        "launch %.2f us\n",
        1e6 * c->seconds, 1e-12 * flops / c->seconds, 1e6 * c->compute, 1e6 * c->memory,
        1e6 * c->l2, 1e6 * c->overhead);
    tgl_text_add(out, "ceiling     %s\n", ceiling(c));
}

void tgl_planner_explain(tgl_text *out, const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                         const tgl_candidate *choice)
{
    explain_chip(out, chip);
    explain_candidates(out, chip, shape);
    explain_choice(out, chip, shape, choice);
}

/* ---- The public calls ------------------------------------------------------------------------ */

const char *tgl_chip_name(int index)
{
    const tgl_chip_facts *chip = tgl_chip_facts_at(index);
    return chip != NULL ? chip->name : NULL;
}

/* One sentence as the text. */
static tgl_status reject(tgl_text *out, tgl_status status, const char *sentence)
{
    tgl_text_add(out, "%s", sentence);
    return status;
}

static tgl_status explain_shape(tgl_text *out, const tgl_chip_facts *chip,
                                const tgl_gemm_shape *shape, const tgl_plan_options *options)
{
    char message[200];
    tgl_candidate choice;
    if (tgl_shape_is_empty(shape)) return reject(out, TGL_OK, "nothing to do: C has no elements\n");
    tgl_status status = tgl_planner_plan(chip, shape, options, &choice, message, sizeof message);
    if (status != TGL_OK) return reject(out, status, message);
    tgl_planner_explain_problem(out, shape);
    tgl_planner_explain(out, chip, shape, &choice);
    return TGL_OK;
}

static tgl_status explain(tgl_text *out, const char *name, const tgl_problem *problem,
                          const tgl_plan_options *options)
{
    static const tgl_plan_options none = {.size = sizeof none};
    char message[200], *source = NULL;
    tgl_gemm_shape shape;
    if (options == NULL) options = &none;
    const tgl_chip_facts *chip = name != NULL ? tgl_chip_facts_find(name) : NULL;
    if (options->size != sizeof *options || options->splits < 0 || options->whole_tiles < 0 ||
        options->split_depth < 0 || (int)options->strips < TGL_STRIPS_AUTO ||
        options->strips > TGL_STRIPS_ALWAYS)
        return reject(out, TGL_BAD_ARGUMENT,
                      "options have a size, splits or strips that mean nothing");
    if (chip == NULL) return reject(out, TGL_NO_DEVICE, "no chip of this name is known");
    tgl_status status = tgl_shape_make(problem, true, &shape, message, sizeof message);
    if (status == TGL_OK)
        status = tgl_epilogue_make(options->epilogue, &shape, &source, message, sizeof message);
    if (status == TGL_OK)
        status = explain_shape(out, chip, &shape, options);
    else
        reject(out, status, message);
    free(source);
    return status;
}

tgl_status tgl_chip_explain(const char *chip, const tgl_problem *problem,
                            const tgl_plan_options *options, char *text, size_t size,
                            size_t *length)
{
    if (text == NULL) size = 0;
    if (size > 0) text[0] = '\0';
    tgl_text out = {text, size, 0};
    tgl_status status = explain(&out, chip, problem, options);
    if (length != NULL) *length = out.length;
    return status;
}
