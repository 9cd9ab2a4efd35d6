/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of the cpu backend, and the functions that its files share.
 */
#ifndef TGL_CPU_H
#define TGL_CPU_H

#include "api/backend.h"
#include "base/integers.h"
#include "cpu/cpu_blocking.h"
#include "cpu/detect.h"
#include "cpu/kernels.h"
#include "cpu/thread_pool.h"
#include "cpu/tiers.h"

#include <stdatomic.h>

enum {
    CPU_ALIGNMENT = 256,
    CPU_BUFFER_SLOTS = 32,
    CPU_MAX_PROPERTIES = 12,
    CPU_MAX_THREADS = 1024,
    CPU_SMALL = 64, /* rows, columns and steps of a small product, at most */
};

/* Buffers for packing, kept from run to run; all zero at first. A run takes one and gives it back.
 */
typedef struct cpu_buffer_pool {
    struct {
        atomic_bool in_use;  /* whoever sets it owns the slot */
        atomic_size_t bytes; /* 0: the slot is empty */
        void *memory;
    } slots[CPU_BUFFER_SLOTS];
} cpu_buffer_pool;

typedef struct cpu_buffer {
    void *memory;
    int slot; /* -1: it is not kept */
} cpu_buffer;

typedef struct cpu_device {
    cpu_facts facts;
    const cpu_tier *tiers[CPU_MAX_TIERS];
    int tier_count; /* tiers[0] is the one in use */
    thread_pool threads;
    cpu_buffer_pool buffers;

    struct {
        const char *key;
        char value[96];
    } properties[CPU_MAX_PROPERTIES];
    int property_count;
} cpu_device;

typedef enum cpu_path {
    CPU_PATH_GEMM,   /* tiles, perhaps with packing */
    CPU_PATH_SMALL,  /* a few tiles, read in place */
    CPU_PATH_VECTOR, /* C has one row or one column */
    CPU_PATH_SCALE,  /* k == 0: D := beta*C */
    CPU_PATH_BLOCKS, /* f16, bf16, int8 and words: blocks are converted to f32 or packed as words */
} cpu_path;

/* How the threads share a product. */
typedef enum cpu_sharing {
    CPU_SHARE_C,     /* each computes rectangles of C, those that no other has taken */
    CPU_SHARE_BATCH, /* each computes whole products of the batch */
    CPU_SHARE_K,     /* each computes a part of the sum; the parts are then added in order */
} cpu_sharing;

typedef struct cpu_plan {
    const cpu_kernels *kernels;
    cpu_path path;
    cpu_sharing sharing;
    int threads;
    int grid_m, grid_n; /* CPU_SHARE_C: rectangles along m and n; else 1 */
    int64_t parts;      /* CPU_SHARE_K: parts of the sum */
    bool pack_a, pack_b;
    bool keep_b;           /* a whole block of B is packed; else one panel at a time */
    bool in_bands;         /* C is computed in bands of a few rows, beside a block of B in L2 */
    bool fetch;            /* prefetch the next panel of B, or the next product of a batch of
                              small ones, because B or the batch lies beyond the caches */
    bool fetch_next_block; /* the last panel of a block of B prefetches the next block's first panel
                            */
    int64_t mc, nc, kc;    /* A is taken in blocks of mc x kc, B in blocks of kc x nc */
    size_t a_bytes;        /* workspace: one thread's packed block of A */
    size_t b_bytes;        /* a packed block of B */
    size_t part_bytes;     /* one part's sums */
    size_t workspace;      /* all of it */
    struct cpu_block_plan *blocks; /* CPU_PATH_BLOCKS; else NULL */
} cpu_plan;

