/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrices of a product that is timed: random, on the host and on the device, and on a device
 * with memory of its own in as many copies as its cache cannot hold, to be used in turn. A kernel
 * that finds its inputs in the cache looks faster than it is where they come from elsewhere.
 */
#ifndef CLI_TIMED_OPERANDS_H
#define CLI_TIMED_OPERANDS_H

#include "tegula/tegula.h"

#include <stdbool.h>

typedef struct operands {
    tgl_device *dev;
    tgl_problem problem;
    size_t size_a, size_b, size_c;  /* bytes of a matrix, or of the batch */
    void *host_a, *host_b;          /* the device's own on a device that works on host memory */
    int sets;                       /* of A, B and C on the device; 1 on host devices */
    void *A, *B, *C;                /* each set after the other, aligned to 256 bytes */
    size_t step_a, step_b, step_c;  /* bytes from one set to the next */
    void *bias, *host_bias;         /* of an epilogue; the same for all sets */
    void *residual, *host_residual; /* a set has one of its own */
} operands;

/* One set. */
typedef struct operand_set {
    const void *A, *B, *bias, *residual;
    void *C;
} operand_set;

/* Random elements in (-1,1) in A and B; C is not initialised. On failure, too, they have to be
 * released. rotate: false for a single set. */
tgl_status operands_make(operands *o, tgl_device *dev, const tgl_problem *problem, bool rotate);
void operands_release(operands *o);

/* Adds what an epilogue reads. */
tgl_status operands_add_epilogue(operands *o, const tgl_epilogue *epilogue);

/* The set for a call; calls are numbered from 0. */
operand_set operands_for(const operands *o, int64_t call);

#endif
