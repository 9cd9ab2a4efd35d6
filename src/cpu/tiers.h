/* SPDX-License-Identifier: Apache-2.0
 *
 * The instruction-set tiers: the one place where the library chooses between them.
 */
#ifndef TGL_CPU_TIERS_H
#define TGL_CPU_TIERS_H

#include "../device.h"
#include "detect.h"
#include "kernels.h"

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

/* Fills `usable` with the tiers that this processor runs and `setting` allows, best first, and
 * returns how many they are. `setting` is the value of TEGULA_CPU, or NULL: a tier's name allows
 * that one alone, "-name" forbids one; several are separated by commas. On a setting that makes no
 * sense here returns 0 and writes a sentence to message. */
int tgl_cpu_choose_tiers(unsigned features, const char *setting,
                         const cpu_tier *usable[CPU_MAX_TIERS], char *message, size_t message_size);

#endif
