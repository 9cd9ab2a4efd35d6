/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula dist bench`: compares the time of a distributed product with that of the part which the
 * busiest rank computes, without communication.
 */
#ifndef CLI_DIST_BENCH_H
#define CLI_DIST_BENCH_H

#include "dist_layouts.h"

/* Checks some elements of the result, times `repeats` runs, and prints a table on rank 0. Returns
 * an exit code. It is not the same on all ranks if only some have a wrong element or too little
 * memory. */
int dist_bench(tgl_dist *dist, tgl_device *dev, const tgl_problem *problem,
               const dist_layouts *layouts, int repeats);

#endif
