/* SPDX-License-Identifier: Apache-2.0
 *
 * The wisdom: which files and lines are read, and what the planner makes of them.
 */
#include "plan_shape.h"
#include "same_process_id.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char chip[] = "NVIDIA H200, 132 SMs", driver[] = "CUDA 13.0, NVRTC 13.0, sm_90a";
static char folder[64], path[100];

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/tegula-wisdom-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/wisdom", folder);
    setenv("TEGULA_WISDOM", path, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    chmod(folder, 0700);
    unlink(path);
    unsetenv("TEGULA_WISDOM");
    return rmdir(folder);
}

/* Replaces the content of the file. */
static void write_bytes(const char *bytes, size_t size)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
}

static void write_text(const char *text)
{
    write_bytes(text, strlen(text));
}

static tgl_wisdom *open_wisdom(void)
{
    tgl_wisdom *w = tgl_wisdom_open(chip, driver);
    assert_non_null(w);
    return w;
}

/* The full kernel string of the candidate that a kernel string names, or the same text if it names
 * none. Returns text. */
static const char *exact(int size, const char *kernel, char text[TGL_KERNEL_STRING_SIZE])
{
    const tgl_shape s = shape_of(size, size, size);
    tgl_request request;
    tgl_candidate c;
    snprintf(text, TGL_KERNEL_STRING_SIZE, "%s", kernel);
    if (tgl_request_make(kernel, 0, &request) != TGL_OK || !request.is_named) return text;
    tgl_planner_best_of(chip_of("h200"), &s, &request.choice, request.strips, TGL_WORKSPACE_DEFAULT,
                        &c);
    return c.rejected == NULL ? tgl_candidate_string(&c, text, TGL_KERNEL_STRING_SIZE) : text;
}

/* Fails unless the planner chooses this kernel. */
#define assert_choice(choice, size, kernel)                                                        \
    do {                                                                                           \
        char exact_text[TGL_KERNEL_STRING_SIZE];                                                   \
        assert_string_equal(choice, exact(size, kernel, exact_text));                              \
    } while (0)

/* A line as the library writes it, for an FP32 product of size cubed. */
static const char *line_of(int size, const char *kernel, const char *us, const char *mode,
                           char line[600])
{
    char product[TGL_SHAPE_KEY_SIZE], source[TGL_SOURCE_SIZE] = "0123456789abcdef";
    char text[TGL_KERNEL_STRING_SIZE];
    const tgl_shape s = shape_of(size, size, size);
    tgl_request request;
    if (tgl_request_make(kernel, 0, &request) == TGL_OK && request.is_named) {
        tgl_candidate c;
        tgl_planner_best_of(chip_of("h200"), &s, &request.choice, request.strips,
                            TGL_WORKSPACE_DEFAULT, &c);
        if (c.rejected == NULL) assert_true(tgl_planner_source(chip_of("h200"), &s, &c, source));
    }
    snprintf(line, 600, "%s | %s | %s | %s | %s | %s | %s | 1.000 | 5 | %s\n", chip, driver,
             tgl_version(), source, tgl_shape_key(&s, product), exact(size, kernel, text), us,
             mode);
    return line;
}

/* The number of lines for an FP32 product of size cubed. */
static int count_of(tgl_wisdom *w, int size)
{
    tgl_measured *found;
    const tgl_shape s = shape_of(size, size, size);
    const int count = tgl_wisdom_find(w, &s, &found);
    for (int i = 0; i < count; i++)
        assert_true(strlen(found[i].kernel) < TGL_KERNEL_STRING_SIZE);
    free(found);
    return count;
}

static int count_in_file(int size)
{
    tgl_wisdom *w = open_wisdom();
    const int count = count_of(w, size);
    tgl_wisdom_close(w);
    return count;
}

