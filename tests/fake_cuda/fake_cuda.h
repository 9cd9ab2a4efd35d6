/* SPDX-License-Identifier: Apache-2.0
 *
 * Replacements for NVIDIA's libraries, to test the cuda device on machines without a GPU.
 * libfake_cuda.so replaces libcuda (TEGULA_LIBCUDA): device memory is host memory, and kernels are
 * loops. libfake_nvrtc.so replaces NVRTC (TEGULA_NVRTC): a cubin is a line of text. They implement
 * the functions that the library uses, and return the errors of the real ones: for a call without a
 * context, or a launch with a function of another context. libfake_cuda_old is a driver for CUDA
 * 11.x, without cuStreamGetId(), cuTensorMapEncodeTiled(), cuFuncGetParamInfo() and user objects.
 *
 * Errors that the real libraries do not report, or that give wrong results there, are a misuse: it
 * is printed and counted, and fails the test in its teardown:
 *   - a call that invalidates a capture: allocating, freeing, waiting or unloading without the
 *     relaxed mode, cuCtxSynchronize(), the default stream during a capture of a blocking stream
 *   - memory of one stream (cuMemAllocAsync) in a launch on another stream, or in a captured one
 *   - such memory freed by cuMemFree() while its stream has work that was not waited for
 *   - pinned memory that the host overwrites before it has waited for a copy from it. A copy to
 *     pinned memory arrives when the host waits for it; until then the memory has a pattern
 *   - work that may run before other work that it needs: two pieces of work use the same memory of
 *     the device or pinned memory, one of them writes, and neither their stream nor an event or a
 *     wait of the host orders them (fake_order.c)
 *   - a module unloaded, or left in a context that is released, while its kernels may run
 *   - counters that are not zero when a list begins
 *   - a call in the destructor of a user object
 *   - a stream that waits for a word of memory that no other stream writes (fake_peers.c)
 *
 * Environment variables, read at each call, select properties and failures:
 *   FAKE_CUDA_DEVICES     number of devices (1)
 *   FAKE_CUDA_NAME        their name ("Fake GPU 0")
 *   FAKE_CUDA_CAPABILITY  their compute capability (90)
 *   FAKE_CUDA_VERSION     CUDA version of the driver (13000); the compiler is 13.0
 *   FAKE_CUDA_MEMORY      bytes of each device (2^28)
 *   FAKE_CUDA_POOLS       0: the device has no stream-ordered allocation (1)
 *   FAKE_CUDA_FAIL        "cuLaunchKernel=700,cuMemAlloc_v2=2": results of calls. A result that
 *                         real devices do not recover from sticks to the context. With ":N"
 *                         behind it the first N calls succeed.
 *   FAKE_CUDA_LATE        1: user objects without references are destroyed during the next
 *                         cuMemAlloc() (0)
 *   FAKE_CUDA_DIRTY       1: kernels leave their counters as if they were interrupted (0)
 *   FAKE_CUDA_SHARED      bytes of static shared memory of each kernel (0)
 *   FAKE_CUDA_US          microseconds that a launch takes between two events (0: the host's time)
 *   FAKE_CUDA_FAST        launches of kernels with this BM take a tenth of it (0: none)
 *   FAKE_CUDA_WRONG       how much the elements of products are too large (0)
 *   FAKE_CUDA_SAME_GPU    1: all devices have the same UUID (0)
 *   FAKE_NVRTC_VERSION    of the compiler, 1000*major + 10*minor (13000)
 *   FAKE_NVRTC_ARCHS      supported architectures ("75,80,86,90,100,120")
 *   FAKE_NVRTC_OUTPUT     compiles for this architecture instead of the requested one
 *   FAKE_NVRTC_ERROR      compilations fail with this log
 *   FAKE_NVRTC_SPILL      bytes that a kernel spills (0)
 *   FAKE_NVRTC_DELAY      milliseconds a compilation takes (0)
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "../../kernels/lib/gemm_args.h"

/* What an image, "fake cubin ARCH SYMBOL NUMBER...", has of the macros of a compilation. */
enum {
    FAKE_BM,
    FAKE_BN,
    FAKE_SEPARATE_D,
    FAKE_DEVICE_SCALARS,
    FAKE_TYPE_A,
    FAKE_TYPE_B,
    FAKE_TYPE_C,
    FAKE_TYPE_D,
    FAKE_TRANS_A,
    FAKE_TRANS_B,
    FAKE_BIG_A,
    FAKE_ALONG_K,
    FAKE_BUNDLE,
    FAKE_MACROS
};
__attribute__((unused)) static const char *const fake_macros[FAKE_MACROS] = {
    "BM",     "BN",      "SEPARATE_D", "DEVICE_SCALARS", "TYPE_A",  "TYPE_B", "TYPE_C",
    "TYPE_D", "TRANS_A", "TRANS_B",    "BIG_A",          "ALONG_K", "BUNDLE"};

#define FAKE_CUDA_API __attribute__((visibility("default")))

/* Functions that the tests call, found by dlsym(). All except fake_cuda_launched() return a number:
 */
typedef int fake_number_function(void);
/* libfake_cuda.so:
 *   fake_cuda_live()     memory, modules, events, streams and contexts not released
 *   fake_cuda_depth()    contexts on this thread's stack
 *   fake_cuda_modules()  modules that are loaded
 *   fake_cuda_misuses()  misuses since the last call
 *   fake_cuda_encoded()  tensor maps encoded so far
 *   fake_cuda_launches() launches so far, also those that became nodes of a graph
 *   fake_cuda_uploaded() bytes copied to devices so far
 *   fake_cuda_downloaded() bytes copied from devices so far
 *   fake_cuda_mapped()   memory of other processes that is mapped
 * libfake_nvrtc.so:
 *   fake_nvrtc_count()   compilations so far
 *   fake_nvrtc_options() options of the latest compilation */

/* libfake_cuda.so: the latest launches on this thread: 0 is the latest, 1 the one before it, up to
 * FAKE_CUDA_LAUNCHES - 1. */
typedef struct fake_cuda_launch {
    unsigned grid[3], dynamic_shared, cluster;
    int overlaps;              /* it may start before the launch before it has ended */
    int is_captured;           /* it became a node of a graph */
    struct tgl_gemm_args args; /* arguments of the production families */
    unsigned char bytes[136];  /* the first bytes of the arguments of other kernels */
} fake_cuda_launch;
enum { FAKE_CUDA_LAUNCHES = 4 };
typedef fake_cuda_launch fake_cuda_launched_function(int back);

#endif
