/* SPDX-License-Identifier: Apache-2.0
 *
 * The version of the library. It is also part of the keys of the disk cache and of files that
 * the library writes.
 */
#include "tegula/tegula.h"

#define TGL_STRING(x)         #x
#define TGL_VERSION3(a, b, c) TGL_STRING(a) "." TGL_STRING(b) "." TGL_STRING(c)

const char *tgl_version(void)
{
    return TGL_VERSION3(TGL_VERSION_MAJOR, TGL_VERSION_MINOR, TGL_VERSION_PATCH);
}
