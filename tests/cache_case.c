/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_case.h"

#include <ftw.h>
#include <sys/stat.h>

char cache_base[] = "/tmp/tegula-test-XXXXXX";

int make_folder(void **state)
{
    char *folder;
    strcpy(strrchr(cache_base, '-'), "-XXXXXX");
    assert_non_null(mkdtemp(cache_base));
    assert_true(asprintf(&folder, "%s/tegula", cache_base) > 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    setenv("TEGULA_CACHE", cache_base, 1);
    *state = folder;
    return 0;
}

const char *next_name(DIR *folder)
{
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return entry->d_name;
    closedir(folder);
    return NULL;
}

DIR *open_folder(const char *path)
{
    DIR *folder = opendir(path);
    assert_non_null(folder);
    return folder;
}

static int remove_path(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info, (void)type, (void)place;
    return remove(path);
}

int remove_folder(void **state)
{
    free(*state);
    return nftw(cache_base, remove_path, 8, FTW_DEPTH | FTW_PHYS);
}

void find_entry(const char *folder_path, char *path, size_t size)
{
    int entries = 0;
    DIR *folder = open_folder(folder_path);
    for (const char *name; (name = next_name(folder)) != NULL; entries++)
        snprintf(path, size, "%s/%s", folder_path, name);
    assert_int_equal(entries, 1);
}

tgl_cache_key key_of(const char *text)
{
    tgl_cache_key key;
    tgl_cache_key_start(&key, "test");
    tgl_cache_key_add_text(&key, text);
    return key;
}

bool store(tgl_cache *cache, const char *key_text, const char *data)
{
    const tgl_cache_key key = key_of(key_text);
    return tgl_cache_store(cache, &key, data, strlen(data));
}

bool has(const tgl_cache *cache, const char *key_text, const char *data)
{
    const tgl_cache_key key = key_of(key_text);
    void *loaded;
    size_t size;
    if (!tgl_cache_load(cache, &key, &loaded, &size)) return false;
    assert_int_equal(size, strlen(data));
    assert_string_equal(loaded, data);
    free(loaded);
    return true;
}
