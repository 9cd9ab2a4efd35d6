/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions for the tests of the disk cache: a folder for each test, and entries of text.
 */
#ifndef TGL_TEST_CACHE_CASE_H
#define TGL_TEST_CACHE_CASE_H

#include "support.h"

#include "base/disk_cache.h"

#include <dirent.h>

/* The folder that TEGULA_CACHE names. Each test has a folder of its own. The state of the test is
 * the path of the subfolder with the entries. */
extern char cache_base[];
int make_folder(void **state);
int remove_folder(void **state);
#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

/* Returns the names in a folder except "." and "..", one for each call. NULL: there are no more,
 * and the folder is closed. */
const char *next_name(DIR *folder);
DIR *open_folder(const char *path);

/* Writes the path of the only entry in the folder. */
void find_entry(const char *folder_path, char *path, size_t size);

tgl_cache_key key_of(const char *text);
bool store(tgl_cache *cache, const char *key_text, const char *data);

/* Whether the cache has an entry with this key. Fails the test if the entry's contents are not
 * `data`. */
bool has(const tgl_cache *cache, const char *key_text, const char *data);

#endif
