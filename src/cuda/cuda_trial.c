/* SPDX-License-Identifier: Apache-2.0
 *
 * Times plans of one product, for the wisdom, in its own stream and on its own matrices. The
 * matrices have random elements, because arithmetic with zeros takes less power and runs at a
 * higher clock. There are several sets of matrices, which together exceed the L2 cache, and runs
 * alternate between the sets.
 */
#include "base/integers.h"
#include "cuda/cuda_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256, MEMORY_SHARE = 4, SETS_MAX = 4096 };

/* The place of an operand in each set. */
typedef struct trial_operand {
    size_t offset, bytes; /* bytes 0: the product does not have it */
    tgl_type type;
} trial_operand;

struct tgl_trial {
    tgl_device *dev;
    tgl_shape shape;
    CUstream stream;
    tgl_timer *timer;
    char *memory;
    trial_operand operands[TGL_OPERANDS];
    size_t set_bytes;
    int sets;
    int64_t runs; /* so far */
};

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* Adds an operand of `lines` lines of `length` elements, behind the operands that the set already
 * has. */
static void add_operand(tgl_trial *t, tgl_operand which, tgl_type type, int64_t lines,
                        int64_t length, int64_t ld, int64_t stride)
{
    const int64_t elements = tgl_extent(lines, length, ld) + (t->shape.batch - 1) * stride;
    const size_t bytes = (size_t)elements * tgl_type_size(type);
    t->operands[which] = (trial_operand){t->set_bytes, bytes, type};
    t->set_bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void add_epilogue(tgl_trial *t)
{
    const tgl_shape *s = &t->shape;
    const tgl_shape_epilogue *e = &s->epilogue;
    const int64_t length = e->bias == TGL_BIAS_ROW ? s->m : s->n;
    if (e->bias != TGL_BIAS_NONE)
        add_operand(t, TGL_AT_BIAS, e->type_bias, 1, length, length, e->stride_bias);
    if (e->residual)
        add_operand(t, TGL_AT_RESIDUAL, e->type_residual, s->m, s->n, e->ld_residual,
                    e->stride_residual);
    if (e->amax) add_operand(t, TGL_AT_AMAX, TGL_F32, 1, 1, 1, 0);
}

/* Adds the scale factors of an operand. lines: the number of factors for TGL_SCALING_LINE. */
static void add_scale(tgl_trial *t, tgl_operand operand, tgl_scaling scaling, int64_t lines)
{
    if (scaling != TGL_SCALING_NONE)
        add_operand(t, operand, t->shape.type_scale, 1, scaling == TGL_SCALING_LINE ? lines : 1,
                    scaling == TGL_SCALING_LINE ? lines : 1, 0);
}

static void add_operands(tgl_trial *t)
{
    const tgl_shape *s = &t->shape;
    add_operand(t, TGL_AT_A, s->type_a, s->trans_a ? s->k : s->m, s->trans_a ? s->m : s->k, s->lda,
                s->stride_a);
    add_operand(t, TGL_AT_B, s->type_b, s->trans_b ? s->n : s->k, s->trans_b ? s->k : s->n, s->ldb,
                s->stride_b);
    add_operand(t, TGL_AT_D, s->type_d, s->m, s->n, s->ldd, s->stride_d);
    t->operands[TGL_AT_C] = t->operands[TGL_AT_D];
    if (!s->in_place) add_operand(t, TGL_AT_C, s->type_c, s->m, s->n, s->ldc, s->stride_c);
    add_scale(t, TGL_AT_SCALE_A, s->scaling_a, s->m);
    add_scale(t, TGL_AT_SCALE_B, s->scaling_b, s->n);
    add_scale(t, TGL_AT_SCALE_D, s->scaling_d, s->swapped ? s->n : s->m);
    if (s->device_scalars) add_operand(t, TGL_AT_ALPHA, tgl_shape_scalar_type(s), 1, 1, 1, 0);
    add_epilogue(t);
}

/* Allocates sets of matrices, in a part of the free memory. There are as many sets as together
 * exceed twice the L2 cache. */
static tgl_status allocate(tgl_trial *t)
{
    const tgl_cuda *cuda = t->dev->state;
    size_t available = 0, total = 0;
    CUdeviceptr memory = NULL;
    TGL_TRY(tgl_cuda_check(t->dev, cuda->driver.cuMemGetInfo(&available, &total),
                           "asking for the free memory"));
    const size_t fit = available / MEMORY_SHARE / t->set_bytes;
    const size_t wanted = 2 * (size_t)cuda->facts.l2_bytes / t->set_bytes + 1;
    if (fit == 0) return tgl_fail(TGL_NO_MEMORY, "no memory to measure the product");
    t->sets = (int)tgl_min64((int64_t)(fit < wanted ? fit : wanted), SETS_MAX);
    TGL_TRY(tgl_cuda_check(t->dev, cuda->driver.cuMemAlloc(&memory, t->set_bytes * (size_t)t->sets),
                           "allocating memory to measure"));
    t->memory = (char *)memory;
    return TGL_OK;
}

/* ---- Random elements ------------------------------------------------------------------------- */

/* The next random number, by the generator xorshift64*. */
static uint64_t draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}

