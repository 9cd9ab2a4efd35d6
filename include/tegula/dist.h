/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of matrices that are distributed over the ranks of a program: libtegula_dist, over
 * tegula.h. docs/distributed.md describes how the data moves.
 *
 *     tgl_device *dev;                              // one for each rank
 *     tgl_dist *dist;
 *     tgl_device_open("cpu", NULL, &dev);
 *     tgl_dist_open_mpi(MPI_COMM_WORLD, dev, NULL, &dist);       // tegula/mpi.h
 *
 *     // C := A*B. Rank r has rows of A and C, and columns of B.
 *     tgl_problem problem;
 *     tgl_problem_init(&problem, sizeof problem, TGL_F64, m, n, k);
 *     tgl_dist_layout a, b, c;
 *     tgl_dist_rows(&a, sizeof a, m, k, ranks);
 *     tgl_dist_columns(&b, sizeof b, k, n, ranks);
 *     tgl_dist_rows(&c, sizeof c, m, n, ranks);
 *     tgl_status status = tgl_dist_gemm(dist, &problem, &a, &b, &c, 1.0, A, B, 0.0, C);
 *
 *     tgl_dist_close(dist);
 *     tgl_device_close(dev);
 *
 * Conventions, besides those of tegula.h:
 *   - "Collective" functions are called by all ranks, in the same order.
 *   - The arguments of a collective function are the same on all ranks, except for pointers, memory
 *     limits, leading dimensions and the device. If they differ, if ranks run different plans or
 *     call different functions that create or run plans, or if one rank cannot do its part, all
 *     ranks return the same status, and tgl_dist_last_error() names a rank that caused it.
 *   - The plan fixes the order of additions: results are bitwise the same from run to run. Sums
 *     over ranks are in the accumulation type. If the transport has collective operations (GPUs),
 *     partial sums travel in the type of C, and each rank rounds the sum that it passes on.
 *   - A communicator belongs to one thread at a time.
 */
#ifndef TEGULA_DIST_H
#define TEGULA_DIST_H

#include "tegula.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Layouts --------------------------------------------------------------------------------- */

/* How a matrix is distributed: two-dimensional block-cyclic, as in ScaLAPACK. The rows are divided
 * into blocks, and block i is in row (source_row + i) mod grid_rows of the grid of ranks. The
 * columns are divided in the same way. A rank stores the elements of its blocks as one matrix
 * without gaps between the blocks, in the order (row-major or column-major) of the problem.
 * One-dimensional shards are a grid of one column or one row with one block for each rank. Ranks
 * outside the grid have no element. */
typedef struct tgl_dist_layout {
    size_t size;                       /* sizeof(tgl_dist_layout) */
    int64_t rows, columns;             /* of the whole matrix */
    int64_t block_rows, block_columns; /* at least 1 */
    int64_t first_rows, first_columns; /* size of the first block; 0: the size of the other
                                          blocks */
    int grid_rows, grid_columns;       /* at least 1; their product: at most the number of
                                          ranks */
    int source_row, source_column;     /* row and column of the grid that have the first block */
    tgl_order grid_order;              /* the rank in row p and column q of the grid is
                                          p*grid_columns + q (TGL_ROW_MAJOR) or p + q*grid_rows */
    int replicated;                    /* 1: every rank has the whole matrix; the grid is 1 x 1 */
    int64_t ld;                        /* leading dimension of the rank's own part; 0: no padding */
} tgl_dist_layout;

/* tgl_dist_rows() and tgl_dist_columns() fill *layout with shards of rows or of columns over the
 * ranks 0 .. ranks-1. If the number of rows or columns is not a multiple of `ranks`, the shards of
 * the last ranks are smaller or empty. tgl_dist_replicated() fills it with a copy on every rank.
 * size: sizeof(tgl_dist_layout). Return TGL_OK; TGL_BAD_ARGUMENT. */
