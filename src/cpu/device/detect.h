/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts about the processor that kernels and plans depend on.
 */
#ifndef TGL_CPU_DETECT_H
#define TGL_CPU_DETECT_H

#include <stdbool.h>
#include <stddef.h>

typedef enum cpu_feature {
    CPU_AVX2 = 1u << 0, /* AVX2 and F16C, which all processors with AVX2 have */
    CPU_FMA = 1u << 1,
    CPU_AVX512 = 1u << 2, /* AVX512F, BW, DQ and VL, which all processors with AVX-512 have except
                             Xeon Phi */
    CPU_NEON = 1u << 3,   /* NEON of aarch64, which has fused multiply-adds of f64 */
    CPU_AMX = 1u << 4,    /* AMX-TILE, AMX-BF16, AMX-INT8 and AVX512-VNNI. Whether Linux permits AMX
                             to the process is found out later (tier_amx.c) */
    CPU_AVX512_BF16 = 1u << 5, /* AVX512-VNNI and AVX512-BF16, with VDPBF16PS at the rate of FMAs */
    CPU_AVX512_VNNI = 1u << 6,

    /* aarch64, from bit 16 on */
    CPU_DOTPROD = 1u << 16, /* the instruction SDOT */
    CPU_I8MM = 1u << 17,    /* the instruction SMMLA */
    CPU_BF16 = 1u << 18,    /* the instruction BFMMLA */
} cpu_feature;

typedef struct cpu_facts {
    char name[64];     /* the processor's own name, or "unknown" */
    char model[32];    /* "VENDOR FAMILY.MODEL", such as "AuthenticAMD 25.17"; "": not known */
    unsigned features; /* cpu_feature bits that the processor has and whose registers the system
                          saves */
    size_t l1d, l2;    /* bytes of the L1 data cache and the L2 cache of one core; never 0 */
    size_t l3;         /* bytes of all L3 caches that this process can use; 0: none, or not
                          known */
    int cores;         /* processors that this process may use, limited by its affinity mask and
                          cgroup */
} cpu_facts;

void tgl_cpu_detect(cpu_facts *facts);

#endif
