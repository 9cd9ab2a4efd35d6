/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices to time products with.
 */
#include "timed_operands.h"
#include "cli.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256 };

static size_t align(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The device's last cache in bytes; more than any has where it is not told. */
static double cache_bytes(const tgl_device *dev)
{
    const double bytes = cli_device_number(dev, TGL_NUMBER_L2_BYTES);
    return bytes > 0 ? bytes : 256e6;
}

/* Twice the cache lies between two uses of a set. */
static int choose_sets(const operands *o)
{
    const double set = (double)o->step_a + (double)o->step_b + (double)o->step_c;
    return 1 + (int)(2 * cache_bytes(o->dev) / set + 1);
}

static tgl_status allocate(operands *o)
{
    tgl_status status = tgl_alloc(o->dev, o->step_a * (size_t)o->sets, &o->A);
    if (status == TGL_OK) status = tgl_alloc(o->dev, o->step_b * (size_t)o->sets, &o->B);
    if (status == TGL_OK) status = tgl_alloc(o->dev, o->step_c * (size_t)o->sets, &o->C);
    return status;
}

static void free_device(operands *o)
{
    tgl_free(o->dev, o->A);
    tgl_free(o->dev, o->B);
    tgl_free(o->dev, o->C);
    o->A = o->B = o->C = NULL;
}

/* With fewer sets where the memory is short. */
static tgl_status allocate_what_fits(operands *o)
{
    for (;; o->sets /= 2) {
        const tgl_status status = allocate(o);
        if (status != TGL_NO_MEMORY || o->sets == 1) return status;
        free_device(o);
    }
}

static tgl_status fill_host(void **host, void *device, bool is_host, size_t bytes, tgl_type type,
                            uint64_t stream)
{
    *host = is_host ? device : malloc(bytes);
    if (*host == NULL) return TGL_NO_MEMORY;
    random_state r;
    random_seed(&r, 1, stream);
    random_fill(&r, type, *host, (int64_t)(bytes / tgl_type_size(type)));
    return TGL_OK;
}

static void *set_of(void *matrices, size_t step, int64_t set)
{
    return (char *)matrices + (size_t)set * step;
}

static tgl_status upload_sets(const operands *o)
{
    tgl_status status = TGL_OK;
    for (int i = 0; i < o->sets && status == TGL_OK; i++) {
        status = tgl_upload(o->dev, set_of(o->A, o->step_a, i), o->host_a, o->size_a, NULL);
        if (status == TGL_OK)
            status = tgl_upload(o->dev, set_of(o->B, o->step_b, i), o->host_b, o->size_b, NULL);
    }
    return status;
}

tgl_status operands_make(operands *o, tgl_device *dev, const tgl_problem *problem, bool rotate)
{
    const tgl_problem *p = problem;
    const tgl_type type = p->type_c;
    const size_t size = tgl_type_size(type) * (size_t)p->batch;
    *o = (operands){.dev = dev, .problem = *p, .sets = 1};
    o->size_a = size * (size_t)(p->m * p->k);
    o->size_b = size * (size_t)(p->k * p->n);
    o->size_c = size * (size_t)(p->m * p->n);
    o->step_a = align(o->size_a);
    o->step_b = align(o->size_b);
    o->step_c = align(o->size_c);
    const bool is_host = cli_device_is_host(dev);
    if (rotate && !is_host) o->sets = choose_sets(o);
    tgl_status status = allocate_what_fits(o);
    if (status == TGL_OK) status = fill_host(&o->host_a, o->A, is_host, o->size_a, type, 1);
    if (status == TGL_OK) status = fill_host(&o->host_b, o->B, is_host, o->size_b, type, 2);
    return status == TGL_OK && !is_host ? upload_sets(o) : status;
}

/* Random elements, the same in each of `sets`. */
static tgl_status add(const operands *o, void **device, void **host, size_t bytes, int sets,
                      uint64_t stream)
{
    const bool is_host = cli_device_is_host(o->dev);
    tgl_status status = tgl_alloc(o->dev, align(bytes) * (size_t)sets, device);
    if (status == TGL_OK)
        status = fill_host(host, *device, is_host, bytes, o->problem.type_c, stream);
    for (int i = 0; status == TGL_OK && !is_host && i < sets; i++)
        status = tgl_upload(o->dev, set_of(*device, align(bytes), i), *host, bytes, NULL);
    return status;
}

tgl_status operands_add_epilogue(operands *o, const tgl_epilogue *e)
{
    const tgl_problem *p = &o->problem;
    const int64_t length = e->bias == TGL_BIAS_ROW ? p->m : p->n;
    const size_t bias = (size_t)length * tgl_type_size(p->type_c);
    tgl_status status = TGL_OK;
    if (e->bias != TGL_BIAS_NONE) status = add(o, &o->bias, &o->host_bias, bias, 1, 3);
    if (status == TGL_OK && e->residual)
        status = add(o, &o->residual, &o->host_residual, o->size_c, o->sets, 4);
    return status;
}

void operands_release(operands *o)
{
    if (o->dev == NULL) return;
    if (o->host_a != o->A) free(o->host_a);
    if (o->host_b != o->B) free(o->host_b);
    if (o->host_bias != o->bias) free(o->host_bias);
    if (o->host_residual != o->residual) free(o->host_residual);
    tgl_free(o->dev, o->bias);
    tgl_free(o->dev, o->residual);
    free_device(o);
    *o = (operands){0};
}

operand_set operands_for(const operands *o, int64_t call)
{
    const int64_t set = call % o->sets;
    return (operand_set){
        .A = set_of(o->A, o->step_a, set),
        .B = set_of(o->B, o->step_b, set),
        .C = set_of(o->C, o->step_c, set),
        .bias = o->bias,
        .residual = o->residual != NULL ? set_of(o->residual, o->step_c, set) : NULL,
    };
}