/* How a product of 16-bit types, of int8, or of words of f32, is cut into blocks. */
typedef struct cpu_block_plan {
    const cpu_conversions *conversions;
    const cpu_words *words;       /* NULL: all blocks are converted to f32 */
    int64_t rows, columns, steps; /* of a block: of op(A), of op(B), of k */
    bool by_digits;               /* blocks are tried by digits first (CPU_DIGITS_F32) */
    int64_t word_steps;           /* of a block that is multiplied by words or FMAs */
    bool is_vector;  /* D has one row or column: elements of the matrix are converted as they are
                        loaded */
    cpu_dot_fn *dot; /* is_vector: for lines that are contiguous along k */
    int64_t sum_ld;  /* of a block of sums */
    int64_t blocks_m, blocks_n, blocks_k; /* blocks along m, n and k */
    int64_t parts; /* of k, which threads sum at the same time and then add; 1: k is not divided */
    cpu_plan product; /* f32, of a whole block, on one thread */
    size_t a_bytes, b_bytes, sum_bytes, row_bytes, product_bytes; /* of a thread, in this order */
    size_t thread_bytes; /* with the workspace of `product` */
} cpu_block_plan;

/* cpu_plan.c: chooses path, sharing and what `blocking` leaves open. A pure function of its
 * arguments. */
void tgl_cpu_plan(const tgl_shape *shape, const cpu_kernels *kernels, cpu_blocking blocking,
                  const cpu_device *cpu, cpu_plan *plan);
void tgl_cpu_explain(const tgl_plan *plan, tgl_text *out);
size_t tgl_cpu_aligned(size_t bytes); /* rounded up to CPU_ALIGNMENT */

/* cpu_blocks.c: the same for short types, and for all products by `words` (tgl_cpu_words_for()).
 * *plan refers to *h. */
void tgl_cpu_plan_blocks(const tgl_shape *shape, const cpu_tier *tier, const cpu_words *words,
                         cpu_blocking blocking, const cpu_device *cpu, cpu_block_plan *h,
                         cpu_plan *plan);
void tgl_cpu_blocks(const tgl_shape *shape, const cpu_plan *plan, const tgl_run *run,
                    char *workspace, thread_pool *threads);

/* cpu_words.c. word_kind: what a product of its types multiplies. words_for: the words that compute
 * the product; NULL: FMAs are faster, or neither the product nor the system permits words.
 * word_blocks: sets rows, columns, steps and parts of the blocks. parts_of_k: parts of k for
 * threads that have no block of D, at least `steps` steps each. multiply_words: sums := or += the
 * product of a block, of this kind; is_last: of the blocks along k; false: the elements are not
 * suited, and the sums are unchanged. */
cpu_word_kind tgl_cpu_word_kind(const tgl_shape *shape);
const cpu_words *tgl_cpu_words_for(const tgl_shape *shape, const cpu_tier *tier);
void tgl_cpu_word_blocks(const tgl_shape *shape, int threads, cpu_block_plan *h);
int64_t tgl_cpu_parts_of_k(int64_t blocks, int threads, int64_t k, int64_t steps);
bool tgl_cpu_multiply_words(const tgl_shape *shape, const cpu_words *words, cpu_word_kind kind,
                            const cpu_words_source *a, const cpu_words_source *b, void *packed_a,
                            void *packed_b, void *sums, int64_t ld, bool add, bool is_last);

/* cpu_gemm.c, cpu_vector.c: run a plan in place, D := alpha*op(A)*op(B) + beta*D and the epilogue,
 * in `workspace`, plan->workspace bytes aligned to CPU_ALIGNMENT. */
void tgl_cpu_gemm(const tgl_shape *shape, const cpu_plan *plan, const tgl_run *run, char *workspace,
                  thread_pool *threads);
void tgl_cpu_vector(const tgl_shape *shape, const cpu_plan *plan, const tgl_run *run,
                    char *workspace, thread_pool *threads);

/* The item that a thread of a team takes after it has finished one. The first items are those of
 * the threads' own numbers. A thread that is delayed, by another program or because its processor
 * is slower, takes fewer items than others. taken: 0 at first, shared by the team. */
static inline int64_t cpu_next_item(_Atomic int64_t *taken, int team)
{
    return team + atomic_fetch_add_explicit(taken, 1, memory_order_relaxed);
}

