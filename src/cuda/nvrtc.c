/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds NVRTC and its functions, and names architectures.
 */
#include "cuda/nvrtc.h"

#include <dlfcn.h>
#include <elf.h>
#include <glob.h>
#include <link.h>
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

enum { OLDEST_VERSION = 11040 }; /* 11.4, the first with PTX ISA 7.4 and its .L2::128B */

/* ---- The build of the library ---------------------------------------------------------------- */

/* The arguments and the result of a search for the build id of the loaded library that contains
 * `address`. */
typedef struct build_search {
    const unsigned char *address;
    unsigned char *id;
    size_t size; /* 0: not found */
} build_search;

static bool covers(const struct dl_phdr_info *object, uintptr_t address)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && address >= start && address - start < segment->p_memsz)
            return true;
    }
    return false;
}

/* Searches a segment of notes for NT_GNU_BUILD_ID. Each note has a header, a name and a content,
 * each padded to `align` bytes. */
static void read_notes(const unsigned char *at, size_t left, size_t align, build_search *search)
{
    ElfW(Nhdr) note;
    while (left >= sizeof note) {
        memcpy(&note, at, sizeof note);
        const size_t name = (note.n_namesz + align - 1) / align * align;
        const size_t content = (note.n_descsz + align - 1) / align * align;
        const unsigned char *text = at + sizeof note;
        if (name > left - sizeof note || note.n_descsz > left - sizeof note - name) return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp(text, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0 &&
            note.n_descsz <= TGL_BUILD_ID_MAX) {
            memcpy(search->id, text + name, note.n_descsz);
            search->size = note.n_descsz;
            return;
        }
        if (content > left - sizeof note - name) return; /* the last note is not padded */
        at += sizeof note + name + content;
        left -= sizeof note + name + content;
    }
}

/* Callback of dl_iterate_phdr(): reads the build id of the library that contains search->address. A
 * nonzero result ends the iteration. */
static int look_at_object(struct dl_phdr_info *object, size_t size, void *data)
{
    build_search *search = data;
    (void)size;
    const uintptr_t address = (uintptr_t)search->address;
    if (!covers(object, address)) return 0;
    for (int i = 0; i < object->dlpi_phnum && search->size == 0; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_NOTE)
            read_notes(search->address + (object->dlpi_addr + segment->p_vaddr - address),
                       segment->p_memsz, segment->p_align == 8 ? 8 : 4, search);
    }
    return 1;
}

/* Reads the build id. If the library has none, uses the size and modification time of its file. */
static void read_build(tgl_nvrtc *nvrtc)
{
    build_search search = {.id = nvrtc->build_id};
    struct stat info;
    Dl_info where;
    memcpy(&search.address, &nvrtc->nvrtcVersion, sizeof search.address);
    dl_iterate_phdr(look_at_object, &search);
    nvrtc->build_id_size = search.size;
    if (search.size > 0 || dladdr(search.address, &where) == 0 || stat(where.dli_fname, &info) != 0)
        return;
    const int64_t facts[] = {info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
    memcpy(nvrtc->build_id, facts, sizeof facts);
    nvrtc->build_id_size = sizeof facts;
}

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
    if (nvrtc->nvrtcGetNumSupportedArchs(&nvrtc->arch_count) != NVRTC_SUCCESS) return false;
    if (nvrtc->arch_count <= 0 || nvrtc->arch_count > TGL_ARCHS_MAX ||
        nvrtc->nvrtcGetSupportedArchs(nvrtc->archs) != NVRTC_SUCCESS)
        return false;
    read_build(nvrtc);
    return true;
}

/* The version of an open library, encoded as in tgl_nvrtc; 0: unknown. */
static int version_of(void *handle)
{
    nvrtcResult (*ask)(int *, int *);
    void *address = dlsym(handle, "nvrtcVersion");
    int major, minor;
    if (address == NULL) return 0;
    memcpy(&ask, &address, sizeof ask);
    return ask(&major, &minor) == NVRTC_SUCCESS ? 1000 * major + 10 * minor : 0;
}

/* The state of a search for NVRTC. */
typedef struct nvrtc_search {
    tgl_nvrtc *nvrtc;      /* the result */
    int too_old;           /* the newest version that was found but is too old; 0: none */
    char not_loaded[4096]; /* why the loader refused the latest file; "": it refused none */
} nvrtc_search;

