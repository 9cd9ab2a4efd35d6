/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads suites of shapes.
 */
#include "suite.h"
#include "cli.h"
#include "elements.h"
#include "problem_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool suite_add(suite *s, const tgl_problem *problem)
{
    tgl_problem *larger = realloc(s->problems, (size_t)(s->count + 1) * sizeof *larger);
    if (larger == NULL) return cli_fail_false("no memory for the suite");
    s->problems = larger;
    larger[s->count++] = *problem;
    return true;
}

bool suite_add_default(suite *s, tgl_type type)
{
    static const int sizes[] = {64, 128, 256, 512, 1000, 1024, 2048};
    const tgl_type types[] = {type != 0 ? type : TGL_F32, TGL_F64};
    for (int t = 0; t < (type != 0 ? 1 : 2); t++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            const tgl_problem p = cli_problem(types[t], sizes[i], sizes[i], sizes[i]);
            if (!suite_add(s, &p)) return false;
        }
    return true;
}

void suite_free(suite *s)
{
    free(s->problems);
    free(s->epilogues);
    *s = (suite){0};
}

/* ---- Files ----------------------------------------------------------------------------------- */

enum { FIELDS = 6 };

/* Splits a line in place at its commas, and removes blanks around each field. Returns the number of
 * fields; FIELDS + 1 if there are more than FIELDS. */
static int split(char *line, char *fields[FIELDS])
{
    int count = 0;
    for (char *rest = line, *field; (field = strsep(&rest, ",")) != NULL; count++) {
        if (count == FIELDS) return FIELDS + 1;
        while (isspace((unsigned char)*field))
            field++;
        for (char *end = field + strlen(field); end > field && isspace((unsigned char)end[-1]);)
            *--end = '\0';
        fields[count] = field;
    }
    return count;
}

/* Reads one size of a shape. False: the text is not a whole number from 1 to INT32_MAX. */
static bool read_size(const char *text, int64_t *size)
{
    char *end;
    errno = 0;
    *size = strtoll(text, &end, 10);
    return isdigit((unsigned char)*text) && *end == '\0' && errno == 0 && *size >= 1 &&
           *size <= INT32_MAX;
}

/* Reads the types "f32", "tf32" or "f16-f32" into *p, which the caller has initialised for f32.
 * False: the text names no known type. */
static bool read_types(const char *text, tgl_problem *p)
{
    char first[8];
    tgl_type type = TGL_F32;
    const size_t length = strcspn(text, "-");
    if (length >= sizeof first) return false;
    snprintf(first, sizeof first, "%.*s", (int)length, text);
    if (strcmp(first, "tf32") == 0)
        p->compute = TGL_COMPUTE_TF32;
    else if (!element_type_of(first, &type))
        return false;
    p->type_a = p->type_b = type;
    p->type_c = problem_usual_result(type);
    return text[length] == '\0' || element_type_of(text + length + 1, &p->type_c);
}

/* Adds the shape of one line to the suite if A has type `wanted`, or if `wanted` is 0. Returns
 * NULL, or what is wrong with the line. */
static const char *read_line(suite *s, char *line, tgl_type wanted)
{
    char *fields[FIELDS];
    if (split(line, fields) != FIELDS) return "a line has six fields: type,m,n,k,layout,batch";
    tgl_problem p = cli_problem(TGL_F32, 0, 0, 0);
    if (!read_types(fields[0], &p))
        return "the type is none of f32, f64, f16, bf16, e4m3, e5m2, i8, c64, c128 and tf32, or "
               "one with "
               "another for C "
               "behind a '-': f16-f32";
    if (!read_size(fields[1], &p.m) || !read_size(fields[2], &p.n) || !read_size(fields[3], &p.k) ||
        !read_size(fields[5], &p.batch))
        return "a size is not a whole number from 1 to 2147483647";
    const char *layout = fields[4];
    if (strlen(layout) != 2 || strchr("NT", layout[0]) == NULL || strchr("NT", layout[1]) == NULL)
        return "the layout is none of NN, NT, TN and TT";
    if (layout[0] == 'T') p.trans_a = TGL_TRANS;
    if (layout[1] == 'T') p.trans_b = TGL_TRANS;
    if (p.batch > 1) problem_set_strides(&p);
    if (wanted != 0 && wanted != p.type_a) return NULL;
    return suite_add(s, &p) ? NULL : "no memory";
}

/* Removes the line's end and its comment, in place. Returns NULL, or what is wrong with the bytes
 * of the line: the text after a NUL byte or a carriage return would be ignored silently. */
static const char *trim(char *line, size_t length)
{
    if (length > 0 && line[length - 1] == '\n') length--;
    if (length > 0 && line[length - 1] == '\r') length--;
    line[length] = '\0';
    if (strlen(line) < length) return "the line has a NUL byte: it is no text, or UTF-16";
    if (strchr(line, '\r') != NULL)
        return "the line has a carriage return inside: lines end in LF or CR LF, not in CR";
    line[strcspn(line, "#")] = '\0';
    return NULL;
}

bool suite_read(suite *s, const char *path, tgl_type type)
{
    const tgl_problem asked = cli_problem(type != 0 ? type : TGL_F32, 1, 1, 1);
    FILE *file = fopen(path, "r");
    if (file == NULL) return cli_fail_false("cannot read the suite %s: %s", path, strerror(errno));
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    const char *wrong = NULL;
    for (int number = 1; wrong == NULL && (length = getline(&line, &size, file)) >= 0; number++) {
        wrong = trim(line, (size_t)length);
        if (wrong == NULL && line[strspn(line, " \t")] != '\0') wrong = read_line(s, line, type);
        if (wrong != NULL) cli_fail("%s:%d: %s", path, number, wrong);
    }
    free(line);
    if (wrong == NULL && ferror(file)) {
        wrong = "unreadable";
        cli_fail("cannot read the suite %s: %s", path, strerror(errno));
    }
    fclose(file);
    if (wrong == NULL && s->count == 0 && type != 0)
        cli_fail("%s has no shape of %s, which is what was looked for; --type names another type",
                 path, problem_type_label(&asked).text);
    else if (wrong == NULL && s->count == 0)
        cli_fail("%s has no shape to run", path);
    return wrong == NULL && s->count > 0;
}
