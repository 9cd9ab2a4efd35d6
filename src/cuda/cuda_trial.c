/* SPDX-License-Identifier: Apache-2.0
 *
 * Times plans of one product, for the wisdom (measured times, plan/wisdom.h). A trial has its own
 * stream and its own matrices. The matrices have random elements, because arithmetic with zeros
 * takes less power and runs at a higher clock. A set has one matrix for each operand. There are
 * enough sets to exceed the L2 cache if memory allows that, and runs take the sets in turn.
 */
#include "backend/trial_operands.h"
#include "base/integers.h"
#include "cuda/cuda_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All sets together take at most 1/MEMORY_SHARE of the free memory. */
enum { MEMORY_SHARE = 4, SETS_MAX = 4096 };

struct tgl_trial {
    tgl_device *dev;
    tgl_shape shape;
    CUstream stream;
    tgl_timer *timer;
    char *memory;
    tgl_trial_set set;
    int sets;
    int64_t runs; /* number of runs so far */
};

/* ---- Matrices -------------------------------------------------------------------------------- */

/* Allocates just enough sets of matrices to exceed twice the L2 cache, within MEMORY_SHARE and
 * SETS_MAX. */
static tgl_status allocate(tgl_trial *t)
{
    const tgl_cuda *cuda = t->dev->state;
    size_t available = 0, total = 0;
    CUdeviceptr memory = NULL;
    TGL_TRY(tgl_cuda_check(t->dev, cuda->driver.cuMemGetInfo(&available, &total),
                           "asking for the free memory"));
    const size_t fit = available / MEMORY_SHARE / t->set.bytes;
    const size_t wanted = 2 * (size_t)cuda->facts.l2_bytes / t->set.bytes + 1;
    if (fit == 0) return tgl_fail(TGL_NO_MEMORY, "no memory to measure the product");
    t->sets = (int)tgl_min64((int64_t)(fit < wanted ? fit : wanted), SETS_MAX);
    TGL_TRY(tgl_cuda_check(t->dev, cuda->driver.cuMemAlloc(&memory, t->set.bytes * (size_t)t->sets),
                           "allocating memory to measure"));
    t->memory = (char *)memory;
    return TGL_OK;
}

/* Fills an operand of the first set. The host draws the operand's first elements at random. The
 * device fills the rest with copies of these. */
static CUresult fill_operand(const tgl_trial *t, const tgl_trial_operand *x, char *host)
{
    const tgl_driver *driver = &((const tgl_cuda *)t->dev->state)->driver;
    const size_t first = tgl_trial_draw(x, host);
    char *at = t->memory + x->offset;
    CUresult result = driver->cuMemcpyHtoDAsync(at, host, first, t->stream);
    if (result == CUDA_SUCCESS) result = driver->cuStreamSynchronize(t->stream);
    for (size_t done = first, more; done < x->bytes && result == CUDA_SUCCESS; done += more) {
        more = x->bytes - done < done ? x->bytes - done : done;
        result = driver->cuMemcpyDtoDAsync(at + done, at, more, t->stream);
    }
    return result;
}

/* Fills the operands that runs read. The first set gets new values, and the other sets get copies
 * of them. */
static CUresult fill(const tgl_trial *t, char *host)
{
    const tgl_driver *driver = &((const tgl_cuda *)t->dev->state)->driver;
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < TGL_OPERANDS; i++) {
        if (!tgl_trial_reads(i)) continue;
        const tgl_trial_operand *x = &t->set.operands[i];
        if (x->bytes > 0 && result == CUDA_SUCCESS) result = fill_operand(t, x, host);
        for (int set = 1; x->bytes > 0 && set < t->sets && result == CUDA_SUCCESS; set++)
            result = driver->cuMemcpyDtoDAsync(t->memory + (size_t)set * t->set.bytes + x->offset,
                                               t->memory + x->offset, x->bytes, t->stream);
    }
    if (result == CUDA_SUCCESS) result = driver->cuStreamSynchronize(t->stream);
    return result;
}

