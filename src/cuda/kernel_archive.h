/* SPDX-License-Identifier: Apache-2.0
 *
 * An archive of compiled kernels: one file for one architecture, which is used before NVRTC and the
 * disk cache. tgl_warm() writes it, packages may carry it. It only saves time: a kernel that is not
 * in it, or whose code is damaged, is compiled.
 *
 *     header | index: an entry for each kernel, ordered by key | machine code of the kernels
 *
 * The key of a kernel is the hash of its sources, macros and architecture (nvrtc_compile.h). The
 * header has a checksum of the header and the index. Each entry has a checksum of its code.
 *
 * The file is $TEGULA_ARCHIVE, an absolute path; empty or "off": none. Without the variable it is
 * tegula/ARCH.kernels in one of four folders, whichever has it first: the folder of the library (of
 * the program, if that contains the library), ../lib from there, /usr/local/lib, /usr/lib.
 *
 * It is not used if it is not a regular file, belongs to a user other than the caller and root, or
 * may be written by others. Nor is it used if it is of another version, of other kernel sources, of
 * another architecture, or of an NVRTC that is newer than the driver. It must be replaced by
 * renaming, because it is mapped while devices are open.
 */
#ifndef TGL_KERNEL_ARCHIVE_H
#define TGL_KERNEL_ARCHIVE_H

#include "base/error.h"
#include "cuda/nvrtc_compile.h"

enum { TGL_ARCHIVE_BYTES_MAX = 64 << 20 };

/* Constant once it is open: several threads may use it. */
typedef struct tgl_archive tgl_archive;

/* Opens the archive for this architecture. driver: the newest CUDA version that the driver
 * supports, 1000*major + 10*minor. If there is no usable file, the result has no kernels. NULL: no
 * memory; the functions below accept NULL. */
tgl_archive *tgl_archive_open(const char *arch, int driver);
void tgl_archive_close(tgl_archive *archive);

/* Text for users: the path and the number of kernels, or "none", or "off (reason)". */
const char *tgl_archive_describe(const tgl_archive *archive);

/* The number of kernels; 0: there is no archive. */
int tgl_archive_count(const tgl_archive *archive);

/* *binary := the code with this key, which the archive owns. Returns false if the archive does not
 * have it, or if it is damaged. */
bool tgl_archive_find(const tgl_archive *archive, const tgl_kernel_key *key, tgl_binary *binary);

/* Whether the archive has an entry with this key. Its code is not verified. */
bool tgl_archive_has(const tgl_archive *archive, const tgl_kernel_key *key);

/* A kernel for tgl_archive_write(). */
typedef struct tgl_archived {
    tgl_kernel_key key;
    tgl_binary binary;
} tgl_archived;

/* Bytes that a kernel takes in the file; bytes of a file without kernels. */
size_t tgl_archive_bytes_of(const tgl_binary *binary);
size_t tgl_archive_empty_bytes(void);

/* Writes an archive of `count` kernels of different keys to a temporary file beside `path` and
 * renames it. Sorts `kernels`. nvrtc: the compiler's version, 1000*major + 10*minor. Errors:
 * TGL_DRIVER (the file cannot be written); TGL_NO_MEMORY. */
tgl_status tgl_archive_write(const char *path, const char *arch, int nvrtc, tgl_archived *kernels,
                             int count);

#endif
