/* SPDX-License-Identifier: Apache-2.0
 *
 * What the simulator is made of: running programs, the private folder, reading an object's own
 * tables, damaged ones included, and fibers. This file is compiled with -g -gdwarf-4, as kernels
 * are.
 */
#include "support.h"

#include "sim/elf_image.h"
#include "sim/fiber.h"
#include "sim/process.h"
#include "sim/temp_folder.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Programs -------------------------------------------------------------------------------- */

static void test_process(void **state)
{
    (void)state;
    char *printf_path = tgl_process_find("printf"), *output;
    assert_non_null(printf_path);
    const char *const argv[] = {printf_path, "%s|", "$(id)", "a b", "*", NULL}; /* no shell */
    assert_true(tgl_process_run(argv, &output));
    assert_string_equal(output, "$(id)|a b|*|");
    free(output);
    free(printf_path);

    const char *const failing[] = {"/bin/ls", "/nowhere/at/all", NULL};
    assert_false(tgl_process_run(failing, &output));
    assert_non_null(strstr(output, "/nowhere/at/all")); /* standard error is kept too */
    free(output);

    const char *const missing[] = {"/nowhere/program", NULL};
    assert_false(tgl_process_run(missing, &output));
    assert_non_null(output);
    free(output);

    assert_null(tgl_process_find("no-program-is-called-this"));
    assert_null(tgl_process_find(""));
    assert_null(tgl_process_find("/etc/passwd")); /* there, but not to be run */
}

/* Output beyond the limit is read and dropped, so that the program does not wait forever. */
static void test_much_output(void **state)
{
    (void)state;
    char *output;
    char *head = tgl_process_find("head");
    assert_non_null(head);
    const char *const argv[] = {head, "-c", "1000000", "/dev/zero", NULL};
    assert_true(tgl_process_run(argv, &output));
    free(output);
    free(head);
}

/* ---- Folder ---------------------------------------------------------------------------------- */

static void test_temp_folder(void **state)
{
    (void)state;
    tgl_temp_folder folder;
    struct stat info;
    char path[TGL_TEMP_PATH];
    assert_int_equal(tgl_temp_folder_make(&folder), TGL_OK);
    snprintf(path, sizeof path, "%s", folder.path);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    assert_non_null(tgl_temp_folder_write(&folder, "a/b/file", "text", 4));
    assert_non_null(tgl_temp_folder_write(&folder, "a/other", "", 0));
    assert_null(tgl_temp_folder_write(&folder, "a/other", "", 0)); /* it is not replaced */
    assert_non_null(tgl_temp_folder_entry(&folder, "never-written"));
    tgl_temp_folder_remove(&folder);
    assert_int_not_equal(stat(path, &info), 0);

    setenv("TMPDIR", "/nowhere", 1);
    assert_int_equal(tgl_temp_folder_make(&folder), TGL_DRIVER);
    tgl_temp_folder_remove(&folder);
    unsetenv("TMPDIR");
}

/* Makes a folder in a process that this signal ends. The whole process group gets the signal, as
 * from a terminal. */
static void stop_with_folder(int signal_number, int report)
{
    tgl_temp_folder folder;
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    setpgid(0, 0);
    if (tgl_temp_folder_make(&folder) != TGL_OK ||
        tgl_temp_folder_write(&folder, "a/file", "text", 4) == NULL ||
        write(report, folder.path, sizeof folder.path) != (ssize_t)sizeof folder.path)
        _exit(1);
    signal(signal_number, SIG_DFL);
    kill(0, signal_number);
    _exit(1);
}

static void test_stopped_processes_leave_no_folder(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGKILL};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        int ends[2], status;
        char path[TGL_TEMP_PATH];
        struct stat info;
        assert_int_equal(pipe(ends), 0);
        const pid_t child = fork();
        if (child == 0) stop_with_folder(signals[i], ends[1]);
        assert_int_equal(read(ends[0], path, sizeof path), sizeof path);
        close(ends[0]), close(ends[1]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
        for (int wait = 0; stat(path, &info) == 0 && wait < 500; wait++)
            usleep(10 * 1000);
        if (stat(path, &info) == 0) fail_msg("signal %d: %s is left", signals[i], path);
    }
}

/* Removing a folder leaves no process behind, also if the caller ignores the end of its children.
 */
static void test_folder_without_children(void **state)
{
    (void)state;
    tgl_temp_folder folder;
    signal(SIGCHLD, SIG_IGN);
    assert_int_equal(tgl_temp_folder_make(&folder), TGL_OK);
    tgl_temp_folder_remove(&folder);
    signal(SIGCHLD, SIG_DFL);
    assert_int_equal(tgl_temp_folder_make(&folder), TGL_OK);
    tgl_temp_folder_remove(&folder);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, not even an ended one */
}

/* ---- Objects --------------------------------------------------------------------------------- */

static volatile int first_line = __LINE__ + 1; /* of the function below, which has four */
static int marked_function(int x)
{
    return 3 * x + 1;
}

/* A copy of this program's own file, which the caller frees. NULL: no file or no memory. */
static unsigned char *read_self(size_t *size)
{
    FILE *file = fopen("/proc/self/exe", "rb");
    if (file == NULL) return NULL;
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    unsigned char *image = malloc(*size);
    rewind(file);
    if (image != NULL && fread(image, 1, *size, file) != *size) *size = 0;
    fclose(file);
    return image;
}

