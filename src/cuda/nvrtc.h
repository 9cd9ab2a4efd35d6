/* SPDX-License-Identifier: Apache-2.0
 *
 * NVRTC, NVIDIA's run-time compiler, loaded at run time. Version 11.4 or later is needed, because
 * the kernels use the .L2::128B prefetch qualifier of PTX 7.4. Since 11.2 NVRTC compiles to machine
 * code and lists its architectures.
 */
#ifndef TGL_CUDA_NVRTC_H
#define TGL_CUDA_NVRTC_H

#include "base/error.h"

#include <stddef.h>

typedef int nvrtcResult;
typedef struct nvrtcProgram_st *nvrtcProgram;

enum { NVRTC_SUCCESS = 0, NVRTC_ERROR_COMPILATION = 6 };
enum { TGL_ARCHS_MAX = 64, TGL_BUILD_ID_MAX = 64 };

typedef struct tgl_nvrtc {
    void *handle;
    int version;              /* 1000*major + 10*minor, as the driver encodes it */
    int archs[TGL_ARCHS_MAX]; /* supported compute capabilities, ascending: 80, 90, ... */
    int arch_count;
    /* Distinguishes builds of one version: the build id of the library file, or its size and
     * modification time. */
    unsigned char build_id[TGL_BUILD_ID_MAX];
    size_t build_id_size;

    nvrtcResult (*nvrtcVersion)(int *major, int *minor);
    nvrtcResult (*nvrtcGetNumSupportedArchs)(int *count);
    nvrtcResult (*nvrtcGetSupportedArchs)(int *archs);
    const char *(*nvrtcGetErrorString)(nvrtcResult result);
    nvrtcResult (*nvrtcCreateProgram)(nvrtcProgram *program, const char *source, const char *name,
                                      int header_count, const char *const *headers,
                                      const char *const *header_names);
    nvrtcResult (*nvrtcDestroyProgram)(nvrtcProgram *program);
    nvrtcResult (*nvrtcCompileProgram)(nvrtcProgram program, int option_count,
                                       const char *const *options);
    nvrtcResult (*nvrtcGetProgramLogSize)(nvrtcProgram program, size_t *size);
    nvrtcResult (*nvrtcGetProgramLog)(nvrtcProgram program, char *log);
    nvrtcResult (*nvrtcGetCUBINSize)(nvrtcProgram program, size_t *size);
    nvrtcResult (*nvrtcGetCUBIN)(nvrtcProgram program, char *cubin);
    nvrtcResult (*nvrtcGetPTXSize)(nvrtcProgram program, size_t *size);
    nvrtcResult (*nvrtcGetPTX)(nvrtcProgram program, char *ptx);
} tgl_nvrtc;

/* Searches for NVRTC in the order that docs/environment.md states. Error: TGL_NO_COMPILER. */
tgl_status tgl_nvrtc_open(tgl_nvrtc *nvrtc);
void tgl_nvrtc_close(tgl_nvrtc *nvrtc);

/* An architecture's name: "sm_90a", or "compute_90" for PTX that the driver translates. */
typedef struct tgl_arch {
    char name[24];
} tgl_arch;

/* Chooses the architecture to compile for on a device of this compute capability (90 for 9.0). The
 * first choice is the device's own architecture with all instructions. The second is machine code
 * for the nearest earlier architecture of the same major version, but not for a device that is a
 * Tegra, and not the architecture of a Tegra. The last choice is PTX for the nearest earlier
 * architecture. Error: TGL_NO_COMPILER (NVRTC supports only later architectures). */
tgl_status tgl_nvrtc_choose_arch(const tgl_nvrtc *nvrtc, int capability, tgl_arch *arch);

/* The name that enables all instructions of an architecture: "sm_80", "sm_90a". nvrtc NULL: the
 * name that the newest NVRTC accepts. */
tgl_arch tgl_nvrtc_arch_name(const tgl_nvrtc *nvrtc, int capability);

#endif
