/* SPDX-License-Identifier: Apache-2.0
 *
 * An archive of compiled kernels: one file for one architecture, which is used before NVRTC and the
 * disk cache. tgl_warm() writes it, and packages may contain it. It only saves time: a kernel that
 * is not in it, or whose code is damaged, is compiled.
 *
 *     header | index: an entry for each kernel, ordered by key | machine code of the kernels
 *
 * The key of a kernel is the hash of its sources, macros and architecture (nvrtc_compile.h). The
 * header has a checksum of the header and the index. Each entry has a checksum of its code.
 *
 * $TEGULA_ARCHIVE is the absolute path of the file; if the variable is empty or "off", there is no
 * archive. Without the variable the file is tegula/ARCH.kernels in the first of four folders that
 * has it: the folder of the library (or of the program, if the library is linked into it), the
 * folder ../lib relative to that one, /usr/local/lib, /usr/lib.
 *
 * The file must be a regular file that belongs to the caller or to root and that no other user may
 * write, and not a symbolic link; otherwise it is ignored. It is also ignored if it was made by
 * another version of the library, from other kernel sources, for another architecture, or by an
 * NVRTC of a later major version than the driver. Replace the file only by renaming another one to
 * its path: open devices have mapped it.
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

/* *binary := the code with this key. The archive owns the code. Returns false if the archive does
 * not have the code, or if the code is damaged. */
bool tgl_archive_find(const tgl_archive *archive, const tgl_kernel_key *key, tgl_binary *binary);

/* Whether the archive has an entry with this key. Its code is not verified. */
bool tgl_archive_has(const tgl_archive *archive, const tgl_kernel_key *key);

/* A kernel for tgl_archive_write(). */
typedef struct tgl_archived {
    tgl_kernel_key key;
    tgl_binary binary;
} tgl_archived;

/* First function: the bytes that a kernel adds to the file. Second: the bytes of a file without
 * kernels. */
size_t tgl_archive_bytes_of(const tgl_binary *binary);
size_t tgl_archive_empty_bytes(void);

/* Writes an archive of `count` kernels of different keys to a temporary file beside `path` and
 * renames it. Sorts `kernels`. nvrtc: the compiler's version, 1000*major + 10*minor. Errors:
 * TGL_DRIVER (the file cannot be written); TGL_NO_MEMORY. */
tgl_status tgl_archive_write(const char *path, const char *arch, int nvrtc, tgl_archived *kernels,
                             int count);

#endif
