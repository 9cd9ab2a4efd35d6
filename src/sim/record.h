/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run leaves for tgl_plan_trace(): the counts by line, how often each line was executed, and
 * the trace of the main kernel's first block.
 */
#ifndef TGL_SIM_RECORD_H
#define TGL_SIM_RECORD_H

#include "sim/report.h"

typedef struct tgl_record {
    const tgl_sim_module *module; /* main kernel's module; NULL: nothing has been recorded */
    unsigned grid[3], threads;    /* grid and block size of the main kernel's first launch */
    tgl_sim_region regions[TGL_SIM_REGIONS];
    tgl_trace trace;
    unsigned
        *executions; /* per line of the kernel's file: executions by threads, in all launches */
    int lines;
} tgl_record;

/* Starts the record of a run whose main kernel is in this module. */
void tgl_record_begin(tgl_record *record, tgl_sim_module *module);

/* Where a launch of the run stores its trace; NULL: another launch of the run is traced. */
tgl_trace *tgl_record_launch(tgl_record *record, const tgl_sim_launch *launch);

/* Completes the record after the last launch. False: no memory. */
bool tgl_record_end(tgl_record *record);
void tgl_record_free(tgl_record *record);

/* Writes everything as JSON, which docs/simulator.md describes. report: the report of the same run.
 */
void tgl_record_write(const tgl_record *record, const tgl_report *report, tgl_text *out);

#endif
