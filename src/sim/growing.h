/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays that grow element by element.
 */
#ifndef TGL_SIM_GROWING_H
#define TGL_SIM_GROWING_H

#include <stdlib.h>
#include <string.h>

/* Makes room for one more element after the first `count` elements of an array. *room: the number
 * of allocated elements, in and out; new elements are zero. Returns the array, which may have
 * moved; NULL: out of memory, and the array is unchanged. */
static inline void *tgl_grow(void *array, size_t *room, size_t count, size_t element)
{
    if (count < *room) return array;
    const size_t larger = *room > 0 ? 2 * *room : 64;
    char *grown = realloc(array, larger * element);
    if (grown == NULL) return NULL;
    memset(grown + *room * element, 0, (larger - *room) * element);
    *room = larger;
    return grown;
}

#endif
