/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula learn`: exercises in writing kernels, which the simulator checks.
 */
#include "exercises.h"
#include "learn_check.h"
#include "learn_source.h"
#include "options.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: tegula learn [start NAME | check FILE | hint NAME [NUMBER] | solution NAME] [OPTIONS]\n"
    "\n"
    "Exercises in writing fast kernels, without a GPU. An exercise is a kernel with one part left\n"
    "out, and a goal in figures. The simulator compiles and runs your file: results at ragged\n"
    "sizes, races, and then the figures.\n"
    "\n"
    "Without a word it lists the exercises, and which of them the files of a folder solve. It "
    "finds\n"
    "a file by the line \"Exercise NAME:\" of its head.\n"
    "\n"
    "  start NAME         write NAME.cu; the text at its head says what to do\n"
    "  check FILE         check your file: exit code 0 if it solves its exercise, 1 if not\n"
    "  hint NAME NUMBER   a hint; number 1 is a question, later ones say more\n"
    "  solution NAME      print a solution, with the reason\n"
    "\n"
    "FILE may be the name of an exercise, for NAME.cu, and NAME may be your file.\n"
    "\n"
    "Options:\n"
    "  --folder DIR       the folder of your files; this one by default\n"
    "  --device cuda      check: run the kernel on a GPU, and time it beside the ladder's\n"
    "  --size N           m, n and k of the product that is timed (2048)\n"
    "\n"
    "Examples:\n"
    "  tegula learn start coalesce\n"
    "  tegula learn check coalesce.cu\n";

typedef struct learn_options {
    const char *folder, *device;
    int64_t size;
} learn_options;

static const cli_option option_table[] = {OPTIONS_COMMON,
                                          OPTION_TEXT(learn_options, folder, "folder"),
                                          OPTION_TEXT(learn_options, device, "device"),
                                          OPTION_INT(learn_options, size, "size", 1, 16384),
                                          {0}};
static const cli_syntax syntax = {.help = help, .table = option_table, .has_operands = true};

enum { PATH_SIZE = 4096 };

/* ---- Files ----------------------------------------------------------------------------------- */

/* The text of a file, up to 1 MB, which the caller frees. NULL: failed, and errno says why. */
static char *read_source(const char *path)
{
    enum { ROOM = 1 << 20 };
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* with O_NONBLOCK, a named pipe
                                                                     without a writer reads as
                                                                     empty */
    FILE *file = fd >= 0 ? fdopen(fd, "rb") : NULL;
    if (file == NULL) return NULL;
    char *text = calloc(1, ROOM);
    const size_t size = text != NULL ? fread(text, 1, ROOM, file) : 0;
    const bool failed = text == NULL || ferror(file);
    fclose(file);
    if (!failed && size < ROOM) return text;
    if (!failed) errno = EFBIG;
    free(text);
    return NULL;
}

/* The part of a path after its last slash. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Whether the name ends in ".cu" and has only characters that need no quoting: it becomes a part of
 * the compiler's command line and of an #include. */
static bool is_plain(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    const size_t length = strlen(name);
    return length > 3 && length < 100 && name[0] != '.' && name[0] != '-' &&
           strspn(name, letters) == length && strcmp(name + length - 3, ".cu") == 0;
}

/* Writes the path of the file of an exercise in a folder. */
static void path_of(const char *folder, const exercise *e, char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%s/%s.cu", folder, e->name);
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* The exercise that a file names in its line "Exercise NAME:". NULL: the file cannot be read, or
 * names no exercise or several. */
static const exercise *exercise_of_file(const char *path)
{
    char why[512];
    char *source = read_source(path);
    const exercise *e = source != NULL ? learn_exercise_of(source, why, sizeof why) : NULL;
    free(source);
    return e;
}

/* The exercise that a word of the command line means: the name of an exercise, or a file NAME.cu. A
 * file means the exercise that its line "Exercise NAME:" names or, without such a line, the
 * exercise NAME. NULL: there is none, and the error has been printed. */
static const exercise *find(const char *word)
{
    char stem[128];
    const exercise *e = exercise_find(word);
    if (e == NULL && is_plain(name_of(word))) {
        const char *name = name_of(word);
        snprintf(stem, sizeof stem, "%.*s", (int)strlen(name) - 3, name);
        e = exercise_of_file(word);
        if (e == NULL) e = exercise_find(stem);
    }
    if (e == NULL)
        cli_misuse("there is no exercise \"%s\"; `tegula learn` lists the exercises", word);
    return e;
}

/* ---- The list -------------------------------------------------------------------------------- */

static int is_source(const struct dirent *entry)
{
    return is_plain(entry->d_name);
}

/* The state of the exercise in a file: "solved" or "begun"; "" if the file is for another exercise
 * or for none. */
static const char *state_of_file(const exercise *e, const char *folder, const char *name)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (exercise_of_file(path) != e) return "";
    char *source = read_source(path);
    const char *state =
        source != NULL && learn_check(e, name, source, "sim", 0, true) ? "solved" : "begun";
    free(source);
    return state;
}

/* Prints an exercise and its state in the files of a folder: "solved" if one of them solves it. */
static void list_exercise(const exercise *e, const char *folder, struct dirent *const *files,
                          int count)
{
    const char *state = "", *name = "";
    for (int i = 0; i < count && strcmp(state, "solved") != 0; i++) {
        const char *found = state_of_file(e, folder, files[i]->d_name);
        if (found[0] == '\0') continue;
        state = found;
        name = files[i]->d_name;
    }
    printf("  %-18s %-7s %s", e->name, state, e->title);
    if (name[0] != '\0') printf(" (%s)", name);
    puts("");
    fflush(stdout);
}

/* Whether the simulator, which checks files, can be opened. False: no, and the error has been
 * printed. */
static bool has_simulator(void)
{
    int code;
    tgl_device *dev = cli_open_device("sim", 1, &code);
    tgl_device_close(dev);
    return dev != NULL;
}

static int list(const learn_options *options)
{
    struct dirent **files = NULL;
    const exercise *e;
    const int count = scandir(options->folder, &files, is_source, alphasort);
    if (count < 0) return cli_fail("cannot read %s: %s", options->folder, strerror(errno));
    const bool can_check = count == 0 || has_simulator();
    for (int i = 0; can_check && (e = exercise_at(i)) != NULL; i++)
        list_exercise(e, options->folder, files, count);
    for (int i = 0; i < count; i++)
        free(files[i]);
    free(files);
    if (!can_check) return EXIT_FAILED;
    printf("\n`tegula learn start NAME` writes an exercise into this folder.\n");
    return EXIT_DONE;
}

/* ---- The words ------------------------------------------------------------------------------- */

static int start(const learn_options *options, const char *word, const char *unused)
{
    (void)unused;
    const exercise *e = find(word);
    if (e == NULL) return EXIT_MISUSE;
    char path[PATH_SIZE];
    path_of(options->folder, e, path);
    const char *shown = strcmp(options->folder, ".") == 0 ? path + 2 : path;
    FILE *file = fopen(path, "wxe");
    if (file == NULL && errno == EEXIST)
        return cli_fail("%s exists and is kept; rename it to start again", shown);
    if (file == NULL) return cli_fail("cannot write %s: %s", shown, strerror(errno));
    const bool ok = fputs(exercise_starter(e), file) >= 0;
    if (fclose(file) != 0 || !ok) return cli_fail("cannot write %s: %s", shown, strerror(errno));
    printf("%s: %s. Its head says what to do; then `tegula learn check %s`.\n", shown, e->title,
           shown);
    return EXIT_DONE;
}

/* Checks a file whose text has been read, and prints the result. Returns an exit code. */
static int check_source(const char *path, const char *source, const learn_options *options)
{
    char why[512];
    const exercise *e = learn_exercise_of(source, why, sizeof why);
    if (e == NULL) return cli_fail("%s %s", path, why);
    const bool is_ok =
        learn_check(e, name_of(path), source, options->device, (int)options->size, false);
    if (strcmp(options->device, "sim") != 0) return is_ok ? EXIT_DONE : EXIT_FAILED;
    if (!is_ok) {
        printf("not solved; `tegula learn hint %s` helps\n", e->name);
        return EXIT_FAILED;
    }
    puts("solved");
    if (e->rung != NULL)
        printf("the ladder does the same in its rung %s (docs/ladder.md)\n", e->rung);
    return EXIT_DONE;
}

static int check(const learn_options *options, const char *word, const char *unused)
{
    (void)unused;
    char path[PATH_SIZE];
    const exercise *e = exercise_find(word);
    if (e != NULL)
        path_of(options->folder, e, path);
    else if (snprintf(path, sizeof path, "%s", word) >= PATH_SIZE || !is_plain(name_of(word)))
        return cli_misuse("\"%s\" is no exercise, and no file with a name of letters, digits, '_', "
                          "'-' and '.' that ends with .cu",
                          word);
    char *source = read_source(path);
    if (source == NULL) return cli_fail("cannot read %s: %s", path, strerror(errno));
    const int code = check_source(path, source, options);
    free(source);
    return code;
}

static int hint(const learn_options *options, const char *word, const char *number)
{
    (void)options;
    const exercise *e = find(word);
    int64_t at = 1, count = 0;
    while (count < HINTS_MAX && e != NULL && e->hints[count] != NULL)
        count++;
    if (e == NULL || (number != NULL && !cli_parse_int("hint", number, 1, count, &at)))
        return EXIT_MISUSE;
    puts(e->hints[at - 1]);
    if (at < count)
        printf("\n`tegula learn hint %s %d` says more.\n", e->name, (int)at + 1);
    else
        printf("\nThis was the last hint; there is `tegula learn solution %s`.\n", e->name);
    return EXIT_DONE;
}

static int solution(const learn_options *options, const char *word, const char *unused)
{
    (void)options, (void)unused;
    const exercise *e = find(word);
    if (e == NULL) return EXIT_MISUSE;
    fputs(exercise_solution(e), stdout);
    return EXIT_DONE;
}

/* ---- The command ----------------------------------------------------------------------------- */

static const struct {
    const char *word, *operand;
    int operands_max;
    int (*run)(const learn_options *options, const char *operand, const char *second);
} words[] = {
    {"start", "NAME", 1, start},
    {"check", "FILE", 1, check},
    {"hint", "NAME, and may take a number", 2, hint},
    {"solution", "NAME", 1, solution},
};
enum { WORDS = sizeof words / sizeof words[0] };

int command_learn(int argc, char **argv)
{
    learn_options options = {.folder = ".", .device = "sim", .size = 2048};
    const int code = cli_parse(argc, argv, &syntax, &options);
    if (code != PARSED) return code;
    if (strcmp(options.device, "sim") != 0 && strncmp(options.device, "cuda", 4) != 0)
        return cli_misuse("--device: a check runs on sim, cuda, cuda:0 and so on");
    const int count = argc - optind - 1;
    char **word = argv + optind;
    if (count < 0) return list(&options);
    for (int i = 0; i < WORDS; i++) {
        if (strcmp(word[0], words[i].word) != 0) continue;
        if (count < 1 || count > words[i].operands_max)
            return cli_misuse("%s takes one %s", words[i].word, words[i].operand);
        return words[i].run(&options, word[1], count > 1 ? word[2] : NULL);
    }
    return cli_misuse("there is no \"learn %s\"; it takes start, check, hint or solution", word[0]);
}
