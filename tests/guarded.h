/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory between inaccessible pages: accesses beyond one of its ends are faults, and writes beyond
 * the other are found afterwards.
 */
#ifndef TGL_GUARDED_H
#define TGL_GUARDED_H

#include <stdbool.h>
#include <stddef.h>

typedef struct guarded {
    unsigned char *map; /* an inaccessible page, accessible pages, an inaccessible page */
    size_t map_size;
    unsigned char *bytes; /* the buffer, at one end of the accessible pages */
    size_t size;
} guarded;

/* at_end: the buffer ends where the accessible pages end; else it begins where they begin. False:
 * out of memory. */
bool guarded_create(guarded *g, size_t size, bool at_end);
void guarded_destroy(guarded *g);
void guarded_forbid_writes(guarded *g);
bool guarded_is_intact(const guarded *g); /* no accessible byte outside the buffer has changed */

#endif
