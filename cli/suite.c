/* SPDX-License-Identifier: Apache-2.0
 *
 * Suites of shapes.
 */
#include "suite.h"
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool suite_add(suite *s, tgl_type type, int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b,
               int64_t batch)
{
    tgl_problem *larger = realloc(s->problems, (size_t)(s->count + 1) * sizeof *larger);
    if (larger == NULL) {
        cli_fail("no memory for the suite");
        return false;
    }
    s->problems = larger;
    tgl_problem *p = &larger[s->count++];
    *p = cli_problem(type, m, n, k);
    p->trans_a = trans_a ? TGL_TRANS : TGL_NO_TRANS;
    p->trans_b = trans_b ? TGL_TRANS : TGL_NO_TRANS;
    p->batch = batch;
    if (batch > 1 && m < INT32_MAX && n < INT32_MAX && k < INT32_MAX) {
        p->stride_a = m * k;
        p->stride_b = k * n;
        p->stride_c = m * n;
    }
    return true;
}

bool suite_add_default(suite *s, tgl_type type)
{
    static const int sizes[] = {64, 128, 256, 512, 1000, 1024, 2048};
    for (tgl_type t = TGL_F32; t <= TGL_F64; t++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            if ((type == 0 || type == t) &&
                !suite_add(s, t, sizes[i], sizes[i], sizes[i], false, false, 1))
                return false;
    return true;
}

void suite_free(suite *s)
{
    free(s->problems);
    *s = (suite){0};
}

const char *suite_layout(const tgl_problem *p)
{
    const bool a = p->trans_a != TGL_NO_TRANS, b = p->trans_b != TGL_NO_TRANS;
    return a ? (b ? "TT" : "TN") : (b ? "NT" : "NN");
}

double suite_flops(const tgl_problem *p)
{
    return 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)p->batch;
}

/* ---- Files ----------------------------------------------------------------------------------- */

enum { FIELDS = 6 };

/* Splits at commas, in place, and takes blanks away. Returns the number of fields, FIELDS at most;
 * one more if there are too many. */
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

/* A size of a shape, at least 1; products of three must fit 63 bits easily. */
static bool read_size(const char *text, int64_t *size)
{
    char *end;
    errno = 0;
    *size = strtoll(text, &end, 10);
    return isdigit((unsigned char)*text) && *end == '\0' && errno == 0 && *size >= 1 &&
           *size <= INT32_MAX;
}

/* Adds the shape of one line. Returns what is wrong with it, or NULL. */
static const char *read_line(suite *s, char *line, tgl_type wanted)
{
    char *fields[FIELDS];
    if (split(line, fields) != FIELDS) return "a line has six fields: type,m,n,k,layout,batch";
    const tgl_type type = strcmp(fields[0], "f32") == 0   ? TGL_F32
                          : strcmp(fields[0], "f64") == 0 ? TGL_F64
                                                          : 0;
    if (type == 0) return "the type is neither f32 nor f64";
    int64_t m, n, k, batch;
    if (!read_size(fields[1], &m) || !read_size(fields[2], &n) || !read_size(fields[3], &k) ||
        !read_size(fields[5], &batch))
        return "a size is not a whole number from 1 to 2147483647";
    const char *layout = fields[4];
    if (strlen(layout) != 2 || strchr("NT", layout[0]) == NULL || strchr("NT", layout[1]) == NULL)
        return "the layout is none of NN, NT, TN and TT";
    if (wanted != 0 && wanted != type) return NULL;
    const bool added = suite_add(s, type, m, n, k, layout[0] == 'T', layout[1] == 'T', batch);
    return added ? NULL : "no memory";
}

/* Takes the line's end and a comment away, in place. Returns what is wrong with its bytes, or NULL:
 * what is behind them would be skipped. */
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
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        cli_fail("cannot read the suite %s: %s", path, strerror(errno));
        return false;
    }
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
    if (wrong == NULL && s->count == 0) cli_fail("%s has no shape to run", path);
    return wrong == NULL && s->count > 0;
}
