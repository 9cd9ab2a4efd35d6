/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula learn`: exercises in writing kernels, which the simulator checks.
 */
#include "exercises.h"
#include "learn_check.h"
#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: tegula learn [start NAME | check FILE | hint NAME | solution NAME]\n"
    "\n"
    "Exercises in writing fast kernels, without a GPU. An exercise is a kernel with one part left\n"
    "out, and a goal in figures. The simulator compiles and runs your file: results at ragged\n"
    "sizes, races, and then the figures.\n"
    "\n"
    "Without a word it lists the exercises, and which of them the files of this folder solve.\n"
    "\n"
    "  start NAME        write NAME.cu into this folder; the text at its head says what to do\n"
    "  check FILE        check your file: exit code 0 if it solves its exercise, 1 if not\n"
    "  hint NAME         say where to look\n"
    "  solution NAME     print a solution, with the reason\n"
    "\n"
    "Examples:\n"
    "  tegula learn start coalesce\n"
    "  tegula learn check coalesce.cu\n";

static const cli_option option_table[] = {OPTIONS_COMMON, {0}};
static const cli_syntax syntax = {.help = help, .table = option_table, .has_operands = true};

/* ---- Files ----------------------------------------------------------------------------------- */

/* The text of a file, which the caller frees. NULL: errno says why. */
static char *read_source(const char *path)
{
    enum { ROOM = 1 << 20 };
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is read as empty */
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

/* The last part of a path. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Whether the compiler can be given a file of this name: it is a part of its command line and of an
 * #include. */
static bool is_plain(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    const size_t length = strlen(name);
    return length > 3 && length < 100 && name[0] != '.' && name[0] != '-' &&
           strspn(name, letters) == length && strcmp(name + length - 3, ".cu") == 0;
}

/* ---- The words ------------------------------------------------------------------------------- */

static const exercise *find(const char *name)
{
    const exercise *e = exercise_find(name);
    if (e == NULL)
        cli_misuse("there is no exercise \"%s\"; `tegula learn` lists the exercises", name);
    return e;
}

/* "solved", "begun", or "" without a file in this folder. */
static const char *state_of(const exercise *e)
{
    char file[128];
    snprintf(file, sizeof file, "%s.cu", e->name);
    char *source = read_source(file);
    if (source == NULL) return "";
    const char *state = learn_check(e, file, source, true) ? "solved" : "begun";
    free(source);
    return state;
}

static int list(void)
{
    const exercise *e;
    for (int i = 0; (e = exercise_at(i)) != NULL; i++)
        printf("  %-18s %-7s %s\n", e->name, state_of(e), e->title);
    printf("\n`tegula learn start NAME` writes an exercise into this folder.\n");
    return EXIT_DONE;
}

static int start(const char *name)
{
    const exercise *e = find(name);
    if (e == NULL) return EXIT_MISUSE;
    char path[128];
    snprintf(path, sizeof path, "%s.cu", e->name);
    FILE *file = fopen(path, "wxe");
    if (file == NULL && errno == EEXIST)
        return cli_fail("%s exists and is kept; rename it to start again", path);
    if (file == NULL) return cli_fail("cannot write %s: %s", path, strerror(errno));
    const bool ok = fputs(exercise_starter(e), file) >= 0;
    if (fclose(file) != 0 || !ok) return cli_fail("cannot write %s: %s", path, strerror(errno));
    printf("%s: %s. Its head says what to do; then `tegula learn check %s`.\n", path, e->title,
           path);
    return EXIT_DONE;
}

static int check(const char *path)
{
    const char *name = name_of(path);
    if (!is_plain(name))
        return cli_misuse("the file \"%s\" must have a name of letters, digits, '_', '-' and '.' "
                          "that ends with .cu",
                          path);
    char *source = read_source(path);
    if (source == NULL) return cli_fail("cannot read %s: %s", path, strerror(errno));
    const exercise *e = exercise_of(source);
    int code;
    if (e == NULL) {
        code = cli_fail("%s names no exercise: keep the line \"Exercise NAME:\" of its head", path);
    } else if (learn_check(e, name, source, false)) {
        puts("solved");
        if (e->rung != NULL)
            printf("the ladder does the same in its rung %s (docs/ladder.md)\n", e->rung);
        code = EXIT_DONE;
    } else {
        printf("not solved; `tegula learn hint %s` helps\n", e->name);
        code = EXIT_FAILED;
    }
    free(source);
    return code;
}

static int hint(const char *name)
{
    const exercise *e = find(name);
    if (e == NULL) return EXIT_MISUSE;
    puts(e->hint);
    return EXIT_DONE;
}

static int solution(const char *name)
{
    const exercise *e = find(name);
    if (e == NULL) return EXIT_MISUSE;
    fputs(exercise_solution(e), stdout);
    return EXIT_DONE;
}

/* ---- The command ----------------------------------------------------------------------------- */

static const struct {
    const char *word, *operand;
    int (*run)(const char *operand);
} words[] = {
    {"start", "NAME", start},
    {"check", "FILE", check},
    {"hint", "NAME", hint},
    {"solution", "NAME", solution},
};
enum { WORDS = sizeof words / sizeof words[0] };

int command_learn(int argc, char **argv)
{
    int unused;
    const int code = cli_parse(argc, argv, &syntax, &unused);
    if (code != PARSED) return code;
    const int count = argc - optind;
    if (count == 0) return list();
    for (int i = 0; i < WORDS; i++) {
        if (strcmp(argv[optind], words[i].word) != 0) continue;
        if (count != 2) return cli_misuse("%s takes one %s", words[i].word, words[i].operand);
        return words[i].run(argv[optind + 1]);
    }
    return cli_misuse("there is no \"learn %s\"; it takes start, check, hint or solution",
                      argv[optind]);
}
