/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that all ranks gave the same arguments.
 */
#ifndef DIST_ARGUMENTS_H
#define DIST_ARGUMENTS_H

#include "dist_comm.h"

/* Collective: checks that all ranks pass equal arguments, except for leading dimensions and the
 * memory limit. status: the result of this rank's own checks; if it is a failure, the other
 * arguments are not read. layouts: those of A, B and C. options: may be NULL. Returns the failure
 * of dist_begin_call(), if any; else the status that belongs to the first argument that differs
 * from rank 0's, such as TGL_BAD_M; else TGL_OK. */
tgl_status dist_arguments_agree(tgl_dist *dist, tgl_status status, const tgl_problem *problem,
                                const tgl_dist_layout *const layouts[3],
                                const tgl_dist_options *options);

#endif