/* The planner's choice for an FP32 product of size cubed. Returns text. */
static const char *choice_with(tgl_wisdom *w, int size, char text[TGL_KERNEL_STRING_SIZE])
{
    const tgl_shape s = shape_of(size, size, size);
    tgl_request request = request_of(NULL);
    tgl_candidate choice;
    request.wisdom = w;
    assert_status(tgl_planner_choose(chip_of("h200"), &s, &request, &choice), TGL_OK);
    return tgl_candidate_string(&choice, text, TGL_KERNEL_STRING_SIZE);
}

static const char *choice_in_file(int size, char text[TGL_KERNEL_STRING_SIZE])
{
    tgl_wisdom *w = open_wisdom();
    choice_with(w, size, text);
    tgl_wisdom_close(w);
    return text;
}

static const tgl_measured measured = {.kernel = "simt_64x64x16",
                                      .source = "0123456789abcdef",
                                      .seconds = 12.3456e-6,
                                      .spread = 0.0123,
                                      .samples = 5};

/* ---- The file -------------------------------------------------------------------------------- */

static void what_is_added_is_found_again(void **state)
{
    (void)state;
    const tgl_shape s = shape_of(100, 200, 300);
    tgl_measured *found;
    tgl_wisdom *w = open_wisdom();
    assert_int_equal(access(path, F_OK), -1); /* opening creates nothing */
    tgl_wisdom_add(w, &s, &measured);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tgl_wisdom_find(w, &s, &found), 1);
        assert_string_equal(found->kernel, measured.kernel);
        assert_string_equal(found->source, measured.source);
        assert_true(fabs(found->seconds - 12.346e-6) < 1e-12);
        assert_true(fabs(found->spread - 0.0123) < 1e-9);
        assert_int_equal(found->samples, 5);
        assert_false(found->is_sustained);
        assert_null(found->stale);
        free(found);
        tgl_wisdom_close(w);
        w = open_wisdom();
    }
    tgl_wisdom_close(w);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
}

static void numbers_do_not_depend_on_the_locale(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",    "1,5",    "-1",    "1e3",           "0x10",
                                        "nan", "1.2345", "0",     "1234567890123", " 1",
                                        "1 ",  ".5",     "0.0001"};
    char line[600];
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        write_text(line_of(64, "simt_64x64x16", wrong[i], "burst", line));
        if (count_in_file(64) != 0) fail_msg("\"%s\" is taken for a time", wrong[i]);
    }
    write_text(line_of(64, "simt_64x64x16", "1.5", "burst", line));
    assert_int_equal(count_in_file(64), 1);
}

/* A line is torn if a process was killed or the disk was full while it was written. */
static void a_torn_line_is_skipped_and_ended(void **state)
{
    (void)state;
    char line[600];
    line_of(64, "simt_64x64x16", "17.5", "burst", line);
    const size_t length = strlen(line);
    const tgl_shape other = shape_of(1, 2, 3);
    for (size_t cut = 0; cut < length; cut += cut < 200 ? 13 : 1) {
        tgl_measured *found;
        write_bytes(line, cut);
        tgl_wisdom *w = open_wisdom();
        assert_int_equal(count_of(w, 64), 0);
        tgl_wisdom_add(w, &other, &measured);
        tgl_wisdom_close(w);
        w = open_wisdom();
        /* If only its '\n' is missing, the line is whole. */
        assert_int_equal(count_of(w, 64), cut + 1 == length);
        assert_int_equal(tgl_wisdom_find(w, &other, &found), 1);
        free(found);
        tgl_wisdom_close(w);
    }
}