TGL_API tgl_status tgl_dist_rows(tgl_dist_layout *layout, size_t size, int64_t rows,
                                 int64_t columns, int ranks);
TGL_API tgl_status tgl_dist_columns(tgl_dist_layout *layout, size_t size, int64_t rows,
                                    int64_t columns, int ranks);
TGL_API tgl_status tgl_dist_replicated(tgl_dist_layout *layout, size_t size, int64_t rows,
                                       int64_t columns);

/* *layout := the layout of a submatrix of the matrix that `whole` describes: rows [row, row+rows)
 * and columns [column, column+columns), counted from 0. *offset_row and *offset_column := the row
 * and column in rank `rank`'s part of the whole matrix at which the rank's part of the submatrix
 * begins. Returns TGL_OK; TGL_BAD_ARGUMENT. */
TGL_API tgl_status tgl_dist_part(tgl_dist_layout *layout, const tgl_dist_layout *whole, int64_t row,
                                 int64_t column, int64_t rows, int64_t columns, int rank,
                                 int64_t *offset_row, int64_t *offset_column);

/* The size of a rank's part. Returns TGL_OK; TGL_BAD_ARGUMENT (an invalid layout). */
TGL_API tgl_status tgl_dist_local(const tgl_dist_layout *layout, int rank, int64_t *rows,
                                  int64_t *columns);

/* *row and *column := the position in the whole matrix of element (local_row, local_column) of a
 * rank's part. Returns TGL_OK; TGL_BAD_ARGUMENT (also if the rank has no such element). */
TGL_API tgl_status tgl_dist_index(const tgl_dist_layout *layout, int rank, int64_t local_row,
                                  int64_t local_column, int64_t *row, int64_t *column);

/* ---- Transports ------------------------------------------------------------------------------ */

/* One message of a group: exactly one of `send` and `receive` is not NULL. Memory of the device. */
typedef struct tgl_dist_message {
    int rank; /* the other rank, never the own one */
    const void *send;
    void *receive;
    size_t bytes; /* at least 1; the same on both sides */
} tgl_dist_message;

/* Operations in which all ranks take part with the same count. */
typedef enum tgl_dist_collective {
    TGL_DIST_ALL_GATHER,     /* to[r*count + i] := from[i] of rank r */
    TGL_DIST_REDUCE_SCATTER, /* to[i] := the sum over the ranks of from[own rank * count + i] */
    TGL_DIST_ALL_REDUCE,     /* to[i] := the sum over the ranks of from[i]; to may be from */
} tgl_dist_collective;

/* A transport moves data between ranks. It is a table of functions, which a library for MPI or NCCL
 * fills in. Its operations exist in MPI and in NCCL: all-gather, groups of sends and receives, and
 * copies in the memory of a device. Each returns TGL_OK, TGL_COMMUNICATION (a rank does not answer
 * within the timeout, or a link failed), TGL_NO_MEMORY or TGL_DRIVER. After a failure of begin() or
 * wait() the library calls only close(), and neither uses nor frees the buffers of groups that have
 * begun.
 *
 * Streams. Products are computed in `stream`. A group starts after the work that is in `stream` at
 * begin(), and runs concurrently with later work. Work that is enqueued in `stream` after wait()
 * sees the received data, and may overwrite the sent data. With host memory, stream is NULL:
 * begin() starts at once, and wait() returns when the group is complete. */
