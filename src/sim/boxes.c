/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies boxes between tensors in global memory and shared memory, as TMA does.
 */
#include "sim/boxes.h"

#include "sim/tensor_cores.h"

#include <stdbool.h>
#include <string.h>

enum { CHUNK = 16 /* bytes that a swizzle keeps together */ };

int64_t tgl_box_rows(const struct tgl_tensor_map *map)
{
    int64_t rows = 1;
    for (int i = 1; i < map->rank; i++)
        rows *= map->box[i];
    return rows;
}

size_t tgl_box_row_bytes(const struct tgl_tensor_map *map)
{
    return (size_t)map->box[0] * map->element;
}

size_t tgl_box_bytes(const struct tgl_tensor_map *map)
{
    return (size_t)tgl_box_rows(map) * tgl_box_row_bytes(map);
}

tgl_box_row tgl_box_row_at(const struct tgl_tensor_map *map, const int *at, int64_t number)
{
    const int64_t begin = at[0] > 0 ? at[0] : 0;
    const int64_t end = (int64_t)at[0] + map->box[0] < (int64_t)map->size[0]
                            ? (int64_t)at[0] + map->box[0]
                            : (int64_t)map->size[0];
    bool is_inside = begin < end;
    char *from = (char *)map->base + begin * map->element;
    const size_t to = (size_t)number * tgl_box_row_bytes(map);
    for (int i = 1; i < map->rank; i++) {
        const int64_t x = at[i] + number % map->box[i];
        number /= map->box[i];
        is_inside = is_inside && x >= 0 && x < (int64_t)map->size[i];
        from += x * map->stride[i];
    }
    return (tgl_box_row){.from = from,
                         .first = (size_t)(begin - at[0]) * map->element,
                         .bytes = is_inside ? (size_t)(end - begin) * map->element : 0,
                         .to = to};
}

/* Applies a swizzle of 32, 64 or 128 bytes. 128: address bits 4-6 ^= bits 7-9; 64: bits 4-5 ^= bits
 * 7-8; 32: bit 4 ^= bit 7. */
static uintptr_t swizzled(uintptr_t address, int swizzle)
{
    if (swizzle == 0) return address;
    return address ^ (address >> 7 & (uintptr_t)(swizzle / CHUNK - 1)) << 4;
}

static void round_to_tf32(char *row, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 4) {
        uint32_t bits;
        memcpy(&bits, row + i, 4);
        bits = tgl_tensor_round_tf32(bits);
        memcpy(row + i, &bits, 4);
    }
}

void tgl_box_to_shared(const struct tgl_tensor_map *map, const int *at, char *shared)
{
    enum { ROW_MAX = 256 * 8 };
    const size_t bytes = tgl_box_row_bytes(map);
    const uintptr_t address = (uintptr_t)shared;
    char data[ROW_MAX];
    for (int64_t i = 0; i < tgl_box_rows(map); i++) {
        const tgl_box_row row = tgl_box_row_at(map, at, i);
        memset(data, 0, bytes);
        if (row.bytes > 0) memcpy(data + row.first, row.from, row.bytes);
        if (map->is_tf32) round_to_tf32(data, bytes);
        for (size_t j = 0; j < bytes; j += CHUNK) {
            const uintptr_t to = swizzled(address + row.to + j, map->swizzle);
            memcpy(shared + (to - address), data + j, CHUNK);
        }
    }
}

void tgl_box_from_shared(const struct tgl_tensor_map *map, const char *shared, char *data)
{
    for (size_t i = 0; i < tgl_box_bytes(map); i += CHUNK) {
        const uintptr_t from = swizzled((uintptr_t)shared + i, map->swizzle);
        memcpy(data + i, shared + (from - (uintptr_t)shared), CHUNK);
    }
}
