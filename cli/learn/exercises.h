/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of the exercises of `tegula learn`. Their files are exercises/NAME.cu and
 * exercises/solutions/NAME_solution.cu, which are embedded in the program.
 */
#ifndef CLI_EXERCISES_H
#define CLI_EXERCISES_H

#include "cli.h"

/* Kinds of accesses: bits. */
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

/* What a gate measures: a count of the accesses of some kinds, divided by another count. */
typedef enum learn_figure {
    SECTORS_PER_LOAD, /* of global memory */
    LOADED_PER_NEEDED,
    BYTES_PER_LANE, /* bytes that a lane loads from global memory at once: 16 for float4 */
    CONFLICTS,
    WAVEFRONTS_PER_FFMA, /* wavefronts of shared loads / FFMAs, by warps */
    BARRIERS_PER_BLOCK,
    COPIED_BYTES, /* bytes copied by cp.async / all bytes loaded */
    TMA_BYTES,    /* bytes copied by TMA / all bytes loaded */
    TMA_STORED,   /* bytes stored by TMA / all bytes stored */
    MMA_PER_NEEDED,
    TF32_PER_NEEDED,
    WGMMA_PER_NEEDED,
    LEARN_FIGURES
} learn_figure;

/* A condition on a figure: it must be at least `limit` if at_least is set, else at most `limit`. */
typedef struct learn_gate {
    learn_figure figure;
    double limit;
    bool at_least;
} learn_gate;

enum { GATES_MAX = 3, HINTS_MAX = 3 };

typedef struct exercise {
    const char *name, *title; /* the name is also that of the kernel */
    const char *rung;         /* rung of the ladder with the same idea; NULL: none */
    tgl_type type;            /* F32, or F16 with sums in FP32 */
    int block_m, block_n, threads;
    bool is_split;      /* split-K, and the results must be the same in any order of the blocks */
    int dynamic_shared; /* bytes per block */
    int maps;           /* tensor maps: 2: of A and B; 3: of C, too */
    int cluster;        /* blocks of a cluster; 0: no clusters */
    int blocks_max;     /* blocks on the simulator, which take tiles in turn; 0: one per tile */
    int columns;        /* columns of C; 0: any number */
    int error_max;      /* maximum error in units of 2^-24 |A||B|; 0: only exact sums are checked */
    int gate_m, gate_k; /* the size at which the gates are measured; n is gate_m or `columns` */
    learn_gate gates[GATES_MAX];
    int gate_count;
    const char *hints[HINTS_MAX]; /* a question first, then more and more of the answer */
} exercise;

/* The exercises: index 0, 1, ... until NULL. */
const exercise *exercise_at(int index);

/* The exercise of this name; NULL: there is none. */
const exercise *exercise_find(const char *name);

/* The embedded files. */
const char *exercise_starter(const exercise *e);
const char *exercise_solution(const exercise *e);

#endif
