/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies the buffers of a case (a random problem, case_data.h) to device memory, and passes them to
 * a product as operands.
 */
#include "check_memory.h"
#include "cli.h"
#include "elements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCALAR_STEP = 16 }; /* bytes from alpha to beta */

static const check_buffer *buffer_of(const check_case *c, int i)
{
    const check_buffer *const all[BUFFERS] = {
        [AT_A] = &c->a, [AT_B] = &c->b,       [AT_C] = &c->c,
        [AT_D] = &c->d, [AT_BIAS] = &c->bias, [AT_RESIDUAL] = &c->residual,
    };
    return all[i];
}

static int result_of(const check_case *c)
{
    return c->d.size > 0 ? AT_D : AT_C;
}

static size_t greatest_bytes(const check_case *c)
{
    size_t greatest = 0;
    for (int i = 0; i < BUFFERS; i++)
        if (check_buffer_bytes(buffer_of(c, i)) > greatest)
            greatest = check_buffer_bytes(buffer_of(c, i));
    return greatest;
}

/* Allocates device memory and copies host memory to it. On a GPU the size is rounded up to a
 * multiple of 16 bytes, and bytes of 0xff fill the rest: cp.async with a source size below 16 does
 * not read the other bytes, but compute-sanitizer (CUDA 13.0) checks that all 16 are allocated and
 * initialised. A single upload writes everything, because the sanitizer treats a word that two
 * uploads write in part as not initialised. */
static tgl_status place_copy(tgl_device *dev, const void *host, size_t bytes, void **memory)
{
    const size_t room = cli_device_is_host(dev) ? bytes : (bytes + 15) / 16 * 16;
    CLI_TRY(tgl_alloc(dev, room, memory));
    if (room == bytes) return tgl_upload(dev, *memory, host, bytes, NULL);
    unsigned char *padded = malloc(room);
    if (padded == NULL) return TGL_NO_MEMORY;
    memcpy(padded, host, bytes);
    memset(padded + bytes, 0xff, room - bytes);
    const tgl_status status = tgl_upload(dev, *memory, padded, room, NULL);
    free(padded);
    return status;
}

/* Makes the arrays of pointers to the matrices of A, B, C and D, in device memory. */
static tgl_status place_arrays(tgl_device *dev, const check_case *c, case_memory *memory)
{
    const size_t bytes = (size_t)c->problem.batch * sizeof(void *);
    void **pointers = malloc(bytes + 1);
    tgl_status status = pointers != NULL ? TGL_OK : TGL_NO_MEMORY;
    for (int i = 0; status == TGL_OK && i < ARRAYS; i++) {
        if (memory->at[i] == NULL) continue;
        const check_view *v = &buffer_of(c, i)->view;
        const size_t element = tgl_type_size(buffer_of(c, i)->type);
        for (int64_t b = 0; b < c->problem.batch; b++)
            pointers[b] = (char *)memory->at[i] + (size_t)(v->offset + b * v->batch) * element;
        status = place_copy(dev, pointers, bytes, &memory->arrays[i]);
    }
    free(pointers);
    return status;
}

static tgl_status place_scalars(tgl_device *dev, const check_case *c, case_memory *memory)
{
    unsigned char host[2 * SCALAR_STEP] = {0};
    const tgl_type type = element_accumulator(c->problem.type_a);
    element_set(type, host, 0, c->alpha);
    element_set(type, host + SCALAR_STEP, 0, c->beta);
    if (element_parts(type) == 2) {
        element_set(type, host, 1, c->alpha_imag);
        element_set(type, host + SCALAR_STEP, 1, c->beta_imag);
    }
    return place_copy(dev, host, sizeof host, &memory->scalars);
}

