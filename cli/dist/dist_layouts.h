/* SPDX-License-Identifier: Apache-2.0
 *
 * The layouts of A, B and C of a distributed product as text, such as "rows,columns,2x2:64". Each
 * is "rows" or "columns" (divided over the ranks), "copy" (each rank has the whole matrix), or
 * PxQ:NB (block-cyclic over P x Q ranks, in blocks of NB x NB elements).
 */
#ifndef CLI_DIST_LAYOUTS_H
#define CLI_DIST_LAYOUTS_H

#include "tegula/dist.h"

#include <stdbool.h>

#define HELP_LAYOUTS                                                                               \
    "  --layouts LIST    how A, B and C are distributed: rows, columns (shards, one for each\n"    \
    "                    rank), copy (on every rank), or PxQ:NB (blocks of NB x NB on a grid\n"    \
    "                    of P x Q ranks, as in ScaLAPACK); default: shards of the longest axis\n"

typedef struct dist_layouts {
    tgl_dist_layout a, b, c;
} dist_layouts;

/* Reads the layouts of A, B and C from a text such as "rows,columns,2x2:64"; NULL: uses default
 * layouts. False: the text is invalid, and the error has been printed. */
bool dist_layouts_parse(const char *text, const tgl_problem *problem, int ranks,
                        dist_layouts *layouts);

#endif
