/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes archives of compiled kernels. Nothing in a file is trusted: the whole index is
 * checked when the file is opened, and the code of a kernel when it is used.
 */
#include "cuda/kernel_archive.h"
#include "base/file_write.h"
#include "plan/sources.h"

#include "tegula/tegula.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIGEST = TGL_SHA256_BYTES, ALIGNMENT = 64, PATH_BYTES = 4096 };

typedef struct archive_header {
    char magic[16], library[16], arch[16];
    uint32_t nvrtc, count; /* version of NVRTC; number of entries of the index */
    uint64_t size;         /* bytes of the file */
    unsigned char sources[DIGEST];
    unsigned char checksum[DIGEST]; /* checksum of the header (with zeros in place of this member)
                                       and the index */
} archive_header;

typedef struct archive_entry {
    unsigned char key[DIGEST];
    uint64_t offset, size; /* place of the code in the file, in bytes */
    int32_t registers, shared_bytes, local_bytes, spill_bytes, serialises, unused;
    unsigned char checksum[DIGEST]; /* checksum of the code */
} archive_entry;

struct tgl_archive {
    char text[PATH_BYTES + 64];
    void *map; /* NULL: there is no archive */
    size_t size;
    const archive_entry *entries;
    int count;
};

static const char magic[16] = "TEGULA KERNELS1";

/* ---- Checksums ------------------------------------------------------------------------------- */

static void hash_of(const void *data, size_t size, unsigned char digest[DIGEST])
{
    tgl_sha256 hash;
    tgl_sha256_start(&hash);
    tgl_sha256_add(&hash, data, size);
    tgl_sha256_finish(&hash, digest);
}

/* The digest of all files that a kernel may be compiled from. */
static void hash_sources(unsigned char digest[DIGEST])
{
    tgl_sha256 hash;
    tgl_sha256_start(&hash);
    for (const tgl_source_file *file = tgl_source_files; file->name != NULL; file++) {
        tgl_sha256_add(&hash, file->name, strlen(file->name) + 1);
        tgl_sha256_add(&hash, file->digest, strlen(file->digest) + 1);
    }
    tgl_sha256_finish(&hash, digest);
}

static void hash_index(const archive_header *header, const archive_entry *entries,
                       unsigned char digest[DIGEST])
{
    archive_header zeros = *header;
    tgl_sha256 hash;
    memset(zeros.checksum, 0, sizeof zeros.checksum);
    tgl_sha256_start(&hash);
    tgl_sha256_add(&hash, &zeros, sizeof zeros);
    tgl_sha256_add(&hash, entries, header->count * sizeof *entries);
    tgl_sha256_finish(&hash, digest);
}

/* The header of an archive that this library writes or accepts. Leaves the members `size` and
 * `checksum` 0. */
static archive_header header_of(const char *arch, int nvrtc, int count)
{
    archive_header header = {.nvrtc = (uint32_t)nvrtc, .count = (uint32_t)count};
    memcpy(header.magic, magic, sizeof magic);
    snprintf(header.library, sizeof header.library, "%s", tgl_version());
    snprintf(header.arch, sizeof header.arch, "%s", arch);
    hash_sources(header.sources);
    return header;
}

/* ---- Checks: each returns why the file cannot be used, or NULL ------------------------------- */