static void other_files_are_not_read(void **state)
{
    (void)state;
    char line[600], other[120];
    line_of(64, "simt_64x64x16", "17.5", "burst", line);
    write_text(line);
    assert_int_equal(count_in_file(64), 1);
    chmod(path, 0620);
    assert_int_equal(count_in_file(64), 0);
    chmod(path, 0602);
    assert_int_equal(count_in_file(64), 0);
    chmod(path, 0600);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
        tgl_wisdom *w = open_wisdom();
        assert_int_equal(count_of(w, 64), 0);
        assert_non_null(strstr(tgl_wisdom_describe(w), "another user"));
        tgl_wisdom_close(w);
        assert_int_equal(chown(path, 0, (gid_t)-1), 0);
    }
    snprintf(other, sizeof other, "%s/other", folder);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(count_in_file(64), 0);
    tgl_wisdom *w = open_wisdom();
    const tgl_shape s = shape_of(1, 2, 3);
    tgl_wisdom_add(w, &s, &measured); /* is not written through the link */
    tgl_wisdom_close(w);
    struct stat info;
    assert_int_equal(stat(other, &info), 0);
    assert_int_equal(info.st_size, strlen(line));
    unlink(path);
    unlink(other);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(count_in_file(64), 0); /* and nobody waits for a writer */
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(count_in_file(64), 0);
    assert_int_equal(rmdir(path), 0);
}

static void a_file_has_a_limit(void **state)
{
    (void)state;
    enum { LIMIT = 16 << 20 };
    char line[600];
    const tgl_shape s = shape_of(1, 2, 3);
    write_text(line_of(64, "simt_64x64x16", "17.5", "burst", line));
    assert_int_equal(truncate(path, LIMIT - 10), 0); /* zero bytes */
    tgl_wisdom *w = open_wisdom();
    assert_int_equal(count_of(w, 64), 1);
    tgl_wisdom_add(w, &s, &measured); /* remembered, and not written */
    tgl_measured *found;
    assert_int_equal(tgl_wisdom_find(w, &s, &found), 1);
    free(found);
    tgl_wisdom_close(w);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, LIMIT - 10);
    assert_int_equal(truncate(path, LIMIT + 1), 0);
    w = open_wisdom();
    assert_int_equal(count_of(w, 64), 0);
    assert_non_null(strstr(tgl_wisdom_describe(w), "too large"));
    tgl_wisdom_close(w);
}

/* Sets a variable to its old value and frees this text; NULL: it was not set. */
static void restore(const char *name, char *value)
{
    if (value != NULL)
        setenv(name, value, 1);
    else
        unsetenv(name);
    free(value);
}

static void settings_choose_the_file(void **state)
{
    (void)state;
    static const char *const off[] = {"", "off", "wisdom", "./wisdom"};
    char line[600], text[400];
    write_text(line_of(64, "simt_64x64x16", "17.5", "burst", line));
    for (size_t i = 0; i < COUNT_OF(off); i++) {
        setenv("TEGULA_WISDOM", off[i], 1);
        tgl_wisdom *w = open_wisdom();
        assert_int_equal(count_of(w, 64), 0);
        assert_int_equal(strncmp(tgl_wisdom_describe(w), "off (TEGULA_WISDOM", 18), 0);
        tgl_wisdom_close(w);
    }
    char *cache = getenv("TEGULA_CACHE") != NULL ? strdup(getenv("TEGULA_CACHE")) : NULL;
    char beside[120];
    snprintf(beside, sizeof beside, "%s/tegula", folder);
    assert_int_equal(mkdir(beside, 0700), 0);
    snprintf(text, sizeof text, "%s/wisdom", beside);
    assert_int_equal(rename(path, text), 0);
    unsetenv("TEGULA_WISDOM");
    setenv("TEGULA_CACHE", folder, 1);
    assert_int_equal(count_in_file(64), 1);
    setenv("TEGULA_CACHE", "off", 1);
    assert_int_equal(count_in_file(64), 0);
    unlink(text);
    assert_int_equal(rmdir(beside), 0);
    restore("TEGULA_CACHE", cache);
}

/* Without TEGULA_WISDOM there is no file where the disk cache has no folder: a wisdom in a folder
 * of others could be theirs, and root must not create folders in the home of the user who called
 * sudo. */
