/* SPDX-License-Identifier: Apache-2.0
 *
 * The tiers, and the choice between them. A tier is the set of kernels that the cpu device has for
 * one instruction set, such as AVX2.
 */
#ifndef TGL_CPU_TIERS_H
#define TGL_CPU_TIERS_H

#include "cpu/device/detect.h"
#include "cpu/kernels/tier_tables.h"
#include "tegula/tegula.h"

typedef struct cpu_tier {
    const char *name;   /* name in TEGULA_CPU: "avx512" */
    const char *kernel; /* name in the public interface: "cpu/avx512" */
    unsigned needs;     /* cpu_feature bits that the tier requires */
    const cpu_kernels *f32, *f64, *c64, *c128;
    const cpu_conversions *conversions;
    const cpu_words *words; /* kernels that multiply bf16 or int8 words (cpu_words.h); NULL: the
                               tier has none */
    const char *base;       /* name of the tier that this one takes its f32 to c128 kernels from;
                               NULL: it has its own */
} cpu_tier;

enum { CPU_MAX_TIERS = 9 };

/* The tier's kernels for elements of this type: f32, f64, c64 or c128. */
static inline const cpu_kernels *tgl_cpu_kernels_of(const cpu_tier *tier, tgl_type type)
{
    if (__builtin_expect(type > TGL_F64, 0)) return type == TGL_C64 ? tier->c64 : tier->c128;
    return type == TGL_F32 ? tier->f32 : tier->f64;
}

/* Lists the tiers that a processor with these features runs and that `setting` allows, best first.
 * usable, count: the result and its length. setting: the value of TEGULA_CPU, a list separated by
 * commas; NULL allows all.
 *    - "NAME" allows only the tier of this name; two different names leave no tier.
 *    - "-NAME" excludes the named tier and all tiers whose `base` is that tier. The processor need
 *      not support it.
 * Returns TGL_BAD_SETTING for an unknown name, for a NAME that the processor does not run, and if
 * no tier is left. */
tgl_status tgl_cpu_choose_tiers(unsigned features, const char *setting,
                                const cpu_tier *usable[CPU_MAX_TIERS], int *count);

#endif
