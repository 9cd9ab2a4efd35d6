/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the ladder's page. A rung is one of the kernels of the ladder.
 */
#include "ladder_page.h"
#include "cli.h"
#include "page_files.h"

#include <stdlib.h>
#include <string.h>

/* ---- Parts ----------------------------------------------------------------------------------- */

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* The text of the embedded file `name`, which must exist. */
static const char *text_of(const char *name)
{
    const page_file *file = page_files;
    while (strcmp(file->name, name) != 0)
        file++;
    return file->text;
}

/* Writes the rest of page.html up to `mark`, which must occur in it, and skips the mark. */
static void write_up_to(ladder_page *page, const char *mark)
{
    const char *end = strstr(page->rest, mark);
    fwrite(page->rest, 1, (size_t)(end - page->rest), page->file.stream);
    page->rest = end + strlen(mark);
}

/* Writes a text as a JSON string. '<' is escaped too, because "</script" in a text would end the
 * HTML element that holds the JSON. */
static void put_string(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text != '\0'; text++)
        if (*text == '\n')
            fputs("\\n", to);
        else if ((unsigned char)*text < ' ' || *text == '<')
            fprintf(to, "\\u%04x", (unsigned)*text);
        else if (*text == '"' || *text == '\\')
            fprintf(to, "\\%c", *text);
        else
            fputc(*text, to);
    fputc('"', to);
}

/* ---- Rungs ----------------------------------------------------------------------------------- */

static bool put_trace(FILE *to, const rung *x)
{
    const size_t size = tgl_plan_trace(x->plan, NULL, 0) + 1;
    char *text = malloc(size);
    if (text == NULL) return cli_fail_false("no memory for what the simulator recorded");
    tgl_plan_trace(x->plan, text, size);
    fputs(text, to);
    free(text);
    return true;
}

static bool put_rung(ladder_page *page, const ladder_report *r, const ladder_size *s, const rung *x)
{
    FILE *to = page->file.stream;
    fprintf(to, "%s\n{\"chapter\":%d,\"number\":%d,\"name\":", page->rungs++ > 0 ? "," : "",
            r->settings->chapter->number, x->number);
    put_string(to, x->name);
    fputs(",\"counts\":\"", to);
    ladder_report_put_counts(r, s, x, to);
    fputs("\",\"trace\":", to);
    const bool ok = put_trace(to, x);
    fputs("}", to);
    return ok;
}

bool ladder_page_add(ladder_page *page, const ladder_report *r, const ladder_size *s)
{
    for (int i = 0; i < s->count; i++)
        if (s->rungs[i].plan != NULL && !put_rung(page, r, s, &s->rungs[i])) return false;
    return true;
}

/* ---- The page -------------------------------------------------------------------------------- */

bool ladder_page_open(ladder_page *page, const char *path)
{
    *page = (ladder_page){.rest = text_of("ladder/page.html")};
    if (!output_file_open(&page->file, path)) return false;
    write_up_to(page, "{{style}}");
    fputs(text_of("ladder/page.css"), page->file.stream);
    write_up_to(page, "{{data}}");
    fprintf(page->file.stream, "{\"columns\":\"%s\",\n\"rungs\":[", ladder_counted_columns);
    return true;
}

/* Writes the JSON of the embedded files: the sources by name, and the tables of speeds. */
static void put_files(FILE *to)
{
    const char *separator = "";
    fputs("],\n\"files\":{", to);
    for (const page_file *f = page_files; f->name != NULL; f++) {
        if (strstr(f->name, ".cu") == NULL) continue;
        fprintf(to, "%s\n\"%s\":", separator, f->name);
        put_string(to, f->text);
        separator = ",";
    }
    separator = "";
    fputs("},\n\"speeds\":[", to);
    for (const page_file *f = page_files; f->name != NULL; f++) {
        if (!begins_with(f->name, "results/")) continue;
        fputs(separator, to);
        put_string(to, f->text);
        separator = ",\n";
    }
    fputs("]}", to);
}

int ladder_page_finish(ladder_page *page, int code)
{
    if (code == EXIT_DONE) {
        put_files(page->file.stream);
        write_up_to(page, "{{script}}");
        fputs(text_of("ladder/page.js"), page->file.stream);
        fputs(page->rest, page->file.stream);
        return output_file_commit(&page->file) ? EXIT_DONE : EXIT_FAILED;
    }
    output_file_close(&page->file);
    return code;
}