static tgl_status fill_sets(tgl_trial *t)
{
    char *host = malloc(TGL_TRIAL_DRAWN_BYTES);
    if (host == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory to measure the product");
    const CUresult result = fill(t, host);
    free(host);
    return tgl_cuda_check(t->dev, result, "filling matrices to measure");
}

/* ---- The functions of tgl_trials ------------------------------------------------------------- */

static void trial_describe(const tgl_device *dev, char chip[TGL_NAME_SIZE],
                           char driver[TGL_NAME_SIZE])
{
    const tgl_cuda *cuda = dev->state;
    const int cuda_version = cuda->facts.driver_version, nvrtc = cuda->nvrtc.version;
    snprintf(chip, TGL_NAME_SIZE, "%s, %d SMs", cuda->facts.name, cuda->facts.sms);
    snprintf(driver, TGL_NAME_SIZE, "CUDA %d.%d, NVRTC %d.%d, %s", cuda_version / 1000,
             cuda_version / 10 % 100, nvrtc / 1000, nvrtc / 10 % 100, cuda->arch.name);
}

static bool trial_is_captured(tgl_device *dev, void *stream)
{
    tgl_cuda_scope scope;
    bool captured = true;
    if (tgl_cuda_enter_relaxed(dev, &scope) != TGL_OK) return true;
    if (tgl_cuda_is_captured(dev, stream, &captured) != TGL_OK) captured = true;
    tgl_cuda_leave(&scope);
    return captured;
}

static bool trial_is_compiled(tgl_device *dev, const tgl_launch_list *list)
{
    for (int i = 0; i < list->step_count; i++) {
        const tgl_launch *launch = tgl_step_choose_aligned(&list->steps[i]);
        if (launch != NULL && !tgl_cuda_is_compiled(dev, launch->kernel)) return false;
    }
    return true;
}

/* Must be called in the device's context. */
static tgl_status make(tgl_trial *t)
{
    const tgl_driver *driver = &((const tgl_cuda *)t->dev->state)->driver;
    if (t->shape.k == 0 || t->shape.pointers)
        return tgl_fail(TGL_UNSUPPORTED, "this product is not measured");
    tgl_trial_set_make(&t->shape, &t->set);
    TGL_TRY(tgl_cuda_check(t->dev, driver->cuStreamCreate(&t->stream, CU_STREAM_NON_BLOCKING),
                           "creating a stream"));
    TGL_TRY(tgl_timer_create(t->dev, &t->timer));
    TGL_TRY(allocate(t));
    return fill_sets(t);
}

/* Must be called in the device's context. */
static void release(tgl_trial *t)
{
    const tgl_driver *driver = &((const tgl_cuda *)t->dev->state)->driver;
    if (t->stream != NULL) driver->cuStreamSynchronize(t->stream);
    if (t->memory != NULL) driver->cuMemFree(t->memory);
    if (t->stream != NULL) driver->cuStreamDestroy(t->stream);
}

static void trial_close(tgl_trial *t)
{
    tgl_cuda_scope scope;
    /* If the context is lost, its memory is gone, too; the timer still has host memory. */
    if (tgl_cuda_enter_relaxed(t->dev, &scope) == TGL_OK) {
        release(t);
        tgl_cuda_leave(&scope);
    }
    tgl_timer_destroy(t->timer);
    free(t);
}

static tgl_status trial_open(tgl_device *dev, const tgl_shape *shape, tgl_trial **trial)
{
    tgl_cuda_scope scope;
    tgl_trial *t = calloc(1, sizeof *t);
    if (t == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory to measure the product");
    t->dev = dev;
    t->shape = *shape;
    tgl_status status = tgl_cuda_enter_relaxed(dev, &scope);
    if (status == TGL_OK) {
        status = make(t);
        tgl_cuda_leave(&scope);
    }
    if (status == TGL_OK)
        *trial = t;
    else
        trial_close(t);
    return status;
}

static tgl_status trial_time(tgl_trial *t, const tgl_plan *plan, int runs, double *seconds)
{
    TGL_TRY(tgl_timer_start(t->timer, t->stream));
    for (int i = 0; i < runs; i++) {
        const tgl_run run = tgl_trial_run(&t->shape, &t->set,
                                          t->memory + (size_t)(t->runs++ % t->sets) * t->set.bytes);
        TGL_TRY(tgl_cuda_run(plan, &run, t->stream));
    }
    TGL_TRY(tgl_timer_stop(t->timer, t->stream, seconds));
    return *seconds > 0 ? TGL_OK : tgl_fail(TGL_DRIVER, "the timer stands still");
}

const tgl_trials tgl_cuda_trials = {
    .describe = trial_describe,
    .is_captured = trial_is_captured,
    .is_compiled = trial_is_compiled,
    .load_lists = tgl_cuda_load_lists,
    .open = trial_open,
    .close = trial_close,
    .time = trial_time,
};