/* Opens the library `path`. Returns whether it is a usable NVRTC. */
static bool try_library(nvrtc_search *search, const char *path)
{
    tgl_nvrtc *nvrtc = search->nvrtc;
    *nvrtc = (tgl_nvrtc){.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
    if (nvrtc->handle == NULL) {
        snprintf(search->not_loaded, sizeof search->not_loaded, "%s", dlerror());
        return false;
    }
    nvrtc->version = version_of(nvrtc->handle);
    if (nvrtc->version >= OLDEST_VERSION && find_functions(nvrtc) && read_facts(nvrtc)) return true;
    if (nvrtc->version < OLDEST_VERSION && nvrtc->version > search->too_old)
        search->too_old = nvrtc->version;
    tgl_nvrtc_close(nvrtc);
    *nvrtc = (tgl_nvrtc){.handle = NULL};
    return false;
}

/* ---- The search ------------------------------------------------------------------------------ */

/* For qsort(): the highest version first. Numbers within the paths are compared as numbers. */
static int compare_versions(const void *x, const void *y)
{
    return strverscmp(*(char *const *)y, *(char *const *)x);
}

/* Tries all files that match the pattern, the highest version first. */
static bool try_pattern(nvrtc_search *search, const char *pattern)
{
    glob_t found;
    bool done = false;
    if (glob(pattern, 0, NULL, &found) != 0) return false;
    qsort(found.gl_pathv, found.gl_pathc, sizeof found.gl_pathv[0], compare_versions);
    for (size_t i = 0; i < found.gl_pathc && !done; i++)
        done = try_library(search, found.gl_pathv[i]);
    globfree(&found);
    return done;
}

static bool try_folder(nvrtc_search *search, const char *base, const char *folder)
{
    char pattern[4096];
    int length = snprintf(pattern, sizeof pattern, "%s%s/libnvrtc.so*", base, folder);
    return length < (int)sizeof pattern && try_pattern(search, pattern);
}

static bool try_loader(nvrtc_search *search)
{
    static const char *const names[] = {
        "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
        "libnvrtc.so.11.2"}; /* the soname of versions 11.2 to 11.8 */
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (try_library(search, names[i])) return true;
    return false;
}

/* The folders of toolkits and Python wheels. Columns: an environment variable with the first part
 * of the path (NULL: none), the folder. */
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

static bool try_places(nvrtc_search *search)
{
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *base = places[i].variable != NULL ? secure_getenv(places[i].variable) : "";
        if (base != NULL && try_folder(search, base, places[i].folder)) return true;
    }
    return false;
}

/* Sets the error message of a search without a usable result. own: TEGULA_NVRTC, or NULL. */
static tgl_status fail(const nvrtc_search *search, const char *own)
{
    const int major = search->too_old / 1000, minor = search->too_old / 10 % 100;
    if (own != NULL && search->too_old > 0)
        return tgl_fail(TGL_NO_COMPILER,
                        "TEGULA_NVRTC is \"%s\", which is NVRTC %d.%d; 11.4 or later is needed",
                        own, major, minor);
    if (own != NULL && search->not_loaded[0] != '\0')
        return tgl_fail(TGL_NO_COMPILER, "TEGULA_NVRTC names no library that can be loaded: %s",
                        search->not_loaded);
    if (own != NULL)
        return tgl_fail(TGL_NO_COMPILER, "TEGULA_NVRTC is \"%s\", but there is no NVRTC", own);
    if (search->too_old > 0)
        return tgl_fail(
            TGL_NO_COMPILER,
            "the newest NVRTC that was found is %d.%d; 11.4 or later is needed: install "
            "a newer CUDA toolkit or `pip install nvidia-cuda-nvrtc`, or name "
            "libnvrtc.so in TEGULA_NVRTC",
            major, minor);
    return tgl_fail(TGL_NO_COMPILER,
                    "NVRTC, which compiles the kernels, was not found: install the CUDA toolkit "
                    "(11.4 or later) or `pip install nvidia-cuda-nvrtc`, or name libnvrtc.so in "
                    "TEGULA_NVRTC");
}

tgl_status tgl_nvrtc_open(tgl_nvrtc *nvrtc)
{
    const char *own = secure_getenv("TEGULA_NVRTC");
    if (own != NULL && own[0] == '\0') own = NULL;
    nvrtc_search search = {.nvrtc = nvrtc};
    struct stat info;
    bool done;
    if (own == NULL)
        done = try_loader(&search) || try_places(&search);
    else if (stat(own, &info) == 0 && S_ISDIR(info.st_mode))
        done = try_folder(&search, own, "");
    else
        done = try_library(&search, own);
    return done ? TGL_OK : fail(&search, own);
}

void tgl_nvrtc_close(tgl_nvrtc *nvrtc)
{
    if (nvrtc->handle != NULL) dlclose(nvrtc->handle);
    nvrtc->handle = NULL;
}

/* ---- Architectures --------------------------------------------------------------------------- */

/* From Hopper on, some instructions need the architecture name with an "a", which NVRTC supports
 * since 12.0. */
tgl_arch tgl_nvrtc_arch_name(const tgl_nvrtc *nvrtc, int capability)
{
    tgl_arch arch;
    const bool has_own = capability >= 90 && (nvrtc == NULL || nvrtc->version >= 12000);
    snprintf(arch.name, sizeof arch.name, "sm_%d%s", capability, has_own ? "a" : "");
    return arch;
}

/* Whether GPUs of this compute capability are Tegras. Tegras do not run machine code for other
 * GPUs, and other GPUs do not run code for Tegras. NVRTC 13.0 has renamed 101 to 110. */
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
    if (nearest == 0)
        return tgl_fail(TGL_NO_COMPILER,
                        "NVRTC %d.%d no longer compiles for compute capability %d.%d; install an "
                        "older one and name it in TEGULA_NVRTC",
                        nvrtc->version / 1000, nvrtc->version / 10 % 100, capability / 10,
                        capability % 10);
    if (nearest == capability)
        *arch = tgl_nvrtc_arch_name(nvrtc, capability);
    else
        snprintf(arch->name, sizeof arch->name, "%s_%d",
                 nearest / 10 == capability / 10 && !is_tegra(capability) ? "sm" : "compute",
                 nearest);
    return TGL_OK;
}