typedef struct tgl_dist_transport {
    size_t size;      /* sizeof(tgl_dist_transport) */
    const char *name; /* "mpi", "nccl" */
    int rank, ranks;
    void *state;  /* passed to each function */
    void *stream; /* the stream of the products and copies; NULL: host memory, or the default
                     stream */

    /* Collective all-gather in host memory: all[r*bytes] := `mine` of rank r, `bytes` bytes each.
     * Returns when it is complete. Neither buffer is used after the return, not even after a
     * failure. all: NULL on a rank without memory for it, in tgl_dist_open(). */
    tgl_status (*gather)(void *state, const void *mine, void *all, size_t bytes);

    /* Begins a group of messages. Messages between two ranks arrive in the order in which both list
     * them, groups in the order of their begin(). *group identifies the group for wait(). */
    tgl_status (*begin)(void *state, const tgl_dist_message *messages, int count, void **group);
    tgl_status (*wait)(void *state, void *group);

    /* begin() and wait() in one call, for messages during which nothing is computed. NULL: the
     * library calls begin() and wait() instead. */
    tgl_status (*exchange)(void *state, const tgl_dist_message *messages, int count);

    /* Called between two parts of a product, to make progress in the groups that have begun. NULL:
     * they make progress by themselves. */
    void (*progress)(void *state);

    /* These two functions enqueue their work in `stream`. They are for device memory; NULL: host
     * memory, in which the library itself copies and adds. copy(): `lines` lines of `bytes` bytes;
     * strides in bytes. add(): target += source, for lines of `count` elements of F32, F64 or I32;
     * strides in elements. A transport with collect() must add F16 and BF16, too, because partial
     * sums then travel in the type of C. */
    tgl_status (*copy)(void *state, void *target, size_t target_stride, const void *source,
                       size_t source_stride, int64_t lines, size_t bytes);
    tgl_status (*add)(void *state, tgl_type type, void *target, int64_t target_stride,
                      const void *source, int64_t source_stride, int64_t lines, int64_t count);

    /* Enqueues a collective operation of device memory in `stream`. The order of the additions
     * depends only on the ranks, the type and the count. All-gather: `from` may be this rank's part
     * of `to`. NULL: there are no such operations. Else copy() and add() must be there, too. */
    tgl_status (*collect)(void *state, tgl_dist_collective operation, tgl_type type,
                          const void *from, void *to, size_t count);

    /* Allocates and frees memory of the device into which other ranks send. NULL: the library uses
     * tgl_alloc(), and messages may arrive in any memory. 0 bytes give NULL. */
    tgl_status (*allocate)(void *state, size_t bytes, void **memory);
    void (*release)(void *state, void *memory);

    /* Changes `stream`. The library also changes it in its copy of the table. NULL: the stream
     * cannot be changed. */
    void (*set_stream)(void *state, void *stream);

    /* Waits for the work in `stream`; NULL: a run is complete when it returns. */
    tgl_status (*synchronize)(void *state);

    void (*close)(void *state);
} tgl_dist_transport;

/* ---- Communicators --------------------------------------------------------------------------- */

/* The ranks of a program, or some of them, with a device for each. */
typedef struct tgl_dist tgl_dist;

/* The machine for which plans are made. A member that is 0 has the default of the transport. */
typedef struct tgl_dist_machine {
    size_t size;                /* sizeof(tgl_dist_machine) */
    double flops_per_s;         /* arithmetic rate of a rank's device in F64 */
    double f32_rate;            /* rate of F32 relative to F64; the default of CPUs is 2 */
    double half_rate;           /* rate of 16-bit types and I8 relative to F64; the default of CPUs
                                   is 4 */
    double operand_bytes_per_s; /* rate at which a product reads and writes its matrices; the
                                   default of CPUs is no limit */
    double product_s;           /* fixed time of each product, in addition */
    int moves_alone;            /* 1: data moves while products run, and does not slow them down */
    double bytes_per_s;         /* rate at which a rank receives while it sends at the same rate */
    double latency_s;           /* fixed time of a message */
    double memory_per_s;        /* rate of a copy in a rank's memory, in bytes/s */
    double collective_s;        /* fixed time of a collective operation; the default of NCCL is 15
                                   us. A transport without such operations, and tgl_dist_explain()
                                   by default, plan none */
    double wave_elements;       /* elements of a C of 16 bits that the device computes at a time: a
                                   product takes whole waves. The default of a GPU is a tile of 128 x
                                   256 for each SM, that of other devices 0: no waves */
} tgl_dist_machine;

