/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula explain --ranks`: how a product would be divided over a given number of MPI ranks, which
 * need not exist.
 */
#ifndef CLI_EXPLAIN_RANKS_H
#define CLI_EXPLAIN_RANKS_H

#include "tegula/dist.h"

/* Prints how `ranks` ranks would divide the product. layouts: text as for dist_layouts_parse().
 * Returns an exit code. */
int explain_ranks(const tgl_problem *problem, const char *layouts, int ranks,
                  const tgl_dist_machine *machine, const tgl_epilogue *epilogue);

#endif
