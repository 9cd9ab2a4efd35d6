/* SPDX-License-Identifier: Apache-2.0
 *
 * The one table of tiers, and what TEGULA_CPU makes of it.
 */
#include "cpu/tiers.h"
#include "base/error.h"

#include <string.h>

/* Best first. Columns: name, kernel, what the processor must have, kernels by type. */
static const cpu_tier tiers[] = {
#ifdef TGL_CPU_X86
    {"avx512", "cpu/avx512", CPU_AVX512F | CPU_FMA, &tgl_cpu_kernels_avx512_f32,
     &tgl_cpu_kernels_avx512_f64},
    {"avx2", "cpu/avx2", CPU_AVX2 | CPU_FMA, &tgl_cpu_kernels_avx2_f32, &tgl_cpu_kernels_avx2_f64},
#endif
    {"portable", "cpu/portable", 0, &tgl_cpu_kernels_portable_f32, &tgl_cpu_kernels_portable_f64},
};
enum { TIERS = sizeof tiers / sizeof tiers[0] };

/* Whether the processor runs this tier. */
static bool runs(int tier, unsigned features)
{
    return (tiers[tier].needs & ~features) == 0;
}

/* The tier whose name these `length` characters are; -1: none that runs here. */
static int find(const char *name, size_t length, unsigned features)
{
    for (int i = 0; i < TIERS; i++)
        if (strlen(tiers[i].name) == length && memcmp(tiers[i].name, name, length) == 0)
            return runs(i, features) ? i : -1;
    return -1;
}

/* Says why the setting is refused, and lists what would be understood. */
static tgl_status refuse(const char *setting, unsigned features, const char *why)
{
    char names[64] = "";
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
        const int tier = find(name, length, features);
        if (tier < 0) return refuse(setting, features, "names no tier of this machine");
        for (int i = 0; i < TIERS; i++)
            if ((i == tier) == forbid) allowed[i] = false;
        word = name[length] == ',' ? name + length + 1 : NULL;
    }

    *count = 0;
    for (int i = 0; i < TIERS; i++)
        if (allowed[i]) usable[(*count)++] = &tiers[i];
    return *count > 0 ? TGL_OK : refuse(setting, features, "leaves no tier");
}
