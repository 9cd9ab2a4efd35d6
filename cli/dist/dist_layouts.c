/* SPDX-License-Identifier: Apache-2.0
 *
 * The layouts of the matrices of a distributed product as text.
 */
#include "dist_layouts.h"

#include "cli.h"

#include <stdio.h>
#include <string.h>

enum { WORD = 32 };

static bool parse_one(const char *word, int64_t rows, int64_t columns, int ranks,
                      tgl_dist_layout *layout)
{
    const size_t size = sizeof *layout;
    int grid_rows, grid_columns, block, end = 0;
    if (strcmp(word, "rows") == 0)
        return tgl_dist_rows(layout, size, rows, columns, ranks) == TGL_OK;
    if (strcmp(word, "columns") == 0)
        return tgl_dist_columns(layout, size, rows, columns, ranks) == TGL_OK;
    if (strcmp(word, "copy") == 0)
        return tgl_dist_replicated(layout, size, rows, columns) == TGL_OK;
    if (sscanf(word, "%9dx%9d:%9d%n", &grid_rows, &grid_columns, &block, &end) != 3 ||
        word[end] != '\0' || grid_rows < 1 || grid_columns < 1 || block < 1 ||
        grid_rows > ranks / grid_columns)
        return cli_misuse_false(
            "--layouts: \"%s\" is not rows, columns, copy or PxQ:NB for %d ranks", word, ranks);
    if (tgl_dist_rows(layout, size, rows, columns, grid_rows) != TGL_OK) return false;
    layout->grid_columns = grid_columns;
    layout->block_rows = layout->block_columns = block;
    return true;
}

/* The default layouts: the longest of m, n and k is divided over the ranks, so that the two
 * matrices which have that dimension need not be moved. */
static const char *default_text(const tgl_problem *p)
{
    const bool a = p->trans_a != TGL_NO_TRANS, b = p->trans_b != TGL_NO_TRANS;
    if (p->k > p->m && p->k > p->n)
        return a ? (b ? "rows,columns,rows" : "rows,rows,rows")
                 : (b ? "columns,columns,rows" : "columns,rows,rows");
    if (p->n > p->m) return b ? "rows,rows,columns" : "rows,columns,columns";
    return a ? "columns,rows,rows" : "rows,rows,rows";
}

bool dist_layouts_parse(const char *text, const tgl_problem *p, int ranks, dist_layouts *layouts)
{
    const bool a = p->trans_a != TGL_NO_TRANS, b = p->trans_b != TGL_NO_TRANS;
    char word[3][WORD];
    int end = 0;
    if (text == NULL) text = default_text(p);
    if (sscanf(text, "%31[^,],%31[^,],%31[^,]%n", word[0], word[1], word[2], &end) != 3 ||
        text[end] != '\0')
        return cli_misuse_false("--layouts: \"%s\" is not a list of three layouts", text);
    return parse_one(word[0], a ? p->k : p->m, a ? p->m : p->k, ranks, &layouts->a) &&
           parse_one(word[1], b ? p->n : p->k, b ? p->k : p->n, ranks, &layouts->b) &&
           parse_one(word[2], p->m, p->n, ranks, &layouts->c);
}
