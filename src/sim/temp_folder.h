/* SPDX-License-Identifier: Apache-2.0
 *
 * A private folder for the time of a compilation, which forgets nothing that was put into it.
 */
#ifndef TGL_SIM_TEMP_FOLDER_H
#define TGL_SIM_TEMP_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

enum { TGL_TEMP_ENTRIES = 64, TGL_TEMP_PATH = 512 };

typedef struct tgl_temp_folder {
    char path[TGL_TEMP_PATH];
    char *entries[TGL_TEMP_ENTRIES]; /* paths of files and folders within, oldest first */
    int count;
} tgl_temp_folder;

/* Makes a new folder in $TMPDIR or /tmp, for this user alone. False with errno set. */
bool tgl_temp_folder_make(tgl_temp_folder *folder);

/* Removes the folder and what it was told of. */
void tgl_temp_folder_remove(tgl_temp_folder *folder);

/* The path of `name` in the folder, which is removed with it; its sub-folders are made. Valid as
 * long as the folder. NULL with errno set. */
const char *tgl_temp_folder_entry(tgl_temp_folder *folder, const char *name);

/* Writes a whole file there; returns its path, or NULL with errno set. */
const char *tgl_temp_folder_write(tgl_temp_folder *folder, const char *name, const void *data,
                                  size_t size);

#endif
