/* SPDX-License-Identifier: Apache-2.0
 *
 * NVRTC, NVIDIA's run-time compiler, found at run time. Version 11.4 or later: the kernels use the
 * .L2::128B prefetch qualifier of PTX 7.4. Since 11.2 it compiles to machine code itself and lists
 * the architectures that it knows.
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
    int version;              /* 1000*major + 10*minor, as the driver counts */
    int archs[TGL_ARCHS_MAX]; /* compute capabilities it compiles for, ascending: 80, 90, ... */
    int arch_count;
    /* Tells builds of one version apart: the build id of the library file, or its size and time. */
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

/* Looks for NVRTC in the order that docs/environment.md states. TGL_NO_COMPILER. */
tgl_status tgl_nvrtc_open(tgl_nvrtc *nvrtc);
void tgl_nvrtc_close(tgl_nvrtc *nvrtc);

/* An architecture's name: "sm_90a", or "compute_90" for PTX that the driver translates. */
typedef struct tgl_arch {
    char name[24];
} tgl_arch;

/* What to compile for so that a device of this compute capability (90 for 9.0) runs it best:
 * its own architecture with all its instructions; else the nearest before it of the same major
 * version, whose machine code it runs too, unless one of both is a Tegra; else PTX.
 * TGL_NO_COMPILER: NVRTC knows only later architectures. */
tgl_status tgl_nvrtc_choose_arch(const tgl_nvrtc *nvrtc, int capability, tgl_arch *arch);

/* The name that gives access to all instructions of an architecture: "sm_80", "sm_90a". */
tgl_arch tgl_nvrtc_arch_name(const tgl_nvrtc *nvrtc, int capability);

#endif
