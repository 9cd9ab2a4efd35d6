/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula tune --output` on the cpu device: finds the fastest blocking for this model of
 * processor.
 */
#ifndef CLI_TUNE_CPU_H
#define CLI_TUNE_CPU_H

#include "suite.h"
#include "tegula/tegula.h"

/* Measures blockings (block sizes, cpu/plan/cpu_blocking.h) on the shapes of the suite, which must
 * all have the same element type. Measures the first shape in any case, and begins no other after
 * `minutes`. Writes the fastest blocking to `row`, as a row of cpu_models.c, if it is at least 1 %
 * faster than the planner's own; else row[0] := 0. model: the processor model that the device
 * reports. Returns an exit code. */
enum { TUNE_CPU_ROW = 200 };
int tune_cpu(tgl_device *dev, const char *model, const suite *s, double minutes,
             char row[TUNE_CPU_ROW]);

/* Writes the beginning of a row of cpu_models.c: the columns for processor model, tier (instruction
 * set) and type. */
void tune_cpu_key(const tgl_device *dev, const char *model, tgl_type type, char key[TUNE_CPU_ROW]);

#endif
