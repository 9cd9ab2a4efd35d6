/* SPDX-License-Identifier: Apache-2.0
 *
 * A private folder for the time of a compilation. It is removed even if the process is killed: a
 * small shell, the keeper, waits for the process to end and then removes the folder if it is still
 * there. A library cannot do this itself, because signal handlers belong to the program.
 */
#ifndef TGL_SIM_TEMP_FOLDER_H
#define TGL_SIM_TEMP_FOLDER_H

#include "base/error.h"

#include <stddef.h>
#include <sys/types.h>

/* TGL_TEMP_ENTRIES: maximum number of entries of a temporary folder. TGL_TEMP_PATH: maximum size of
 * its path in bytes. */
enum { TGL_TEMP_ENTRIES = 256, TGL_TEMP_PATH = 512 };

typedef struct tgl_temp_folder {
    char path[TGL_TEMP_PATH];
    char *entries[TGL_TEMP_ENTRIES]; /* paths of the files and folders in it, oldest first */
    int count;
    pid_t keeper; /* process id of the keeper; 0: it could not be started */
    int socket;   /* end of a socket pair; the keeper reads from the other end until this end is
                     closed, at the latest when this process ends */
} tgl_temp_folder;

/* The folder in which temporary folders are made: $TMPDIR, or else /tmp. */
const char *tgl_temp_folder_base(void);

/* Makes a new folder that only this user can access. */
tgl_status tgl_temp_folder_make(tgl_temp_folder *folder);

/* Reports the failure of one of the functions below, which has set errno. Returns TGL_DRIVER. */
tgl_status tgl_temp_folder_fail(const tgl_temp_folder *folder);

/* Removes the folder with all entries, and ends the keeper. */
void tgl_temp_folder_remove(tgl_temp_folder *folder);

/* The path for a file `name` in the folder; creates its sub-folders. The folder owns the path and
 * removes the file with itself. NULL: errno is set. */
const char *tgl_temp_folder_entry(tgl_temp_folder *folder, const char *name);

/* Writes a file in the folder. Returns its path, or NULL with errno set. */
const char *tgl_temp_folder_write(tgl_temp_folder *folder, const char *name, const void *data,
                                  size_t size);

#endif
