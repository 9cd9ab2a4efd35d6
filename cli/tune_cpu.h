/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of `tegula tune` for the cpu device: the blocking that is fastest on this model of
 * processor.
 */
#ifndef CLI_TUNE_CPU_H
#define CLI_TUNE_CPU_H

#include "suite.h"
#include "tegula/tegula.h"

/* model: as the device calls it. Measures blockings on the shapes of the suite, which have one
 * type, but begins no new shape after `minutes`, and writes the row of the fastest to *row if it is
 * faster than the planner's own blocking; else row[0] is 0. Returns an exit code. */
enum { TUNE_CPU_ROW = 200 };
int tune_cpu(tgl_device *dev, const char *model, const suite *s, double minutes,
             char row[TUNE_CPU_ROW]);

/* How the row of this device and type begins. */
void tune_cpu_key(const tgl_device *dev, const char *model, tgl_type type, char key[TUNE_CPU_ROW]);

#endif
