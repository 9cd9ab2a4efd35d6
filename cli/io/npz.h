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

/* Whether the bytes begin like a ZIP archive. */
bool npz_is_archive(const unsigned char *bytes, size_t size);

/* Finds an array in the archive. name: the array's name, which is that of the member "NAME.npy";
 * NULL: the only array. *member and *member_size := the bytes of the .npy file. They are part of
 * the archive or, if the member is compressed, in *inflated, which the caller frees. False: failed,
 * and message says why. */
bool npz_find(const unsigned char *bytes, size_t size, const char *name,
              const unsigned char **member, size_t *member_size, void **inflated,
              message_buffer message);

#endif
