/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of kernel strings.
 */
#include "cpu/plan/cpu_blocking.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

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
