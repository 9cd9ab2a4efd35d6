/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles the kernels of a suite ahead of the timing, on all processors. If each was compiled at
 * its first use, one after another, compilation would take longer than the timing of the shapes.
 */
#ifndef CLI_COMPILE_AHEAD_H
#define CLI_COMPILE_AHEAD_H

#include "contest.h"
#include "suite.h"

/* Makes and destroys a plan for each shape, which compiles its kernels. Failures are ignored: they
 * occur again, and are printed, when the shape is timed. */
void compile_ahead(const contest_settings *settings, const suite *s);

#endif
