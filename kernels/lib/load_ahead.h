/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads that run a step ahead of the arithmetic also run once past the last tile, and load values
 * that are not used: this is cheaper than a condition in the loop. The simulator reports reads of
 * shared memory that was never written, so there these loads are left out.
 */
#ifndef TGL_LOAD_AHEAD_H
#define TGL_LOAD_AHEAD_H

#ifdef TGL_SIM
#define LOADS_AHEAD(is_used) (is_used)
#else
#define LOADS_AHEAD(is_used) true
#endif

#endif
