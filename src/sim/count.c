/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the sectors and wavefronts of one access by a warp.
 */
#include "sim/count.h"

#include <stdbool.h>

enum { LANES = 32, BANKS = 32, SECTOR = 32 };

const char *tgl_access_name(tgl_access_kind kind)
{
    static const char *const names[TGL_ACCESS_KINDS] = {
        [TGL_GLOBAL_LOAD] = "global load", [TGL_GLOBAL_STORE] = "global store",
        [TGL_SHARED_LOAD] = "shared load", [TGL_SHARED_STORE] = "shared store",
        [TGL_ASYNC_COPY] = "cp.async",     [TGL_TMA_LOAD] = "TMA load",
        [TGL_TMA_STORE] = "TMA store",     [TGL_TENSOR_LOAD] = "wgmma",
        [TGL_TENSOR_MMA] = "mma",
    };
    return names[kind];
}

int tgl_count_sectors(const tgl_warp_access *access)
{
    /* a lane's access is aligned to its size, and so lies in one sector */
    uintptr_t seen[LANES], last = 0;
    int count = 0;
    for (uint32_t lanes = access->lanes; lanes != 0; lanes &= lanes - 1) {
        const uintptr_t sector = access->address[__builtin_ctz(lanes)] / SECTOR;
        if (count > 0 && sector == last) continue;
        last = sector;
        int i = 0;
        while (i < count && seen[i] != sector)
            i++;
        if (i == count) seen[count++] = sector;
    }
    return count;
}

/* The number of wavefronts for the lanes in the mask. In a wavefront each bank delivers one 4-byte
 * word, to all lanes that request this word. */
static int count_passes(const tgl_warp_access *access, uint32_t lanes)
{
    uintptr_t word[BANKS][LANES]; /* distinct words requested from each bank */
    uint8_t words[BANKS] = {0};
    int words_max = 0;
    for (; lanes != 0; lanes &= lanes - 1) {
        const uintptr_t address = access->address[__builtin_ctz(lanes)];
        const uintptr_t end = address + access->bytes;
        for (uintptr_t w = address / 4; w * 4 < end; w++) {
            const unsigned bank = w % BANKS;
            int i = 0;
            while (i < words[bank] && word[bank][i] != w)
                i++;
            if (i < words[bank]) continue;
            word[bank][words[bank]++] = w;
            if (words[bank] > words_max) words_max = words[bank];
        }
    }
    return words_max;
}

/* Whether lanes i and i^flip request the same address, for every i with both lanes active. */
static bool lanes_pair(const tgl_warp_access *access, int flip)
{
    for (uint32_t lanes = access->lanes; lanes != 0; lanes &= lanes - 1) {
        const int i = __builtin_ctz(lanes), other = i ^ flip;
        if ((access->lanes >> other & 1) != 0 && access->address[i] != access->address[other])
            return false;
    }
    return true;
}

/* The number of lanes that are served together: 32 for accesses of at most 4 bytes, 16 for 8 bytes,
 * 8 for 16 bytes. For 8 and 16 bytes the number doubles if all active lanes i and i^1 request the
 * same address, or all active lanes i and i^2 do. */
int tgl_count_lanes_together(const tgl_warp_access *access)
{
    const int lanes = access->bytes <= 4 ? 32 : access->bytes == 8 ? 16 : 8;
    const bool are_merged = lanes < LANES && (lanes_pair(access, 1) || lanes_pair(access, 2));
    return are_merged ? 2 * lanes : lanes;
}

int tgl_count_wavefronts(const tgl_warp_access *access, int *least)
{
    const int part = tgl_count_lanes_together(access);
    const uint32_t mask = part == LANES ? ~0u : (1u << part) - 1;
    int count = 0;
    *least = 0;
    for (int first = 0; first < LANES; first += part) {
        const uint32_t lanes = access->lanes & mask << first;
        count += count_passes(access, lanes);
        *least += lanes != 0;
    }
    return count;
}
