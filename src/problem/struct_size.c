/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads structs that begin with their size. The caller may have been compiled with an older or
 * newer header than the library.
 */
#include "problem/struct_size.h"
#include "base/error.h"

#include <stdbool.h>
#include <string.h>

/* No version of the library has a larger struct. A larger size means that the caller has left the
 * member `size` uninitialised. */
enum { SIZE_MAX_OF_STRUCT = 4096 };

static bool is_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0) return false;
    return true;
}

tgl_status tgl_struct_read(const void *given, size_t known, size_t least, const char *name,
                           void *copy, const void **read)
{
    if (given == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "%s is NULL", name);
    size_t size;
    memcpy(&size, given, sizeof size);
    *read = given;
    if (size == known) return TGL_OK;
    if (size < least || size > SIZE_MAX_OF_STRUCT)
        return tgl_fail(TGL_BAD_ARGUMENT,
                        "%s.size is %zu; set %s.size = sizeof %s, which is %zu in this version of "
                        "the library",
                        name, size, name, name, known);
    if (size > known) {
        if (is_zero((const unsigned char *)given + known, size - known)) return TGL_OK;
        return tgl_fail(TGL_BAD_ARGUMENT,
                        "%s.size is %zu; this version of the library knows %zu bytes, and the rest "
                        "is not 0",
                        name, size, known);
    }
    memset(copy, 0, known);
    memcpy(copy, given, size);
    *read = copy;
    return TGL_OK;
}
