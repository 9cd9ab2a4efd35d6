/* SPDX-License-Identifier: Apache-2.0
 *
 * The instruction-set tiers: the one place where the library chooses between them.
 */
#ifndef TGL_CPU_TIERS_H
#define TGL_CPU_TIERS_H

#include "cpu/detect.h"
#include "cpu/kernels.h"
#include "tegula/tegula.h"

extern const cpu_kernels tgl_cpu_kernels_portable_f32, tgl_cpu_kernels_portable_f64;
extern const cpu_kernels tgl_cpu_kernels_avx2_f32, tgl_cpu_kernels_avx2_f64;
extern const cpu_kernels tgl_cpu_kernels_avx512_f32, tgl_cpu_kernels_avx512_f64;

typedef struct cpu_tier {
    const char *name;   /* in TEGULA_CPU: "avx512" */
    const char *kernel; /* in the public interface: "cpu/avx512" */
    unsigned needs;     /* cpu_feature bits */
    const cpu_kernels *f32, *f64;
} cpu_tier;

enum { CPU_MAX_TIERS = 3 };

/* Fills `usable` with the tiers that this processor runs and `setting` allows, best first; *count:
 * how many they are. `setting` is the value of TEGULA_CPU, or NULL: a tier's name allows that one
 * alone, "-name" forbids one; several are separated by commas. TGL_BAD_SETTING: it makes no sense
 * here. */
tgl_status tgl_cpu_choose_tiers(unsigned features, const char *setting,
                                const cpu_tier *usable[CPU_MAX_TIERS], int *count);

#endif