/* Whether a product of this size is small. */
static inline bool cpu_is_small(int64_t m, int64_t n, int64_t k)
{
    return m >= 2 && n >= 2 && k >= 1 && m <= CPU_SMALL && n <= CPU_SMALL && k <= CPU_SMALL;
}

/* cpu_small.c: small products, without workspace: tgl_backend.run_small; those of a plan, with the
 * epilogue. */
bool tgl_cpu_run_small(const tgl_device *dev, const tgl_small_product *product);
void tgl_cpu_small_run(const tgl_shape *shape, const cpu_plan *plan, const tgl_run *run,
                       thread_pool *threads);

/* D := beta*D for all of the batch, and the epilogue. */
void tgl_cpu_scale(const tgl_shape *shape, const cpu_kernels *kernels, const tgl_run *run);

/* A part of D. */
typedef struct cpu_rectangle {
    int64_t row, rows, column, columns;
} cpu_rectangle;

/* cpu_epilogue.c: bias, activation and residual for a part of D, in one problem of the batch, where
 * D holds alpha*op(A)*op(B) + beta*C. For shapes with an epilogue. */
void tgl_cpu_epilogue(const tgl_shape *shape, const cpu_kernels *kernels, const tgl_run *run,
                      int64_t problem, cpu_rectangle part);

/* buffer_pool.c. reserve: makes sure that a buffer of this size exists; false: no memory. take:
 * memory is NULL if there is none. */
void tgl_buffer_pool_close(cpu_buffer_pool *pool);
bool tgl_buffer_pool_reserve(cpu_buffer_pool *pool, size_t bytes);
cpu_buffer tgl_buffer_pool_take(cpu_buffer_pool *pool, size_t bytes);
void tgl_buffer_pool_give(cpu_buffer_pool *pool, cpu_buffer buffer);

/* cpu_measure.c */
tgl_status tgl_cpu_measure(tgl_device *dev, tgl_ceiling ceiling, double *value);

/* The matrices of problem i of the batch: A, B, C, and D, which is written (C itself if the product
 * is in place). element: bytes of an element. */
static inline const char *tgl_cpu_matrix_of(const tgl_shape *s, const tgl_run *run,
                                            tgl_operand matrix, tgl_operand array, int64_t i,
                                            int64_t stride, int64_t element)
{
    if (s->pointers) return ((const char *const *)run->at[array])[i];
    return (const char *)run->at[matrix] + i * stride * element;
}

static inline const char *tgl_cpu_a_of(const tgl_shape *s, const tgl_run *run, int64_t i,
                                       int64_t element)
{
    return tgl_cpu_matrix_of(s, run, TGL_AT_A, TGL_AT_A_ARRAY, i, s->stride_a, element);
}

static inline const char *tgl_cpu_b_of(const tgl_shape *s, const tgl_run *run, int64_t i,
                                       int64_t element)
{
    return tgl_cpu_matrix_of(s, run, TGL_AT_B, TGL_AT_B_ARRAY, i, s->stride_b, element);
}

static inline const char *tgl_cpu_c_of(const tgl_shape *s, const tgl_run *run, int64_t i,
                                       int64_t element)
{
    return tgl_cpu_matrix_of(s, run, TGL_AT_C, TGL_AT_C_ARRAY, i, s->stride_c, element);
}

static inline char *tgl_cpu_d_of(const tgl_shape *s, const tgl_run *run, int64_t i, int64_t element)
{
    return (char *)tgl_cpu_matrix_of(s, run, TGL_AT_D, TGL_AT_D_ARRAY, i, s->stride_d, element);
}

/* These two avoid divisions in common cases: a division takes as long as a dozen multiply-adds,
 * which counts in small products. */
static inline int64_t cpu_ceil_div(int64_t x, int64_t y)
{
    return x <= y ? x > 0 : (x + y - 1) / y;
}

/* The first item of part `index` when `total` items are divided evenly into `parts`. */
static inline int64_t cpu_share(int64_t total, int64_t parts, int64_t index)
{
    if (parts == 1) return index == 0 ? 0 : total;
    const int64_t rest = total % parts;
    return total / parts * index + tgl_min64(index, rest);
}

#endif
