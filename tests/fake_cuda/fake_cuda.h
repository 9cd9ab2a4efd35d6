/* SPDX-License-Identifier: Apache-2.0
 *
 * Two stand-ins for NVIDIA's libraries, so that the cuda device is tested on machines without a
 * GPU: libfake_cuda.so answers for libcuda (TEGULA_LIBCUDA), with host memory for device memory and
 * loops for kernels; libfake_nvrtc.so answers for NVRTC (TEGULA_NVRTC), with a line of text for a
 * cubin. They know no more of the two interfaces than the library uses, and refuse what the real
 * ones refuse: a call without a context, a launch with a function of another context.
 *
 * Environment variables, read at each call, choose what goes wrong:
 *   FAKE_CUDA_DEVICES     how many devices there are (1)
 *   FAKE_CUDA_NAME        what they are called ("Fake GPU 0")
 *   FAKE_CUDA_CAPABILITY  their compute capability (90)
 *   FAKE_CUDA_VERSION     what the driver serves (13000); the compiler is 13.0
 *   FAKE_CUDA_MEMORY      bytes of each (2^28)
 *   FAKE_CUDA_FAIL        "cuLaunchKernel=700,cuMemAlloc_v2=2": results of calls. A result that
 *                         real devices do not recover from sticks to the context.
 *   FAKE_CUDA_CAPTURES    1: streams are being captured (0)
 *   FAKE_NVRTC_ARCHS      what NVRTC compiles for ("75,80,86,90,100,120")
 *   FAKE_NVRTC_OUTPUT     an architecture that it compiles for whatever it is asked
 *   FAKE_NVRTC_ERROR      a log that compilations fail with
 *   FAKE_NVRTC_SPILL      bytes that a kernel spills (0)
 *   FAKE_NVRTC_DELAY      milliseconds a compilation takes (0)
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "../../kernels/lib/gemm_args.h"

#define FAKE_CUDA_API __attribute__((visibility("default")))

/* What the tests ask of the fakes, by dlsym(). */

/* libfake_cuda.so: memory, modules, events and contexts that have not been given back. */
typedef int fake_cuda_live_function(void);

/* libfake_cuda.so: contexts on this thread's stack. */
typedef int fake_cuda_depth_function(void);

/* libfake_cuda.so: a launch on this thread, the latest (0), the one before it (1) and so on, up to
 * FAKE_CUDA_LAUNCHES - 1. */
typedef struct fake_cuda_launch {
    unsigned grid[3], dynamic_shared, cluster;
    int overlaps;              /* it may start before the one before it has ended */
    struct tgl_gemm_args args; /* of the production families */
} fake_cuda_launch;
enum { FAKE_CUDA_LAUNCHES = 4 };
typedef fake_cuda_launch fake_cuda_launched_function(int back);

/* libfake_nvrtc.so: compilations so far. */
typedef int fake_nvrtc_count_function(void);

#endif
