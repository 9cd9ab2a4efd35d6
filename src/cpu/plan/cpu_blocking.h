/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocking of a product, where it is not left to cpu_plan.c: measured by `tegula tune` for this
 * model of processor, or asked for by a kernel string, "cpu/avx2:kc=256,mc=96".
 */
#ifndef TGL_CPU_BLOCKING_H
#define TGL_CPU_BLOCKING_H

#include "cpu/device/detect.h"
#include "cpu/device/tiers.h"
#include "tegula/tegula.h"

/* At most; 0: the planner's choice. */
typedef struct cpu_blocking {
    int kc; /* steps of k between two visits to a tile of C */
    int mc; /* most rows of a block of A, rounded down to whole tiles, at least one tile */
} cpu_blocking;

/* What was measured for a model of processor and the kernels of a tier; also for the tiers that
 * have its kernels. */
typedef struct cpu_tuned {
    const char *model, *tier;
    tgl_type type;
    cpu_blocking blocking;
} cpu_tuned;

/* tuned_cpu.inc; the last row has no model. */
extern const cpu_tuned tgl_cpu_tuned_rows[];

/* The blocking of the row for this processor, tier and type; without one {0}. */
cpu_blocking tgl_cpu_find_blocking(const cpu_tuned *rows, const cpu_facts *facts,
                                   const cpu_tier *tier, tgl_type type);

/* Reads the options of a kernel string, which begin with a colon; "": none. TGL_BAD_ARGUMENT: the
 * kernel has no such option, or the value is no number from 1 to 65536. */
tgl_status tgl_cpu_blocking_read(const char *options, cpu_blocking *blocking);

#endif