static void an_untrusted_folder_has_no_wisdom(void **state)
{
    (void)state;
    char *cache = getenv("TEGULA_CACHE") != NULL ? strdup(getenv("TEGULA_CACHE")) : NULL;
    char *home = getenv("HOME") != NULL ? strdup(getenv("HOME")) : NULL;
    char *xdg = getenv("XDG_CACHE_HOME") != NULL ? strdup(getenv("XDG_CACHE_HOME")) : NULL;
    char beside[120];
    const tgl_shape s = shape_of(1, 2, 3);
    snprintf(beside, sizeof beside, "%s/tegula", folder);
    assert_int_equal(mkdir(beside, 0700), 0);
    assert_int_equal(chmod(beside, 0777), 0);
    unsetenv("TEGULA_WISDOM");
    setenv("TEGULA_CACHE", folder, 1);
    tgl_wisdom *w = open_wisdom();
    assert_int_equal(strncmp(tgl_wisdom_describe(w), "off (", 5), 0);
    tgl_wisdom_add(w, &s, &measured);
    tgl_wisdom_close(w);
    assert_int_equal(rmdir(beside), 0); /* it is empty */
    if (geteuid() == 0) {
        unsetenv("TEGULA_CACHE");
        unsetenv("XDG_CACHE_HOME");
        setenv("HOME", folder, 1);
        assert_int_equal(chown(folder, 12345, (gid_t)-1), 0);
        w = open_wisdom();
        assert_int_equal(strncmp(tgl_wisdom_describe(w), "off (", 5), 0);
        tgl_wisdom_add(w, &s, &measured);
        tgl_wisdom_close(w);
        snprintf(beside, sizeof beside, "%s/.cache", folder);
        assert_int_equal(access(beside, F_OK), -1);
    }
    restore("TEGULA_CACHE", cache);
    restore("HOME", home);
    restore("XDG_CACHE_HOME", xdg);
}

/* Each process appends lines of its own. Afterwards the file has the lines of all. */
static void processes_append_at_the_same_time(void **state)
{
    (void)state;
    enum { PROCESSES = 6, LINES = 200 };
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] != 0) continue;
        tgl_wisdom *w = open_wisdom();
        for (int j = 0; j < LINES; j++) {
            const tgl_shape s = shape_of(i + 1, j + 1, 7);
            tgl_wisdom_add(w, &s, &measured);
        }
        _exit(0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int code;
        assert_int_equal(waitpid(children[i], &code, 0), children[i]);
        assert_int_equal(code, 0);
    }
    tgl_wisdom *w = open_wisdom();
    assert_non_null(strstr(tgl_wisdom_describe(w), "(1200 lines of this chip)"));
    for (int i = 0; i < PROCESSES; i++)
        for (int j = 0; j < LINES; j++) {
            const tgl_shape s = shape_of(i + 1, j + 1, 7);
            tgl_measured *found;
            assert_int_equal(tgl_wisdom_find(w, &s, &found), 1);
            free(found);
        }
    tgl_wisdom_close(w);
}

static void fork_in_visit(const tgl_measured *lines, int count, void *wisdom)
{
    (void)lines, (void)count;
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        tgl_wisdom_refresh(wisdom);
        _exit(0);
    }
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
}

/* A thread of the parent holds the lock during fork(). The child has the same process ID. */
static void a_child_does_not_wait_for_its_parent(void **state)
{
    (void)state;
    const tgl_shape s = shape_of(1, 2, 3);
    tgl_wisdom *w = open_wisdom();
    tgl_wisdom_add(w, &s, &measured);
    tgl_wisdom_each(w, "", fork_in_visit, w);
    tgl_wisdom_close(w);
}

