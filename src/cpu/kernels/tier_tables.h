/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of kernels, conversions and words of all tiers.
 */
#ifndef TGL_CPU_TIER_TABLES_H
#define TGL_CPU_TIER_TABLES_H

#include "cpu/kernels/cpu_words.h"
#include "cpu/kernels/kernels.h"

extern const cpu_kernels tgl_cpu_kernels_portable_f32, tgl_cpu_kernels_portable_f64,
    tgl_cpu_kernels_portable_c64, tgl_cpu_kernels_portable_c128;
extern const cpu_kernels tgl_cpu_kernels_avx2_f32, tgl_cpu_kernels_avx2_f64,
    tgl_cpu_kernels_avx2_c64, tgl_cpu_kernels_avx2_c128;
extern const cpu_kernels tgl_cpu_kernels_avx512_f32, tgl_cpu_kernels_avx512_f64,
    tgl_cpu_kernels_avx512_c64, tgl_cpu_kernels_avx512_c128;
extern const cpu_kernels tgl_cpu_kernels_neon_f32, tgl_cpu_kernels_neon_f64,
    tgl_cpu_kernels_neon_c64, tgl_cpu_kernels_neon_c128;
extern const cpu_conversions tgl_cpu_conversions_neon;
extern const cpu_conversions tgl_cpu_conversions_portable, tgl_cpu_conversions_avx2,
    tgl_cpu_conversions_avx512;
extern const cpu_words tgl_cpu_words_amx, tgl_cpu_words_avx512_bf16, tgl_cpu_words_avx512_vnni,
    tgl_cpu_words_avx2;
extern const cpu_words tgl_cpu_words_neon_dot, tgl_cpu_words_neon_mm;

#endif
