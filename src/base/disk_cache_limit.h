/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits the size of the disk cache. Only files that the cache has written are deleted; their names
 * and first bytes identify them.
 */
#ifndef TGL_DISK_CACHE_LIMIT_H
#define TGL_DISK_CACHE_LIMIT_H

#include <stdint.h>

/* The first bytes of every file of the cache, in all versions of its format. */
#define TGL_CACHE_WRITER "tegula"

/* The name of a temporary file is TGL_CACHE_TEMPORARY followed by hexadecimal digits. */
#define TGL_CACHE_TEMPORARY "new-"
enum { TGL_CACHE_TEMPORARY_DIGITS = 16 };

/* Removes temporary files older than a day. Then removes the least recently used entries until the
 * total is at most size_max bytes, a little less if any is removed. folder: a file descriptor of
 * the cache's folder. newest: the name of the entry just stored, which is not removed. Returns the
 * bytes that may be added before the limit is exceeded; 0 also if the folder cannot be read. */
uint64_t tgl_cache_bound_size(int folder, uint64_t size_max, const char *newest);

#endif