/* Planning opens no file. A file that appears later is read by tgl_wisdom_refresh(). */
static void the_file_is_read_when_it_is_opened(void **state)
{
    (void)state;
    char line[600], text[TGL_KERNEL_STRING_SIZE], before[TGL_KERNEL_STRING_SIZE];
    tgl_wisdom *w = open_wisdom();
    choice_with(w, 1000, before);
    write_text(line_of(1000, "simt_64x64x16", "1.5", "burst", line));
    assert_string_equal(choice_with(w, 1000, text), before);
    tgl_wisdom_refresh(w);
    assert_choice(choice_with(w, 1000, text), 1000, "simt_64x64x16");
    tgl_wisdom_close(w);
}

static void a_replaced_file_is_read_again(void **state)
{
    (void)state;
    char line[600];
    write_text(line_of(64, "simt_64x64x16", "1.5", "burst", line));
    tgl_wisdom *w = open_wisdom();
    write_text("# shorter\n");
    tgl_wisdom_refresh(w);
    tgl_wisdom_add(w, &(tgl_shape){.m = 1, .n = 1, .k = 1, .batch = 1}, &measured);
    write_text(line_of(65, "simt_64x64x16", "1.5", "burst", line));
    tgl_wisdom_refresh(w);
    tgl_wisdom_close(w);
    assert_int_equal(count_in_file(65), 1);
}

/* A tool writes a new file and renames it: it is another file even if it is not shorter. */
static void a_renamed_file_is_read_from_its_start(void **state)
{
    (void)state;
    char lines[2][600], text[1300], saved[120];
    snprintf(saved, sizeof saved, "%s/saved", folder);
    write_text(line_of(64, "simt_64x64x16", "1.5", "burst", lines[0]));
    tgl_wisdom *w = open_wisdom();
    assert_int_equal(rename(path, saved), 0);
    line_of(65, "simt_64x64x16", "1.5", "burst", lines[0]);
    line_of(66, "simt_64x64x16", "1.5", "burst", lines[1]);
    snprintf(text, sizeof text, "%s%s", lines[0], lines[1]);
    write_text(text);
    tgl_wisdom_refresh(w);
    assert_int_equal(count_of(w, 65), 1);
    assert_int_equal(count_of(w, 66), 1);
    tgl_wisdom_close(w);
    unlink(saved);
}

/* Lines that no library has written are skipped and do no harm. */
static void hostile_lines_are_skipped(void **state)
{
    (void)state;
    char line[600], *text = malloc(1 << 20);
    assert_non_null(text);
    line_of(64, "simt_64x64x16", "17.5", "burst", line);
    const size_t length = strlen(line) - 1;
    uint64_t random = 1;
    for (int i = 0; i < 3000; i++) { /* a good line with one changed byte */
        memcpy(text, line, length + 1);
        random = random * 6364136223846793005u + 1442695040888963407u;
        text[(random >> 33) % length] = (char)(random >> 56);
        write_bytes(text, length + 1);
        tgl_wisdom *w = open_wisdom();
        char kernel[TGL_KERNEL_STRING_SIZE];
        assert_true(count_of(w, 64) <= 1);
        choice_with(w, 64, kernel);
        tgl_wisdom_close(w);
    }
    memset(text, 'x', 1 << 20); /* one line */
    write_bytes(text, 1 << 20);
    assert_int_equal(count_in_file(64), 0);
    memset(text, '|', 1 << 20);
    text[(1 << 20) - 1] = '\n';
    write_bytes(text, 1 << 20);
    assert_int_equal(count_in_file(64), 0);
    for (int i = 0; i < 1 << 20; i++)
        text[i] =
            (char)(random = random * 6364136223846793005u + 1442695040888963407u, random >> 56);
    write_bytes(text, 1 << 20);
    assert_int_equal(count_in_file(64), 0);
    free(text);
}

/* ---- Choices --------------------------------------------------------------------------------- */

