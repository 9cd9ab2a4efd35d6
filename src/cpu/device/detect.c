/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the processor (cpuid, xgetbv) and the system (sysfs, sysconf, getauxval, processors.h). On
 * processors other than x86 it asks only the system.
 */
#include "cpu/device/detect.h"
#include "base/processors.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

/* Reads XCR0: bit i is set if the operating system saves the register set i at a context switch
 * (Intel SDM vol. 1, 13.3). */
static uint64_t saved_state(void)
{
    uint32_t eax, edx;
    __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
    return (uint64_t)edx << 32 | eax;
}

/* Whether VDPBF16PS runs at the rate of FMAs, as on AMD's Zen 4. Sapphire Rapids executes it at a
 * quarter of that rate, so that converting bf16 to f32 is faster there. */
static bool has_fast_bf16(void)
{
    enum { AVX512_BF16 = 1 << 5, AUTH = 0x68747541, ENTI = 0x69746e65, CAMD = 0x444d4163 };
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(0, &eax, &ebx, &ecx, &edx) || ebx != AUTH || edx != ENTI || ecx != CAMD)
        return false;
    return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & AVX512_BF16);
}

static unsigned detect_features(void)
{
    enum { XMM_YMM = 0x06, OPMASK_ZMM = 0xe0, TILES = 0x60000 };
    const unsigned AVX512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;   /* ebx: F, DQ, BW, VL */
    enum { AVX512_VNNI = 1 << 11 };                                      /* ecx */
    enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25 }; /* edx */
    unsigned eax, ebx, ecx, edx, features = 0;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE)) return 0;
    const uint64_t saved = saved_state();
    if ((saved & XMM_YMM) != XMM_YMM) return 0;
    if (ecx & bit_FMA) features |= CPU_FMA;
    const bool has_f16c = ecx & bit_F16C;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return features;
    if ((ebx & bit_AVX2) && has_f16c) features |= CPU_AVX2;
    if ((ebx & AVX512) == AVX512 && (saved & OPMASK_ZMM) == OPMASK_ZMM) features |= CPU_AVX512;
    if ((features & CPU_AVX512) && (edx & AMX_BF16) && (edx & AMX_TILE) && (edx & AMX_INT8) &&
        (ecx & AVX512_VNNI) && (saved & TILES) == TILES)
        features |= CPU_AMX;
    if ((features & CPU_AVX512) && (ecx & AVX512_VNNI)) features |= CPU_AVX512_VNNI;
    if ((features & CPU_AVX512_VNNI) && has_fast_bf16()) features |= CPU_AVX512_BF16;
    return features;
}

/* Bytes of the data or unified cache of this level (cpuid leaf 4); 0 if it is not known. */
static size_t cache_of_level(unsigned level)
{
    for (unsigned index = 0; index < 16; index++) {
        unsigned eax, ebx, ecx, edx;
        if (!__get_cpuid_count(4, index, &eax, &ebx, &ecx, &edx)) return 0;
        const unsigned kind = eax & 31; /* 0: no more; 1: data; 2: instructions; 3: unified */
        if (kind == 0) return 0;
        if (kind == 2 || (eax >> 5 & 7) != level) continue;
        const size_t ways = (ebx >> 22) + 1, partitions = (ebx >> 12 & 1023) + 1;
        const size_t line = (ebx & 4095) + 1, sets = (size_t)ecx + 1;
        return ways * partitions * line * sets;
    }
    return 0;
}

/* Writes "VENDOR FAMILY.MODEL" (cpuid leaves 0 and 1). The family includes the extended family if
 * the base family is 15. The model includes the extended model if the base family is 6 or 15. */
static void detect_model(char *model, size_t size)
{
    unsigned highest, vendor[3], eax, ebx, ecx, edx;
    char text[sizeof vendor + 1] = "";
    if (!__get_cpuid(0, &highest, &vendor[0], &vendor[2], &vendor[1])) return;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return;
    memcpy(text, vendor, sizeof vendor);
    const unsigned base = eax >> 8 & 15, extended = eax >> 16 & 15;
    const unsigned family = base == 15 ? base + (eax >> 20 & 255) : base;
    const unsigned number = (eax >> 4 & 15) | (base == 15 || base == 6 ? extended << 4 : 0);
    snprintf(model, size, "%s %u.%u", text, family, number);
}

static void detect_name(char *name, size_t size)
{
    unsigned words[12] = {0}, highest = 0, ebx, ecx, edx;
    if (__get_cpuid(0x80000000u, &highest, &ebx, &ecx, &edx) && highest >= 0x80000004u)
        for (unsigned i = 0; i < 3; i++)
            __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                        &words[4 * i + 3]);
    char text[sizeof words + 1] = "";
    memcpy(text, words, sizeof words);
    const char *start = text + strspn(text, " ");
    if (*start != '\0') snprintf(name, size, "%s", start);
}

#else

/* NEON is part of every AArch64 processor (Arm ARM, A1.5). The HWCAP bits are repeated here from
 * Linux's asm/hwcap.h, because an older C library does not define the newer bits. */
static unsigned detect_features(void)
{
    unsigned features = 0;
#ifdef __aarch64__
    features |= CPU_NEON;
#ifdef __linux__
    enum { ASIMDDP = 1 << 20, I8MM = 1 << 13, BF16 = 1 << 14 };
    const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
    if (first & ASIMDDP) features |= CPU_DOTPROD;
    if (second & I8MM) features |= CPU_I8MM;
    if (second & BF16) features |= CPU_BF16;
#endif
#endif
    return features;
}

static size_t cache_of_level(unsigned level)
{
    (void)level;
    return 0;
}

static void detect_name(char *name, size_t size)
{
    (void)name, (void)size;
}

static void detect_model(char *model, size_t size)
{
    (void)model, (void)size;
}

#endif

#ifdef _SC_LEVEL1_DCACHE_SIZE
/* The arguments of sysconf() for the sizes of the caches of levels 1 to 3. For level 3 glibc may
 * add up several caches, some of which this process cannot reach. */
static const int cache_names[] = {0, _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                  _SC_LEVEL3_CACHE_SIZE};
#endif

/* Bytes of a cache of this level. Sources, best first: sysfs, sysconf(), cpuid, the default
 * `otherwise`. */
static size_t cache_size(const processor_set *allowed, int level, size_t otherwise)
{
    const size_t known = tgl_cache_bytes("", allowed, level, level == 3);
    if (known > 0) return known;
#ifdef _SC_LEVEL1_DCACHE_SIZE
    const long bytes = sysconf(cache_names[level]);
    if (bytes > 0) return (size_t)bytes;
#endif
    const size_t own = cache_of_level((unsigned)level);
    return own > 0 ? own : otherwise;
}

void tgl_cpu_detect(cpu_facts *facts)
{
    processor_set allowed;
    int count;
    tgl_allowed_processors(&allowed, &count);
    *facts = (cpu_facts){
        .name = "unknown",
        .features = detect_features(),
        /* The last argument is the size that is assumed if no source knows it. Few processors have
         * smaller caches. */
        .l1d = cache_size(&allowed, 1, 32 << 10),
        .l2 = cache_size(&allowed, 2, 256 << 10),
        .l3 = cache_size(&allowed, 3, 0),
        .cores = tgl_processors(),
    };
    detect_name(facts->name, sizeof facts->name);
    detect_model(facts->model, sizeof facts->model);
}
