/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy's .npz files: ZIP archives of .npy files. Members are stored (numpy.savez) or compressed
 * (numpy.savez_compressed), which needs zlib when the program is built. The archive is untrusted,
 * so every offset and size in it is checked.
 */
#ifndef CLI_NPZ_H
#define CLI_NPZ_H

#include "message_buffer.h"

#include <stdint.h>

/* Whether the bytes start like a ZIP archive. */
bool npz_is_archive(const unsigned char *bytes, size_t size);

/* Finds the array `name`, the member "NAME.npy", in the archive; NULL: its only array. *member :=
 * the bytes of the array. If the member is compressed they are in *inflated, which the caller
 * frees; else they are in the archive. */
bool npz_find(const unsigned char *bytes, size_t size, const char *name,
              const unsigned char **member, size_t *member_size, void **inflated,
              message_buffer message);

#endif