/* Makes *dist from a transport, whose table is copied, and a device. The library takes over the
 * transport: tgl_dist_close() closes it, and after a failure this function does. The device stays
 * the caller's and must be closed after *dist. Libraries of transports call this function; programs
 * call tgl_dist_open_mpi() of tegula/mpi.h or tgl_dist_open_nccl() of tegula/nccl.h. Collective:
 * if a rank has no device or no memory, all ranks fail. machine may be NULL. Returns TGL_OK;
 * TGL_BAD_ARGUMENT; TGL_NO_MEMORY; what gather() of the transport returns. */
TGL_API tgl_status tgl_dist_open(const tgl_dist_transport *transport, tgl_device *dev,
                                 const tgl_dist_machine *machine, tgl_dist **dist);

/* Collective, unless a function returned TGL_COMMUNICATION. The caller must have destroyed the
 * plans of *dist. */
TGL_API void tgl_dist_close(tgl_dist *dist);

TGL_API int tgl_dist_rank(const tgl_dist *dist);
TGL_API int tgl_dist_ranks(const tgl_dist *dist);

/* Waits for the work of all runs so far. With host memory a run is complete when it returns, and
 * this call returns at once. Returns TGL_OK; TGL_COMMUNICATION (the work is not complete within the
 * timeout, or NCCL reported an error: the communicator can only be closed, results are undefined,
 * the device stays usable); TGL_DRIVER; TGL_UNSUPPORTED (the stream is being captured). */
TGL_API tgl_status tgl_dist_synchronize(tgl_dist *dist);

/* Later runs enqueue their work in `stream`, a stream of the device. The caller must order the work
 * of these runs after that of earlier runs. Returns TGL_OK; TGL_UNSUPPORTED (host memory). */
TGL_API tgl_status tgl_dist_set_stream(tgl_dist *dist, void *stream);

/* The message of the calling thread's latest failure in a function of this header, as
 * tgl_last_error() gives it for tegula.h. */
TGL_API size_t tgl_dist_last_error(char *text, size_t size);

/* For libraries of transports: stores the message that tgl_dist_last_error() returns after a
 * failure of one of their functions. */
TGL_API void tgl_dist_set_error(const char *message);

/* ---- Products -------------------------------------------------------------------------------- */

typedef struct tgl_dist_plan tgl_dist_plan;

typedef struct tgl_dist_options {
    size_t size; /* sizeof(tgl_dist_options) */
    /* D := activation(alpha*op(A)*op(B) + beta*C + bias), which is stored in C. The bias is added
     * once. A rank passes the part of the bias that belongs to its rows or columns of C. The
     * epilogue must have no residual, no expression and no amax. NULL: no epilogue. */
    const tgl_epilogue *epilogue;
    int64_t memory_limit; /* bytes that a rank may allocate besides its matrices; the smallest limit
                             of all ranks holds for each; 0: no limit */
    int64_t panel;        /* elements of a panel along the axis of the loop; 0: the planner
                             chooses */
    int parts_m, parts_n, parts_k; /* the grid of the product: how many parts m, n and k have; 0:
                                      the planner chooses */
} tgl_dist_options;

/* *plan := a plan of C := alpha*op(A)*op(B) + beta*C for distributed matrices: it says which
 * matrices stay where they are, which part of the product each rank computes, and in which panels
 * the other matrices arrive. A panel is a part of the product along one axis, m, n or k: the axis
 * of the loop (docs/distributed.md). tgl_dist_explain() prints the plan. The plan owns the memory
 * that a run needs. Collective.
 *
 * problem: sizes, types, order, transposes and compute mode of the whole product. batch is 1, lda,
 *   ldb and ldc are 0, there are no D and no grouping, scalars are on the host.
 *   A and B are F32, F64, F16, BF16 or I8: other types give TGL_UNSUPPORTED.
 * a, b, c: the layouts of the stored matrices A (m x k, or k x m if it is transposed), B and C.
 * If the memory limit is too small, or a rank has less memory, panels are shorter, unless
 * options->panel gives their length.
 * Returns TGL_OK; what tgl_problem_check() returns; TGL_BAD_LDA, TGL_BAD_LDB, TGL_BAD_LDC (of a
 * layout); TGL_BAD_ARGUMENT (another error of a layout, or layouts that do not fit the problem);
 * TGL_BAD_EPILOGUE; TGL_UNSUPPORTED; TGL_NO_MEMORY (also with the shortest panels);
 * TGL_COMMUNICATION. A rank that has no valid problem may call this function with problem NULL: the
 * calls of all ranks then return TGL_BAD_ARGUMENT. */
