/* SPDX-License-Identifier: Apache-2.0
 *
 * The number of sectors and wavefronts of access patterns with known results.
 */
#include "support.h"

#include "sim/count.h"

/* An access in which lane i has the address base + 4*word(i). word(i) -1: the lane is inactive. */
static tgl_warp_access make(unsigned bytes, uintptr_t base, int (*word)(int lane))
{
    tgl_warp_access access = {.bytes = bytes};
    for (int lane = 0; lane < 32; lane++) {
        if (word(lane) < 0) continue;
        access.lanes |= 1u << lane;
        access.address[lane] = base + 4 * (uintptr_t)word(lane);
    }
    return access;
}

static int same(int lane)
{
    return (void)lane, 5;
}
static int neighbours(int lane)
{
    return lane;
}
static int reversed(int lane)
{
    return 31 - lane;
}
static int every_second(int lane)
{
    return 2 * lane;
}
static int every_third(int lane)
{
    return 3 * lane;
}
static int every_32nd(int lane)
{
    return 32 * lane;
}
static int every_33rd(int lane)
{
    return 33 * lane;
}
static int pairs(int lane)
{
    return 2 * lane;
}
static int quads(int lane)
{
    return 4 * lane;
}
static int one_lane(int lane)
{
    return lane == 7 ? 0 : -1;
}
static int first_half(int lane)
{
    return lane < 16 ? lane : -1;
}
static int eight_rows(int lane)
{
    return lane / 4 * 128 + lane % 4;
}
static int quads_of_one_bank(int lane)
{
    return 32 * lane;
}
static int same_quad(int lane)
{
    return (void)lane, 8;
}
static int quads_in_pairs(int lane)
{
    return lane / 2 * 4;
}
static int quads_in_z_order(int lane)
{
    return (lane / 2 % 2 + lane / 4 % 2 * 2) * 4;
}
static int pairs_twice(int lane)
{
    return lane / 2 * 2;
}

static void test_sectors(void **state)
{
    (void)state;
    const struct {
        unsigned bytes;
        uintptr_t base;
        int (*word)(int);
        int sectors;
    } cases[] = {
        {4, 4096, neighbours, 4},     /* coalesced */
        {4, 4096 + 4, neighbours, 5}, /* one element off */
        {4, 4096, reversed, 4},       {4, 4096, same, 1},         {4, 4096, every_second, 8},
        {4, 4096, every_32nd, 32},    {4, 4096, every_third, 12}, {4, 4096, one_lane, 1},
        {4, 4096, first_half, 2},     {4, 4096, eight_rows, 8},   {8, 4096, pairs, 8},
        {16, 4096, quads, 16},        {16, 4096, every_32nd, 32}, {2, 4096, neighbours, 4},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const tgl_warp_access access = make(cases[i].bytes, cases[i].base, cases[i].word);
        if (tgl_count_sectors(&access) != cases[i].sectors)
            fail_msg("case %zu: %d sectors, not %d", i, tgl_count_sectors(&access),
                     cases[i].sectors);
    }
}

static void test_wavefronts(void **state)
{
    (void)state;
    const struct {
        unsigned bytes;
        int (*word)(int);
        int wavefronts, least;
    } cases[] = {
        {4, neighbours, 1, 1},
        {4, reversed, 1, 1},
        {4, same, 1, 1},         /* a broadcast */
        {4, every_second, 2, 1}, /* 2-way conflict */
        {4, every_third, 1, 1},  /* odd strides use every bank once */
        {4, every_32nd, 32, 1},  /* all in one bank */
        {4, every_33rd, 1, 1},   /* padding by one word */
        {4, one_lane, 1, 1},
        {4, eight_rows, 8, 1},
        {8, pairs, 2, 2},       /* by half-warps */
        {8, pairs_twice, 1, 1}, /* pairs of lanes request the same address: both halves at once */
        {8, every_32nd, 32, 2},
        {8, first_half, 1, 1},
        {16, quads, 4, 4}, /* by quarter-warps */
        {16, quads_of_one_bank, 32, 4},
        {16, same_quad, 2, 2},
        {16, quads_in_pairs, 2, 2},
        {16, quads_in_z_order, 2, 2},
        {16, one_lane, 1, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int least;
        const tgl_warp_access access = make(cases[i].bytes, 1 << 20, cases[i].word);
        const int wavefronts = tgl_count_wavefronts(&access, &least);
        if (wavefronts != cases[i].wavefronts || least != cases[i].least)
            fail_msg("case %zu: %d wavefronts of at least %d, not %d of %d", i, wavefronts, least,
                     cases[i].wavefronts, cases[i].least);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sectors),
        cmocka_unit_test(test_wavefronts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
