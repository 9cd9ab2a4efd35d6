/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs of the public header that begin with their size.
 */
#ifndef TGL_STRUCT_SIZE_H
#define TGL_STRUCT_SIZE_H

#include "tegula/tegula.h"

/* The size of a struct up to and including a member. */
#define TGL_SIZE_UP_TO(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))

/* Reads the struct `given` of a caller that may have been compiled with another version of the
 * public header. known: size of the library's struct; least: smallest accepted size; name: for the
 * error message. If the caller's struct is smaller than `known`, it is copied to `copy` (known
 * bytes) and padded with zeros, and *read := copy. Otherwise *read := given. Returns
 * TGL_BAD_ARGUMENT if given is NULL, its size is below `least` or above 4096, or it has nonzero
 * bytes beyond `known`. */
tgl_status tgl_struct_read(const void *given, size_t known, size_t least, const char *name,
                           void *copy, const void **read);

#endif
