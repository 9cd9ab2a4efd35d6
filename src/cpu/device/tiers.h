/* SPDX-License-Identifier: Apache-2.0
 *
 * The instruction-set tiers, and the choice between them.
 */
#ifndef TGL_CPU_TIERS_H
#define TGL_CPU_TIERS_H

#include "cpu/device/detect.h"
#include "cpu/kernels/tier_tables.h"
#include "tegula/tegula.h"

typedef struct cpu_tier {
    const char *name;   /* name in TEGULA_CPU: "avx512" */
    const char *kernel; /* name in the public interface: "cpu/avx512" */
    unsigned needs;     /* cpu_feature bits */
    const cpu_kernels *f32, *f64, *c64, *c128;
    const cpu_conversions *conversions;
    const cpu_words *words; /* kernels of words (cpu_words.h); NULL: the tier has none */
    const char *base;       /* the tier whose f32 to c128 kernels it uses; NULL: it has its own */
} cpu_tier;

enum { CPU_MAX_TIERS = 9 };

/* The kernels that multiply elements of this type as they are stored: f32, f64, c64 or c128. */
static inline const cpu_kernels *tgl_cpu_kernels_of(const cpu_tier *tier, tgl_type type)
{
    if (__builtin_expect(type > TGL_F64, 0)) return type == TGL_C64 ? tier->c64 : tier->c128;
    return type == TGL_F32 ? tier->f32 : tier->f64;
}

/* Fills `usable` with the tiers that a processor with these features runs and `setting` allows,
 * best first; *count: their number. setting: the value of TEGULA_CPU, or NULL. The name of a tier
 * allows only that tier. "-name" forbids that tier, which the processor need not support, and the
 * tiers whose `base` it is. Commas separate several of these. TGL_BAD_SETTING: an unknown name, a
 * tier that the processor does not run, or no tier is left. */
tgl_status tgl_cpu_choose_tiers(unsigned features, const char *setting,
                                const cpu_tier *usable[CPU_MAX_TIERS], int *count);

#endif