TGL_API tgl_status tgl_dist_plan_create(tgl_dist *dist, const tgl_problem *problem,
                                        const tgl_dist_layout *a, const tgl_dist_layout *b,
                                        const tgl_dist_layout *c, const tgl_dist_options *options,
                                        tgl_dist_plan **plan);
TGL_API void tgl_dist_plan_destroy(tgl_dist_plan *plan);

/* Runs the plan: A, B and C are the rank's parts, NULL where they have no element. bias: as the
 * epilogue says, else NULL. BLAS semantics as in tgl_gemm(): alpha == 0 reads neither A nor B,
 * beta == 0 does not read C. If every rank has all of C, the copies are the same before the run: a
 * plan may read beta*C of one rank only. Collective. Host memory: complete when the call returns.
 * Device memory: enqueued in the stream of the communicator. Returns TGL_OK; TGL_BAD_A; TGL_BAD_B;
 * TGL_BAD_C; TGL_BAD_BIAS; TGL_BAD_SCALAR; TGL_BAD_ARGUMENT (the ranks run different plans);
 * TGL_COMMUNICATION; what tgl_plan_run_operands() returns. C is unchanged after a TGL_BAD_*. */
TGL_API tgl_status tgl_dist_plan_run(tgl_dist_plan *plan, double alpha, const void *A,
                                     const void *B, double beta, void *C, const void *bias);

/* Creates a plan, runs it and destroys it. Collective. */
TGL_API tgl_status tgl_dist_gemm(tgl_dist *dist, const tgl_problem *problem,
                                 const tgl_dist_layout *a, const tgl_dist_layout *b,
                                 const tgl_dist_layout *c, double alpha, const void *A,
                                 const void *B, double beta, void *C);

/* The traffic of a plan and its predicted time. Bytes are those of the rank that receives the
 * most. */
typedef struct tgl_dist_figures {
    size_t size;                   /* sizeof(tgl_dist_figures), set by the caller */
    int parts_m, parts_n, parts_k; /* how many parts m, n and k have */
    int64_t panel, panels;         /* elements of a panel, and number of panels
                                      (tgl_dist_plan_create()) */
    double received_bytes;
    double bound_bytes;   /* lower bound for any even distribution of the matrices
                             (docs/distributed.md) */
    double memory_bytes;  /* memory besides the matrices */
    double seconds;       /* predicted */
    double local_seconds; /* predicted time of the products alone */
} tgl_dist_figures;

TGL_API tgl_status tgl_dist_plan_figures(const tgl_dist_plan *plan, tgl_dist_figures *figures);

/* Writes the plan of a product for `ranks` ranks, which need not exist, and the reasons for the
 * plan, in several lines of text. machine and options may be NULL. size and *length are those of
 * tgl_chip_explain(). figures may be NULL. Returns what tgl_dist_plan_create() returns. */
TGL_API tgl_status tgl_dist_explain(const tgl_problem *problem, const tgl_dist_layout *a,
                                    const tgl_dist_layout *b, const tgl_dist_layout *c, int ranks,
                                    const tgl_dist_machine *machine,
                                    const tgl_dist_options *options, tgl_dist_figures *figures,
                                    char *text, size_t size, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
