/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the kernels that `tegula check` tests and their options, and counts the results of the
 * cases (random problems).
 */
#include "check_subjects.h"
#include "cli.h"
#include "kernel_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Kernels --------------------------------------------------------------------------------- */

int check_find_kernel(const tgl_device *dev, const char *asked)
{
    const char *name;
    if (strcmp(asked, "auto") == 0) return EXIT_DONE;
    for (int i = 0; (name = tgl_kernel_name(dev, i)) != NULL; i++)
        if (kernel_is_asked(dev, asked, name)) return EXIT_DONE;
    return cli_unknown_kernel(dev, asked);
}

/* Columns: the name of the option; a string of options that a kernel accepts only if it has this
 * option. */
static const struct {
    const char *name, *probe;
} options[CHECK_OPTIONS] = {
    [CHECK_SPLITS] = {"splits", "splits=2"},
    [CHECK_WHOLE] = {"whole", "splits=2,whole=1"},
    [CHECK_DEPTH] = {"depth", "splits=2,whole=1,depth=32"},
    [CHECK_BLOCKS] = {"blocks", "blocks=1"},
    [CHECK_STRIPS] = {"strips", "strips=1"},
};

/* A kernel string with options is used unchanged; a plain name gets random values for its
 * options. */
static check_subject subject_of(const char *asked, const char *name)
{
    if (strchr(asked, ':') != NULL) return (check_subject){.name = asked};
    check_subject s = {.name = name};
    for (int i = 0; i < CHECK_OPTIONS; i++)
        s.options[i] = kernel_has_option(name, options[i].probe);
    return s;
}

int check_list_subjects(const tgl_device *dev, const char *asked, check_subject **subjects,
                        int *count)
{
    int kernels = 0;
    while (tgl_kernel_name(dev, kernels) != NULL)
        kernels++;
    *count = 0;
    check_subject *list = *subjects = calloc((size_t)kernels + 1, sizeof *list);
    if (list == NULL) return cli_fail("no memory for %d kernels", kernels + 1);
    if (kernel_is_auto_asked(dev, asked)) list[(*count)++] = (check_subject){.name = "auto"};
    for (int i = 0; i < kernels; i++) {
        const char *name = tgl_kernel_name(dev, i);
        if (kernel_is_asked(dev, asked, name)) list[(*count)++] = subject_of(asked, name);
    }
    return EXIT_DONE;
}

void check_kernel_string(const check_subject *s, const check_case *c, bool strips, char *text,
                         size_t size)
{
    const int64_t values[CHECK_OPTIONS] = {c->splits, c->whole, c->depth, c->blocks, strips};
    char separator = strchr(s->name, ':') != NULL ? ',' : ':';
    snprintf(text, size, "%s", s->name);
    for (int i = 0; i < CHECK_OPTIONS; i++) {
        if (!s->options[i] || (values[i] == 0 && i != CHECK_STRIPS)) continue;
        const size_t length = strlen(text);
        snprintf(text + length, size - length, "%c%s=%" PRId64, separator, options[i].name,
                 values[i]);
        separator = ',';
    }
}

/* ---- Results --------------------------------------------------------------------------------- */

/* A code for the alignment of an operand. 0: its offset, leading dimension and batch stride are
 * multiples of 4 elements. 3: leading dimension and stride are multiples of 4, but the offset is
 * not. 1: none of these, but all are multiples of 2. 2: all other operands. */
static int alignment_code(const check_view *v, int64_t ld, int64_t batch)
{
    const int64_t rows = ld | (batch > 1 ? v->batch : 0), all = rows | v->offset;
    return all % 4 == 0 ? 0 : rows % 4 == 0 ? 3 : all % 2 == 0 ? 1 : 2;
}

static bool is_transposed(tgl_transpose trans)
{
    return trans == TGL_TRANS || trans == TGL_CONJ_TRANS;
}

/* The index of the cell of a case in check_tally.cells. A column-major case counts as the row-major
 * problem that kernels get for it, with A and B exchanged. */
static int cell_of(const check_case *c)
{
    const tgl_problem *p = &c->problem;
    const bool swapped = p->order == TGL_COL_MAJOR;
    const bool trans[] = {is_transposed(p->trans_a), is_transposed(p->trans_b)};
    const int of_a = alignment_code(&c->a.view, c->a.view.row * c->a.view.column, p->batch);
    const int of_b = alignment_code(&c->b.view, c->b.view.row * c->b.view.column, p->batch);
    const int layout = trans[swapped] * 2 + trans[!swapped];
    return (layout * 4 + (swapped ? of_b : of_a)) * 4 + (swapped ? of_a : of_b);
}

void check_tally_case(check_tally *tally, const check_subject *s, const check_case *c,
                      bool has_strips, bool has_workspace, bool has_prepared)
{
    const tgl_problem *p = &c->problem;
    const bool is_product =
        (c->alpha != 0 || c->alpha_imag != 0) && p->m > 0 && p->n > 0 && p->k > 0 && p->batch > 0;
    const bool is_split = s->options[CHECK_SPLITS] && c->splits > 1 && p->k > 32;
    if (!is_product) return;
    tally->cells[cell_of(c)] = true;
    const bool seen[CHECK_COUNTS] = {
        [COUNT_SPLIT] = is_split,
        [COUNT_TAIL] = is_split && s->options[CHECK_WHOLE] && c->whole > 0,
        [COUNT_STRIPS] = has_strips,
        [COUNT_BATCH] = p->batch > 1,
        [COUNT_TEN] = c->again,
        [COUNT_SEPARATE] = c->d.size > 0,
        [COUNT_SCALARS] = p->scalars == TGL_SCALARS_DEVICE,
        [COUNT_WORKSPACE] = has_workspace,
        [COUNT_PREPARED] = has_prepared,
    };
    for (int i = 0; i < CHECK_COUNTS; i++)
        tally->counts[i] += seen[i];
}

void check_tally_add(check_tally *into, const check_tally *from)
{
    into->passed += from->passed;
    into->failed += from->failed;
    into->unsupported += from->unsupported;
    for (int i = 0; i < CHECK_COUNTS; i++)
        into->counts[i] += from->counts[i];
    for (int i = 0; i < CHECK_CELLS; i++)
        into->cells[i] = into->cells[i] || from->cells[i];
    error_merge(&into->errors, &from->errors);
}

int check_cells_seen(const check_tally *tally)
{
    int seen = 0;
    for (int i = 0; i < CHECK_CELLS; i++)
        seen += tally->cells[i];
    return seen;
}
