/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk cache: what is stored comes back, whatever is damaged does not, no folder is used that
 * others could write to, and no file is removed that the cache has not written.
 */
#include "cache_case.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- Entries --------------------------------------------------------------------------------- */

static void what_is_stored_comes_back(void **state)
{
    tgl_cache *cache = tgl_cache_open();
    assert_string_equal(tgl_cache_describe(cache), *state);
    assert_int_equal(tgl_cache_state_of(cache), TGL_CACHE_ON);
    assert_false(has(cache, "x", "one"));
    assert_true(store(cache, "x", "one"));
    assert_true(has(cache, "x", "one"));
    assert_false(has(cache, "y", "one"));
    assert_true(store(cache, "y", ""));
    assert_true(has(cache, "y", ""));
    assert_true(store(cache, "x", "two")); /* replaced */
    assert_true(has(cache, "x", "two"));
    tgl_cache_close(cache);
    cache = tgl_cache_open();
    assert_true(has(cache, "x", "two"));
    tgl_cache_close(cache);
}

static void keys_tell_neighbours_apart(void **state)
{
    (void)state;
    tgl_cache_key ab_c, a_bc;
    tgl_cache_key_start(&ab_c, "test");
    tgl_cache_key_add_text(&ab_c, "ab");
    tgl_cache_key_add_text(&ab_c, "c");
    tgl_cache_key_start(&a_bc, "test");
    tgl_cache_key_add_text(&a_bc, "a");
    tgl_cache_key_add_text(&a_bc, "bc");
    tgl_cache *cache = tgl_cache_open();
    void *data;
    size_t size;
    assert_true(tgl_cache_store(cache, &ab_c, "x", 1));
    assert_false(tgl_cache_load(cache, &a_bc, &data, &size));
    tgl_cache_close(cache);
}

static void entries_are_private(void **state)
{
    char path[512];
    struct stat info;
    tgl_cache *cache = tgl_cache_open();
    store(cache, "x", "one");
    find_entry(*state, path, sizeof path);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    tgl_cache_close(cache);
}

/* Every byte of an entry matters: an entry with one altered byte is not loaded, and neither is an
 * entry that is cut short. */
static void damaged_entries_are_not_loaded(void **state)
{
    char path[512];
    unsigned char bytes[256];
    tgl_cache *cache = tgl_cache_open();
    store(cache, "x", "some content");
    find_entry(*state, path, sizeof path);
    int file = open(path, O_RDWR);
    const ssize_t size = read(file, bytes, sizeof bytes);
    assert_true(size > 12 && size < (ssize_t)sizeof bytes);
    for (ssize_t i = 0; i < size; i++) {
        const unsigned char altered = bytes[i] ^ 0x10;
        assert_int_equal(pwrite(file, &altered, 1, i), 1);
        assert_false(has(cache, "x", "some content"));
        assert_int_equal(pwrite(file, &bytes[i], 1, i), 1);
    }
    assert_true(has(cache, "x", "some content"));
    assert_int_equal(pwrite(file, "x", 1, size), 1); /* one byte is appended */
    assert_false(has(cache, "x", "some content"));
    for (ssize_t length = size - 1; length >= 0; length--) {
        assert_int_equal(ftruncate(file, length), 0);
        assert_false(has(cache, "x", "some content"));
    }
    close(file);
    assert_true(store(cache, "x", "some content")); /* rebuilt */
    assert_true(has(cache, "x", "some content"));
    tgl_cache_close(cache);
}

