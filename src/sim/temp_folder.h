/* SPDX-License-Identifier: Apache-2.0
 *
 * A private folder for the time of a compilation. It is removed even if the process is killed: a
 * small shell, the keeper, waits for the process to end and removes what is left then. A library
 * cannot do this itself, because signal handlers belong to the program.
 */
#ifndef TGL_SIM_TEMP_FOLDER_H
#define TGL_SIM_TEMP_FOLDER_H

#include "base/error.h"

#include <stddef.h>
#include <sys/types.h>

enum { TGL_TEMP_ENTRIES = 256, TGL_TEMP_PATH = 512 };

typedef struct tgl_temp_folder {
    char path[TGL_TEMP_PATH];
    char *entries[TGL_TEMP_ENTRIES]; /* paths of files and folders within, oldest first */
    int count;
    pid_t keeper; /* 0: it could not be started */
    int socket;   /* the keeper reads the other end, which closes when this process ends */
} tgl_temp_folder;

/* Where folders are made: $TMPDIR, or /tmp. */
const char *tgl_temp_folder_base(void);

/* Makes a new folder there, for this user alone. */
tgl_status tgl_temp_folder_make(tgl_temp_folder *folder);

/* The failure of a call below, which has set errno. Returns TGL_DRIVER. */
tgl_status tgl_temp_folder_fail(const tgl_temp_folder *folder);

/* Removes the folder, the entries, and the keeper. */
void tgl_temp_folder_remove(tgl_temp_folder *folder);

/* The path of `name` in the folder, which is removed with it; its sub-folders are made. Valid as
 * long as the folder. NULL with errno set. */
const char *tgl_temp_folder_entry(tgl_temp_folder *folder, const char *name);

/* Writes a whole file there; returns its path, or NULL with errno set. */
const char *tgl_temp_folder_write(tgl_temp_folder *folder, const char *name, const void *data,
                                  size_t size);

#endif