static void the_fastest_line_is_chosen(void **state)
{
    (void)state;
    char lines[4][600], text[3000], kernel[TGL_KERNEL_STRING_SIZE];
    line_of(1000, "simt_64x64x16", "20.5", "burst", lines[0]);
    line_of(1000, "simt_128x64x8", "19.75", "burst", lines[1]);
    line_of(1000, "simt_64x64x16", "19.5", "burst", lines[2]);
    snprintf(text, sizeof text, "%s%s", lines[0], lines[1]);
    write_text(text);
    assert_choice(choice_in_file(1000, kernel), 1000, "simt_128x64x8");
    snprintf(text, sizeof text, "%s# a comment\n\n%s%s", lines[0], lines[1], lines[2]);
    write_text(text); /* the later line of a kernel counts */
    assert_choice(choice_in_file(1000, kernel), 1000, "simt_64x64x16");
    snprintf(text, sizeof text, "%s%s%s", lines[2], lines[1], lines[0]);
    write_text(text);
    assert_choice(choice_in_file(1000, kernel), 1000, "simt_128x64x8");
    line_of(1000, "simt_64x64x16", "30", "sustained", lines[3]);
    snprintf(text, sizeof text, "%s%s", lines[1], lines[3]);
    write_text(text); /* what was measured at the power limit counts more */
    assert_choice(choice_in_file(1000, kernel), 1000, "simt_64x64x16");
    char other[TGL_KERNEL_STRING_SIZE];
    assert_string_equal(choice_in_file(1001, kernel), choice_with(NULL, 1001, other));
}

static void lines_of_other_sources_are_stale(void **state)
{
    (void)state;
    char line[600], before[TGL_KERNEL_STRING_SIZE], kernel[TGL_KERNEL_STRING_SIZE];
    choice_with(NULL, 1000, before);
    line_of(1000, "simt_64x64x16", "1.5", "burst", line);
    write_text(line);
    assert_choice(choice_in_file(1000, kernel), 1000, "simt_64x64x16");
    char *source = strstr(line, tgl_version()) + strlen(tgl_version()) + 3;
    *source = *source == 'a' ? 'b' : 'a';
    write_text(line);
    assert_string_equal(choice_in_file(1000, kernel), before);
}

/* If the fastest kernel may not be used, for example because of its workspace, the others are not
 * better than a prediction unless the predicted kernel was measured, too. */
static void lines_that_cannot_be_used_hide_slower_ones(void **state)
{
    (void)state;
    char lines[3][600], text[2000], before[TGL_KERNEL_STRING_SIZE], kernel[TGL_KERNEL_STRING_SIZE];
    choice_with(NULL, 1000, before);
    line_of(1000, "gemv_4", "1.5", "burst", lines[0]);
    line_of(1000, "simt_128x64x8", "2.5", "burst", lines[1]);
    line_of(1000, before, "3.5", "burst", lines[2]);
    snprintf(text, sizeof text, "%s%s", lines[0], lines[1]);
    write_text(text);
    assert_string_equal(choice_in_file(1000, kernel), before);
    snprintf(text, sizeof text, "%s%s%s", lines[0], lines[1], lines[2]);
    write_text(text);
    assert_choice(choice_in_file(1000, kernel), 1000, "simt_128x64x8");
}

/* No kernel of another arithmetic is measured. */
static void the_arithmetic_stays_the_same(void **state)
{
    (void)state;
    static const tgl_compute modes[] = {TGL_COMPUTE_IEEE, TGL_COMPUTE_ACCURATE, TGL_COMPUTE_TF32};
    const tgl_chip *h200 = chip_of("h200");
    int exact = 0, rounded = 0;
    for (size_t i = 0; i < COUNT_OF(modes); i++)
        for (int size = 64; size <= 2048; size *= 2) {
            tgl_shape s = shape_of(size, size, size), ieee = s;
            s.compute = modes[i];
            ieee.compute = TGL_COMPUTE_IEEE;
            tgl_request request = request_of(NULL);
            tgl_candidate choice, *list;
            assert_status(tgl_planner_choose(h200, &s, &request, &choice), TGL_OK);
            const bool is_exact = choice.choice.family->unsupported_reason(&ieee, h200) == NULL;
            const int count = tgl_planner_promising(h200, &s, &request, &choice, &list);
            assert_true(count > 3);
            for (int j = 0; j < count; j++)
                assert_int_equal(list[j].choice.family->unsupported_reason(&ieee, h200) == NULL,
                                 is_exact);
            free(list);
            exact += is_exact;
            rounded += !is_exact;
        }
    assert_true(exact > 6 && rounded > 6);
}

