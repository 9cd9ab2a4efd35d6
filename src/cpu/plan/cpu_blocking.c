/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of measured blockings, and the options of kernel strings.
 */
#include "cpu/plan/cpu_blocking.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* Columns: model of the processor, tier, type, blocking. */
const cpu_tuned tgl_cpu_tuned_rows[] = {
#include "cpu/plan/tuned_cpu.inc"
    {NULL, NULL, TGL_F32, {0, 0}},
};

cpu_blocking tgl_cpu_find_blocking(const cpu_tuned *rows, const cpu_facts *facts,
                                   const cpu_tier *tier, tgl_type type)
{
    for (const cpu_tuned *row = rows; row->model != NULL; row++)
        if (row->type == type && strcmp(row->model, facts->model) == 0 &&
            (strcmp(row->tier, tier->name) == 0 ||
             (tier->base != NULL && strcmp(row->tier, tier->base) == 0)))
            return row->blocking;
    return (cpu_blocking){0};
}

/* Reads "kc=256" of `length` characters. */
static tgl_status read_option(const char *text, size_t length, cpu_blocking *blocking)
{
    enum { NAME = 3, MAX = 65536 };
    int *option = length <= NAME                   ? NULL
                  : memcmp(text, "kc=", NAME) == 0 ? &blocking->kc
                  : memcmp(text, "mc=", NAME) == 0 ? &blocking->mc
                                                   : NULL;
    if (option == NULL)
        return tgl_fail(
            TGL_BAD_ARGUMENT,
            "\"%.*s\": the kernels of the cpu device have the options kc=N, the steps of "
            "k of a block, and mc=N, the most rows of a block, in whole tiles",
            (int)length, text);
    if (*option != 0) return tgl_fail(TGL_BAD_ARGUMENT, "the option %.2s is given twice", text);
    char *end;
    const long value = strtol(text + NAME, &end, 10);
    if (text[NAME] < '0' || text[NAME] > '9' || end != text + length || value < 1 || value > MAX)
        return tgl_fail(TGL_BAD_ARGUMENT, "\"%.*s\": the value must be a number from 1 to %d",
                        (int)length, text, MAX);
    *option = (int)value;
    return TGL_OK;
}

tgl_status tgl_cpu_blocking_read(const char *options, cpu_blocking *blocking)
{
    *blocking = (cpu_blocking){0};
    while (*options != '\0') {
        options++; /* skips the colon or comma */
        const size_t length = strcspn(options, ",");
        TGL_TRY(read_option(options, length, blocking));
        options += length;
    }
    return TGL_OK;
}
