/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrices of wgmma in shared memory: makes and decodes their descriptors, and reads their
 * elements.
 */
#ifndef TGL_SIM_WGMMA_MATRIX_H
#define TGL_SIM_WGMMA_MATRIX_H

#include "sim/machine.h"

enum {
    TGL_WGMMA_K_BYTES = 32, /* K of one wgmma, in bytes of a row of an operand */
    TGL_WGMMA_CHUNK = 16,   /* bytes that a swizzle does not separate */
};

/* A matrix in shared memory, decoded from a descriptor (PTX ISA, "Matrix Descriptor Format").
 * Addresses are relative to tgl_wgmma_window(), which is a multiple of 1024 bytes, as the start of
 * shared memory is on a GPU. K-major: group_bytes is the stride from 8 rows (in M or N) to the next
 * 8. MN-major: atom_bytes is the stride in M or N from one swizzle pattern to the next, group_bytes
 * is the stride from 8 indices in K to the next 8. */
typedef struct tgl_wgmma_matrix {
    unsigned start, atom_bytes, group_bytes, swizzle;
    unsigned element; /* bytes per element */
    bool is_k_major;
    int edge; /* size in M or N, in elements */
} tgl_wgmma_matrix;

/* The address that the addresses in matrix descriptors are relative to. */
uintptr_t tgl_wgmma_window(const tgl_machine *machine);

/* Makes a matrix descriptor: the hook that make_wgmma_tile() of lib/wgmma.h calls. */
unsigned long long tgl_wgmma_tile(tgl_machine *machine, const void *shared, int swizzle,
                                  int atom_bytes, int group_bytes, const void *pc);

tgl_wgmma_matrix tgl_wgmma_decode(unsigned long long descriptor, unsigned element, bool is_k_major,
                                  int edge);

/* Reports a matrix that has no swizzle, that does not begin in the first line of its swizzle
 * pattern, or (if K-major) that crosses the end of this line. name: "left" or "right". */
void tgl_wgmma_check_matrix(tgl_machine *machine, const tgl_wgmma_matrix *x, const char *name,
                            const void *pc);

/* Reads a matrix: to[edge*edge_step + k*k_step] := element (edge, k), where edge is the index in M
 * or N. Records an asynchronous read, which lasts until its group has been waited for. access: the
 * entry that records the read (reader, time, instruction). known: the minimum of the vector clocks
 * of the warpgroup's threads. */
void tgl_wgmma_read_matrix(tgl_machine *machine, const tgl_wgmma_matrix *x,
                           const tgl_shared_access *access, const uint32_t *known, uint32_t *to,
                           int edge_step, int k_step, const void *pc);

#endif