tgl_status case_memory_make(tgl_device *dev, const check_case *c, case_memory *memory)
{
    memory->back = malloc(greatest_bytes(c));
    memory->first = malloc(check_buffer_bytes(check_case_result(c)));
    if (memory->back == NULL || memory->first == NULL) return TGL_NO_MEMORY;
    tgl_status status = TGL_OK;
    for (int i = 0; i < BUFFERS && status == TGL_OK; i++) {
        const check_buffer *buffer = buffer_of(c, i);
        if (buffer->size > 0)
            status = place_copy(dev, buffer->image, check_buffer_bytes(buffer), &memory->at[i]);
    }
    if (status == TGL_OK && c->problem.scalars == TGL_SCALARS_DEVICE)
        status = place_scalars(dev, c, memory);
    if (status == TGL_OK && c->problem.batching == TGL_POINTERS)
        status = place_arrays(dev, c, memory);
    if (status == TGL_OK && c->groups != NULL)
        status = place_copy(dev, c->group_numbers, (size_t)c->problem.batch * sizeof(int32_t),
                            &memory->groups);
    return status;
}

void case_memory_release(tgl_device *dev, case_memory *memory)
{
    for (int i = 0; i < BUFFERS; i++)
        tgl_free(dev, memory->at[i]);
    for (int i = 0; i < ARRAYS; i++)
        tgl_free(dev, memory->arrays[i]);
    tgl_free(dev, memory->scalars);
    tgl_free(dev, memory->groups);
    free(memory->back);
    free(memory->first);
}

/* ---- Operands -------------------------------------------------------------------------------- */

/* The address that the product gets for buffer i; NULL: it gets NULL. */
static void *base_of(const check_case *c, const case_memory *memory, int i)
{
    const check_buffer *buffer = buffer_of(c, i);
    if (buffer->null || memory->at[i] == NULL) return NULL;
    return (char *)memory->at[i] + (size_t)buffer->view.offset * tgl_type_size(buffer->type);
}

static void *array_of(const check_case *c, const case_memory *memory, int i)
{
    return buffer_of(c, i)->null ? NULL : memory->arrays[i];
}

tgl_operands case_operands(const check_case *c, const case_memory *memory)
{
    tgl_operands o = {.size = sizeof o, .groups = memory->groups};
    o.bias = base_of(c, memory, AT_BIAS);
    o.residual = base_of(c, memory, AT_RESIDUAL);
    if (c->problem.scalars == TGL_SCALARS_DEVICE) {
        o.alpha_at = memory->scalars;
        if (!c->no_beta) o.beta_at = (const char *)memory->scalars + SCALAR_STEP;
    } else {
        o.alpha = c->alpha;
        o.beta = c->beta;
        o.alpha_imag = c->alpha_imag;
        o.beta_imag = c->beta_imag;
    }
    if (c->problem.batching == TGL_POINTERS) {
        o.A_array = array_of(c, memory, AT_A);
        o.B_array = array_of(c, memory, AT_B);
        o.C_array = array_of(c, memory, AT_C);
        o.D_array = array_of(c, memory, AT_D);
    } else {
        o.A = base_of(c, memory, AT_A);
        o.B = base_of(c, memory, AT_B);
        o.C = base_of(c, memory, AT_C);
        o.D = base_of(c, memory, AT_D);
    }
    return o;
}

void *case_result_at(const check_case *c, const case_memory *memory)
{
    return memory->at[result_of(c)];
}

tgl_status case_compare_inputs(tgl_device *dev, const check_case *c, const case_memory *memory,
                               check_verdict *verdict)
{
    static const char *const names[BUFFERS] = {"A", "B", "C", "D", "bias", "residual"};
    tgl_status status = TGL_OK;
    for (int i = 0; i < BUFFERS && status == TGL_OK; i++) {
        const check_buffer *buffer = buffer_of(c, i);
        if (memory->at[i] == NULL || i == result_of(c)) continue;
        status = tgl_download(dev, memory->back, memory->at[i], check_buffer_bytes(buffer), NULL);
        if (status == TGL_OK && verdict->text[0] == '\0' &&
            memcmp(memory->back, buffer->image, check_buffer_bytes(buffer)) != 0)
            snprintf(verdict->text, sizeof verdict->text, "%s was written, and is an input",
                     names[i]);
    }
    return status;
}
