/* SPDX-License-Identifier: Apache-2.0
 *
 * The counts of a run: totals for tgl_plan_counters(), and a table by source line.
 */
#ifndef TGL_SIM_REPORT_H
#define TGL_SIM_REPORT_H

#include "base/text.h"
#include "sim/machine.h"

enum { TGL_REPORT_LINES = 96 };

/* The counts of all accesses of one kind to one target in one line of the kernel's file. */
typedef struct tgl_report_line {
    int line; /* line number from 1; 0: unknown */
    tgl_access_kind kind;
    char target[16]; /* "A", "B", "C", "workspace", or the name of a shared array */
    int64_t requests, bytes, sectors, wavefronts, conflicts;
} tgl_report_line;

/* The report of a run. All zero before tgl_report_begin(). */
typedef struct tgl_report {
    const tgl_sim_module *module; /* module of the main kernel (the first one that writes D); NULL:
                                     nothing has been counted */
    tgl_counters totals;
    /* Sorted by line, then kind. Lines beyond the first TGL_REPORT_LINES are omitted. */
    tgl_report_line lines[TGL_REPORT_LINES];
    int count;
} tgl_report;

/* Starts a report. module: module of the main kernel, whose lines the table lists. threads: its
 * threads per block. */
void tgl_report_begin(tgl_report *report, const tgl_sim_module *module, unsigned threads);

/* Adds the counts of the machine's last launch, except totals.needed_bytes. The launch must have
 * succeeded. */
void tgl_report_add(tgl_report *report, const tgl_machine *machine);

/* The minimum traffic of a product in bytes: each matrix once, C twice if it is read and
 * overwritten, and the operands of the epilogue. regions: the regions of a launch that computes the
 * whole product. */
int64_t tgl_report_needed_bytes(const tgl_sim_region regions[TGL_SIM_REGIONS]);

/* Writes the totals and the table. */
void tgl_report_write(const tgl_report *report, tgl_text *out);

#endif