static void an_entry_under_another_s_name_is_not_loaded(void **state)
{
    char path_x[512], path_y[512];
    tgl_cache *cache = tgl_cache_open();
    store(cache, "x", "of x");
    find_entry(*state, path_x, sizeof path_x);
    unlink(path_x);
    store(cache, "y", "of y");
    find_entry(*state, path_y, sizeof path_y);
    assert_int_equal(rename(path_y, path_x), 0);
    assert_false(has(cache, "x", "of x"));
    unlink(path_x);
    assert_int_equal(symlink("/etc/passwd", path_x), 0);
    assert_false(has(cache, "x", "of x"));
    unlink(path_x);
    assert_int_equal(mkdir(path_x, 0700), 0);
    assert_false(has(cache, "x", "of x"));
    assert_false(store(cache, "x", "of x")); /* costs time, and leaves nothing behind */
    find_entry(*state, path_y, sizeof path_y);
    assert_string_equal(path_y, path_x);
    tgl_cache_close(cache);
}

/* The folder is ours and the entry is not: whoever owns the entry can write to it. */
static void an_entry_of_another_user_is_not_loaded(void **state)
{
    char path[512];
    if (geteuid() != 0) skip(); /* only root can give it away */
    tgl_cache *cache = tgl_cache_open();
    store(cache, "x", "of x");
    find_entry(*state, path, sizeof path);
    assert_true(has(cache, "x", "of x"));
    assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
    assert_false(has(cache, "x", "of x"));
    assert_true(store(cache, "x", "of x")); /* in its place */
    assert_true(has(cache, "x", "of x"));
    tgl_cache_close(cache);
}

static void *store_and_load(void *cache)
{
    for (int i = 0; i < 100; i++) {
        assert_true(store(cache, "x", "the same for all"));
        assert_true(has(cache, "x", "the same for all"));
    }
    return NULL;
}

static void many_writers_leave_one_whole_entry(void **state)
{
    enum { THREADS = 4 };
    char path[512];
    pthread_t threads[THREADS];
    tgl_cache *cache = tgl_cache_open();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, store_and_load, cache), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    find_entry(*state, path, sizeof path);
    tgl_cache_close(cache);
}

/* ---- The process ----------------------------------------------------------------------------- */

/* With an umask that takes all permissions the folder and the entries still have them. */
static void the_umask_does_not_matter(void **state)
{
    char path[512];
    struct stat info;
    assert_int_equal(rmdir(*state), 0);
    const mode_t before = umask(0777);
    tgl_cache *cache = tgl_cache_open();
    const bool is_stored = store(cache, "x", "one");
    umask(before);
    assert_true(is_stored);
    assert_int_equal(stat(*state, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    find_entry(*state, path, sizeof path);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_true(has(cache, "x", "one"));
    tgl_cache_close(cache);
}

static bool has_pending_signals(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGXFSZ) != 0;
}

/* Stores an entry under a limit of the size of files, whose signal would end the process. */
static bool stores_nothing_and_lives(bool is_blocked)
{
    const struct rlimit limit = {200, 200};
    char data[2000] = {0};
    sigset_t too_large, after;
    memset(data, 'x', sizeof data - 1);
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    signal(SIGXFSZ, SIG_DFL);
    sigprocmask(is_blocked ? SIG_BLOCK : SIG_UNBLOCK, &too_large, NULL);
    tgl_cache *cache = tgl_cache_open();
    if (is_blocked) raise(SIGXFSZ); /* a signal that was pending before stays pending */
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || store(cache, "x", data)) return false;
    sigprocmask(SIG_BLOCK, NULL, &after);
    return sigismember(&after, SIGXFSZ) == is_blocked && has_pending_signals() == is_blocked &&
           store(cache, "y", "short");
}

static void the_limit_of_file_sizes_ends_no_process(void **state)
{
    char path[512];
    for (int is_blocked = 0; is_blocked < 2; is_blocked++) {
        int status;
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) _exit(stores_nothing_and_lives(is_blocked) ? 0 : 1);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        find_entry(*state, path, sizeof path); /* the short one; the other has left nothing */
    }
}

/* ---- Folders --------------------------------------------------------------------------------- */

