/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the upper bounds of speed: the rate of independent fused multiply-adds, and the
 * bandwidth of a large copy. Each is timed REPEATS times with events, after a warm-up. The result
 * is the median.
 */
#include "base/clock.h"
#include "cuda/cuda_state.h"

#include <stdlib.h>

enum { REPEATS = 21, WARM_UP_MS = 150 };

/* Sizes that must match those in kernels/measure. */
enum { FMA_THREADS = 256, FMA_CHAINS = 8, COPY_THREADS = 512, COPY_BLOCKS_PER_SM = 16 };

/* A kernel or a copy to time. `work` enqueues it in `stream`. */
typedef struct trial {
    tgl_device *dev;
    CUstream stream;
    CUresult (*work)(const struct trial *t);
    const tgl_module *module;
    CUdeviceptr src, dst;
    size_t bytes; /* bytes that the copy reads; it writes as many */
    int iterations;
    bool is_f64;
} trial;

static const tgl_cuda *cuda_of(const trial *t)
{
    return t->dev->state;
}

/* The number of blocks that fill the GPU: as many as are resident at once. */
static unsigned fma_blocks(const tgl_cuda *cuda)
{
    return (unsigned)(cuda->facts.sms * (cuda->facts.threads_per_sm / FMA_THREADS));
}

/* Launches a kernel that repeats x := a*x + b. With this a and b, x stays finite and its bits keep
 * changing, as in a real product. */
static CUresult run_fma(const trial *t)
{
    const tgl_cuda *cuda = cuda_of(t);
    int iterations = t->iterations;
    double a = -1.00001, b = 0.3;
    float a_f32 = (float)a, b_f32 = (float)b;
    CUdeviceptr out = NULL; /* the kernel does not write to it */
    void *f32[] = {&iterations, &a_f32, &b_f32, &out}, *f64[] = {&iterations, &a, &b, &out};
    return cuda->driver.cuLaunchKernel(t->module->function, fma_blocks(cuda), 1, 1, FMA_THREADS, 1,
                                       1, 0, t->stream, t->is_f64 ? f64 : f32, NULL);
}

static CUresult run_copy_kernel(const trial *t)
{
    const tgl_cuda *cuda = cuda_of(t);
    CUdeviceptr src = t->src, dst = t->dst;
    long long count = (long long)(t->bytes / 16);
    void *args[] = {&src, &dst, &count};
    return cuda->driver.cuLaunchKernel(t->module->function,
                                       (unsigned)(cuda->facts.sms * COPY_BLOCKS_PER_SM), 1, 1,
                                       COPY_THREADS, 1, 1, 0, t->stream, args, NULL);
}

static CUresult run_copy_engine(const trial *t)
{
    return cuda_of(t)->driver.cuMemcpyDtoDAsync(t->dst, t->src, t->bytes, t->stream);
}

/* ---- Timing ---------------------------------------------------------------------------------- */

