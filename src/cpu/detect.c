/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the processor (cpuid, xgetbv) and the system (sysconf, the affinity mask). On other
 * processors than x86 only the system is asked.
 */
#include "cpu/detect.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

/* The register state that the operating system saves: XCR0 (Intel SDM vol. 1, 13.3). */
static uint64_t saved_state(void)
{
    uint32_t eax, edx;
    __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
    return (uint64_t)edx << 32 | eax;
}

static unsigned detect_features(void)
{
    enum { XMM_YMM = 0x06, OPMASK_ZMM = 0xe0 };
    unsigned eax, ebx, ecx, edx, features = 0;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE)) return 0;
    const uint64_t saved = saved_state();
    if ((saved & XMM_YMM) != XMM_YMM) return 0;
    if (ecx & bit_FMA) features |= CPU_FMA;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return features;
    if (ebx & bit_AVX2) features |= CPU_AVX2;
    if ((ebx & bit_AVX512F) && (saved & OPMASK_ZMM) == OPMASK_ZMM) features |= CPU_AVX512F;
    return features;
}

/* Deterministic cache parameters, cpuid leaf 4: the data or unified cache of this level. */
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

static unsigned detect_features(void)
{
    return 0;
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

#endif

/* The system's word, else the processor's, else a size that is seldom too large. */
static size_t cache_size(int name, unsigned level, size_t otherwise)
{
    long bytes = -1;
#ifdef _SC_LEVEL1_DCACHE_SIZE
    bytes = sysconf(name);
#else
    (void)name;
#endif
    if (bytes > 0) return (size_t)bytes;
    const size_t own = cache_of_level(level);
    return own > 0 ? own : otherwise;
}

#ifndef _SC_LEVEL1_DCACHE_SIZE
enum { _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE };
#endif

static int count_cores(void)
{
#ifdef CPU_COUNT
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

void tgl_cpu_detect(cpu_facts *facts)
{
    *facts = (cpu_facts){
        .name = "unknown",
        .features = detect_features(),
        .l1d = cache_size(_SC_LEVEL1_DCACHE_SIZE, 1, 32 << 10),
        .l2 = cache_size(_SC_LEVEL2_CACHE_SIZE, 2, 256 << 10),
        .l3 = cache_size(_SC_LEVEL3_CACHE_SIZE, 3, 0),
        .cores = count_cores(),
    };
    detect_name(facts->name, sizeof facts->name);
}
