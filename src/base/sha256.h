/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 (FIPS 180-4), for the keys of the disk cache.
 */
#ifndef TGL_SHA256_H
#define TGL_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { TGL_SHA256_BYTES = 32 };

typedef struct tgl_sha256 {
    uint32_t state[8];
    uint64_t length; /* bytes added so far */
    unsigned char block[64];
} tgl_sha256;

void tgl_sha256_start(tgl_sha256 *hash);
void tgl_sha256_add(tgl_sha256 *hash, const void *data, size_t size);
void tgl_sha256_finish(tgl_sha256 *hash, unsigned char digest[TGL_SHA256_BYTES]);

/* text := the first `bytes` bytes of a digest in hexadecimal, 2*bytes digits and the final 0. */
void tgl_sha256_text(const unsigned char *digest, int bytes, char *text);

#endif
