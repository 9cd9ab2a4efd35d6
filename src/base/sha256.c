/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 as FIPS 180-4 states it, section by section.
 */
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

/* Section 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64
 * primes. */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate_right(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

/* Section 6.2.2: hashes one block. */
static void compress(uint32_t state[8], const unsigned char block[64])
{
    uint32_t w[64], s[8];
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < 64; t++) {
        uint32_t x = w[t - 15], y = w[t - 2];
        w[t] = w[t - 16] + w[t - 7] + (rotate_right(x, 7) ^ rotate_right(x, 18) ^ x >> 3) +
               (rotate_right(y, 17) ^ rotate_right(y, 19) ^ y >> 10);
    }
    memcpy(s, state, sizeof s); /* the working variables a, b, ... h of FIPS 180-4 */
    for (int t = 0; t < 64; t++) {
        uint32_t e = s[4], a = s[0];
        uint32_t t1 = s[7] + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
                      ((e & s[5]) ^ (~e & s[6])) + K[t] + w[t];
        uint32_t t2 = (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) +
                      ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof s[0]);
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

void tgl_sha256_start(tgl_sha256 *hash)
{
    /* Section 5.3.3: the fractional parts of the square roots of the first 8 primes */
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, initial, sizeof initial);
    hash->length = 0;
}

void tgl_sha256_add(tgl_sha256 *hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    while (size > 0) {
        size_t at = hash->length % sizeof hash->block, part = sizeof hash->block - at;
        if (part > size) part = size;
        memcpy(hash->block + at, bytes, part);
        hash->length += part;
        bytes += part;
        size -= part;
        if (at + part == sizeof hash->block) compress(hash->state, hash->block);
    }
}

void tgl_sha256_finish(tgl_sha256 *hash, unsigned char digest[TGL_SHA256_BYTES])
{
    /* Section 5.1.1: padding is a one bit, zeros, and the length in bits as a 64-bit number. */
    static const unsigned char padding[64] = {0x80};
    const uint64_t bits = hash->length * 8;
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    tgl_sha256_add(hash, padding, 1 + (119 - hash->length % 64) % 64);
    tgl_sha256_add(hash, length, sizeof length);
    for (int i = 0; i < TGL_SHA256_BYTES; i++)
        digest[i] = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void tgl_sha256_text(const unsigned char *digest, int bytes, char *text)
{
    for (int i = 0; i < bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}