static const char *distrust_file(const struct stat *info)
{
    if (!S_ISREG(info->st_mode)) return "it is no regular file";
    if (info->st_uid != geteuid() && info->st_uid != 0) return "it belongs to another user";
    if ((info->st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others may write to it";
    if (info->st_size > TGL_ARCHIVE_BYTES_MAX) return "it is too large";
    if (info->st_size < (off_t)sizeof(archive_header)) return "it is incomplete";
    return NULL;
}

static const char *distrust_header(const archive_header *header, size_t size, const char *arch,
                                   int driver)
{
    const archive_header own = header_of(arch, 0, 0);
    if (memcmp(header->magic, own.magic, sizeof own.magic) != 0) return "it is no archive";
    if (header->size != size) return "it is incomplete";
    if (memcmp(header->library, own.library, sizeof own.library) != 0)
        return "it is of another version of Tegula";
    if (memcmp(header->sources, own.sources, sizeof own.sources) != 0)
        return "its kernels have other sources";
    if (memcmp(header->arch, own.arch, sizeof own.arch) != 0)
        return "it is for another architecture";
    if (header->nvrtc / 1000 > (uint32_t)driver / 1000) return "its NVRTC is newer than the driver";
    return NULL;
}

/* Returns why the index cannot be trusted, or NULL. Keys must ascend, because a binary search
 * relies on that. Code must lie behind the index and inside the file. */
static const char *distrust_entries(const archive_header *header, const archive_entry *entries)
{
    const uint64_t first = sizeof *header + header->count * sizeof *entries;
    for (uint32_t i = 0; i < header->count; i++) {
        const archive_entry *entry = &entries[i];
        if (entry->size == 0 || entry->offset < first || entry->offset > header->size ||
            entry->size > header->size - entry->offset)
            return "its index is damaged";
        if (i > 0 && memcmp(entries[i - 1].key, entry->key, sizeof entry->key) >= 0)
            return "its index is damaged";
    }
    return NULL;
}

static const char *distrust_index(const archive_header *header)
{
    const archive_entry *entries = (const archive_entry *)(header + 1);
    unsigned char checksum[DIGEST];
    if (header->count > (header->size - sizeof *header) / sizeof *entries)
        return "its index is damaged";
    hash_index(header, entries, checksum);
    if (memcmp(header->checksum, checksum, sizeof checksum) != 0) return "its index is damaged";
    return distrust_entries(header, entries);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static const char *map_open(tgl_archive *archive, int file, const char *arch, int driver)
{
    struct stat info;
    if (fstat(file, &info) != 0) return "it cannot be read";
    const char *why = distrust_file(&info);
    if (why != NULL) return why;
    archive->size = (size_t)info.st_size;
    void *map = mmap(NULL, archive->size, PROT_READ, MAP_PRIVATE, file, 0);
    if (map == MAP_FAILED) return "it cannot be mapped";
    const archive_header *header = map;
    why = distrust_header(header, archive->size, arch, driver);
    if (why == NULL) why = distrust_index(header);
    if (why != NULL) {
        munmap(map, archive->size);
        return why;
    }
    archive->map = map;
    archive->entries = (const archive_entry *)(header + 1);
    archive->count = (int)header->count;
    return NULL;
}

/* Maps the archive `path` if it is usable. Returns whether the file exists, usable or not. */
static bool try_path(tgl_archive *archive, const char *path, const char *arch, int driver)
{
    const int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 && (errno == ENOENT || errno == ENOTDIR)) return false;
    const char *why = file < 0 ? errno == ELOOP ? "it is a symbolic link" : "it cannot be opened"
                               : map_open(archive, file, arch, driver);
    if (file >= 0) close(file);
    if (why == NULL)
        snprintf(archive->text, sizeof archive->text, "%s (%d kernels)", path, archive->count);
    else
        snprintf(archive->text, sizeof archive->text, "off (%s: %s)", path, why);
    return true;
}

/* Tries the folders of installed archives, until one contains an archive file. own: the path of the
 * library's folder, `length` bytes long; length 0: unknown. */
static bool try_folders(tgl_archive *archive, const char *own, int length, const char *arch,
                        int driver)
{
    static const struct {
        bool is_own; /* relative to the folder of the library */
        const char *folder;
    } places[] = {{true, ""}, {true, "/../lib"}, {false, "/usr/local/lib"}, {false, "/usr/lib"}};
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (places[i].is_own && length == 0) continue;
        const int size = snprintf(path, sizeof path, "%.*s%s/tegula/%s.kernels",
                                  places[i].is_own ? length : 0, own, places[i].folder, arch);
        if (size < (int)sizeof path && try_path(archive, path, arch, driver)) return true;
    }
    return false;
}

/* Finds the file of the library. *length := the bytes of its folder's path; 0: not known. */
static void find_library(Dl_info *file, int *length)
{
    *length = 0;
    if (dladdr(magic, file) == 0 || file->dli_fname == NULL || file->dli_fname[0] != '/') return;
    *length = (int)(strrchr(file->dli_fname, '/') - file->dli_fname);
}

tgl_archive *tgl_archive_open(const char *arch, int driver)
{
    tgl_archive *archive = calloc(1, sizeof *archive);
    const char *own = secure_getenv("TEGULA_ARCHIVE");
    Dl_info library = {.dli_fname = NULL};
    int length;
    if (archive == NULL) return NULL;
    if (own == NULL) {
        find_library(&library, &length);
        if (!try_folders(archive, library.dli_fname != NULL ? library.dli_fname : "", length, arch,
                         driver))
            snprintf(archive->text, sizeof "none", "none");
    } else if (own[0] == '\0' || strcmp(own, "off") == 0) {
        snprintf(archive->text, sizeof archive->text, "off (TEGULA_ARCHIVE)");
    } else if (own[0] != '/') {
        snprintf(archive->text, sizeof archive->text, "off (TEGULA_ARCHIVE is no absolute path)");
    } else if (!try_path(archive, own, arch, driver)) {
        snprintf(archive->text, sizeof archive->text, "off (TEGULA_ARCHIVE: there is no %.3900s)",
                 own);
    }
    return archive;
}

void tgl_archive_close(tgl_archive *archive)
{
    if (archive != NULL && archive->map != NULL) munmap(archive->map, archive->size);
    free(archive);
}

const char *tgl_archive_describe(const tgl_archive *archive)
{
    return archive != NULL ? archive->text : "off (no memory)";
}

int tgl_archive_count(const tgl_archive *archive)
{
    return archive != NULL ? archive->count : 0;
}

/* ---- Finding --------------------------------------------------------------------------------- */

static int compare_to_entry(const void *key, const void *entry)
{
    return memcmp(key, ((const archive_entry *)entry)->key, DIGEST);
}

static const archive_entry *find(const tgl_archive *archive, const tgl_kernel_key *key)
{
    if (archive == NULL || archive->count == 0) return NULL;
    return bsearch(key->digest, archive->entries, (size_t)archive->count, sizeof *archive->entries,
                   compare_to_entry);
}

bool tgl_archive_has(const tgl_archive *archive, const tgl_kernel_key *key)
{
    return find(archive, key) != NULL;
}

bool tgl_archive_find(const tgl_archive *archive, const tgl_kernel_key *key, tgl_binary *binary)
{
    const archive_entry *entry = find(archive, key);
    unsigned char checksum[DIGEST];
    if (entry == NULL) return false;
    const char *code = (const char *)archive->map + entry->offset;
    hash_of(code, (size_t)entry->size, checksum);
    if (memcmp(checksum, entry->checksum, sizeof checksum) != 0) return false;
    *binary = (tgl_binary){.image = (void *)code,
                           .size = (size_t)entry->size,
                           .uses = {.registers = entry->registers,
                                    .shared_bytes = entry->shared_bytes,
                                    .local_bytes = entry->local_bytes,
                                    .spill_bytes = entry->spill_bytes,
                                    .serialises = entry->serialises},
                           .is_kept = true};
    return true;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static size_t aligned(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t tgl_archive_empty_bytes(void)
{
    return sizeof(archive_header) + ALIGNMENT;
}

size_t tgl_archive_bytes_of(const tgl_binary *binary)
{
    return sizeof(archive_entry) + aligned(binary->size);
}

static int compare_kernels(const void *x, const void *y)
{
    return memcmp(((const tgl_archived *)x)->key.digest, ((const tgl_archived *)y)->key.digest,
                  DIGEST);
}

/* Copies the code of the kernels to the image of the file, from byte `at` on, and fills in the
 * entries. */
static void lay_out(char *file, archive_entry *entries, size_t at, const tgl_archived *kernels,
                    int count)
{
    for (int i = 0; i < count; i++) {
        const tgl_binary *binary = &kernels[i].binary;
        archive_entry *entry = &entries[i];
        memcpy(entry->key, kernels[i].key.digest, DIGEST);
        entry->offset = at;
        entry->size = binary->size;
        entry->registers = binary->uses.registers;
        entry->shared_bytes = binary->uses.shared_bytes;
        entry->local_bytes = binary->uses.local_bytes;
        entry->spill_bytes = binary->uses.spill_bytes;
        entry->serialises = binary->uses.serialises;
        memcpy(file + at, binary->image, binary->size);
        hash_of(file + at, binary->size, entry->checksum);
        at += aligned(binary->size);
    }
}

/* Writes a temporary file and renames it, so that no process sees half an archive. */
static tgl_status replace_file(const char *path, const char *data, size_t size)
{
    char other[PATH_BYTES];
    if (snprintf(other, sizeof other, "%s.XXXXXX", path) >= (int)sizeof other)
        return tgl_fail(TGL_DRIVER, "the path of the archive is too long");
    const int file = mkostemp(other, O_CLOEXEC);
    if (file < 0) return tgl_fail(TGL_DRIVER, "%s cannot be written: %s", path, strerror(errno));
    bool done = tgl_file_write(file, data, size) && fchmod(file, 0644) == 0;
    int error = errno;
    if (close(file) != 0 && done) {
        done = false;
        error = errno;
    }
    if (done && rename(other, path) == 0) return TGL_OK;
    if (done) error = errno;
    unlink(other);
    return tgl_fail(TGL_DRIVER, "%s cannot be written: %s", path, strerror(error));
}

tgl_status tgl_archive_write(const char *path, const char *arch, int nvrtc, tgl_archived *kernels,
                             int count)
{
    const size_t index = sizeof(archive_header) + (size_t)count * sizeof(archive_entry);
    size_t size = aligned(index);
    for (int i = 0; i < count; i++)
        size += aligned(kernels[i].binary.size);
    char *data = calloc(1, size);
    if (data == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for an archive");
    archive_header *header = (archive_header *)(void *)data;
    archive_entry *entries = (archive_entry *)(void *)(data + sizeof *header);
    qsort(kernels, (size_t)count, sizeof *kernels, compare_kernels);
    *header = header_of(arch, nvrtc, count);
    header->size = size;
    lay_out(data, entries, aligned(index), kernels, count);
    hash_index(header, entries, header->checksum);
    const tgl_status status = replace_file(path, data, size);
    free(data);
    return status;
}
