/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds misspelt environment variables, for `tegula info` and the drop-in libraries for BLAS,
 * cuBLAS and ScaLAPACK.
 */
#ifndef TGL_UNKNOWN_SETTINGS_H
#define TGL_UNKNOWN_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Returns the next environment variable, from *at on, whose name begins with `prefix` and is not in
 * `known`, a list that ends with NULL; NULL if there is none left. *length := the length of its
 * name. *at must be `environ` at first; each call advances it. */
static inline const char *next_unknown_setting(char ***at, const char *prefix,
                                               const char *const *known, int *length)
{
    while (*at != NULL && **at != NULL) {
        const char *variable = *(*at)++;
        const size_t size = strcspn(variable, "=");
        bool is_known = strncmp(variable, prefix, strlen(prefix)) != 0;
        for (const char *const *name = known; *name != NULL && !is_known; name++)
            is_known = strlen(*name) == size && memcmp(variable, *name, size) == 0;
        *length = (int)size;
        if (!is_known) return variable;
    }
    return NULL;
}

#endif
