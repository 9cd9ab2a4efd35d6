/* SPDX-License-Identifier: Apache-2.0
 *
 * Making and removing the private folder.
 */
#include "sim/temp_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool tgl_temp_folder_make(tgl_temp_folder *folder)
{
    *folder = (tgl_temp_folder){0};
    const char *base = secure_getenv("TMPDIR");
    if (base == NULL || base[0] == '\0') base = "/tmp";
    /* Half of the room is left for the names within. */
    if (strlen(base) > TGL_TEMP_PATH / 2) {
        errno = ENAMETOOLONG;
        return false;
    }
    snprintf(folder->path, sizeof folder->path, "%s/tegula-XXXXXX", base);
    if (mkdtemp(folder->path) != NULL) return true;
    folder->path[0] = '\0';
    return false;
}

void tgl_temp_folder_remove(tgl_temp_folder *folder)
{
    while (folder->count > 0) {
        char *entry = folder->entries[--folder->count];
        remove(entry); /* a file, or a folder emptied before; it may never have been written */
        free(entry);
    }
    if (folder->path[0] != '\0') rmdir(folder->path);
    folder->path[0] = '\0';
}

static const char *add_entry(tgl_temp_folder *folder, const char *name, size_t length)
{
    if (folder->count == TGL_TEMP_ENTRIES) {
        errno = ENOSPC;
        return NULL;
    }
    const size_t size = strlen(folder->path) + 1 + length + 1;
    char *path = malloc(size);
    if (path == NULL) return NULL;
    snprintf(path, size, "%s/%.*s", folder->path, (int)length, name);
    folder->entries[folder->count++] = path;
    return path;
}

const char *tgl_temp_folder_entry(tgl_temp_folder *folder, const char *name)
{
    for (const char *slash = name; (slash = strchr(slash, '/')) != NULL; slash++) {
        const char *parent = add_entry(folder, name, (size_t)(slash - name));
        if (parent == NULL || (mkdir(parent, 0700) != 0 && errno != EEXIST)) return NULL;
    }
    return add_entry(folder, name, strlen(name));
}

const char *tgl_temp_folder_write(tgl_temp_folder *folder, const char *name, const void *data,
                                  size_t size)
{
    const char *path = tgl_temp_folder_entry(folder, name);
    FILE *file = path != NULL ? fopen(path, "wxe") : NULL;
    if (file == NULL) return NULL;
    const bool is_written = fwrite(data, 1, size, file) == size;
    const bool is_closed = fclose(file) == 0;
    return is_written && is_closed ? path : NULL;
}
