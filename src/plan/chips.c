/* SPDX-License-Identifier: Apache-2.0
 *
 * Chips by name. The columns up to L2 are the manufacturer's, but for the clock, which is the one a
 * chip keeps under load where that is known and the boost clock elsewhere. Memory rates are nine
 * tenths of what the data sheet says, which is about what copies reach.
 */
#include "plan/chips.h"

#include <string.h>

#define L2_SHARE                      (2.0 / 3)
#define L2_RATE(multiprocessors, mhz) (64.0 * 1e6 * (mhz) * (multiprocessors)*L2_SHARE)

/* Columns: name, text, capability, SMs, MHz, FP32 lanes, threads, registers and bytes of shared
 * memory a multiprocessor, shared memory a block, blocks a cluster, L2, memory rate, L2 rate. */
// clang-format off
static const tgl_chip_facts chips[] = {
    {"h200",    "NVIDIA H200",             90, 132, 1980, 128, 2048, 65536, 233472, 232448, 8,  60 << 20, 0.9 * 4.80e12, L2_RATE(132, 1980)},
    {"h100",    "NVIDIA H100 80GB HBM3",   90, 132, 1980, 128, 2048, 65536, 233472, 232448, 8,  50 << 20, 0.9 * 3.35e12, L2_RATE(132, 1980)},
    {"a100",    "NVIDIA A100-SXM4-80GB",   80, 108, 1410,  64, 2048, 65536, 167936, 166912, 1,  40 << 20, 0.9 * 2.04e12, L2_RATE(108, 1410)},
    {"l40s",    "NVIDIA L40S",             89, 142, 2520, 128, 1536, 65536, 102400, 101376, 1,  96 << 20, 0.9 * 0.86e12, L2_RATE(142, 2520)},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 89, 128, 2520, 128, 1536, 65536, 102400, 101376, 1,  72 << 20, 0.9 * 1.01e12, L2_RATE(128, 2520)},
    {"rtx3090", "NVIDIA GeForce RTX 3090", 86,  82, 1695, 128, 1536, 65536, 102400, 101376, 1,   6 << 20, 0.9 * 0.94e12, L2_RATE(82, 1695)},
    {"t4",      "Tesla T4",                75,  40, 1590,  64, 1024, 65536,  65536,  65536, 1,   4 << 20, 0.9 * 0.32e12, L2_RATE(40, 1590)},
};
// clang-format on
enum { CHIPS = sizeof chips / sizeof chips[0] };

const tgl_chip_facts *tgl_chip_facts_at(int index)
{
    return index >= 0 && index < CHIPS ? &chips[index] : NULL;
}

const tgl_chip_facts *tgl_chip_facts_find(const char *name)
{
    for (int i = 0; i < CHIPS; i++)
        if (strcmp(chips[i].name, name) == 0) return &chips[i];
    return NULL;
}

const tgl_chip_facts *tgl_chip_facts_of(const char *device_name)
{
    for (int i = 0; i < CHIPS; i++)
        if (strcmp(chips[i].text, device_name) == 0) return &chips[i];
    return NULL;
}

int tgl_chip_fp32_lanes(int capability)
{
    return capability < 70 ? 0 : capability <= 80 ? 64 : 128;
}

int tgl_chip_cluster_most(int capability)
{
    return capability >= 90 ? 8 : 1;
}

double tgl_chip_l2_rate(int multiprocessors, int clock_mhz)
{
    return L2_RATE(multiprocessors, clock_mhz);
}