/* Writes a random element: a number in (-1, 1), or any value of an integer type. 8-bit floating
 * point: any sign and fraction, and some exponents below 1. */
static void draw_element(tgl_type type, uint64_t *state, void *element)
{
    const uint64_t bits = draw(state) >> 11; /* 53 bits */
    const double value = (double)bits * 0x1p-52 - 1;
    const float single = (float)value;
    /* F16: any sign and fraction, exponents from 2^-5 to 2^-1. */
    const uint16_t half = (uint16_t)((bits & 0x83ff) | (10 + bits / 65536 % 5) << 10);
    uint32_t word;
    memcpy(&word, &single, sizeof word);
    const uint16_t brain = (uint16_t)(word >> 16);
    /* The upper byte of such an F16 is an E5M2. E4M3: any sign and fraction, exponent 2^-4. */
    const uint8_t quarter =
        type == TGL_F8_E5M2 ? (uint8_t)(half >> 8) : (uint8_t)((bits & 0x9f) | 0x18);
    const double pair[2] = {value, (double)(bits % 1000003) / 1000003};
    const float single_pair[2] = {single, (float)pair[1]};
    const size_t size = tgl_type_size(type);
    memcpy(element,
           type == TGL_C128       ? (const void *)pair
           : type == TGL_C64      ? (const void *)single_pair
           : type == TGL_F64      ? (const void *)&value
           : type == TGL_F32      ? (const void *)&single
           : type == TGL_F16      ? (const void *)&half
           : type == TGL_BF16     ? (const void *)&brain
           : tgl_type_is_f8(type) ? (const void *)&quarter
                                  : (const void *)&bits,
           size);
}

/* Fills an operand of the first set. The host draws its first PERIOD elements (a prime, so that
 * neighbouring rows differ). The device then fills the rest by copies of these. */
static CUresult fill_operand(const tgl_trial *t, const trial_operand *x, char *host)
{
    enum { PERIOD = 262139 };
    const tgl_driver *driver = &((const tgl_cuda *)t->dev->state)->driver;
    const size_t size = tgl_type_size(x->type), period = PERIOD * size;
    const size_t first = x->bytes < period ? x->bytes : period;
    uint64_t state = 0x9e3779b97f4a7c15u + x->offset;
    char *at = t->memory + x->offset;
    for (size_t i = 0; i < first; i += size)
        draw_element(x->type, &state, host + i);
    CUresult result = driver->cuMemcpyHtoDAsync(at, host, first, t->stream);
    if (result == CUDA_SUCCESS) result = driver->cuStreamSynchronize(t->stream);
    for (size_t done = first, more; done < x->bytes && result == CUDA_SUCCESS; done += more) {
        more = x->bytes - done < done ? x->bytes - done : done;
        result = driver->cuMemcpyDtoDAsync(at + done, at, more, t->stream);
    }
    return result;
}

