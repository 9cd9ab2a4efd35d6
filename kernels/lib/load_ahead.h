/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads that are issued one step ahead of the arithmetic are also issued once behind the last tile.
 * The loaded values are not used, and this is cheaper than a condition in the loop. The simulator
 * reports reads of uninitialised shared memory, so it omits these loads.
 */
#ifndef TGL_LOAD_AHEAD_H
#define TGL_LOAD_AHEAD_H

#ifdef TGL_SIM
#define LOADS_AHEAD(is_used) (is_used)
#else
#define LOADS_AHEAD(is_used) true
#endif

#endif
