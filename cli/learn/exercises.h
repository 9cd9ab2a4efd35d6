/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of the exercises of `tegula learn`. The files of an exercise are exercises/NAME.cu and
 * exercises/solutions/NAME_solution.cu, which are embedded in the program. A reader is the user who
 * solves an exercise; a gate is a limit of a figure that the simulator measures.
 */
#ifndef CLI_EXERCISES_H
#define CLI_EXERCISES_H

#include "cli.h"

/* Kinds of memory accesses and of tensor core instructions, as bits of a mask. */
enum {
    LEARN_GLOBAL_LOAD = 1u << 0,
    LEARN_GLOBAL_STORE = 1u << 1,
    LEARN_SHARED_LOAD = 1u << 2,
    LEARN_SHARED_STORE = 1u << 3,
    LEARN_ASYNC_COPY = 1u << 4, /* cp.async */
    LEARN_TMA_LOAD = 1u << 5,
    LEARN_TMA_STORE = 1u << 6,
    LEARN_WGMMA = 1u << 7,
    LEARN_MMA = 1u << 8,
    LEARN_LOADS = LEARN_GLOBAL_LOAD | LEARN_ASYNC_COPY | LEARN_TMA_LOAD, /* of global memory */
    LEARN_STORES = LEARN_GLOBAL_STORE | LEARN_TMA_STORE,
};

/* The figures that gates can limit. Most are a count of the accesses of some kinds divided by
 * another count; learn_gates.c has their formulas. */
typedef enum learn_figure {
    SECTORS_PER_LOAD, /* sectors of global memory per load request of a warp */
    LOADED_PER_NEEDED,
    BYTES_PER_LANE, /* bytes that a lane loads from global memory at once; 16 for a float4 */
    CONFLICTS,
    WAVEFRONTS_PER_FFMA, /* wavefronts of shared-memory loads / FFMA instructions of warps */
    BARRIERS_PER_BLOCK,
    COPIED_BYTES, /* bytes copied by cp.async / bytes of all loads from global memory */
    TMA_BYTES,    /* bytes loaded by TMA / bytes of all loads from global memory */
    TMA_STORED,   /* bytes stored by TMA / bytes of all stores to global memory */
    MMA_PER_NEEDED,
    TF32_PER_NEEDED,
    WGMMA_PER_NEEDED,
    LEARN_FIGURES
} learn_figure;

/* A condition on a figure: it must be at least `limit` or, if at_least is false, at most
 * `limit`. */
typedef struct learn_gate {
    learn_figure figure;
    double limit;
    bool at_least;
} learn_gate;

enum { GATES_MAX = 3, HINTS_MAX = 3 };

typedef struct exercise {
    const char *name, *title; /* `name` is also the name of the kernel */
    const char *rung;         /* the kernel in kernels/ladder with the same idea; NULL: none */
    tgl_type type;            /* F32, or F16 with sums in FP32 */
    int block_m, block_n, threads;
    bool is_split;      /* whether the kernel uses split-K; its results must be the same in any
                           order of the blocks */
    int dynamic_shared; /* dynamic shared memory in bytes per block */
    int maps;           /* number of TMA tensor maps: 0, 2 (for A and B) or 3 (for A, B and C) */
    int cluster;        /* number of blocks in a cluster; 0: no clusters */
    int blocks_max; /* if not 0, each block computes several tiles, and the simulator launches this
                       number of blocks; 0: a block per tile */
    int columns;    /* number of columns of C; 0: any */
    int error_max;  /* maximum error in units of 2^-24 |A||B|; 0: only products with exact sums
                       are checked */
    int gate_m, gate_k; /* m and k of the product whose accesses the gates count; its n is gate_m,
                           or `columns` if set */
    learn_gate gates[GATES_MAX];
    int gate_count;
    const char *hints[HINTS_MAX]; /* a question first, then more and more of the answer */
} exercise;

/* The exercise with index 0, 1, ...; NULL after the last one. */
const exercise *exercise_at(int index);

/* The exercise with this name; NULL: there is none. */
const exercise *exercise_find(const char *name);

/* The texts of an exercise's embedded files: the one that a reader starts with, and the
 * solution. */
const char *exercise_starter(const exercise *e);
const char *exercise_solution(const exercise *e);

#endif