/* Fills the operands that runs read: in the first set, and in the other sets by copies of the first
 * one. */
static CUresult fill(const tgl_trial *t, char *host)
{
    static const tgl_operand read[] = {TGL_AT_A,       TGL_AT_B,        TGL_AT_ALPHA,
                                       TGL_AT_BIAS,    TGL_AT_RESIDUAL, TGL_AT_SCALE_A,
                                       TGL_AT_SCALE_B, TGL_AT_SCALE_D};
    const tgl_driver *driver = &((const tgl_cuda *)t->dev->state)->driver;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++) {
        const trial_operand *x = &t->operands[read[i]];
        if (x->bytes > 0 && result == CUDA_SUCCESS) result = fill_operand(t, x, host);
        for (int set = 1; x->bytes > 0 && set < t->sets && result == CUDA_SUCCESS; set++)
            result = driver->cuMemcpyDtoDAsync(t->memory + (size_t)set * t->set_bytes + x->offset,
                                               t->memory + x->offset, x->bytes, t->stream);
    }
    if (result == CUDA_SUCCESS) result = driver->cuStreamSynchronize(t->stream);
    return result;
}

static tgl_status fill_sets(tgl_trial *t)
{
    char *host = malloc((size_t)4 << 20);
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

/* The context is current. */
static tgl_status make(tgl_trial *t)
{
    const tgl_driver *driver = &((const tgl_cuda *)t->dev->state)->driver;
    if (t->shape.k == 0 || t->shape.pointers)
        return tgl_fail(TGL_UNSUPPORTED, "this product is not measured");
    add_operands(t);
    TGL_TRY(tgl_cuda_check(t->dev, driver->cuStreamCreate(&t->stream, CU_STREAM_NON_BLOCKING),
                           "creating a stream"));
    TGL_TRY(tgl_timer_create(t->dev, &t->timer));
    TGL_TRY(allocate(t));
    return fill_sets(t);
}

/* The context is current. */
static void release(tgl_trial *t)
{
    const tgl_driver *driver = &((const tgl_cuda *)t->dev->state)->driver;
    if (t->stream != NULL) driver->cuStreamSynchronize(t->stream);
    if (t->memory != NULL) driver->cuMemFree(t->memory);
    tgl_timer_destroy(t->timer);
    if (t->stream != NULL) driver->cuStreamDestroy(t->stream);
}

static void trial_close(tgl_trial *t)
{
    tgl_cuda_scope scope;
    if (tgl_cuda_enter_relaxed(t->dev, &scope) == TGL_OK) { /* else it is freed already */
        release(t);
        tgl_cuda_leave(&scope);
    }
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

/* The next run: operands from the next set, beta 0. */
static tgl_run next_run(tgl_trial *t)
{
    const double scalar = t->shape.device_scalars ? (double)NAN : 1;
    tgl_run run = {
        .alpha = scalar, .beta = t->shape.device_scalars ? (double)NAN : 0, .has_product = true};
    char *set = t->memory + (size_t)(t->runs++ % t->sets) * t->set_bytes;
    for (int i = 0; i < TGL_OPERANDS; i++)
        if (t->operands[i].bytes > 0) run.at[i] = set + t->operands[i].offset;
    return run;
}

static tgl_status trial_time(tgl_trial *t, const tgl_plan *plan, int runs, double *seconds)
{
    TGL_TRY(tgl_timer_start(t->timer, t->stream));
    for (int i = 0; i < runs; i++) {
        const tgl_run run = next_run(t);
        TGL_TRY(tgl_cuda_run(plan, &run, t->stream));
    }
    TGL_TRY(tgl_timer_stop(t->timer, t->stream, seconds));
    return *seconds > 0 ? TGL_OK : tgl_fail(TGL_DRIVER, "the timer stands still");
}

const tgl_trials tgl_cuda_trials = {
    .describe = trial_describe,
    .is_captured = trial_is_captured,
    .is_compiled = trial_is_compiled,
    .load_ahead = tgl_cuda_load_ahead,
    .open = trial_open,
    .close = trial_close,
    .time = trial_time,
};
