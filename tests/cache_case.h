/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the disk cache share: a folder for each test, and entries of text.
 */
#ifndef TGL_TEST_CACHE_CASE_H
#define TGL_TEST_CACHE_CASE_H

#include "support.h"

#include "base/disk_cache.h"

#include <dirent.h>

/* The folder that TEGULA_CACHE names, and that a test has to itself. The state of the test is the
 * folder of the entries in it. */
extern char cache_base[];
int make_folder(void **state);
int remove_folder(void **state);
#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

/* The names in a folder but "." and "..", one for each call; NULL at the end, where it is closed.
 */
const char *next_name(DIR *folder);
DIR *open_folder(const char *path);

/* The path of the only entry. */
void find_entry(const char *folder_path, char *path, size_t size);

tgl_cache_key key_of(const char *text);
bool store(const tgl_cache *cache, const char *key_text, const char *data);

/* Whether the cache has an entry; fails the test if it holds anything but `data`. */
bool has(const tgl_cache *cache, const char *key_text, const char *data);

#endif
