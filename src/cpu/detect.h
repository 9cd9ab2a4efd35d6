/* SPDX-License-Identifier: Apache-2.0
 *
 * What the processor is and has.
 */
#ifndef TGL_CPU_DETECT_H
#define TGL_CPU_DETECT_H

#include <stddef.h>

/* TGL_CPU_X86 is defined by the build where the x86 tiers are compiled. */

typedef enum cpu_feature {
    CPU_AVX2 = 1u << 0,
    CPU_FMA = 1u << 1,
    CPU_AVX512F = 1u << 2,
} cpu_feature;

typedef struct cpu_facts {
    char name[64];      /* the processor's own name, or "unknown" */
    unsigned features;  /* cpu_feature bits: the processor has them and the system saves them */
    size_t l1d, l2, l3; /* bytes; never 0 for l1d and l2 */
    int cores;          /* that this process may run on */
} cpu_facts;

void tgl_cpu_detect(cpu_facts *facts);

#endif
