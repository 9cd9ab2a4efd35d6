/* SPDX-License-Identifier: Apache-2.0
 *
 * The private disk cache of compiled kernels, shared by the cuda and sim backends. It only saves
 * time: whatever is wrong with the folder or an entry, the kernel is compiled again.
 *
 * The folder is $TEGULA_CACHE, else $XDG_CACHE_HOME/tegula, else ~/.cache/tegula. It is created
 * with mode 0700, and not used if another user owns it or could write to it. TEGULA_CACHE set to ""
 * or "off" turns the cache off.
 *
 * An entry is a file named by its key, the SHA-256 of all that went into the compilation. It holds
 * its key, the length and a checksum of its content, and is written under a temporary name and
 * renamed; so a truncated, altered or misplaced entry is seen and rebuilt, never loaded, and two
 * processes that store the same entry both succeed.
 *
 * The folder's size is bounded: after each store the entries that were used longest ago (by their
 * time of modification, which a load renews) are removed until the rest fits in $TEGULA_CACHE_SIZE
 * bytes. The number may end in K, M or G; the default is 256M. The entry just stored always stays.
 * Files that are not the cache's own are neither counted nor removed; temporary files older than a
 * day are removed.
 */
#ifndef TGL_CACHE_H
#define TGL_CACHE_H

#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>

/* May be used from many threads at once. */
typedef struct tgl_cache tgl_cache;

/* Finds and creates the folder. NULL only if memory is exhausted, and NULL serves every function
 * below as a cache that is off. */
tgl_cache *tgl_cache_open(void);
void tgl_cache_close(tgl_cache *cache);

/* The folder's path, or "off (reason)"; with a remark if TEGULA_CACHE_SIZE is not understood, which
 * leaves the default. Valid until the cache is closed. */
const char *tgl_cache_describe(const tgl_cache *cache);

/* Whether entries are kept. */
typedef enum tgl_cache_state {
    TGL_CACHE_ON,
    TGL_CACHE_OFF,      /* TEGULA_CACHE turns the cache off */
    TGL_CACHE_UNUSABLE, /* there is no folder that can be used */
} tgl_cache_state;
tgl_cache_state tgl_cache_state_of(const tgl_cache *cache);

/* Start from tgl_cache_key_start(), add every input of the compilation in a fixed order (each is
 * told from its neighbours by its length), and give the key to one load or store, or one of each.
 */
typedef struct tgl_cache_key {
    tgl_sha256 hash;
} tgl_cache_key;

/* kind: "cuda" or "sim". The version of the library is hashed with it. */
void tgl_cache_key_start(tgl_cache_key *key, const char *kind);
void tgl_cache_key_add(tgl_cache_key *key, const void *data, size_t size);
void tgl_cache_key_add_text(tgl_cache_key *key, const char *text);

/* True: *data is the verified content of the entry, followed by a zero byte; the caller frees it.
 * (To dlopen() an entry, write it to a memfd: the file in the folder has a header.) */
bool tgl_cache_load(const tgl_cache *cache, const tgl_cache_key *key, void **data, size_t *size);

/* Keeps `data` if it can; false: the entry was not written, which costs time at most. */
bool tgl_cache_store(const tgl_cache *cache, const tgl_cache_key *key, const void *data,
                     size_t size);

#endif
