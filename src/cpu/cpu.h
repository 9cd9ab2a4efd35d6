/* SPDX-License-Identifier: Apache-2.0
 *
 * The cpu backend's own state, and what its files ask of each other.
 */
#ifndef TGL_CPU_H
#define TGL_CPU_H

#include "api/backend.h"
#include "base/integers.h"
#include "cpu/detect.h"
#include "cpu/kernels.h"
#include "cpu/tiers.h"

#ifdef _OPENMP
#include <omp.h>
#endif

enum { CPU_ALIGNMENT = 256, CPU_POOL_SLOTS = 32, CPU_MAX_PROPERTIES = 12, CPU_MAX_THREADS = 1024 };

/* Buffers for packing, kept from run to run. A run takes one and gives it back. */
typedef struct cpu_pool {
    pthread_mutex_t lock;
    struct {
        void *memory; /* NULL: the slot is free */
        size_t bytes;
        bool in_use;
    } slots[CPU_POOL_SLOTS];
} cpu_pool;

typedef struct cpu_device {
    cpu_facts facts;
    int threads; /* the most that a run uses */
    const cpu_tier *tiers[CPU_MAX_TIERS];
    int tier_count; /* tiers[0] is the one in use */
    cpu_pool pool;

    struct {
        const char *key;
        char value[96];
    } properties[CPU_MAX_PROPERTIES];
    int property_count;
} cpu_device;

typedef enum cpu_path {
    CPU_PATH_GEMM,   /* tiles, perhaps with packing */
    CPU_PATH_VECTOR, /* C has one row or one column */
    CPU_PATH_SCALE,  /* k == 0: D := beta*C */
} cpu_path;

/* How the threads share a product. */
typedef enum cpu_sharing {
    CPU_SHARE_C,     /* each computes rectangles of C */
    CPU_SHARE_BATCH, /* each computes whole products of the batch */
    CPU_SHARE_K,     /* each computes a part of the sum; the parts are then added in order */
} cpu_sharing;

typedef struct cpu_plan {
    const cpu_kernels *kernels;
    cpu_path path;
    cpu_sharing sharing;
    int threads;
    int grid_m, grid_n; /* CPU_SHARE_C: rectangles along m and n */
    int64_t parts;      /* CPU_SHARE_K: parts of the sum */
    bool pack_a, pack_b;
    bool keep_b;        /* a packed block of B serves several blocks of A; else a panel at a time */
    bool fetch;         /* the matrices exceed L2: what comes next is fetched ahead */
    int64_t mc, nc, kc; /* A is taken in blocks of mc x kc, B in blocks of kc x nc */
    size_t a_bytes;     /* workspace: one thread's packed block of A */
    size_t b_bytes;     /* a packed block of B */
    size_t part_bytes;  /* one part's sums */
    size_t workspace;   /* all of it */
} cpu_plan;

/* cpu_plan.c: chooses path, sharing and blocking. A pure function of its arguments. */
void tgl_cpu_plan(const tgl_shape *shape, const cpu_kernels *kernels, const cpu_device *cpu,
                  cpu_plan *plan);
void tgl_cpu_explain(const tgl_plan *plan, tgl_text *out);

/* cpu_gemm.c, cpu_vector.c: run a plan in place, D := alpha*op(A)*op(B) + beta*D and the epilogue,
 * in `workspace`, plan->workspace bytes aligned to CPU_ALIGNMENT. */
void tgl_cpu_gemm(const tgl_shape *shape, const cpu_plan *plan, const tgl_run *run,
                  char *workspace);
void tgl_cpu_vector(const tgl_shape *shape, const cpu_plan *plan, const tgl_run *run,
                    char *workspace);

/* D := beta*D for all of the batch, and the epilogue. */
void tgl_cpu_scale(const tgl_shape *shape, const cpu_kernels *kernels, const tgl_run *run);

/* A part of D. */
typedef struct cpu_rectangle {
    int64_t row, rows, column, columns;
} cpu_rectangle;

/* cpu_epilogue.c: what is left to do where alpha*op(A)*op(B) + beta*C is complete, in a problem of
 * the batch. For shapes with an epilogue. */
void tgl_cpu_epilogue(const tgl_shape *shape, const cpu_kernels *kernels, const tgl_run *run,
                      int64_t problem, cpu_rectangle part);

/* buffer_pool.c. reserve: makes sure that a buffer of this size exists. take: NULL if memory is
 * short. */
void tgl_cpu_pool_open(cpu_pool *pool);
void tgl_cpu_pool_close(cpu_pool *pool);
bool tgl_cpu_pool_reserve(cpu_pool *pool, size_t bytes);
void *tgl_cpu_pool_take(cpu_pool *pool, size_t bytes);
void tgl_cpu_pool_give(cpu_pool *pool, void *memory);

/* cpu_measure.c */
tgl_status tgl_cpu_measure(tgl_device *dev, tgl_ceiling ceiling, double *value);

/* Runs `body(context, thread, team)` on each thread of a team of at most `threads`. */
typedef void cpu_team_fn(void *context, int thread, int team);
static inline void cpu_team(int threads, cpu_team_fn *body, void *context)
{
#ifdef _OPENMP
    if (threads > 1) {
#pragma omp parallel num_threads(threads)
        body(context, omp_get_thread_num(), omp_get_num_threads());
        return;
    }
#endif
    (void)threads;
    body(context, 0, 1);
}

/* Waits for the rest of the team. */
static inline void cpu_team_wait(int team)
{
#ifdef _OPENMP
    if (team > 1) {
#pragma omp barrier
    }
#endif
    (void)team;
}

/* The matrices of problem i of the batch: A, B, the D that is written, and the C that D starts from
 * (the same as D where the product is in place). element: bytes of one. */
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

/* The shortcuts of these two save small products a good part of their time: a division costs as
 * much as a dozen multiply-adds. */
static inline int64_t cpu_ceil_div(int64_t x, int64_t y)
{
    return x <= y ? x > 0 : (x + y - 1) / y;
}

/* Where part `index` of `parts` begins when `total` things are shared out evenly. */
static inline int64_t cpu_share(int64_t total, int64_t parts, int64_t index)
{
    if (parts == 1) return index == 0 ? 0 : total;
    const int64_t rest = total % parts;
    return total / parts * index + tgl_min64(index, rest);
}

#endif
