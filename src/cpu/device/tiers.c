/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of tiers, and the choice among them that TEGULA_CPU makes.
 */
#include "cpu/device/tiers.h"
#include "base/error.h"

#include <string.h>

/* On other processors the tiers of x86 and aarch64 have names, so that they can be forbidden, but
 * no kernels. The same holds for AMX, AVX512-BF16, AVX512-VNNI, SDOT and MMLA with a compiler that
 * does not know them. */
#ifdef TGL_CPU_X86
#define X86(kernels) (&(kernels))
#else
#define X86(kernels) NULL
#endif
#ifdef TGL_CPU_AMX
#define AMX(x) (&(x))
#else
#define AMX(x) NULL
#endif
#ifdef TGL_CPU_AVX512_BF16
#define BF16(x) (&(x))
#else
#define BF16(x) NULL
#endif
#ifdef TGL_CPU_AVX512_VNNI
#define VNNI(x) (&(x))
#else
#define VNNI(x) NULL
#endif
#ifdef TGL_CPU_ARM64
#define ARM64(kernels) (&(kernels))
#else
#define ARM64(kernels) NULL
#endif
#ifdef TGL_CPU_NEON_DOT
#define DOT(x) (&(x))
#else
#define DOT(x) NULL
#endif
#ifdef TGL_CPU_NEON_MM
#define MM(x) (&(x))
#else
#define MM(x) NULL
#endif

/* Best first. Columns: name, kernel, features that the processor must have, kernels by type,
 * conversions, words, base. */
static const cpu_tier tiers[] = {
    {"amx", "cpu/amx", CPU_AMX | CPU_AVX512 | CPU_FMA, AMX(tgl_cpu_kernels_avx512_f32),
     AMX(tgl_cpu_kernels_avx512_f64), AMX(tgl_cpu_conversions_avx512), AMX(tgl_cpu_words_amx),
     "avx512"},
    {"avx512_bf16", "cpu/avx512_bf16", CPU_AVX512_BF16 | CPU_AVX512 | CPU_FMA,
     BF16(tgl_cpu_kernels_avx512_f32), BF16(tgl_cpu_kernels_avx512_f64),
     BF16(tgl_cpu_conversions_avx512), BF16(tgl_cpu_words_avx512_bf16), "avx512"},
    {"avx512_vnni", "cpu/avx512_vnni", CPU_AVX512_VNNI | CPU_AVX512 | CPU_FMA,
     VNNI(tgl_cpu_kernels_avx512_f32), VNNI(tgl_cpu_kernels_avx512_f64),
     VNNI(tgl_cpu_conversions_avx512), VNNI(tgl_cpu_words_avx512_vnni), "avx512"},
    {"avx512", "cpu/avx512", CPU_AVX512 | CPU_FMA, X86(tgl_cpu_kernels_avx512_f32),
     X86(tgl_cpu_kernels_avx512_f64), X86(tgl_cpu_conversions_avx512), X86(tgl_cpu_words_avx2),
     NULL},
    {"avx2", "cpu/avx2", CPU_AVX2 | CPU_FMA, X86(tgl_cpu_kernels_avx2_f32),
     X86(tgl_cpu_kernels_avx2_f64), X86(tgl_cpu_conversions_avx2), X86(tgl_cpu_words_avx2), NULL},
    {"neon_mm", "cpu/neon_mm", CPU_I8MM | CPU_BF16 | CPU_NEON, MM(tgl_cpu_kernels_neon_f32),
     MM(tgl_cpu_kernels_neon_f64), MM(tgl_cpu_conversions_neon), MM(tgl_cpu_words_neon_mm), "neon"},
    {"neon_dot", "cpu/neon_dot", CPU_DOTPROD | CPU_NEON, DOT(tgl_cpu_kernels_neon_f32),
     DOT(tgl_cpu_kernels_neon_f64), DOT(tgl_cpu_conversions_neon), DOT(tgl_cpu_words_neon_dot),
     "neon"},
    {"neon", "cpu/neon", CPU_NEON, ARM64(tgl_cpu_kernels_neon_f32), ARM64(tgl_cpu_kernels_neon_f64),
     ARM64(tgl_cpu_conversions_neon), NULL, NULL},
    {"portable", "cpu/portable", 0, &tgl_cpu_kernels_portable_f32, &tgl_cpu_kernels_portable_f64,
     &tgl_cpu_conversions_portable, NULL, NULL},
};
enum { TIERS = sizeof tiers / sizeof tiers[0] };
_Static_assert(sizeof tiers / sizeof tiers[0] <= CPU_MAX_TIERS, "CPU_MAX_TIERS is too small");

/* Whether the processor runs this tier. */
static bool runs(int tier, unsigned features)
{
    return tiers[tier].f32 != NULL && (tiers[tier].needs & ~features) == 0;
}

/* Whether the text is a name of `length` characters. */
static bool is_name(const char *text, const char *name, size_t length)
{
    return text != NULL && strlen(text) == length && memcmp(text, name, length) == 0;
}

/* The tier with this name of `length` characters; -1: none has it. */
static int find_tier_by_name(const char *name, size_t length)
{
    for (int i = 0; i < TIERS; i++)
        if (is_name(tiers[i].name, name, length)) return i;
    return -1;
}

/* Says why the setting is refused, and lists what would be understood. */
static tgl_status refuse_setting(const char *setting, unsigned features, const char *why)
{
    char names[96] = "";
    for (int i = 0; i < TIERS; i++)
        if (runs(i, features)) {
            if (names[0] != '\0') strcat(names, ", ");
            strcat(names, tiers[i].name);
        }
    return tgl_fail(
        TGL_BAD_SETTING,
        "TEGULA_CPU=\"%.40s\" %s; available here: %s (a name to force it, -name to forbid it)",
        setting, why, names);
}

tgl_status tgl_cpu_choose_tiers(unsigned features, const char *setting,
                                const cpu_tier *usable[CPU_MAX_TIERS], int *count)
{
    bool allowed[TIERS];
    for (int i = 0; i < TIERS; i++)
        allowed[i] = runs(i, features);

    for (const char *word = setting; word != NULL && *setting != '\0';) {
        const bool forbid = *word == '-';
        const char *name = word + forbid;
        const size_t length = strcspn(name, ",");
        const int tier = find_tier_by_name(name, length);
        /* A tier may be forbidden on machines that could not run it anyway. */
        if (tier < 0 || (!forbid && !runs(tier, features)))
            return refuse_setting(setting, features, "names no tier of this machine");
        for (int i = 0; i < TIERS; i++)
            if ((i == tier || (forbid && is_name(tiers[i].base, name, length))) == forbid)
                allowed[i] = false;
        word = name[length] == ',' ? name + length + 1 : NULL;
    }

    *count = 0;
    for (int i = 0; i < TIERS; i++)
        if (allowed[i]) usable[(*count)++] = &tiers[i];
    return *count > 0 ? TGL_OK : refuse_setting(setting, features, "leaves no tier");
}
