/* SPDX-License-Identifier: Apache-2.0
 *
 * Replacements for NVIDIA's libraries, to test the cuda device on machines without a GPU.
 * libfake_cuda.so replaces libcuda (TEGULA_LIBCUDA): device memory is host memory, and kernels are
 * loops. libfake_nvrtc.so replaces NVRTC (TEGULA_NVRTC): a cubin is a line of text. They implement
 * the functions that the library uses, and return the same errors as the real libraries, such as
 * for a call without a context, or a launch with a function of another context. libfake_cuda_old.so
 * is a driver for CUDA 11.x, without cuStreamGetId(), cuTensorMapEncodeTiled(),
 * cuFuncGetParamInfo() and user objects.
 *
 * Errors that the real libraries do not report, or that lead to wrong results, are called a misuse.
 * A misuse is printed and counted, and fails the test in its teardown. These are misuses:
 *   - a call that invalidates a capture: allocating, freeing, waiting or unloading without the
 *     relaxed mode, cuCtxSynchronize(), the default stream during a capture of a blocking stream
 *   - memory of one stream (cuMemAllocAsync) in a launch on another stream, or in a captured launch
 *   - memory of a stream that cuMemFree() frees while the stream has work that was not waited for
 *   - pinned memory that the host overwrites before it has waited for a copy from it. A copy to
 *     pinned memory arrives when the host waits for it; until then the memory has a pattern
 *   - two pieces of work without an order between them, such as a common stream, an event or a wait
 *     of the host, that use the same device memory or pinned memory, if at least one writes
 *     (fake_order.c)
 *   - a module unloaded, or left in a context that is released, while its kernels may run
 *   - counters of split-K tiles that are not zero when the kernel that uses them begins
 *   - a call in the destructor of a user object
 *   - a stream that waits for a word of memory that no other stream writes (fake_peers.c)
 *
 * Environment variables, read at each call, select properties and failures:
 *   FAKE_CUDA_DEVICES     number of devices (1)
 *   FAKE_CUDA_NAME        name of the devices ("Fake GPU 0")
 *   FAKE_CUDA_CAPABILITY  compute capability of the devices (90)
 *   FAKE_CUDA_VERSION     CUDA version of the driver (13000)
 *   FAKE_CUDA_MEMORY      bytes of each device (2^28)
 *   FAKE_CUDA_POOLS       0: the device has no stream-ordered allocation (1)
 *   FAKE_CUDA_FAIL        results of functions, as "cuLaunchKernel=700,cuMemAlloc_v2=2". After a
 *                         result from which real devices do not recover, all calls in the context
 *                         return it. With ":N" at the end the first N calls succeed.
 *                         With "@N" only calls in the context of device N fail.
 *   FAKE_CUDA_LATE        1: user objects without references are destroyed during the next
 *                         cuMemAlloc() (0)
 *   FAKE_CUDA_DIRTY       1: kernels leave their counters as if they were interrupted (0)
 *   FAKE_CUDA_SHARED      bytes of static shared memory of each kernel (0)
 *   FAKE_CUDA_US          microseconds that a launch takes between two events (0: the host's time)
 *   FAKE_CUDA_FAST        launches of kernels with this BM take a tenth of FAKE_CUDA_US (0: none)
 *   FAKE_CUDA_COLD        launches take 1.2 times as long until the process has had this many
 *                         microseconds of launches, like a GPU whose clock rises (0)
 *   FAKE_CUDA_WRONG       number by which the elements of products are too large (0)
 *   FAKE_CUDA_SAME_GPU    1: all devices have the same UUID (0)
 *   FAKE_NVRTC_VERSION    version of the compiler, 1000*major + 10*minor (13000)
 *   FAKE_NVRTC_ARCHS      supported architectures ("75,80,86,90,100,120")
 *   FAKE_NVRTC_OUTPUT     compiles for this architecture instead of the requested one
 *   FAKE_NVRTC_ERROR      compilations fail with this log
 *   FAKE_NVRTC_SPILL      bytes that a kernel spills (0)
 *   FAKE_NVRTC_DELAY      milliseconds that a compilation takes (0)
 *   FAKE_NVRTC_MARK       this file is created when a compilation begins
 *   FAKE_NVRTC_JOINT      the first N compilations of the process wait until all have begun; they
 *                         fail if that takes 20 s (0)
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "../../kernels/lib/gemm_args.h"

/* The macros whose values are the numbers in an image, "fake cubin ARCH SYMBOL NUMBER...". */
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
    FAKE_TYPE_RESIDUAL,
    FAKE_ACTIVATION,
    FAKE_MACROS
};
__attribute__((unused)) static const char *const fake_macros[FAKE_MACROS] = {
    "BM",     "BN",      "SEPARATE_D", "DEVICE_SCALARS", "TYPE_A",
    "TYPE_B", "TYPE_C",  "TYPE_D",     "TRANS_A",        "TRANS_B",
    "BIG_A",  "ALONG_K", "BUNDLE",     "TYPE_RESIDUAL",  "ACTIVATION"};

#define FAKE_CUDA_API __attribute__((visibility("default")))

/* The type of functions that return a number and that the tests find by dlsym(). */
typedef int fake_number_function(void);
/* libfake_cuda.so:
 *   fake_cuda_live()     memory, modules, events, streams and contexts that are not released
 *   fake_cuda_depth()    contexts on this thread's stack
 *   fake_cuda_modules()  modules that are loaded
 *   fake_cuda_misuses()  misuses since the last call
 *   fake_cuda_encoded()  tensor maps encoded so far
 *   fake_cuda_launches() launches so far, including those that became nodes of a graph
 *   fake_cuda_uploaded() bytes copied to devices so far
 *   fake_cuda_downloaded() bytes copied from devices so far
 *   fake_cuda_mapped()   allocations of other processes that are mapped
 * libfake_nvrtc.so:
 *   fake_nvrtc_count()   compilations so far
 *   fake_nvrtc_options() number of options of the latest compilation */

/* A launch on the calling thread. fake_cuda_launched(back) of libfake_cuda.so returns it: back = 0
 * is the latest launch, 1 the one before it, and so on up to FAKE_CUDA_LAUNCHES - 1. */
typedef struct fake_cuda_launch {
    unsigned grid[3], dynamic_shared, cluster;
    int overlaps;              /* whether it may start before the previous launch has ended */
    int is_captured;           /* whether it became a node of a graph */
    struct tgl_gemm_args args; /* arguments of the production families */
    unsigned char bytes[136];  /* the first bytes of the arguments of other kernels */
} fake_cuda_launch;
enum { FAKE_CUDA_LAUNCHES = 4 };
typedef fake_cuda_launch fake_cuda_launched_function(int back);

#endif