static int compare(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static tgl_status time_once(const trial *t, tgl_timer *timer, double *seconds)
{
    TGL_TRY(tgl_timer_start(timer, t->stream));
    TGL_TRY(tgl_cuda_check(t->dev, t->work(t), "measuring"));
    return tgl_timer_stop(timer, t->stream, seconds);
}

static tgl_status time_repeats(const trial *t, tgl_timer *timer, double *median)
{
    double seconds[REPEATS];
    for (double start = tgl_clock(); tgl_clock() - start < 1e-3 * WARM_UP_MS;)
        TGL_TRY(time_once(t, timer, &seconds[0]));
    for (int i = 0; i < REPEATS; i++)
        TGL_TRY(time_once(t, timer, &seconds[i]));
    qsort(seconds, REPEATS, sizeof seconds[0], compare);
    *median = seconds[REPEATS / 2];
    return *median > 0 ? TGL_OK : tgl_fail(TGL_DRIVER, "the timer stands still");
}

static tgl_status time_trial(const trial *t, double *median)
{
    tgl_timer *timer;
    TGL_TRY(tgl_timer_create(t->dev, &timer));
    tgl_status status = time_repeats(t, timer, median);
    tgl_timer_destroy(timer);
    return status;
}

static tgl_status load(trial *t, const char *name)
{
    return tgl_cuda_load(t->dev, tgl_measure_kernel_find(name), 0, &t->module);
}

/* ---- The ceilings ---------------------------------------------------------------------------- */

static tgl_status measure_fma(trial *fma, const char *kernel, double *value)
{
    double seconds;
    fma->work = run_fma;
    TGL_TRY(load(fma, kernel));
    TGL_TRY(time_trial(fma, &seconds));
    *value = 2.0 * FMA_CHAINS * fma->iterations * FMA_THREADS * fma_blocks(cuda_of(fma)) / seconds;
    return TGL_OK;
}

/* Allocates two buffers of 1 GiB each, which is far larger than L2. If memory is short, they are
 * smaller, at least 16 MiB. */
static tgl_status allocate(trial *copy)
{
    const tgl_driver *driver = &cuda_of(copy)->driver;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    for (copy->bytes = (size_t)1 << 30; copy->bytes >= (size_t)1 << 24; copy->bytes /= 2) {
        result = driver->cuMemAlloc(&copy->src, copy->bytes);
        if (result == CUDA_SUCCESS) {
            result = driver->cuMemAlloc(&copy->dst, copy->bytes);
            if (result == CUDA_SUCCESS) break;
            driver->cuMemFree(copy->src);
        }
        if (result != CUDA_ERROR_OUT_OF_MEMORY) break;
    }
    return tgl_cuda_check(copy->dev, result, "allocating memory for a copy");
}

/* Bytes/s of the faster of a copy kernel and the driver's copy. */
static tgl_status measure_buffers(trial *copy, double *value)
{
    const tgl_driver *driver = &cuda_of(copy)->driver;
    double by_kernel, by_engine;
    TGL_TRY(tgl_cuda_check(copy->dev,
                           driver->cuMemsetD8Async(copy->src, 0x5a, copy->bytes, copy->stream),
                           "filling memory"));
    copy->work = run_copy_kernel;
    TGL_TRY(time_trial(copy, &by_kernel));
    copy->work = run_copy_engine;
    TGL_TRY(time_trial(copy, &by_engine));
    *value = 2.0 * (double)copy->bytes / (by_kernel < by_engine ? by_kernel : by_engine);
    return TGL_OK;
}

static tgl_status measure_copy(trial *copy, double *value)
{
    const tgl_driver *driver = &cuda_of(copy)->driver;
    TGL_TRY(load(copy, "measure/copy"));
    TGL_TRY(allocate(copy));
    tgl_status status = measure_buffers(copy, value);
    driver->cuMemFree(copy->src);
    driver->cuMemFree(copy->dst);
    return status;
}

/* Measures one bound. FP64 has fewer iterations, because most chips have few FP64 lanes per SM. */
static tgl_status measure(trial *t, tgl_ceiling ceiling, double *value)
{
    t->is_f64 = ceiling == TGL_CEILING_FMA_F64;
    t->iterations = t->is_f64 ? 1 << 13 : 1 << 16;
    if (ceiling == TGL_CEILING_COPY) return measure_copy(t, value);
    return measure_fma(t, t->is_f64 ? "measure/dfma" : "measure/ffma", value);
}

/* Measures one bound in a new stream. Must be called in the device's context. */
static tgl_status measure_on_stream(tgl_device *dev, tgl_ceiling ceiling, double *value)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    trial t = {.dev = dev};
    TGL_TRY(tgl_cuda_check(dev, driver->cuStreamCreate(&t.stream, CU_STREAM_NON_BLOCKING),
                           "creating a stream"));
    tgl_status status = measure(&t, ceiling, value);
    tgl_cuda_release(dev, t.module);
    driver->cuStreamDestroy(t.stream);
    return status;
}

tgl_status tgl_cuda_measure(tgl_device *dev, tgl_ceiling ceiling, double *value)
{
    tgl_cuda_scope scope;
    TGL_TRY(tgl_cuda_enter_relaxed(dev, &scope));
    tgl_status status = measure_on_stream(dev, ceiling, value);
    tgl_cuda_leave(&scope);
    return status;
}
