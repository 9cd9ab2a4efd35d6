/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of chips. The columns up to L2 are the manufacturer's values, except the clock: it is
 * the clock under load if that is known, else the boost clock. Memory rates are 0.9 times the rate
 * in the data sheet, which is about what copies reach. L2 rates are estimates.
 */
#include "plan/chips.h"
#include "plan/kernel_source.h"
#include "plan/limits.h"

#include <string.h>

#define L2_SHARE          (2.0 / 3)
#define L2_RATE(sms, mhz) (64.0 * 1e6 * (mhz) * (sms)*L2_SHARE)

/* Columns: the members of tgl_chip (chips.h), in order. The two columns before the threads per SM
 * (2048, 1536 or 1024) are the FLOPs of the tensor cores per SM and clock, of 16-bit types and of
 * F64. */
// clang-format off
#define SM_80 TGL_HAS_ASYNC_COPY
#define SM_89 (SM_80 | TGL_HAS_FP8_MMA)
#define SM_90 (SM_89 | TGL_HAS_CLUSTERS | TGL_HAS_OVERLAP | TGL_HAS_TMA | TGL_HAS_WGMMA)
#define SM_100 (SM_89 | TGL_HAS_CLUSTERS | TGL_HAS_OVERLAP | TGL_HAS_TMA)
static const tgl_chip chips[] = {
    {"h200",    "NVIDIA H200",             90, SM_90, 132, 1980, 128, 4096, 256, 2048, 65536, 233472, 232448, 8,  60 << 20, 0.9 * 4.80e12, L2_RATE(132, 1980)},
    {"h100",    "NVIDIA H100 80GB HBM3",   90, SM_90, 132, 1980, 128, 4096, 256, 2048, 65536, 233472, 232448, 8,  50 << 20, 0.9 * 3.35e12, L2_RATE(132, 1980)},
    {"b200",    "NVIDIA B200",            100, SM_100, 148, 1965, 128, 8192, 128, 2048, 65536, 233472, 232448, 8, 126 << 20, 0.9 * 8.00e12, L2_RATE(148, 1965)},
    {"a100",    "NVIDIA A100-SXM4-80GB",   80, SM_80, 108, 1410,  64, 2048, 128, 2048, 65536, 167936, 166912, 1,  40 << 20, 0.9 * 2.04e12, L2_RATE(108, 1410)},
    {"a10",     "NVIDIA A10",              86, SM_80,  72, 1695, 128, 1024,   0, 1536, 65536, 102400, 101376, 1,   6 << 20, 0.9 * 0.60e12, L2_RATE(72, 1695)},
    {"l4",      "NVIDIA L4",               89, SM_89,  58, 2040, 128, 1024,   0, 1536, 65536, 102400, 101376, 1,  48 << 20, 0.9 * 0.30e12, L2_RATE(58, 2040)},
    {"l40s",    "NVIDIA L40S",             89, SM_89, 142, 2520, 128, 1024,   0, 1536, 65536, 102400, 101376, 1,  96 << 20, 0.9 * 0.86e12, L2_RATE(142, 2520)},
    {"rtx5090", "NVIDIA GeForce RTX 5090", 120, SM_100, 170, 2407, 128, 512,  0, 1536, 65536, 102400, 101376, 8,  96 << 20, 0.9 * 1.79e12, L2_RATE(170, 2407)},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 89, SM_89, 128, 2520, 128,  512,   0, 1536, 65536, 102400, 101376, 1,  72 << 20, 0.9 * 1.01e12, L2_RATE(128, 2520)},
    {"rtx3090", "NVIDIA GeForce RTX 3090", 86, SM_80,  82, 1695, 128,  512,   0, 1536, 65536, 102400, 101376, 1,   6 << 20, 0.9 * 0.94e12, L2_RATE(82, 1695)},
    {"t4",      "Tesla T4",                75, 0,     40, 1590,  64, 1024,   0, 1024, 65536,  65536,  65536, 1,   4 << 20, 0.9 * 0.32e12, L2_RATE(40, 1590)},
};
// clang-format on
enum { CHIPS = sizeof chips / sizeof chips[0] };

const tgl_chip *tgl_chip_at(int index)
{
    return index >= 0 && index < CHIPS ? &chips[index] : NULL;
}

const tgl_chip *tgl_chip_find(const char *name)
{
    for (int i = 0; i < CHIPS; i++)
        if (strcmp(chips[i].name, name) == 0) return &chips[i];
    return NULL;
}

const tgl_chip *tgl_chip_of(const char *device_name)
{
    for (int i = 0; i < CHIPS; i++)
        if (strcmp(chips[i].text, device_name) == 0) return &chips[i];
    return NULL;
}

int tgl_chip_fp32_lanes(int capability)
{
    return capability < 70 ? 0 : capability <= 80 ? 64 : 128;
}

int tgl_chip_tensor_flops(int capability)
{
    if (capability < 70) return 0;
    if (capability < 80) return 1024;
    if (capability == 80) return 2048;
    if (capability == 90) return 4096;
    return capability == 100 || capability == 103 ? 8192 : 512;
}

int tgl_chip_tensor_f64_flops(int capability)
{
    return capability == 80 ? 128 : capability == 90 ? 256 : capability == 100 ? 128 : 0;
}

unsigned tgl_chip_features(int capability)
{
    unsigned features = capability >= 80 ? SM_80 : 0;
    if (capability >= 89) features |= SM_89;
    if (capability >= 90) features |= TGL_HAS_CLUSTERS | TGL_HAS_OVERLAP | TGL_HAS_TMA;
    if (capability == 90) features |= TGL_HAS_WGMMA;
    return features;
}

double tgl_chip_l2_rate(int sms, int clock_mhz)
{
    return L2_RATE(sms, clock_mhz);
}

tgl_chip tgl_chip_with_usual_rates(const tgl_chip *chip)
{
    enum { USUAL_LANES = 64, USUAL_MHZ = 1500 };
    tgl_chip known = *chip;
    if (known.fp32_lanes <= 0) known.fp32_lanes = USUAL_LANES;
    if (known.clock_mhz <= 0) known.clock_mhz = USUAL_MHZ;
    if (known.l2_rate <= 0) known.l2_rate = tgl_chip_l2_rate(known.sms, known.clock_mhz);
    return known;
}

tgl_chip tgl_chip_of_capability(int capability)
{
    tgl_chip chip = *tgl_chip_at(0);
    chip.name = "";
    chip.text = "";
    chip.capability = capability;
    chip.features = tgl_chip_features(capability);
    chip.fp32_lanes = tgl_chip_fp32_lanes(capability);
    chip.tensor_flops = tgl_chip_tensor_flops(capability);
    chip.tensor_f64_flops = tgl_chip_tensor_f64_flops(capability);
    chip.cluster_max = (chip.features & TGL_HAS_CLUSTERS) != 0 ? TGL_CLUSTER_MAX : 1;
    return chip;
}
