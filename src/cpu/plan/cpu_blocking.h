/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocking of a product, if cpu_planner.c does not compute it. It is either requested by a
 * kernel string, such as "cpu/avx2:kc=256,mc=96", or was measured by `tegula tune` and is in the
 * table of processor models (cpu_models.c). The string "cpu/avx2:row=3" requests the values of row
 * 3 of that table.
 */
#ifndef TGL_CPU_BLOCKING_H
#define TGL_CPU_BLOCKING_H

#include "tegula/tegula.h"

/* Upper limits of the block sizes of a product, and a row of the table; 0: the planner chooses.
 * Exception: if C has few columns (is_narrow() in cpu_planner.c), kc may be exceeded. */
typedef struct cpu_blocking {
    int kc;  /* steps of k in a block: a tile of C is loaded and stored once for each kc steps */
    int mc;  /* rows of a block of A, rounded down to whole tiles, at least one tile */
    int row; /* number of a row of tgl_cpu_models, counted from 1; 0: the row for this processor */
} cpu_blocking;

/* blocking_options.c: reads the options of a kernel string. options: begins with a colon; "": none.
 * TGL_BAD_ARGUMENT: there is no such option, it is given twice, or its value is not a number from 1
 * to 65536 (for `row`, to the number of rows). */
tgl_status tgl_cpu_blocking_read(const char *options, cpu_blocking *blocking);

#endif
