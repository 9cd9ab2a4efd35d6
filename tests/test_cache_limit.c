/* SPDX-License-Identifier: Apache-2.0
 *
 * The limit of the disk cache: which entries give way, and that no other files do.
 */
#include "cache_case.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ENTRIES = 12, ENTRY_BYTES = 100 << 10 };

/* Sets the time of a file's last change. */
static void set_age(const char *path, time_t seconds_ago)
{
    const struct timespec times[2] = {{.tv_sec = time(NULL) - seconds_ago},
                                      {.tv_sec = time(NULL) - seconds_ago}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Makes a sparse file of `size` bytes that begins with `text`. */
static void make_file(const char *path, const char *text, off_t size, time_t seconds_ago)
{
    const int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    assert_int_equal(ftruncate(file, size), 0);
    close(file);
    set_age(path, seconds_ago);
}

/* Makes all entries older; the one that was stored first becomes the oldest. */
static void age_entries(const char *folder_path)
{
    char path[512];
    struct stat info;
    DIR *folder = open_folder(folder_path);
    for (const char *name; (name = next_name(folder)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder_path, name);
        assert_int_equal(stat(path, &info), 0);
        set_age(path, time(NULL) - info.st_mtime + 1000);
    }
}

static long folder_bytes(const char *folder_path)
{
    char path[512];
    struct stat info;
    long bytes = 0;
    DIR *folder = open_folder(folder_path);
    for (const char *name; (name = next_name(folder)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder_path, name);
        if (stat(path, &info) == 0) bytes += (long)info.st_size;
    }
    return bytes;
}

/* Stores ENTRIES of ENTRY_BYTES each, and returns how many are kept. Fails unless these are the
 * latest ones. */
static int entries_kept(const char *folder_path)
{
    char name[16], *data = malloc(ENTRY_BYTES + 1);
    int kept = 0;
    tgl_cache *cache = tgl_cache_open();
    assert_non_null(data);
    memset(data, 'x', ENTRY_BYTES);
    data[ENTRY_BYTES] = '\0';
    for (int i = 0; i < ENTRIES; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_true(store(cache, name, data));
        age_entries(folder_path);
        assert_true(has(cache, name, data)); /* the entry just stored is never deleted */
    }
    tgl_cache_close(cache);
    cache = tgl_cache_open(); /* the new one may read the folder again */
    bool is_gap = false;
    for (int i = ENTRIES - 1; i >= 0; i--) {
        snprintf(name, sizeof name, "%d", i);
        const bool is_kept = has(cache, name, data);
        assert_false(is_kept && is_gap); /* a newer one was deleted */
        is_gap = !is_kept;
        kept += is_kept;
    }
    tgl_cache_close(cache);
    free(data);
    return kept;
}

static void the_oldest_entries_give_way(void **state)
{
    setenv("TEGULA_CACHE_SIZE", "1M", 1);
    const int kept = entries_kept(*state);
    assert_in_range(kept, 4, 10);
    assert_true(folder_bytes(*state) <= 1 << 20);
    unsetenv("TEGULA_CACHE_SIZE");
}

/* Whether an entry stays that was last used before an entry of `rest` bytes, when a small one is
 * added. */
static bool stays_beside(const char *folder, off_t rest)
{
    char oldest[512], other[512];
    struct stat info;
    snprintf(oldest, sizeof oldest, "%s/%064d", folder, 1);
    snprintf(other, sizeof other, "%s/%064d", folder, 2);
    make_file(oldest, "tegula2", sizeof "tegula2", 1000);
    make_file(other, "tegula2", rest, 0);
    tgl_cache *cache = tgl_cache_open();
    assert_true(store(cache, "x", "one"));
    tgl_cache_close(cache);
    unlink(other);
    return stat(oldest, &info) == 0;
}

static void the_usual_bound_is_256_mib(void **state)
{
    unsetenv("TEGULA_CACHE_SIZE");
    assert_int_equal(entries_kept(*state), ENTRIES);
    assert_true(stays_beside(*state, 250 << 20));
    assert_false(stays_beside(*state, 256 << 20));
}

/* Loading an entry makes it the latest. */
static void used_entries_stay(void **state)
{
    char name[16], *data = malloc(ENTRY_BYTES + 1);
    setenv("TEGULA_CACHE_SIZE", "1M", 1);
    tgl_cache *cache = tgl_cache_open();
    assert_non_null(data);
    memset(data, 'x', ENTRY_BYTES);
    data[ENTRY_BYTES] = '\0';
    for (int i = 0; i < 3 * ENTRIES; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_true(store(cache, name, data));
        age_entries(*state);
        assert_true(has(cache, "0", data));
    }
    tgl_cache_close(cache);
    unsetenv("TEGULA_CACHE_SIZE");
    free(data);
}

/* The folder is not read at each store. Two writers that do not know of each other's entries may
 * exceed the limit by a 64th each. */
static void small_entries_are_bounded(void **state)
{
    enum { SMALL_ENTRIES = 1200, SMALL_BYTES = 2000, LIMIT = 1 << 20 };
    char name[16], data[SMALL_BYTES + 1];
    setenv("TEGULA_CACHE_SIZE", "1M", 1);
    tgl_cache *writers[2] = {tgl_cache_open(), tgl_cache_open()};
    memset(data, 'x', SMALL_BYTES);
    data[SMALL_BYTES] = '\0';
    for (int i = 0; i < SMALL_ENTRIES; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_true(store(writers[i % 2], name, data));
        if (i % 50 == 0) assert_true(folder_bytes(*state) <= LIMIT + 2 * LIMIT / 64);
    }
    assert_true(folder_bytes(*state) > LIMIT / 2);
    for (int i = 0; i < 2; i++)
        tgl_cache_close(writers[i]);
    unsetenv("TEGULA_CACHE_SIZE");
}

/* What the user has in the folder that TEGULA_CACHE names, and whatever else lies in the folder of
 * the entries, is not the cache's: it is neither removed nor counted. */
static void foreign_files_are_left_alone(void **state)
{
    static const struct {
        const char *name, *text;
    } files[] = {
        {"notes.txt", "a note"},
        {"0123456789abcdef", "tegula2"},
        {"new-thesis-chapter.txt", "a chapter"},
        {"new-thesis-chapter.txt", "tegula2"},
        {"new-0123456789abcdef", "a chapter"},
        {"new-0123456789abcdef0", "tegula2"},
        {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "a blob"},
        {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde", "tegula2"},
    };
    const char *const folders[] = {cache_base, *state};
    setenv("TEGULA_CACHE_SIZE", "1M", 1);
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char path[COUNT_OF(folders)][512];
        for (size_t j = 0; j < COUNT_OF(folders); j++) {
            snprintf(path[j], sizeof path[j], "%s/%s", folders[j], files[i].name);
            make_file(path[j], files[i].text, 2 << 20, 1000000);
        }
        const int kept = entries_kept(*state);
        assert_in_range(kept, 4, 10);
        for (size_t j = 0; j < COUNT_OF(folders); j++) {
            struct stat info;
            if (stat(path[j], &info) != 0) fail_msg("%s is gone", path[j]);
            assert_int_equal(info.st_size, 2 << 20);
            unlink(path[j]);
        }
    }
    unsetenv("TEGULA_CACHE_SIZE");
}

static void the_bound_is_read(void **state)
{
    static const struct {
        const char *size;
        bool is_understood, is_bound; /* the limit is less than all entries */
    } sizes[] = {{"0", true, true},
                 {"1", true, true},
                 {"1048576", true, true},
                 {"1024k", true, true},
                 {"1024K", true, true},
                 {"1G", true, false},
                 {"", false, false},
                 {"-1", false, false},
                 {"1MB", false, false},
                 {"much", false, false},
                 {" 1M", false, false},
                 {"1.5M", false, false},
                 {"99999999999999999999G", false, false}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        setenv("TEGULA_CACHE_SIZE", sizes[i].size, 1);
        tgl_cache *cache = tgl_cache_open();
        const bool has_remark = strstr(tgl_cache_describe(cache), "not understood") != NULL;
        assert_int_equal(has_remark, !sizes[i].is_understood);
        assert_int_equal(tgl_cache_state_of(cache), TGL_CACHE_ON);
        tgl_cache_close(cache);
        assert_int_equal(entries_kept(*state) < ENTRIES, sizes[i].is_bound);
    }
    unsetenv("TEGULA_CACHE_SIZE");
}

/* Temporary files of killed writers are removed; those of running writers are kept. */
static void forgotten_temporary_files_are_removed(void **state)
{
    static const struct {
        const char *name, *text;
        time_t age;
        bool stays;
    } files[] = {{"new-0123456789abcdef", "tegula2", 2 * 24 * 60 * 60, false},
                 {"new-1123456789abcdef", "", 2 * 24 * 60 * 60, false},
                 {"new-2123456789abcdef", "teg", 2 * 24 * 60 * 60, false},
                 {"new-fedcba9876543210", "tegula2", 60, true}};
    char path[512];
    tgl_cache *cache = tgl_cache_open();
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        snprintf(path, sizeof path, "%s/%s", (char *)*state, files[i].name);
        make_file(path, files[i].text, (off_t)strlen(files[i].text), files[i].age);
    }
    assert_true(store(cache, "x", "one"));
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct stat info;
        snprintf(path, sizeof path, "%s/%s", (char *)*state, files[i].name);
        assert_int_equal(stat(path, &info), files[i].stays ? 0 : -1);
    }
    tgl_cache_close(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(the_oldest_entries_give_way),
        IN_FOLDER(the_usual_bound_is_256_mib),
        IN_FOLDER(small_entries_are_bounded),
        IN_FOLDER(used_entries_stay),
        IN_FOLDER(foreign_files_are_left_alone),
        IN_FOLDER(the_bound_is_read),
        IN_FOLDER(forgotten_temporary_files_are_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