/* A line of a kernel of another arithmetic does not change the choice. */
static void a_line_does_not_change_the_arithmetic(void **state)
{
    (void)state;
    static const struct {
        int size;
        tgl_compute compute;
        const char *kernel;
    } cases[] = {{256, TGL_COMPUTE_ACCURATE, "accurate_128x128"},
                 {2048, TGL_COMPUTE_ACCURATE, "simt_128x128x8"},
                 {2048, TGL_COMPUTE_TF32, "simt_128x128x8"}};
    const tgl_chip *h200 = chip_of("h200");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[TGL_KERNEL_STRING_SIZE], before[sizeof text], after[sizeof text];
        tgl_shape s = shape_of(cases[i].size, cases[i].size, cases[i].size);
        s.compute = cases[i].compute;
        const tgl_request named = request_of(cases[i].kernel);
        tgl_request request = request_of(NULL);
        tgl_candidate c, choice;
        tgl_planner_best_of(h200, &s, &named.choice, named.strips, TGL_WORKSPACE_DEFAULT, &c);
        if (c.rejected != NULL) fail_msg("case %zu: %s", i, c.rejected);
        tgl_measured line = measured;
        line.kernel = tgl_candidate_string(&c, text, sizeof text);
        assert_true(tgl_planner_source(h200, &s, &c, line.source));
        assert_status(tgl_planner_choose(h200, &s, &request, &choice), TGL_OK);
        tgl_candidate_string(&choice, before, sizeof before);
        assert_int_not_equal(strncmp(before, cases[i].kernel, 4), 0);
        request.wisdom = open_wisdom();
        tgl_wisdom_add(request.wisdom, &s, &line);
        assert_status(tgl_planner_choose(h200, &s, &request, &choice), TGL_OK);
        assert_string_equal(tgl_candidate_string(&choice, after, sizeof after), before);
        tgl_wisdom_close(request.wisdom);
    }
}

/* The planner's choice comes first, and each kernel string once. None takes more than four times as
 * long as the choice, by the predictions. */
static void candidates_are_ordered(void **state)
{
    (void)state;
    char first[TGL_KERNEL_STRING_SIZE], kernel[TGL_KERNEL_STRING_SIZE], other[sizeof kernel];
    const tgl_shape s = shape_of(1000, 999, 1001);
    const tgl_request request = request_of(NULL);
    tgl_candidate choice, *list;
    assert_status(tgl_planner_choose(chip_of("h200"), &s, &request, &choice), TGL_OK);
    const int count = tgl_planner_promising(chip_of("h200"), &s, &request, &choice, &list);
    assert_true(count > 10);
    assert_string_equal(tgl_candidate_string(&list[0], kernel, sizeof kernel),
                        tgl_candidate_string(&choice, first, sizeof first));
    for (int i = 0; i < count; i++) {
        assert_null(list[i].rejected);
        assert_true(list[i].seconds <= 4 * choice.seconds);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(tgl_candidate_string(&list[i], kernel, sizeof kernel),
                                    tgl_candidate_string(&list[j], other, sizeof other));
    }
    free(list);
}

/* The variants are other kernel strings of the same kernel, each once. Among them are some with
 * other values of each option. */
