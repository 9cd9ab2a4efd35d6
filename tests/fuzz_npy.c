/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: the reader of .npy headers. The data of a header that it accepts must lie within the
 * file, and the header must be the same after it is written and read again.
 *
 *     fuzz_npy -dict=tests/fuzz_npy.dict -max_total_time=60
 */
#include "npy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_message(const char *message)
{
    assert(message[0] != '\0');
    for (; *message != '\0'; message++)
        assert(*message >= ' ' && *message <= '~');
}

/* Writes the header again, in front of data of the size that it states, and reads it back. */
static void check_round_trip(const npy_header *header)
{
    char text[NPY_HEADER_MAX];
    const size_t length = npy_format(header, text);
    assert(length <= sizeof text && length % 64 == 0);
    unsigned char *file = calloc(1, length + header->data_size);
    assert(file != NULL);
    memcpy(file, text, length);
    npy_header again;
    char message[256];
    assert(npy_parse(file, length + header->data_size, &again, message, sizeof message));
    free(file);
    assert(again.type == header->type && again.fortran_order == header->fortran_order);
    assert(again.dimensions == header->dimensions);
    for (int i = 0; i < header->dimensions; i++)
        assert(again.shape[i] == header->shape[i]);
    assert(again.data_size == header->data_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    npy_header header;
    char message[256] = "";
    if (!npy_parse(bytes, size, &header, message, sizeof message)) {
        check_message(message);
        return 0;
    }
    assert(header.data_offset <= size && header.data_size <= size - header.data_offset);
    assert(header.dimensions >= 1 && header.dimensions <= NPY_DIMENSIONS_MAX);
    for (int i = 0; i < header.dimensions; i++)
        assert(header.shape[i] >= 0);
    check_round_trip(&header);
    return 0;
}
