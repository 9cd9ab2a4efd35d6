/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds NVRTC and its functions, and names architectures.
 */
#include "cuda/nvrtc.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ENTRY(member)                                                                              \
    {                                                                                              \
        offsetof(tgl_nvrtc, member), #member                                                       \
    }

static const struct {
    size_t offset;
    const char *name;
} functions[] = {
    ENTRY(nvrtcVersion),
    ENTRY(nvrtcGetNumSupportedArchs),
    ENTRY(nvrtcGetSupportedArchs),
    ENTRY(nvrtcGetErrorString),
    ENTRY(nvrtcCreateProgram),
    ENTRY(nvrtcDestroyProgram),
    ENTRY(nvrtcCompileProgram),
    ENTRY(nvrtcGetProgramLogSize),
    ENTRY(nvrtcGetProgramLog),
    ENTRY(nvrtcGetCUBINSize),
    ENTRY(nvrtcGetCUBIN),
    ENTRY(nvrtcGetPTXSize),
    ENTRY(nvrtcGetPTX),
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

/* ---- One candidate --------------------------------------------------------------------------- */

static bool find_functions(tgl_nvrtc *nvrtc)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        void *address = dlsym(nvrtc->handle, functions[i].name);
        if (address == NULL) return false;
        memcpy((char *)nvrtc + functions[i].offset, &address, sizeof address);
    }
    return true;
}

static bool read_facts(tgl_nvrtc *nvrtc)
{
    int major, minor;
    if (nvrtc->nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) return false;
    nvrtc->version = 1000 * major + 10 * minor;
    if (nvrtc->nvrtcGetNumSupportedArchs(&nvrtc->arch_count) != NVRTC_SUCCESS) return false;
    return nvrtc->arch_count > 0 && nvrtc->arch_count <= TGL_ARCHS_MAX &&
           nvrtc->nvrtcGetSupportedArchs(nvrtc->archs) == NVRTC_SUCCESS;
}

/* True: `path` is an NVRTC that serves. */
static bool try_library(tgl_nvrtc *nvrtc, const char *path)
{
    *nvrtc = (tgl_nvrtc){.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
    if (nvrtc->handle == NULL) return false;
    if (find_functions(nvrtc) && read_facts(nvrtc)) return true;
    tgl_nvrtc_close(nvrtc);
    return false;
}

/* ---- The search ------------------------------------------------------------------------------ */

/* Files that match, the highest version first. */
static bool try_pattern(tgl_nvrtc *nvrtc, const char *pattern)
{
    glob_t found;
    bool done = false;
    if (glob(pattern, 0, NULL, &found) != 0) return false;
    for (size_t i = found.gl_pathc; i > 0 && !done; i--)
        done = try_library(nvrtc, found.gl_pathv[i - 1]);
    globfree(&found);
    return done;
}

static bool try_folder(tgl_nvrtc *nvrtc, const char *base, const char *folder)
{
    char pattern[4096];
    int length = snprintf(pattern, sizeof pattern, "%s%s/libnvrtc.so*", base, folder);
    return length < (int)sizeof pattern && try_pattern(nvrtc, pattern);
}

static bool try_loader(tgl_nvrtc *nvrtc)
{
    static const char *const names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                        "libnvrtc.so.11.2"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (try_library(nvrtc, names[i])) return true;
    return false;
}

/* Where toolkits and Python wheels put it. Columns: an environment variable with the beginning of
 * the path (NULL: none), the folder. */
static const struct {
    const char *variable, *folder;
} places[] = {
    {"CUDA_HOME", "/lib64"},
    {"CUDA_PATH", "/lib64"},
    {NULL, "/usr/local/cuda/lib64"},
    {NULL, "/usr/local/cuda-*/lib64"},
    {NULL, "/opt/cuda/lib64"},
    {NULL, "/usr/lib/nvidia-cuda-toolkit/lib64"},
    {"CONDA_PREFIX", "/lib"},
    {"CONDA_PREFIX", "/lib/python3*/site-packages/nvidia/c*/lib"},
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/c*/lib"},
    {"HOME", "/.local/lib/python3*/site-packages/nvidia/c*/lib"},
    {NULL, "/usr/local/lib/python3*/*-packages/nvidia/c*/lib"},
    {NULL, "/usr/lib/python3*/*-packages/nvidia/c*/lib"},
};

static bool try_places(tgl_nvrtc *nvrtc)
{
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *base = places[i].variable != NULL ? secure_getenv(places[i].variable) : "";
        if (base != NULL && try_folder(nvrtc, base, places[i].folder)) return true;
    }
    return false;
}

tgl_status tgl_nvrtc_open(tgl_nvrtc *nvrtc, char *message, size_t message_size)
{
    const char *own = secure_getenv("TEGULA_NVRTC");
    struct stat info;
    if (own != NULL) {
        bool is_folder = stat(own, &info) == 0 && S_ISDIR(info.st_mode);
        if (is_folder ? try_folder(nvrtc, own, "") : try_library(nvrtc, own)) return TGL_OK;
        snprintf(message, message_size,
                 "TEGULA_NVRTC is \"%s\", which is no NVRTC of version 11.2 or later", own);
        return TGL_NO_COMPILER;
    }
    if (try_loader(nvrtc) || try_places(nvrtc)) return TGL_OK;
    snprintf(message, message_size,
             "NVRTC, which compiles the kernels, was not found: install the CUDA toolkit (11.2 or "
             "later) or `pip install nvidia-cuda-nvrtc`, or name libnvrtc.so in TEGULA_NVRTC");
    return TGL_NO_COMPILER;
}

void tgl_nvrtc_close(tgl_nvrtc *nvrtc)
{
    if (nvrtc->handle != NULL) dlclose(nvrtc->handle);
    nvrtc->handle = NULL;
}

/* ---- Architectures --------------------------------------------------------------------------- */

/* From Hopper on, some instructions are only had under the name with an "a", which NVRTC knows
 * since 12.0. */
tgl_arch tgl_nvrtc_arch_name(const tgl_nvrtc *nvrtc, int capability)
{
    tgl_arch arch;
    const bool has_own = capability >= 90 && nvrtc->version >= 12000;
    snprintf(arch.name, sizeof arch.name, "sm_%d%s", capability, has_own ? "a" : "");
    return arch;
}

/* Of a Tegra, whose machine code and that of other GPUs do not run on each other. 110 is 101 since
 * NVRTC 13.0. */
static bool is_tegra(int capability)
{
    static const int known[] = {53, 62, 72, 87, 101, 110};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i] == capability) return true;
    return false;
}

tgl_status tgl_nvrtc_choose_arch(const tgl_nvrtc *nvrtc, int capability, tgl_arch *arch)
{
    int nearest = 0;
    for (int i = 0; i < nvrtc->arch_count; i++) {
        const int known = nvrtc->archs[i];
        if (known == capability || (known < capability && !is_tegra(known))) nearest = known;
    }
    if (nearest == 0) return TGL_NO_COMPILER;
    if (nearest == capability)
        *arch = tgl_nvrtc_arch_name(nvrtc, capability);
    else
        snprintf(arch->name, sizeof arch->name, "%s_%d",
                 nearest / 10 == capability / 10 && !is_tegra(capability) ? "sm" : "compute",
                 nearest);
    return TGL_OK;
}