static void variants_have_another_option(void **state)
{
    (void)state;
    char kernel[TGL_KERNEL_STRING_SIZE], other[sizeof kernel];
    tgl_shape s = shape_of(512, 512, 8192);
    s.type_a = s.type_b = s.type_c = s.type_d = TGL_BF16;
    const tgl_request request = request_of(NULL);
    tgl_candidate choice, *list;
    assert_status(tgl_planner_choose(chip_of("h200"), &s, &request, &choice), TGL_OK);
    const char *const of = "wgmma_128x128:splits=4,exchanged=0,cluster=1";
    const int count = tgl_planner_variants(chip_of("h200"), &s, &request, &choice, of, &list);
    bool seen[4] = {false};
    assert_true(count >= 4);
    for (int i = 0; i < count; i++) {
        tgl_candidate_string(&list[i], kernel, sizeof kernel);
        assert_int_equal(strncmp(kernel, "wgmma_128x128:", 14), 0);
        assert_string_not_equal(kernel, of);
        seen[0] = seen[0] || strstr(kernel, "splits=3") != NULL;
        seen[1] = seen[1] || strstr(kernel, "splits=8") != NULL;
        seen[2] = seen[2] || strstr(kernel, "exchanged=1") != NULL;
        seen[3] = seen[3] || strstr(kernel, "cluster=2") != NULL;
        for (int j = 0; j < i; j++)
            assert_string_not_equal(kernel, tgl_candidate_string(&list[j], other, sizeof other));
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
    free(list);
    assert_int_equal(tgl_planner_variants(chip_of("h200"), &s, &request, &choice, "none", &list),
                     0);
    free(list);
}

/* Without a line for a product, plans are what they are without a wisdom. */
static void an_empty_wisdom_changes_nothing(void **state)
{
    (void)state;
    char line[600], with[TGL_KERNEL_STRING_SIZE], without[TGL_KERNEL_STRING_SIZE];
    const tgl_tuned *row;
    tgl_wisdom *w[2] = {open_wisdom(), NULL};
    write_text(line_of(77, "simt_64x64x16", "1.5", "burst", line));
    w[1] = open_wisdom();
    for (int i = 0; (row = tgl_tuned_at(i)) != NULL; i++)
        for (int j = 0; j < 2; j++) {
            tgl_shape s = shape_of_row(row);
            s.n += i % 3;
            s.ldc = s.ldd = s.n;
            s.ldb = s.trans_b ? s.k : s.n;
            if (s.batch > 1) make_batch(&s, s.batch);
            tgl_request request = request_of(NULL);
            tgl_candidate choice;
            assert_status(tgl_planner_choose(chip_of("h200"), &s, &request, &choice), TGL_OK);
            tgl_candidate_string(&choice, without, sizeof without);
            request.wisdom = w[j];
            assert_status(tgl_planner_choose(chip_of("h200"), &s, &request, &choice), TGL_OK);
            assert_string_equal(tgl_candidate_string(&choice, with, sizeof with), without);
        }
    tgl_wisdom_close(w[0]);
    tgl_wisdom_close(w[1]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_added_is_found_again),
        TEST(numbers_do_not_depend_on_the_locale),
        TEST(a_torn_line_is_skipped_and_ended),
        TEST(other_files_are_not_read),
        TEST(a_file_has_a_limit),
        TEST(settings_choose_the_file),
        TEST(an_untrusted_folder_has_no_wisdom),
        TEST(processes_append_at_the_same_time),
        TEST(a_child_does_not_wait_for_its_parent),
        TEST(the_file_is_read_when_it_is_opened),
        TEST(a_replaced_file_is_read_again),
        TEST(a_renamed_file_is_read_from_its_start),
        TEST(hostile_lines_are_skipped),
        TEST(the_fastest_line_is_chosen),
        TEST(lines_of_other_sources_are_stale),
        TEST(lines_that_cannot_be_used_hide_slower_ones),
        TEST(the_arithmetic_stays_the_same),
        TEST(a_line_does_not_change_the_arithmetic),
        TEST(candidates_are_ordered),
        TEST(variants_have_another_option),
        TEST(an_empty_wisdom_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
