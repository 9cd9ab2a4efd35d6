/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the lines of a trace; trace_line.h has the text by which they are recognised.
 */
#include "trace_file.h"
#include "cli.h"
#include "elements.h"
#include "problem_options.h"
#include "trace_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads the number after " name=" in the line. False: the line has no such number from 0 to
 * INT64_MAX. */
static bool read_number(const char *line, const char *name, int64_t *value)
{
    char key[16], *end;
    snprintf(key, sizeof key, " %s=", name);
    const char *at = strstr(line, key);
    if (at == NULL) return false;
    at += strlen(key);
    errno = 0;
    *value = strtoll(at, &end, 10);
    return *at >= '0' && *at <= '9' && errno == 0 && (*end == ' ' || *end == ':' || *end == ',');
}

/* Reads the types of A, B and D from the word before " compute=". */
static bool read_types(const char *line, tgl_problem *p)
{
    char words[3][8];
    const char *end = strstr(line, " compute="), *at = end;
    if (end == NULL) return false;
    while (at > line && at[-1] != ' ')
        at--;
    if (sscanf(at, "%7[a-z0-9],%7[a-z0-9],%7[a-z0-9]", words[0], words[1], words[2]) != 3)
        return false;
    return element_type_of(words[0], &p->type_a) && element_type_of(words[1], &p->type_b) &&
           element_type_of(words[2], &p->type_c);
}

static bool read_strides(const char *line, tgl_problem *p)
{
    long long a, b, d;
    const char *at = strstr(line, " stride=");
    if (p->batch == 1) return true;
    if (at == NULL || sscanf(at, " stride=%lld,%lld,%lld", &a, &b, &d) != 3) return false;
    p->stride_a = a, p->stride_b = b, p->stride_c = d;
    return true;
}

static void read_epilogue(const char *line, tgl_epilogue *e)
{
    *e = (tgl_epilogue){.size = sizeof *e};
    if (strstr(line, " bias") != NULL) e->bias = TGL_BIAS_ROW;
    if (strstr(line, " relu") != NULL || strstr(line, ",relu") != NULL)
        e->activation = TGL_ACTIVATION_RELU;
    if (strstr(line, " gelu") != NULL || strstr(line, ",gelu") != NULL)
        e->expression = trace_line_gelu;
}

/* For real types the conjugate transpose 'C' is read as the transpose: both are the same matrix,
 * and one plan serves both. */
static tgl_transpose transpose_of(char letter, tgl_type type)
{
    if (letter == 'N') return TGL_NO_TRANS;
    return letter == 'C' && element_parts(type) == 2 ? TGL_CONJ_TRANS : TGL_TRANS;
}

/* Reads the letters of transA and transB, which precede " m=". The types of *p must be set. */
static bool read_transposes(const char *line, tgl_problem *p)
{
    const char *at = strstr(line, " m=");
    if (at == NULL || at - line < 3 || at[-3] != ' ' || strchr("NTC", at[-2]) == NULL ||
        strchr("NTC", at[-1]) == NULL)
        return false;
    p->trans_a = transpose_of(at[-2], p->type_a);
    p->trans_b = transpose_of(at[-1], p->type_b);
    return true;
}

/* Reads a line of a trace up to the colon that ends the description. False: the line describes no
 * product, or one that a plan cannot be made for. */
static bool read_line(char *line, tgl_problem *p, tgl_epilogue *e)
{
    char *end = strstr(line, trace_line_tegula);
    if (end == NULL) end = strstr(line, trace_line_left);
    *p = cli_problem(TGL_F32, 1, 1, 1);
    if (strncmp(line, trace_line_start, strlen(trace_line_start)) != 0 || end == NULL) return false;
    end[1] = '\0'; /* ends the line behind the colon */
    p->order = TGL_COL_MAJOR;
    if (strstr(line, " pointers") != NULL || strstr(line, " separate-c") != NULL ||
        strstr(line, " scales=") != NULL)
        return false;
    if (!read_number(line, "m", &p->m) || !read_number(line, "n", &p->n) ||
        !read_number(line, "k", &p->k) || !read_number(line, "lda", &p->lda) ||
        !read_number(line, "ldb", &p->ldb) || !read_number(line, "ldc", &p->ldc) ||
        !read_number(line, "batch", &p->batch) || !read_types(line, p) ||
        !read_transposes(line, p) || !read_strides(line, p))
        return false;
    if (strstr(line, " mode=ieee") != NULL) p->compute = TGL_COMPUTE_IEEE;
    if (strstr(line, " mode=tf32") != NULL) p->compute = TGL_COMPUTE_TF32;
    if (strstr(line, " mode=fast") != NULL) p->compute = TGL_COMPUTE_FAST;
    if (strstr(line, " device-scalars") != NULL) p->scalars = TGL_SCALARS_DEVICE;
    read_epilogue(line, e);
    return tgl_problem_check(p) == TGL_OK;
}

static bool is_same(const suite *s, int i, const tgl_problem *p, const tgl_epilogue *e)
{
    const tgl_problem *q = &s->problems[i];
    const tgl_epilogue *f = &s->epilogues[i];
    return q->m == p->m && q->n == p->n && q->k == p->k && q->batch == p->batch &&
           q->trans_a == p->trans_a && q->trans_b == p->trans_b && q->type_a == p->type_a &&
           q->type_b == p->type_b && q->type_c == p->type_c && q->compute == p->compute &&
           q->scalars == p->scalars && q->lda == p->lda && q->ldb == p->ldb && q->ldc == p->ldc &&
           q->stride_a == p->stride_a && q->stride_b == p->stride_b && q->stride_c == p->stride_c &&
           f->bias == e->bias && f->activation == e->activation && f->expression == e->expression;
}

/* Adds a product to the suite unless it is there already. False: out of memory, and the error has
 * been printed. */
static bool add(suite *s, const tgl_problem *p, const tgl_epilogue *e)
{
    for (int i = 0; i < s->count; i++)
        if (is_same(s, i, p, e)) return true;
    tgl_epilogue *larger = realloc(s->epilogues, (size_t)(s->count + 1) * sizeof *larger);
    if (larger == NULL) return cli_fail_false("no memory for the trace");
    s->epilogues = larger;
    s->epilogues[s->count] = *e;
    return suite_add(s, p);
}

bool trace_read(suite *s, const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) return cli_fail_false("cannot read the trace %s: %s", path, strerror(errno));
    char *line = NULL;
    size_t size = 0;
    bool done = true;
    tgl_problem p;
    tgl_epilogue e;
    while (done && getline(&line, &size, file) >= 0)
        if (read_line(line, &p, &e)) done = add(s, &p, &e);
    free(line);
    if (done && ferror(file))
        done = cli_fail_false("cannot read the trace %s: %s", path, strerror(errno));
    fclose(file);
    if (done && s->count == 0)
        done = cli_fail_false("%s has no product of Tegula: is it the trace of a program with "
                              "TEGULA_CUBLAS_TRACE=1?",
                              path);
    return done;
}
