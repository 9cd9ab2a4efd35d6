/* SPDX-License-Identifier: Apache-2.0
 *
 * How a product is computed: path, packing, blocking, threads. A plan is a pure function of the
 * shape, the kernels, the requested blocking (cpu_blocking.h), and the machine.
 */
#ifndef TGL_CPU_PLAN_H
#define TGL_CPU_PLAN_H

#include "cpu/device/detect.h"
#include "cpu/device/tiers.h"
#include "cpu/plan/cpu_blocking.h"
#include "problem/shape.h"

enum {
    CPU_ALIGNMENT = 256,   /* alignment of packed blocks, in bytes */
    CPU_SMALL_PANELS = 32, /* a small product has at most this many panels of B */
    CPU_SMALL = 64,        /* a product is small if m, n and k are at most this */

    /* A product with one row or one column uses register tiles, not GEMV kernels, if k <=
     * CPU_TILE_STEPS and m, n and m*n*k are at most CPU_TILE_WORK (measured:
     * docs/notes/2026-11-26-cpu-planner.md). */
    CPU_TILE_STEPS = 16,
    CPU_TILE_WORK = 64,
};

/* The properties of the machine that a plan depends on. */
typedef struct cpu_machine {
    cpu_facts facts;
    int threads; /* maximum number of threads of a product; in cpu_device.machine, the number of
                    threads with which the device was opened */
} cpu_machine;

typedef enum cpu_path {
    CPU_PATH_GEMM,   /* register tiles (cpu_gemm.c) in three loops over blocks, with packing if it
                        pays */
    CPU_PATH_SMALL,  /* a few register tiles, operands read in place */
    CPU_PATH_VECTOR, /* C has one row or one column */
    CPU_PATH_SCALE,  /* k == 0: D := beta*C */
    CPU_PATH_BLOCKS, /* f16, bf16, 8-bit types, and f32 by words (cpu_words.h): blocks are converted
                        to f32 or packed as words */
} cpu_path;

/* How the threads divide the work. */
typedef enum cpu_sharing {
    CPU_SHARE_C,     /* rectangles of C, which threads take one after the other */
    CPU_SHARE_BATCH, /* each thread computes whole products of the batch */
    CPU_SHARE_K,     /* split-K: each thread sums a part of k, and then the sums are added in
                        order */
} cpu_sharing;

typedef struct cpu_plan {
    const cpu_kernels *kernels;
    cpu_path path;
    cpu_sharing sharing;
    int threads;
    int grid_m, grid_n; /* CPU_PATH_GEMM: rectangles of C along m and n; 1 if not CPU_SHARE_C */
    int64_t parts;      /* CPU_SHARE_K: number of parts of k; else 1 */
    bool pack_a, pack_b;
    bool keep_b;    /* keep all packed panels (strips as wide as a register tile) of a block
                       of B; false: each panel overwrites the one before */
    bool in_bands;  /* C is computed in bands of a few rows (is_in_bands() in cpu_planner.c),
                       with a block of B in L2 */
    bool in_strips; /* C is computed in strips of a few rows (is_in_strips() in cpu_planner.c),
                       which are small products. A is not packed, B if pack_b */
    bool fetch_c;   /* in_strips: prefetch C, because it is not in a cache */
    bool fetch;     /* prefetch the next panel of B, or the next product of a batch, because
                       it is not in a cache */
    bool fetch_next_block; /* the last panel of a block of B prefetches the first panel of the next
                              block */
    int64_t mc, nc, kc;    /* block sizes: A in blocks of mc x kc, B in blocks of kc x nc */
    size_t a_bytes;        /* workspace per thread for a packed block of A, in bytes; 0: A is not
                              packed. CPU_PATH_VECTOR: for one copy of the vector */
    size_t b_bytes;        /* workspace per thread for a packed block or panel of B, in bytes */
    size_t part_bytes;     /* workspace for the sums of one part of k (CPU_PATH_VECTOR: for all
                              sums), in bytes */
    size_t workspace;      /* bytes of the whole workspace, of all threads and parts */
    struct cpu_block_plan *blocks; /* CPU_PATH_BLOCKS: the plan of the blocks; else NULL */
} cpu_plan;

/* cpu_planner.c. Fills *plan. blocking: requested block sizes; the planner computes those that are
 * 0. */
void tgl_cpu_plan(const tgl_shape *shape, const cpu_kernels *kernels, cpu_blocking blocking,
                  const cpu_machine *machine, cpu_plan *plan);

/* Whether two plans of the same product compute it in the same way. */
bool tgl_cpu_plan_is_same(const cpu_plan *x, const cpu_plan *y);

/* bytes, rounded up to CPU_ALIGNMENT. */
size_t tgl_cpu_aligned(size_t bytes);

/* The leading dimension of a packed block of B with this many columns, if C is computed in strips:
 * an odd number of vectors, so that the rows of a panel spread over all sets of L1. */
static inline int64_t tgl_cpu_strip_ld(int64_t columns, int64_t vector)
{
    return ((columns + vector - 1) / vector | 1) * vector;
}

/* Whether a product of this size takes CPU_PATH_SMALL. */
static inline bool cpu_is_small(int64_t m, int64_t n, int64_t k)
{
    return m >= 2 && n >= 2 && k >= 1 && m <= CPU_SMALL && n <= CPU_SMALL && k <= CPU_SMALL;
}

/* Whether a product takes CPU_PATH_VECTOR, which adds the terms of a sum in another order than
 * register tiles do. Small products with one row or column use tiles instead: a row of C then has
 * the same bits whether it is computed alone or as part of a larger product, which the testers of
 * LAPACK rely on. At these sizes tiles are hardly slower. */
static inline bool cpu_is_vector(int64_t m, int64_t n, int64_t k)
{
    if (m > 1 && n > 1) return false;
    if (m == 0 || n == 0) return true; /* nothing to do */
    return k > CPU_TILE_STEPS || m > CPU_TILE_WORK || n > CPU_TILE_WORK ||
           m * n * k > CPU_TILE_WORK;
}

#endif
