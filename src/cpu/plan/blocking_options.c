/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the options of kernel strings, such as kc and mc of "cpu/avx2:kc=256,mc=96".
 */
#include "base/error.h"
#include "cpu/plan/cpu_blocking.h"
#include "cpu/plan/cpu_models.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_MAX = 65536 };

/* The member of *blocking that an option sets. text: the option, NAME=VALUE; length: its number of
 * characters. *max := the largest permitted value. NULL: there is no such option. */
static int *find_option(const char *text, size_t length, cpu_blocking *blocking, int *max)
{
    *max = BLOCK_MAX;
    if (length > 3 && memcmp(text, "kc=", 3) == 0) return &blocking->kc;
    if (length > 3 && memcmp(text, "mc=", 3) == 0) return &blocking->mc;
    *max = tgl_cpu_model_count();
    return length > 4 && memcmp(text, "row=", 4) == 0 ? &blocking->row : NULL;
}

/* Reads one option of `length` characters, such as "kc=256", into *blocking. */
static tgl_status read_option(const char *text, size_t length, cpu_blocking *blocking)
{
    int max, *option = find_option(text, length, blocking, &max);
    if (option == NULL)
        return tgl_fail(TGL_BAD_ARGUMENT,
                        "\"%.*s\": the kernels of the cpu device have the options kc=N, the steps "
                        "of k of a block, mc=N, the most rows of a block, in whole tiles, and "
                        "row=N, the values of row N of the table of processors",
                        (int)length, text);
    const char *number = strchr(text, '=') + 1;
    if (*option != 0)
        return tgl_fail(TGL_BAD_ARGUMENT, "the option %.*s is given twice",
                        (int)(number - text) - 1, text);
    char *end;
    const long value = strtol(number, &end, 10);
    if (*number < '0' || *number > '9' || end != text + length || value < 1 || value > max)
        return tgl_fail(TGL_BAD_ARGUMENT, "\"%.*s\": the value must be a number from 1 to %d",
                        (int)length, text, max);
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
