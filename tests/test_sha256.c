/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 (src/base/sha256.c), by the examples of FIPS 180-4.
 */
#include "support.h"

#include "base/sha256.h"

static void assert_digest(const char *text, size_t repeats, const char *expected)
{
    tgl_sha256 hash;
    unsigned char digest[TGL_SHA256_BYTES];
    char hex[2 * TGL_SHA256_BYTES + 1];
    tgl_sha256_start(&hash);
    for (size_t i = 0; i < repeats; i++)
        tgl_sha256_add(&hash, text, strlen(text));
    tgl_sha256_finish(&hash, digest);
    for (int i = 0; i < TGL_SHA256_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(hex, expected);
}

static void digests_are_those_of_the_standard(void **state)
{
    (void)state;
    assert_digest("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_digest("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    assert_digest("a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* The padding needs another block from 56 bytes on, and the data from 64 bytes on. */
static void digests_do_not_depend_on_the_parts(void **state)
{
    (void)state;
    unsigned char data[200], whole[TGL_SHA256_BYTES], parts[TGL_SHA256_BYTES];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(7 * i);
    for (size_t size = 0; size < sizeof data; size++) {
        tgl_sha256 hash;
        tgl_sha256_start(&hash);
        tgl_sha256_add(&hash, data, size);
        tgl_sha256_finish(&hash, whole);
        tgl_sha256_start(&hash);
        for (size_t i = 0; i < size; i++)
            tgl_sha256_add(&hash, data + i, 1);
        tgl_sha256_finish(&hash, parts);
        assert_memory_equal(whole, parts, sizeof whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_those_of_the_standard),
        cmocka_unit_test(digests_do_not_depend_on_the_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
