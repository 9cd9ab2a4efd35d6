/* SPDX-License-Identifier: Apache-2.0
 *
 * The record of a run for tgl_plan_trace(): the counts of memory accesses by source line, how often
 * each line was executed, and the trace of the first block of the main kernel (the first one that
 * writes D).
 */
#ifndef TGL_SIM_RECORD_H
#define TGL_SIM_RECORD_H

#include "sim/report.h"

typedef struct tgl_record {
    const tgl_sim_module *module; /* module of the main kernel; NULL: nothing has been recorded */
    unsigned grid[3], threads;    /* grid and threads per block of the main kernel's first launch */
    tgl_sim_region regions[TGL_SIM_REGIONS];
    tgl_trace trace;
    unsigned *executions; /* per line of the kernel's file: how many threads executed it, summed
                             over all launches */
    int lines;
} tgl_record;

/* Starts the record of a run. module: the module of the main kernel. */
void tgl_record_begin(tgl_record *record, tgl_sim_module *module);

/* The trace that this launch must fill; NULL: this is not the launch that is traced. */
tgl_trace *tgl_record_launch(tgl_record *record, const tgl_sim_launch *launch);

/* Completes the record after the last launch. False: out of memory. */
bool tgl_record_end(tgl_record *record);
void tgl_record_free(tgl_record *record);

/* Writes the record as JSON (format: docs/simulator.md). report: the report of the same run. */
void tgl_record_write(const tgl_record *record, const tgl_report *report, tgl_text *out);

#endif