static void test_lines(void **state)
{
    (void)state;
    size_t size = 0;
    unsigned char *image = read_self(&size);
    if (image == NULL) skip();
    Dl_info info;
    int (*function)(int) = marked_function;
    void *address;
    memcpy(&address, &function, sizeof address);
    assert_int_not_equal(dladdr(address, &info), 0);
    tgl_line_table table;
    assert_true(tgl_line_table_read(&table, image, size));
    const tgl_line_row *row =
        tgl_line_table_find(&table, (uintptr_t)address - (uintptr_t)info.dli_fbase);
    assert_non_null(row);
    assert_non_null(strstr(row->file, "test_sim_parts.c"));
    assert_in_range(row->line, first_line, first_line + 3);
    assert_null(tgl_line_table_find(&table, 0));
    assert_int_equal(marked_function(2), 7);
    tgl_line_table_free(&table);
    free(image);
}

static void count_variable(const char *name, uint64_t address, uint64_t bytes, void *context)
{
    (void)address, (void)bytes;
    if (strcmp(name, "first_line") == 0) ++*(int *)context;
}

static void test_variables(void **state)
{
    (void)state;
    size_t size = 0;
    unsigned char *image = read_self(&size);
    if (image == NULL) skip();
    int found = 0;
    tgl_elf_each_variable(image, size, count_variable, &found);
    assert_int_equal(found, 1);
    free(image);
}

typedef struct uses {
    int count;
    uint64_t last;
} uses;

static void count_use(uint64_t address, void *context)
{
    uses *u = context;
    assert_true(address > u->last);
    u->last = address;
    u->count++;
}

/* This program is linked with --emit-relocs. */
static void test_uses(void **state)
{
    (void)state;
    size_t size = 0;
    unsigned char *image = read_self(&size);
    if (image == NULL) skip();
    uses found = {0, 0};
    tgl_elf_each_use(image, size, "tgl_process_find", count_use, &found);
    assert_in_range(found.count, 5, 20); /* here, in test_much_output() and in the library */
    tgl_line_table table;
    assert_true(tgl_line_table_read(&table, image, size));
    const uint64_t next = tgl_line_table_next(&table, found.last);
    assert_true(next > found.last && next != UINT64_MAX);
    assert_int_equal(tgl_line_table_find(&table, next)->address, next);
    assert_true(tgl_line_table_next(&table, UINT64_MAX) == UINT64_MAX);
    tgl_line_table_free(&table);
    free(image);
}

static void ignore_use(uint64_t address, void *context)
{
    (void)address, (void)context;
}

/* Whatever the bytes of a damaged object are, nothing outside of them is read. */
static void test_damage(void **state)
{
    (void)state;
    size_t size = 0;
    uint64_t random = 1;
    unsigned char *image = read_self(&size);
    if (image == NULL) skip();
    tgl_line_table table;
    int found = 0;
    for (int i = 0; i < 60; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const size_t cut = i < 20 ? (size_t)i * 8 : (size_t)(random >> 20) % size;
        unsigned char *part = malloc(cut + 1);
        assert_non_null(part);
        memcpy(part, image, cut);
        if (i % 2 != 0 && cut > 64) part[(random >> 33) % 64] ^= (unsigned char)(1u << i % 8);
        assert_true(tgl_line_table_read(&table, part, cut));
        tgl_line_table_free(&table);
        tgl_elf_each_variable(part, cut, count_variable, &found);
        tgl_elf_each_use(part, cut, "tgl_process_find", ignore_use, NULL);
        free(part);
    }
    free(image);
}

/* ---- Fibers ---------------------------------------------------------------------------------- */

typedef struct walker {
    tgl_fiber fiber;
    tgl_fiber *home;
    double sum; /* may be in a register during a switch of fibers */
    int steps;
} walker;

static void walk(void *argument)
{
    walker *w = argument;
    double sum = 0.5;
    for (int i = 0;; i++) {
        char room[1024];
        memset(room, i, sizeof room);
        sum += room[i % 1024];
        w->sum = sum;
        w->steps = i + 1;
        tgl_fiber_switch(&w->fiber, w->home);
    }
}

static void test_fibers(void **state)
{
    (void)state;
    enum { FIBERS = 3, STACK = 64 * 1024, ROUNDS = 100 };
    tgl_fiber home;
    walker walkers[FIBERS];
    char *stacks = aligned_alloc(4096, (size_t)FIBERS * STACK);
    assert_non_null(stacks);
    for (int i = 0; i < FIBERS; i++) {
        walkers[i] = (walker){.home = &home};
        tgl_fiber_make(&walkers[i].fiber, stacks + (size_t)i * STACK, STACK, walk, &walkers[i]);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < FIBERS; i++)
            tgl_fiber_switch(&home, &walkers[i].fiber);
    for (int i = 0; i < FIBERS; i++) {
        assert_int_equal(walkers[i].steps, ROUNDS);
        assert_true(walkers[i].sum == 0.5 + 0.5 * ROUNDS * (ROUNDS - 1));
        tgl_fiber_forget(stacks + (size_t)i * STACK, STACK); /* they were left half-way */
    }
    free(stacks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_process),
        cmocka_unit_test(test_much_output),
        cmocka_unit_test(test_temp_folder),
        cmocka_unit_test(test_stopped_processes_leave_no_folder),
        cmocka_unit_test(test_folder_without_children),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_uses),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_fibers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
