/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of measured plans on the cuda device share: a clock of their own, plans with an
 * effort, and the file of measured times.
 */
#ifndef TGL_MEASURED_CASE_H
#define TGL_MEASURED_CASE_H

#include "fake_cuda/setup.h"

enum { SIZE = 32 }; /* m, n and k of the product */

/* The library's clock: it depends on these numbers and the number of compilations alone, so that no
 * test depends on the load of the machine. The programs are linked with --wrap=clock_gettime. */
extern double compilation_seconds; /* how far each compilation moves the clock */
extern _Atomic double host_seconds;
extern atomic_int waits; /* how often the library has asked for the time of a lock's limit */

/* Setup and teardown of a test: launches take 1 ms, those of the tiles with BM = 32 a tenth. */
int setup_measured(void **state);
int teardown_measured(void **state);

tgl_problem problem_of_size(void);

/* A plan with this effort and budget. */
tgl_plan *plan_with(tgl_device *dev, tgl_effort effort, double seconds);

/* The kernel that a new device chooses with this effort. Returns text. */
const char *choice_of(tgl_effort effort, double seconds, char text[200]);

const char *wisdom_path(void);

/* The content of the wisdom, which the caller frees; "" if there is none. *lines := its number of
 * lines. */
char *read_wisdom(int *lines);
int count_lines(void);

/* The GPU time that all launches of the process have taken. */
double device_seconds(void);

#endif
