/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk cache of compiled kernels, which the cuda and sim devices share. It only saves time: if
 * the folder or an entry is invalid, the kernel is compiled again.
 *
 * The folder is $TEGULA_CACHE/tegula, else $XDG_CACHE_HOME/tegula, else ~/.cache/tegula. It is
 * created with mode 0700. It is not used if it belongs to another user or others may write to it.
 * Nor is it used if the folder named by TEGULA_CACHE, XDG_CACHE_HOME or HOME belongs to neither the
 * caller nor root. If TEGULA_CACHE is "", "off" or a relative path, the cache is disabled. The home
 * directory and the folder that contains $XDG_CACHE_HOME must already exist.
 *
 * An entry is a file whose name is its key, the SHA-256 of all inputs of the compilation. It
 * contains its key, the length and a checksum of its content. It is written to a temporary file and
 * renamed. A truncated, altered or misplaced entry is therefore detected and compiled again, and
 * two processes can store the same entry at the same time.
 *
 * The size of the folder is limited to $TEGULA_CACHE_SIZE bytes (256M by default; the number may
 * end in K, M or G). If a store exceeds the limit, the least recently used entries are deleted
 * until the rest fits. Entries of other processes are counted at the first store, and again at the
 * latest when this process has stored a 64th of the limit. A load updates an entry's modification
 * time. The entry just stored is never deleted. Temporary files older than a day are deleted. Other
 * files are never deleted: the cache recognises its own files by their names, which are those of
 * entries or of temporary files, and by their first bytes, TGL_CACHE_WRITER (disk_cache_limit.h).
 * The folder also contains the file of measured times (plan/wisdom.h).
 */
#ifndef TGL_DISK_CACHE_H
#define TGL_DISK_CACHE_H

#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>

/* A disk cache. Thread-safe. */
typedef struct tgl_cache tgl_cache;

/* Opens the cache: finds or creates its folder. Without a usable folder, the cache is off
 * (tgl_cache_state_of()). NULL: out of memory. The functions below accept NULL as a disabled
 * cache. */
tgl_cache *tgl_cache_open(void);
void tgl_cache_close(tgl_cache *cache);

/* Writes the path of a file in the cache's folder to `path`, a buffer of `size` bytes. The file
 * need not exist and is not created. The folder is chosen and checked as by tgl_cache_open().
 * makes_folder: true creates the folder if necessary; false also accepts a folder that does not
 * exist yet. False: the cache is off, or the path is too long. */
bool tgl_cache_path(const char *file, bool makes_folder, char *path, size_t size);

/* The folder's path, or "off (reason)". If TEGULA_CACHE_SIZE is invalid, the text also says that
 * the default is used. Valid until the cache is closed. */
const char *tgl_cache_describe(const tgl_cache *cache);

/* Whether entries are stored. */
typedef enum tgl_cache_state {
    TGL_CACHE_ON,
    TGL_CACHE_OFF,      /* TEGULA_CACHE is "" or "off" */
    TGL_CACHE_UNUSABLE, /* there is no usable folder, for example if TEGULA_CACHE is relative */
} tgl_cache_state;
tgl_cache_state tgl_cache_state_of(const tgl_cache *cache);

/* The key of an entry. Call tgl_cache_key_start(), then add every input of the compilation in a
 * fixed order; the length of each is hashed, too. Loading and storing do not change the key, so one
 * key can be used for a load and then for a store. */
typedef struct tgl_cache_key {
    tgl_sha256 hash;
} tgl_cache_key;

/* Starts a key. kind: what the content is, such as "sim". The version of the library is part of
 * every key. */
void tgl_cache_key_start(tgl_cache_key *key, const char *kind);
void tgl_cache_key_add(tgl_cache_key *key, const void *data, size_t size);
void tgl_cache_key_add_text(tgl_cache_key *key, const char *text);

/* Loads an entry. *data := its verified content, followed by a zero byte; the caller frees it.
 * False: there is no valid entry. An entry's file has a header, so dlopen() cannot load the file; a
 * caller that needs dlopen() must write the content to a memfd. */
bool tgl_cache_load(const tgl_cache *cache, const tgl_cache_key *key, void **data, size_t *size);

/* Whether there is an entry. Its content is not verified. */
bool tgl_cache_has(const tgl_cache *cache, const tgl_cache_key *key);

/* Stores an entry. False: it was not stored, and the kernel will be compiled again next time. */
bool tgl_cache_store(tgl_cache *cache, const tgl_cache_key *key, const void *data, size_t size);

#endif
