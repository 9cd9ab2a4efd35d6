/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes files under a temporary name and renames them.
 */
#include "output_file.h"
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Signals --------------------------------------------------------------------------------- */

/* FILES_MAX: maximum number of temporary files at a time. LINKS_MAX: maximum number of symbolic
 * links that are followed in a path. abandoned: the files that a signal handler removes; NULL: free
 * entry. */
enum { FILES_MAX = 2, LINKS_MAX = 40 };
static _Atomic(char *) abandoned[FILES_MAX];

static const int fatal_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
enum { FATAL_SIGNALS = sizeof fatal_signals / sizeof fatal_signals[0] };

void output_file_abandon(void)
{
    for (int i = 0; i < FILES_MAX; i++) {
        const char *name = atomic_exchange(&abandoned[i], NULL);
        if (name != NULL) unlink(name);
    }
}

static void on_fatal_signal(int number)
{
    output_file_abandon();
    raise(number); /* ends the program, because SA_RESETHAND has restored the default action */
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
    for (int i = 0; i < FATAL_SIGNALS; i++) {
        struct sigaction old;
        /* Signals that the caller of the program ignores, as nohup(1) makes them, stay ignored. */
        if (sigaction(fatal_signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(fatal_signals[i], &action, NULL);
    }
}

/* In the list of files that signal handlers remove, replaces `from` by `to`. from NULL: adds `to`.
 * to NULL: removes `from`. */
static void abandon_instead(char *from, char *to)
{
    for (int i = 0; i < FILES_MAX; i++) {
        char *expected = from;
        if (atomic_compare_exchange_strong(&abandoned[i], &expected, to)) return;
    }
}

/* ---- Paths --------------------------------------------------------------------- */

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* A copy of the path in which the symbolic links of its folder have been resolved. The caller frees
 * it. NULL: failed, and errno is set. */
static char *in_real_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = folder_of(path), *whole = NULL;
    char *real = folder != NULL ? realpath(folder, NULL) : NULL;
    if (real != NULL && asprintf(&whole, "%s/%s", real, slash != NULL ? slash + 1 : path) < 0)
        whole = NULL;
    free(folder);
    free(real);
    return whole;
}

/* The number of a file descriptor of this process, if the path is /proc/PROCESS/fd/NUMBER; else
 * -1. */
static int descriptor_of(const char *path)
{
    int process, number;
    const bool is_ours =
        sscanf(path, "/proc/%d/fd/%d", &process, &number) == 2 && process == getpid();
    return is_ours ? number : -1;
}

/* The path of the file that a name refers to, which the caller frees. Symbolic links are followed,
 * even to a file that does not exist yet, but not a link /proc/PROCESS/fd/NUMBER of this process,
 * which stands for a descriptor. NULL: failed, and errno is set. */
static char *resolve_path(const char *path)
{
    char target[PATH_MAX];
    char *at = in_real_folder(path);
    for (int links = 0; at != NULL && descriptor_of(at) < 0; links++) {
        const ssize_t length = readlink(at, target, sizeof target - 1);
        if (length < 0) break; /* not a link */
        target[length] = '\0';
        char *folder = folder_of(at), *joined = NULL, *next = NULL;
        const bool is_absolute = target[0] == '/';
        if (links == LINKS_MAX)
            errno = ELOOP;
        else if (folder != NULL &&
                 asprintf(&joined, "%s/%s", is_absolute ? "" : folder, target) >= 0)
            next = in_real_folder(joined);
        free(folder);
        free(joined);
        free(at);
        at = next;
    }
    return at;
}

bool output_file_is_same(const char *path, const char *other)
{
    char *a = resolve_path(path), *b = resolve_path(other);
    const bool is_same = a != NULL && b != NULL && strcmp(a, b) == 0;
    free(a);
    free(b);
    return is_same;
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* The permissions of the existing file or, if it is NULL, those that a new file gets. */
static mode_t permissions(const struct stat *existing)
{
    if (existing != NULL) return existing->st_mode & 07777;
    const mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* Creates the temporary file DIR/.NAME.XXXXXX, and adds it to the files that signal handlers
 * remove. Returns its descriptor. -1: failed, and errno is set. */
static int create_temporary(output_file *file, mode_t mode)
{
    const char *name = strrchr(file->path, '/') + 1;
    if (asprintf(&file->temporary, "%.*s.%s.XXXXXX", (int)(name - file->path), file->path, name) <
        0)
        file->temporary = NULL;
    if (file->temporary == NULL) return -1;
    sigset_t fatal, before;
    set_of_fatal_signals(&fatal);
    sigprocmask(SIG_BLOCK, &fatal, &before);
    const int fd = mkostemp(file->temporary, O_CLOEXEC);
    const int error = errno;
    if (fd >= 0) {
        abandon_instead(NULL, file->temporary);
        catch_fatal_signals();
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (fd >= 0) {
        fchmod(fd, mode);
        return fd;
    }
    free(file->temporary);
    file->temporary = NULL;
    errno = error;
    return -1;
}

static int open_path(output_file *file)
{
    struct stat info;
    file->path = resolve_path(file->name);
    if (file->path == NULL) return -1;
    const int descriptor = descriptor_of(file->path);
    /* A descriptor is duplicated: opening its path again would start at the beginning of the file,
     * and is not possible for a socket. */
    if (descriptor >= 0) return fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (stat(file->path, &info) != 0)
        return errno == ENOENT ? create_temporary(file, permissions(NULL)) : -1;
    if (S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (!S_ISREG(info.st_mode)) return open(file->path, O_WRONLY | O_CLOEXEC);
    if (access(file->path, W_OK) != 0)
        return -1; /* renaming would replace the file even without write permission */
    return create_temporary(file, permissions(&info));
}

static bool fail_to_write(output_file *file)
{
    if (!file->failed) cli_fail("cannot write %s: %s", file->name, strerror(errno));
    file->failed = true;
    return false;
}

/* Removes the temporary file, if it still exists, and frees the paths. */
static void release_file(output_file *file)
{
    if (file->temporary != NULL) {
        unlink(file->temporary);
        abandon_instead(file->temporary, NULL);
    }
    free(file->temporary);
    free(file->path);
    *file = (output_file){.name = file->name, .failed = file->failed};
}

bool output_file_open(output_file *file, const char *path)
{
    *file = (output_file){.name = path};
    if (path == NULL) return true;
    const int fd = open_path(file);
    if (fd >= 0) file->stream = fdopen(fd, "w");
    if (file->stream != NULL) return true;
    fail_to_write(file);
    if (fd >= 0) close(fd);
    release_file(file);
    return false;
}

/* ---- Writing and closing --------------------------------------------------------------------- */

bool output_file_write(output_file *file, const void *bytes, size_t size)
{
    return size == 0 || fwrite(bytes, 1, size, file->stream) == size || fail_to_write(file);
}

/* Flushes the stream and, if the file is to be renamed, writes it to the disk. Returns false if
 * this or an earlier write failed, after printing the error. */
static bool has_arrived(output_file *file)
{
    if (file->failed) return false;
    const bool ok = fflush(file->stream) == 0 && !ferror(file->stream) &&
                    (file->temporary == NULL || fsync(fileno(file->stream)) == 0);
    return ok || fail_to_write(file);
}

/* Writes the folder to disk, so that the rename survives a power failure. It is no error if the
 * folder cannot be opened, because the file itself is complete. */
static void sync_folder(const char *path)
{
    char *folder = folder_of(path);
    if (folder == NULL) return;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

/* Renames the temporary file, if there is one that has not been renamed yet, to its final name.
 * False: failed, and the error has been printed. */
static bool put_in_place(output_file *file)
{
    if (file->temporary == NULL) return true;
    if (rename(file->temporary, file->path) != 0) return fail_to_write(file);
    abandon_instead(file->temporary, NULL);
    free(file->temporary);
    file->temporary = NULL;
    sync_folder(file->path);
    return true;
}

bool output_file_flush(output_file *file)
{
    return file->stream == NULL || (has_arrived(file) && put_in_place(file));
}

bool output_file_commit(output_file *file)
{
    if (file->stream == NULL) return !file->failed;
    bool ok = has_arrived(file);
    if (fclose(file->stream) != 0 && ok)
        ok = fail_to_write(file); /* network file systems may report write errors only here */
    ok = ok && put_in_place(file);
    release_file(file);
    return ok;
}

bool output_file_close(output_file *file)
{
    if (file->stream == NULL) return !file->failed;
    const bool is_kept = file->temporary == NULL;
    if (fclose(file->stream) != 0 && is_kept) fail_to_write(file);
    release_file(file);
    return !file->failed;
}