/* Fails unless the cache is off for a reason that contains `words`, and its calls do no harm. */
static void assert_off(const char *words)
{
    tgl_cache *cache = tgl_cache_open();
    const char *text = tgl_cache_describe(cache);
    const bool says_so = strstr(text, "TEGULA_CACHE says so") != NULL;
    assert_memory_equal(text, "off (", 5);
    assert_int_equal(tgl_cache_state_of(cache), says_so ? TGL_CACHE_OFF : TGL_CACHE_UNUSABLE);
    if (strstr(text, words) == NULL) fail_msg("\"%s\" is not in \"%s\"", words, text);
    assert_false(store(cache, "x", "one"));
    assert_false(has(cache, "x", "one"));
    tgl_cache_close(cache);
}

static void the_environment_chooses_the_folder(void **state)
{
    char expected[512];
    struct stat info;
    unsetenv("TEGULA_CACHE");
    setenv("XDG_CACHE_HOME", *state, 1);
    tgl_cache *cache = tgl_cache_open();
    snprintf(expected, sizeof expected, "%s/tegula", (char *)*state);
    assert_string_equal(tgl_cache_describe(cache), expected);
    assert_int_equal(stat(expected, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    tgl_cache_close(cache);

    setenv("XDG_CACHE_HOME", "relative/paths/are/ignored", 1);
    setenv("HOME", expected, 1);
    cache = tgl_cache_open();
    snprintf(expected, sizeof expected, "%s/tegula/.cache/tegula", (char *)*state);
    assert_string_equal(tgl_cache_describe(cache), expected);
    tgl_cache_close(cache);

    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    assert_off("HOME is not an absolute path");
    setenv("HOME", "relative", 1);
    assert_off("HOME is not an absolute path");
}

/* A missing home directory is not created, nor the parent of XDG_CACHE_HOME. TEGULA_CACHE is. */
static void home_directories_are_not_created(void **state)
{
    char home[512], xdg[512], own[512];
    struct stat info;
    snprintf(home, sizeof home, "%s/home", (char *)*state);
    snprintf(xdg, sizeof xdg, "%s/home/cache", (char *)*state);
    snprintf(own, sizeof own, "%s/own/cache", (char *)*state);
    unsetenv("TEGULA_CACHE");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", home, 1);
    assert_off("/home: No such file");
    assert_int_not_equal(stat(home, &info), 0);

    setenv("XDG_CACHE_HOME", xdg, 1);
    assert_off("/home: No such file");
    assert_int_not_equal(stat(home, &info), 0);

    setenv("TEGULA_CACHE", own, 1);
    tgl_cache *cache = tgl_cache_open();
    assert_int_equal(tgl_cache_state_of(cache), TGL_CACHE_ON);
    strcat(own, "/tegula");
    assert_string_equal(tgl_cache_describe(cache), own);
    tgl_cache_close(cache);
}

static void relative_paths_are_refused(void **state)
{
    static const char *const paths[] = {"cache-of-tests", "./cache-of-tests", "on", " /tmp"};
    struct stat info;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        setenv("TEGULA_CACHE", paths[i], 1);
        assert_off("which is not an absolute path");
        assert_int_not_equal(stat(paths[i], &info), 0);
    }
}

static void the_cache_can_be_turned_off(void **state)
{
    (void)state;
    setenv("TEGULA_CACHE", "off", 1);
    assert_off("TEGULA_CACHE says so");
    setenv("TEGULA_CACHE", "", 1);
    assert_off("TEGULA_CACHE says so");
    assert_false(store(NULL, "x", "one"));
    assert_false(has(NULL, "x", "one"));
    assert_memory_equal(tgl_cache_describe(NULL), "off", 3);
    assert_int_equal(tgl_cache_state_of(NULL), TGL_CACHE_UNUSABLE);
}

static void folders_that_do_not_serve(void **state)
{
    char path[512], *longest = malloc(9000);
    snprintf(path, sizeof path, "%s/file", (char *)*state);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    setenv("TEGULA_CACHE", path, 1);
    assert_off("Not a directory");
    setenv("TEGULA_CACHE", "/proc/no such folder", 1);
    assert_off("No such file");
    assert_non_null(longest);
    memset(longest, 'x', 8999);
    longest[0] = '/';
    longest[8999] = '\0';
    setenv("TEGULA_CACHE", longest, 1);
    assert_off("too long");
    free(longest);
    setenv("TEGULA_CACHE", cache_base, 1);
    chmod(*state, 0770);
    assert_off("chmod 700");
    chmod(*state, 0702);
    assert_off("chmod 700");
}

static void a_folder_of_another_user_does_not_serve(void **state)
{
    if (geteuid() != 0) skip(); /* only root can give it away */
    assert_int_equal(chown(*state, 12345, (gid_t)-1), 0);
    assert_off("another user");
    assert_int_equal(chown(*state, 0, (gid_t)-1), 0);
}

/* An example is root with the HOME of the user who called sudo: the library creates nothing there,
 * and follows no link that the user has made. */
static void nothing_is_created_in_a_home_of_another_user(void **state)
{
    static const char *const variables[] = {"TEGULA_CACHE", "XDG_CACHE_HOME", "HOME"};
    char home[512], inner[512], link[512];
    struct stat info;
    (void)state;
    if (geteuid() != 0) skip(); /* only root can give it away */
    snprintf(home, sizeof home, "%s/home", cache_base);
    snprintf(inner, sizeof inner, "%s/home/inner", cache_base);
    snprintf(link, sizeof link, "%s/link", cache_base);
    assert_int_equal(mkdir(home, 0700), 0);
    assert_int_equal(symlink(*state, link), 0);
    assert_int_equal(lchown(link, 12345, (gid_t)-1), 0);
    assert_int_equal(chown(home, 12345, (gid_t)-1), 0);
    for (size_t i = 0; i < COUNT_OF(variables); i++) {
        const char *const paths[] = {home, inner, link};
        for (size_t j = 0; j < COUNT_OF(variables); j++)
            unsetenv(variables[j]);
        for (size_t j = 0; j < COUNT_OF(paths); j++) {
            setenv(variables[i], paths[j], 1);
            assert_off(i == 2 && j == 1 ? "No such file" : "belongs to another user");
        }
    }
    assert_int_equal(rmdir(home), 0); /* it is empty */
    snprintf(inner, sizeof inner, "%s/.cache", (char *)*state);
    assert_int_not_equal(stat(inner, &info), 0);
}

static void a_folder_that_vanishes_costs_only_time(void **state)
{
    tgl_cache *cache = tgl_cache_open();
    assert_int_equal(rmdir(*state), 0);
    assert_false(store(cache, "x", "one"));
    assert_false(has(cache, "x", "one"));
    tgl_cache_close(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(what_is_stored_comes_back),
        IN_FOLDER(keys_tell_neighbours_apart),
        IN_FOLDER(entries_are_private),
        IN_FOLDER(damaged_entries_are_not_loaded),
        IN_FOLDER(an_entry_under_another_s_name_is_not_loaded),
        IN_FOLDER(an_entry_of_another_user_is_not_loaded),
        IN_FOLDER(many_writers_leave_one_whole_entry),
        IN_FOLDER(the_umask_does_not_matter),
        IN_FOLDER(the_limit_of_file_sizes_ends_no_process),
        IN_FOLDER(the_environment_chooses_the_folder),
        IN_FOLDER(home_directories_are_not_created),
        IN_FOLDER(relative_paths_are_refused),
        IN_FOLDER(the_cache_can_be_turned_off),
        IN_FOLDER(folders_that_do_not_serve),
        IN_FOLDER(a_folder_of_another_user_does_not_serve),
        IN_FOLDER(nothing_is_created_in_a_home_of_another_user),
        IN_FOLDER(a_folder_that_vanishes_costs_only_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
