/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes and removes the private folder, and starts the keeper, the process that removes the folder
 * if this process cannot.
 */
#include "sim/temp_folder.h"
#include "base/file_write.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The keeper ------------------------------------------------------------------------------ */

/* The keeper: reads the folder's name, waits for the end of its input, and removes the folder. It
 * tries twice, because a compiler that outlives the process may still write to the folder. */
static const char keeper_script[] = "cd -- \"$1\" && read -r name || exit\n"
                                    "read -r end\n"
                                    "[ ! -d \"$name\" ] || rm -rf -- \"$name\" || {\n"
                                    "  sleep 1\n"
                                    "  rm -rf -- \"$name\"\n"
                                    "}\n";

/* Starts the keeper with `input` as its standard input. It is in its own process group, so that
 * signals from the terminal do not reach it. Returns its process id; 0: it could not be started. */
static pid_t spawn_keeper(int input)
{
    const char *const argv[] = {"sh", "-c", keeper_script, "sh", tgl_temp_folder_base(), NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t pid = 0;
    if (posix_spawn_file_actions_init(&actions) != 0) return 0;
    if (posix_spawnattr_init(&attributes) == 0) {
        /* The cast is safe: posix_spawn() does not change the strings, its parameter type only
         * lacks const. */
        if (posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP) != 0 ||
            posix_spawnattr_setpgroup(&attributes, 0) != 0 ||
            posix_spawn_file_actions_adddup2(&actions, input, 0) != 0 ||
            posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) != 0 ||
            posix_spawn_file_actions_adddup2(&actions, 1, 2) != 0 ||
            posix_spawn(&pid, "/bin/sh", &actions, &attributes, (char *const *)argv, environ) != 0)
            pid = 0;
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/* Starts the keeper. Without it the folder works, but is left behind if the process is killed. */
static void start_keeper(tgl_temp_folder *folder)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    folder->keeper = spawn_keeper(ends[1]);
    folder->socket = ends[0];
    close(ends[1]);
    if (folder->keeper == 0) close(folder->socket);
}

/* Tells the keeper the name of the folder to remove. */
static void tell_keeper(const tgl_temp_folder *folder)
{
    char line[64];
    const int length = snprintf(line, sizeof line, "%s\n", strrchr(folder->path, '/') + 1);
    if (folder->keeper != 0) send(folder->socket, line, (size_t)length, MSG_NOSIGNAL);
}

static void end_keeper(tgl_temp_folder *folder)
{
    if (folder->keeper == 0) return;
    /* shutdown() ends the keeper's input even if another thread has forked meanwhile; close() would
     * not, because the child has the socket, too. */
    shutdown(folder->socket, SHUT_RDWR);
    close(folder->socket);
    while (waitpid(folder->keeper, NULL, 0) < 0 && errno == EINTR)
        ;
    folder->keeper = 0;
}

/* ---- The folder ------------------------------------------------------------------------------ */

const char *tgl_temp_folder_base(void)
{
    const char *base = secure_getenv("TMPDIR");
    return base != NULL && base[0] != '\0' ? base : "/tmp";
}

/* Reports that no folder could be made. reason: an error number. */
static tgl_status fail_to_make(int reason)
{
    return tgl_fail(TGL_DRIVER, "no temporary folder in %s: %s (TMPDIR can name another place)",
                    tgl_temp_folder_base(), strerror(reason));
}

tgl_status tgl_temp_folder_make(tgl_temp_folder *folder)
{
    *folder = (tgl_temp_folder){0};
    const char *base = tgl_temp_folder_base();
    /* The second half of folder->path is for the name of the folder, "/tegula-XXXXXX". */
    if (strlen(base) > TGL_TEMP_PATH / 2) return fail_to_make(ENAMETOOLONG);
    /* The keeper starts before the folder is made, so that it learns the folder's name at once. */
    start_keeper(folder);
    snprintf(folder->path, sizeof folder->path, "%s/tegula-XXXXXX", base);
    if (mkdtemp(folder->path) != NULL && chmod(folder->path, 0700) == 0) {
        tell_keeper(folder);
        return TGL_OK;
    }
    const int reason = errno;
    folder->path[0] = '\0';
    end_keeper(folder);
    return fail_to_make(reason);
}

tgl_status tgl_temp_folder_fail(const tgl_temp_folder *folder)
{
    return tgl_fail(TGL_DRIVER, "%s: %s", folder->path, strerror(errno));
}

void tgl_temp_folder_remove(tgl_temp_folder *folder)
{
    while (folder->count > 0) {
        char *entry = folder->entries[--folder->count];
        remove(entry); /* a file that may not exist, or a folder whose entries have been removed */
        free(entry);
    }
    if (folder->path[0] != '\0') rmdir(folder->path);
    folder->path[0] = '\0';
    end_keeper(folder);
}

static const char *add_entry(tgl_temp_folder *folder, const char *name, size_t length)
{
    if (folder->count == TGL_TEMP_ENTRIES) {
        errno = ENOSPC;
        return NULL;
    }
    char *path;
    if (asprintf(&path, "%s/%.*s", folder->path, (int)length, name) < 0) return NULL;
    folder->entries[folder->count++] = path;
    return path;
}

/* Creates a folder with mode 0700, whatever the umask is; does nothing if it exists. */
static bool make_private(const char *path)
{
    return mkdir(path, 0700) == 0 ? chmod(path, 0700) == 0 : errno == EEXIST;
}

const char *tgl_temp_folder_entry(tgl_temp_folder *folder, const char *name)
{
    for (const char *slash = name; (slash = strchr(slash, '/')) != NULL; slash++) {
        const char *parent = add_entry(folder, name, (size_t)(slash - name));
        if (parent == NULL || !make_private(parent)) return NULL;
    }
    return add_entry(folder, name, strlen(name));
}

const char *tgl_temp_folder_write(tgl_temp_folder *folder, const char *name, const void *data,
                                  size_t size)
{
    const char *path = tgl_temp_folder_entry(folder, name);
    const int file = path != NULL ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (file < 0) return NULL;
    const bool is_written = fchmod(file, 0600) == 0 && tgl_file_write(file, data, size);
    const int error = errno;
    const bool is_closed = close(file) == 0;
    if (!is_written) errno = error;
    return is_written && is_closed ? path : NULL;
}
