/* SPDX-License-Identifier: Apache-2.0
 *
 * Two stand-ins for NVIDIA's libraries, so that the cuda device is tested on machines without a
 * GPU: libfake_cuda.so answers for libcuda (TEGULA_LIBCUDA), with host memory for device memory and
 * loops for kernels; libfake_nvrtc.so answers for NVRTC (TEGULA_NVRTC), with a line of text for a
 * cubin. They know no more of the two interfaces than the library uses, and refuse what the real
 * ones refuse: a call without a context, a launch with a function of another context.
 * libfake_cuda_old is a driver for CUDA 11.x, without cuStreamGetId(), cuTensorMapEncodeTiled() and
 * cuFuncGetParamInfo().
 *
 * What the real ones would let pass, or punish by wrong results, is a misuse: it is printed and
 * counted, and fails the test in its teardown:
 *   - a call that ends a capture under way: allocating, freeing, waiting or unloading without the
 *     relaxed mode, cuCtxSynchronize(), the default stream beside a blocking stream
 *   - memory of one stream (cuMemAllocAsync) in a launch on another stream, or in a captured one
 *   - such memory freed by cuMemFree() while its stream has work that was not waited for
 *   - a module unloaded, or left in a context that is released, while its kernels may run
 *   - counters that are not zero when a list begins
 *
 * Environment variables, read at each call, choose what goes wrong:
 *   FAKE_CUDA_DEVICES     how many devices there are (1)
 *   FAKE_CUDA_NAME        what they are called ("Fake GPU 0")
 *   FAKE_CUDA_CAPABILITY  their compute capability (90)
 *   FAKE_CUDA_VERSION     what the driver serves (13000); the compiler is 13.0
 *   FAKE_CUDA_MEMORY      bytes of each (2^28)
 *   FAKE_CUDA_POOLS       0: the device has no stream-ordered allocation (1)
 *   FAKE_CUDA_FAIL        "cuLaunchKernel=700,cuMemAlloc_v2=2": results of calls. A result that
 *                         real devices do not recover from sticks to the context.
 *   FAKE_CUDA_DIRTY       1: kernels leave their counters as if they were interrupted (0)
 *   FAKE_NVRTC_VERSION    of the compiler, 1000*major + 10*minor (13000)
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

/* What the tests ask of the fakes, by dlsym(). All but the launches are numbers: */
typedef int fake_number_function(void);
/* libfake_cuda.so:
 *   fake_cuda_live()     memory, modules, events, streams and contexts not given back
 *   fake_cuda_depth()    contexts on this thread's stack
 *   fake_cuda_modules()  modules that are loaded
 *   fake_cuda_misuses()  so far, since this was asked for the last time
 *   fake_cuda_encoded()  tensor maps so far
 * libfake_nvrtc.so:
 *   fake_nvrtc_count()   compilations so far
 *   fake_nvrtc_options() options of the latest compilation */

/* libfake_cuda.so: a launch on this thread, the latest (0), the one before it (1) and so on, up to
 * FAKE_CUDA_LAUNCHES - 1. */
typedef struct fake_cuda_launch {
    unsigned grid[3], dynamic_shared, cluster;
    int overlaps;              /* it may start before the one before it has ended */
    int is_captured;           /* into a graph */
    struct tgl_gemm_args args; /* of the production families */
    unsigned char bytes[136];  /* the first of the arguments of other kernels */
} fake_cuda_launch;
enum { FAKE_CUDA_LAUNCHES = 4 };
typedef fake_cuda_launch fake_cuda_launched_function(int back);

#endif
