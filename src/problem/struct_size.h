/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs of the public header that begin with their size.
 */
#ifndef TGL_STRUCT_SIZE_H
#define TGL_STRUCT_SIZE_H

#include "tegula/tegula.h"

/* The size of a struct whose last member is this one. */
#define TGL_SIZE_UP_TO(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))

/* Reads a caller's struct. known: the size of the library's struct; least: the smallest size that
 * is accepted; name: for the error message. A smaller struct is copied to `copy` (known bytes) and
 * completed with zeros, and *read is then `copy`, else `given`. TGL_BAD_ARGUMENT: given is NULL,
 * its size is below `least`, or bytes past `known` are not 0. */
tgl_status tgl_struct_read(const void *given, size_t known, size_t least, const char *name,
                           void *copy, const void **read);

#endif
