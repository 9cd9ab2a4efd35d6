/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of tiers (tiers.h), and the choice among them by the environment variable
 * TEGULA_CPU.
 */
#include "cpu/device/tiers.h"
#include "base/error.h"

#include <string.h>

/* A tier that this build cannot compile (another architecture, or an older compiler) has a row,
 * too, with kernels that are NULL, so that TEGULA_CPU=-NAME accepts the names of all tiers. The
 * build defines TGL_CPU_X86 and similar flags as 1 or 0. */
#define IF_1(x)            (&(x))
#define IF_0(x)            NULL
#define IF_VALUE(value, x) IF_##value(x)
#define IF(flag, x)        IF_VALUE(flag, x)
#define KERNELS(flag, suffix)                                                                      \
    IF(flag, tgl_cpu_kernels_##suffix##_f32), IF(flag, tgl_cpu_kernels_##suffix##_f64),            \
        IF(flag, tgl_cpu_kernels_##suffix##_c64), IF(flag, tgl_cpu_kernels_##suffix##_c128),       \
        IF(flag, tgl_cpu_conversions_##suffix)

/* Best tier first. Columns: the members of cpu_tier (tiers.h), in order. */
static const cpu_tier tiers[] = {
    {"amx", "cpu/amx", CPU_AMX | CPU_AVX512 | CPU_FMA, KERNELS(TGL_CPU_AMX, avx512),
     IF(TGL_CPU_AMX, tgl_cpu_words_amx), "avx512"},
    {"avx512_bf16", "cpu/avx512_bf16", CPU_AVX512_BF16 | CPU_AVX512 | CPU_FMA,
     KERNELS(TGL_CPU_AVX512_BF16, avx512), IF(TGL_CPU_AVX512_BF16, tgl_cpu_words_avx512_bf16),
     "avx512"},
    {"avx512_vnni", "cpu/avx512_vnni", CPU_AVX512_VNNI | CPU_AVX512 | CPU_FMA,
     KERNELS(TGL_CPU_AVX512_VNNI, avx512), IF(TGL_CPU_AVX512_VNNI, tgl_cpu_words_avx512_vnni),
     "avx512"},
    {"avx512", "cpu/avx512", CPU_AVX512 | CPU_FMA, KERNELS(TGL_CPU_X86, avx512),
     IF(TGL_CPU_X86, tgl_cpu_words_avx2), NULL},
    {"avx2", "cpu/avx2", CPU_AVX2 | CPU_FMA, KERNELS(TGL_CPU_X86, avx2),
     IF(TGL_CPU_X86, tgl_cpu_words_avx2), NULL},
    {"neon_mm", "cpu/neon_mm", CPU_I8MM | CPU_BF16 | CPU_NEON, KERNELS(TGL_CPU_NEON_MM, neon),
     IF(TGL_CPU_NEON_MM, tgl_cpu_words_neon_mm), "neon"},
    {"neon_dot", "cpu/neon_dot", CPU_DOTPROD | CPU_NEON, KERNELS(TGL_CPU_NEON_DOT, neon),
     IF(TGL_CPU_NEON_DOT, tgl_cpu_words_neon_dot), "neon"},
    {"neon", "cpu/neon", CPU_NEON, KERNELS(TGL_CPU_ARM64, neon), NULL, NULL},
    {"portable", "cpu/portable", 0, KERNELS(1, portable), NULL, NULL},
};
enum { TIERS = sizeof tiers / sizeof tiers[0] };
_Static_assert(sizeof tiers / sizeof tiers[0] <= CPU_MAX_TIERS, "CPU_MAX_TIERS is too small");

/* Whether the build contains the tier's kernels and a processor with these features can run
 * them. */
static bool runs(int tier, unsigned features)
{
    return tiers[tier].f32 != NULL && (tiers[tier].needs & ~features) == 0;
}

/* Whether `text` is the first `length` characters of `name`. */
static bool is_name(const char *text, const char *name, size_t length)
{
    return text != NULL && strlen(text) == length && memcmp(text, name, length) == 0;
}

/* The index of the tier with this name of `length` characters; -1: there is none. */
static int find_tier_by_name(const char *name, size_t length)
{
    for (int i = 0; i < TIERS; i++)
        if (is_name(tiers[i].name, name, length)) return i;
    return -1;
}

/* Sets the error message: why the setting is refused, and the names of the tiers that can run. */
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
        /* "-NAME" is accepted even for a tier that this machine cannot run. */
        if (tier < 0 || (!forbid && !runs(tier, features)))
            return refuse_setting(setting, features,
                                  "is not the name of an instruction set that this processor has");
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
