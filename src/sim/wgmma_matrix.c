/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes and decodes descriptors, and finds the elements of a swizzled matrix.
 */
#include "sim/wgmma_matrix.h"

#include "sim/shadow_shared.h"

#include <string.h>

/* ATOM_LINES: lines of a swizzle pattern, each as long as the swizzle is wide. ADDRESS_BITS: bits
 * of an address in a descriptor. */
enum { ATOM_LINES = 8, ADDRESS_BITS = 18 };

uintptr_t tgl_wgmma_window(const tgl_machine *machine)
{
    return machine->launch->module->shared_base & ~(uintptr_t)1023;
}

unsigned long long tgl_wgmma_tile(tgl_machine *machine, const void *shared, int swizzle,
                                  int atom_bytes, int group_bytes, const void *pc)
{
    const tgl_sim_module *module = machine->launch->module;
    const uintptr_t address = (uintptr_t)shared - tgl_wgmma_window(machine);
    if ((uintptr_t)shared - module->shared_base >= module->shared_size)
        tgl_machine_fault(machine, pc, "a matrix of wgmma is not in shared memory");
    if (swizzle != 32 && swizzle != 64 && swizzle != 128)
        tgl_machine_fault(
            machine, pc, "a matrix of wgmma has a swizzle of %d bytes, not 32, 64 or 128", swizzle);
    if (address % TGL_WGMMA_CHUNK != 0 || atom_bytes % TGL_WGMMA_CHUNK != 0 ||
        group_bytes % TGL_WGMMA_CHUNK != 0 || (unsigned)atom_bytes >> ADDRESS_BITS != 0 ||
        (unsigned)group_bytes >> ADDRESS_BITS != 0)
        tgl_machine_fault(machine, pc,
                          "a matrix of wgmma has an address or strides (%d and %d bytes) that are "
                          "not multiples of 16 below 2^18, as a descriptor needs",
                          atom_bytes, group_bytes);
    return address >> 4 | (unsigned long long)(atom_bytes >> 4) << 16 |
           (unsigned long long)(group_bytes >> 4) << 32 |
           (unsigned long long)(swizzle == 128  ? 1
                                : swizzle == 64 ? 2
                                                : 3)
               << 62;
}

tgl_wgmma_matrix tgl_wgmma_decode(unsigned long long descriptor, unsigned element, bool is_k_major,
                                  int edge)
{
    static const unsigned swizzles[] = {0, 128, 64, 32};
    return (tgl_wgmma_matrix){.start = (descriptor & 0x3fff) << 4,
                              .atom_bytes = (descriptor >> 16 & 0x3fff) << 4,
                              .group_bytes = (descriptor >> 32 & 0x3fff) << 4,
                              .swizzle = swizzles[descriptor >> 62],
                              .element = element,
                              .is_k_major = is_k_major,
                              .edge = edge};
}

void tgl_wgmma_check_matrix(tgl_machine *machine, const tgl_wgmma_matrix *x, const char *name,
                            const void *pc)
{
    const unsigned pattern = ATOM_LINES * x->swizzle;
    if (x->swizzle == 0)
        tgl_machine_fault(machine, pc,
                          "the %s matrix of wgmma has no swizzle, which the simulator does not "
                          "support",
                          name);
    else if (x->start % pattern >= x->swizzle)
        tgl_machine_fault(machine, pc,
                          "the %s matrix of wgmma begins %u bytes into a swizzle's pattern of %u",
                          name, x->start % pattern, pattern);
    else if (x->is_k_major && x->start % x->swizzle + TGL_WGMMA_K_BYTES > x->swizzle)
        tgl_machine_fault(machine, pc,
                          "the %s matrix of wgmma crosses the end of a swizzle line of %u bytes",
                          name, x->swizzle);
}

/* The address of the 16-byte chunk that begins with element (edge, k). edge: the index in M or
 * N. */
static unsigned chunk_at(const tgl_wgmma_matrix *x, int edge, int k)
{
    const unsigned per_line = x->swizzle / x->element; /* MN-major: elements per line of the swizzle
                                                          pattern */
    const unsigned e = (unsigned)edge, p = (unsigned)k;
    const unsigned offset =
        x->is_k_major
            ? e / ATOM_LINES * x->group_bytes + e % ATOM_LINES * x->swizzle + p * x->element
            : e / per_line * x->atom_bytes + e % per_line * x->element +
                  p / ATOM_LINES * x->group_bytes + p % ATOM_LINES * x->swizzle;
    const unsigned address = x->start + offset;
    return address ^ (address >> 7 & (x->swizzle / TGL_WGMMA_CHUNK - 1)) << 4;
}

static uint32_t element_at(const char *from, unsigned bytes)
{
    uint32_t word = 0;
    memcpy(&word, from, bytes);
    return word;
}

void tgl_wgmma_read_matrix(tgl_machine *machine, const tgl_wgmma_matrix *x,
                           const tgl_shared_access *access, const uint32_t *known, uint32_t *to,
                           int edge_step, int k_step, const void *pc)
{
    const int k_count = TGL_WGMMA_K_BYTES / (int)x->element,
              per_chunk = TGL_WGMMA_CHUNK / (int)x->element;
    const uintptr_t window = tgl_wgmma_window(machine), base = machine->launch->module->shared_base;
    for (int edge = 0; edge < x->edge; edge += x->is_k_major ? 1 : per_chunk)
        for (int k = 0; k < k_count; k += x->is_k_major ? per_chunk : 1) {
            const uintptr_t address = window + chunk_at(x, edge, k);
            const size_t offset = address - base;
            if (offset >= machine->launch->module->shared_size)
                tgl_machine_fault(machine, pc, "wgmma reads outside shared memory");
            tgl_shared_check_bounds(machine, offset, TGL_WGMMA_CHUNK, false, pc);
            tgl_shared_read_async(machine, offset, TGL_WGMMA_CHUNK, access, known, pc);
            uint32_t *first = to + edge * edge_step + k * k_step;
            for (int i = 0; i < per_chunk; i++)
                first[i * (x->is_k_major ? k_step : edge_step)] = element_at(
                    machine->launch->module->image->shared_begin + offset + i * (int)x->element,
                    x->element);
        }
}
