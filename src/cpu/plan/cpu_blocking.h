/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocking of a product, where cpu_planner.c does not compute it: asked for by a kernel string,
 * "cpu/avx2:kc=256,mc=96", or measured by `tegula tune` (cpu_models.c). "cpu/avx2:row=3" asks for
 * the values of another row of the table of processor models.
 */
#ifndef TGL_CPU_BLOCKING_H
#define TGL_CPU_BLOCKING_H

#include "tegula/tegula.h"

/* Upper limits of the block sizes of a product; 0: the planner chooses. */
typedef struct cpu_blocking {
    int kc;  /* steps of k between two visits to a tile of C */
    int mc;  /* rows of a block of A, rounded down to whole tiles, at least one tile */
    int row; /* the row of tgl_cpu_models, from 1; 0: the row for the processor */
} cpu_blocking;

/* blocking_options.c: reads the options of a kernel string, which begin with a colon; "": none.
 * TGL_BAD_ARGUMENT: the kernel has no such option, or the value is no number from 1 to 65536, or to
 * the number of rows. */
tgl_status tgl_cpu_blocking_read(const char *options, cpu_blocking *blocking);

#endif
