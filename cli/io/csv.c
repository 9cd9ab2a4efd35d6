/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV files.
 */
#include "csv.h"
#include "cli.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char *no_words[] = {NULL};
static char **command_words = no_words;

void csv_set_command(char **words)
{
    command_words = words;
}

/* Environment variables that change how Tegula, or a library that it is compared with, computes. */
static const char *const variables[] = {"TEGULA_CPU",        "TEGULA_COMPUTE",
                                        "OPENBLAS_CORETYPE", "BLIS_ARCH_TYPE",
                                        "DNNL_MAX_CPU_ISA",  "MKL_ENABLE_INSTRUCTIONS"};
/* The device properties that the first line of a file of results includes. */
static const char *const keys[] = {"driver", "chip", "processor", "model"};

/* Writes a word, quoted for a shell if necessary. Control characters become '?', because the
 * comment that contains the word must be a single line. */
static void put_word(FILE *file, const char *word)
{
    bool is_plain = word[0] != '\0';
    for (const char *c = word; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("-_./:=,+@%", *c) == NULL) is_plain = false;
    const char *quote = is_plain ? "" : "'";
    fputs(quote, file);
    for (; *word != '\0'; word++)
        if (*word == '\'')
            fputs("'\\''", file);
        else
            fputc(iscntrl((unsigned char)*word) ? '?' : *word, file);
    fputs(quote, file);
}

static void put_command(FILE *file)
{
    fputs("command:", file);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i]);
        if (value == NULL || value[0] == '\0') continue;
        fprintf(file, " %s=", variables[i]);
        put_word(file, value);
    }
    fputs(" tegula", file);
    for (char **word = command_words; *word != NULL; word++) {
        fputc(' ', file);
        put_word(file, *word);
    }
}

const char *csv_commit(void)
{
    const char *commit = tegula_commit[0] != '\0' ? tegula_commit : getenv("TEGULA_COMMIT");
    return commit != NULL ? commit : "unknown";
}

void csv_put_origin(FILE *file, const tgl_device *dev)
{
    char date[16];
    const time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &utc));
    fprintf(file, "# commit: %s; date: %s; ", csv_commit(), date);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *value = cli_device_property(dev, keys[i]);
        if (value[0] != '\0') fprintf(file, "%s: %s; ", keys[i], value);
    }
    put_command(file);
    fputc('\n', file);
}

void csv_put_text(FILE *file, const char *text)
{
    if (strpbrk(text, ",\"\n") == NULL) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"') fputc('"', file);
        fputc(*text, file);
    }
    fputc('"', file);
}
