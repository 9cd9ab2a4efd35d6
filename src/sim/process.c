/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a program with posix_spawn() and reads its output through a pipe.
 */
#include "sim/process.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_LIMIT = 64 * 1024 }; /* bytes of output that are kept; the rest is discarded */

/* Reads a pipe until its other end is closed. */
static char *read_all(int fd)
{
    size_t length = 0;
    char *text = malloc(OUTPUT_LIMIT + 1), spill[4096];
    for (;;) {
        const bool has_room = text != NULL && length < OUTPUT_LIMIT;
        const ssize_t got = has_room ? read(fd, text + length, OUTPUT_LIMIT - length)
                                     : read(fd, spill, sizeof spill);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        if (has_room) length += (size_t)got;
    }
    if (text != NULL) text[length] = '\0';
    return text;
}

/* Starts the program; returns 0 or an errno value. */
static int start_program(const char *const *argv, int output, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) return error;
    error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (error == 0) error = posix_spawn_file_actions_adddup2(&actions, output, 1);
    if (error == 0) error = posix_spawn_file_actions_adddup2(&actions, output, 2);
    /* The cast is safe: posix_spawn() does not change the strings, its parameter type only lacks
     * const. */
    if (error == 0) error = posix_spawn(pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

bool tgl_process_run(const char *const *argv, char **output)
{
    int ends[2];
    pid_t pid;
    *output = NULL;
    int error = pipe2(ends, O_CLOEXEC) != 0 ? errno : 0;
    if (error == 0) {
        error = start_program(argv, ends[1], &pid);
        close(ends[1]);
        if (error == 0) *output = read_all(ends[0]);
        close(ends[0]);
    }
    if (error != 0) {
        *output = strdup(strerror(error));
        return false;
    }
    int status;
    pid_t ended;
    while ((ended = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    /* If the caller ignores SIGCHLD, there is no exit status. The caller of this function then
     * finds out from the program's output file whether it worked. */
    if (ended < 0) return true;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool can_run(const char *path)
{
    return access(path, X_OK) == 0;
}

char *tgl_process_find(const char *name)
{
    if (strchr(name, '/') != NULL) return can_run(name) ? strdup(name) : NULL;
    const char *path = secure_getenv("PATH");
    if (path == NULL) path = "/usr/local/bin:/usr/bin:/bin";
    while (*name != '\0' && *path != '\0') {
        const size_t length = strcspn(path, ":");
        char *candidate;
        if (asprintf(&candidate, "%.*s/%s", (int)length, path, name) < 0) return NULL;
        if (length > 0 && can_run(candidate)) return candidate;
        free(candidate);
        path += length + (path[length] == ':');
    }
    return NULL;
}
