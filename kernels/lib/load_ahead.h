/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads that run a step ahead of the arithmetic also run once past the last tile, and fetch what
 * nobody uses: cheaper than a condition in the loop. The simulator refuses to read shared memory
 * that nobody has written, and so leaves those loads out.
 */
#ifndef TGL_LOAD_AHEAD_H
#define TGL_LOAD_AHEAD_H

#ifdef TGL_SIM
#define LOADS_AHEAD(is_used) (is_used)
#else
#define LOADS_AHEAD(is_used) true
#endif

#endif
