/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that appear whole or not at all.
 */
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Signals --------------------------------------------------------------------------------- */

/* What a signal handler may touch: the name to remove, if `abandoned_exists`. */
static char abandoned_name[PATH_MAX];
static volatile sig_atomic_t abandoned_exists;

static const int fatal_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { FATAL_SIGNALS = sizeof fatal_signals / sizeof fatal_signals[0] };

void output_file_abandon(void)
{
    if (abandoned_exists) unlink(abandoned_name);
    abandoned_exists = 0;
}

static void on_fatal_signal(int number)
{
    output_file_abandon();
    raise(number); /* SA_RESETHAND has put the default action back: end the program */
}

static void set_of_fatal_signals(sigset_t *set)
{
    sigemptyset(set);
    for (int i = 0; i < FATAL_SIGNALS; i++)
        sigaddset(set, fatal_signals[i]);
}

static void catch_fatal_signals(void)
{
    const struct sigaction action = {.sa_handler = on_fatal_signal, .sa_flags = SA_RESETHAND};
    signal(SIGXFSZ, SIG_IGN); /* a file over its limit: write() says so instead */
    for (int i = 0; i < FATAL_SIGNALS; i++) {
        struct sigaction old;
        /* A signal that the caller had ignored (nohup) stays ignored. */
        if (sigaction(fatal_signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(fatal_signals[i], &action, NULL);
    }
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* The permissions of the file that is replaced, or those of any new file. */
static mode_t permissions(const struct stat *existing)
{
    if (existing != NULL) return existing->st_mode & 07777;
    const mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* Makes DIR/.NAME.XXXXXX and arms the signal handlers to remove it. */
static bool create_temporary(output_file *file, mode_t mode)
{
    const char *slash = strrchr(file->path, '/');
    const char *name = slash != NULL ? slash + 1 : file->path;
    char *temporary;
    if (asprintf(&temporary, "%.*s.%s.XXXXXX", (int)(name - file->path), file->path, name) < 0) {
        errno = ENOMEM;
        return false;
    }
    if (strlen(temporary) >= sizeof abandoned_name) {
        free(temporary);
        errno = ENAMETOOLONG;
        return false;
    }
    sigset_t fatal, before;
    set_of_fatal_signals(&fatal);
    sigprocmask(SIG_BLOCK, &fatal, &before);
    file->fd = mkostemp(temporary, O_CLOEXEC);
    const int error = errno;
    if (file->fd >= 0) {
        strcpy(abandoned_name, temporary);
        abandoned_exists = 1;
        catch_fatal_signals();
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (file->fd < 0) {
        free(temporary);
        errno = error;
        return false;
    }
    file->temporary = temporary;
    fchmod(file->fd, mode);
    return true;
}

static bool open_path(output_file *file, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        if (errno != ENOENT) return false;
        file->path = strdup(path);
        return file->path != NULL && create_temporary(file, permissions(NULL));
    }
    if (S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return false;
    }
    file->path = realpath(path, NULL); /* a link stays, and what it points to is replaced */
    if (file->path == NULL) return false;
    if (S_ISREG(info.st_mode)) {
        if (access(file->path, W_OK) != 0) return false; /* a rename would not ask */
        return create_temporary(file, permissions(&info));
    }
    file->fd = open(path, O_WRONLY | O_CLOEXEC);
    return file->fd >= 0;
}

bool output_file_open(output_file *file, const char *path, char *message, size_t message_size)
{
    *file = (output_file){.fd = -1, .name = path};
    if (open_path(file, path)) return true;
    snprintf(message, message_size, "cannot write %s: %s", path, strerror(errno));
    free(file->path);
    return false;
}

/* ---- Writing and closing --------------------------------------------------------------------- */

bool output_file_write(output_file *file, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        const ssize_t written = write(file->fd, at, size < (1 << 30) ? size : 1 << 30);
        if (written < 0) {
            if (errno == EINTR) continue;
            return false;
        }
        at += written;
        size -= (size_t)written;
    }
    return true;
}

/* So that the new name, too, survives a power failure. A folder that cannot be opened is no
 * reason to fail: the file itself is whole. */
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL   ? strdup(".")
                   : slash == path ? strdup("/")
                                   : strndup(path, (size_t)(slash - path));
    if (folder == NULL) return;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

/* Gives back all but the file on disk. */
static void release(output_file *file)
{
    if (file->fd >= 0) close(file->fd);
    free(file->temporary);
    free(file->path);
    *file = (output_file){.fd = -1, .name = file->name};
}

bool output_file_commit(output_file *file)
{
    if (file->temporary != NULL) {
        bool ok = fsync(file->fd) == 0;
        ok = close(file->fd) == 0 && ok; /* network file systems report a full disk here */
        file->fd = -1;
        if (!ok || rename(file->temporary, file->path) != 0) {
            const int error = errno;
            output_file_discard(file);
            errno = error;
            return false;
        }
        abandoned_exists = 0;
        sync_folder(file->path);
    }
    release(file);
    return true;
}

void output_file_discard(output_file *file)
{
    const int error = errno;
    if (file->temporary != NULL) output_file_abandon();
    release(file);
    errno = error;
}
