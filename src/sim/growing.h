/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays that grow element by element.
 */
#ifndef TGL_SIM_GROWING_H
#define TGL_SIM_GROWING_H

#include <stdlib.h>
#include <string.h>

/* Makes room for another element, of `element` bytes, behind the first `count` of an array. Returns
 * the array, which may have moved. *room: the number of elements that fit; new ones are zero. NULL:
 * no memory, and the array stays as it is. */
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
