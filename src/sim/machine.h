/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated GPU: one multiprocessor that runs a grid cluster by cluster, mostly of one block, a
 * fiber a thread, and looks at every access. One launch at a time.
 */
#ifndef TGL_SIM_MACHINE_H
#define TGL_SIM_MACHINE_H

#include "sim/fiber.h"
#include "sim/module.h"
#include "sim/tally.h"

#include "../../kernels/lib/gemm_args.h"

enum { TGL_SIM_MESSAGE = 512, TGL_SIM_MOST_THREADS = 1024, TGL_SIM_MOST_BLOCKS = 8 };

/* Matrices of 4-byte elements that a kernel may touch, a batch of one or more. */
typedef struct tgl_sim_matrix {
    const char *name;
    uintptr_t base;
    const void *const *bases; /* of each matrix of the batch; NULL: they are a stride apart */
    int64_t rows, row_bytes, ld_bytes;
    int64_t extent; /* bytes from the base to the end of the last row; 0: not one to be touched */
    int64_t batch, stride_bytes;
    const char *taboo; /* why it must not be read ("beta is 0"), or NULL */
} tgl_sim_matrix;

enum {
    TGL_SIM_A,
    TGL_SIM_B,
    TGL_SIM_C,
    TGL_SIM_WORKSPACE,
    TGL_SIM_BIAS,
    TGL_SIM_RESIDUAL,
    TGL_SIM_A_POINTERS, /* arrays of them, 8 bytes an element */
    TGL_SIM_B_POINTERS,
    TGL_SIM_C_POINTERS,
    TGL_SIM_MATRICES
};

typedef struct tgl_sim_launch {
    tgl_sim_module *module;
    unsigned grid_x, grid_y, grid_z, threads;
    unsigned cluster; /* blocks along x that run together: divides grid_x */
    const struct tgl_gemm_args
        *gemm; /* what the production family is given; NULL: a rung, given: */
    int m, n, k;
    float alpha, beta;
    const float *A, *B;
    float *C;
    int64_t lda, ldb, ldc;
    tgl_sim_matrix matrices[TGL_SIM_MATRICES]; /* C and the workspace may be written */
} tgl_sim_launch;

/* A cp.async that has not been waited for. */
typedef struct tgl_sim_copy {
    void *shared;
    const void *global;
    int bytes, valid_bytes;
    uint32_t site;
    int64_t group; /* the number of groups that the thread had committed before */
} tgl_sim_copy;

typedef enum tgl_thread_state {
    TGL_THREAD_READY,
    TGL_THREAD_AT_WINDOW,  /* goes on when its warp has been counted */
    TGL_THREAD_AT_WARP,    /* __syncwarp or a shuffle */
    TGL_THREAD_AT_BARRIER, /* __syncthreads */
    TGL_THREAD_AT_CLUSTER, /* a barrier of the cluster */
    TGL_THREAD_DONE
} tgl_thread_state;

typedef struct tgl_sim_thread {
    tgl_fiber fiber;
    struct tgl_machine *machine;
    char *stack;    /* the lowest address */
    unsigned index; /* threadIdx.x */
    tgl_thread_state state;
    const void *waits_at; /* where it called the barrier */
    uint32_t waits_for;   /* TGL_THREAD_AT_WARP: the lanes */
    unsigned given;       /* to a shuffle */
    uint32_t warp_epoch;  /* warp barriers that it has passed in this block */
    tgl_sim_loops loops;  /* that it is in */

    tgl_sim_copy *copies; /* in flight, oldest first, from `first_copy` */
    int first_copy, copy_count, copy_room;
    int64_t groups; /* committed */
} tgl_sim_thread;

/* What is known of 4 bytes of shared memory. Epochs number the stretches between two barriers from
 * 1 in each block; 0: never. */
typedef struct tgl_shared_word {
    uint32_t write_epoch, write_warp_epoch, write_site;
    uint32_t read_epoch, read_warp_epoch, read_site;
    uint32_t other_epoch, other_site; /* a second reader, in another thread */
    uint32_t copy_site;
    uint32_t write_phase; /* phases lie between two barriers of the cluster, likewise */
    uint32_t remote_phase, remote_site; /* another block has read it */
    uint16_t writer, reader, other_reader, copier;
    uint8_t has_data;   /* bit i: byte i was written */
    uint8_t is_awaited; /* a cp.async by `copier` is under way */
    uint8_t write_bytes, read_bytes;
} tgl_shared_word;

/* Who wrote an element of C last. */
typedef struct tgl_c_word {
    uint32_t block; /* its number plus 1, as far as it fits; 0: nobody */
    uint16_t thread;
    uint16_t epoch; /* as far as it fits: a touch just 65536 barriers after, or a multiple, is taken
                       for a race, and no race is hidden */
    uint32_t site;
} tgl_c_word;

/* A block of the cluster that runs. */
typedef struct tgl_sim_block {
    uint64_t number; /* (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x */
    bool is_done;
    tgl_sim_thread *threads;
    unsigned made; /* threads that have a stack */
    uint32_t epoch;
    tgl_shared_word *words;
    size_t word_room;
    char *shared; /* its shared memory, while another block's is where kernels find it */
    size_t shared_room;
    uint32_t read_phase; /* another block has read from it */
} tgl_sim_block;

typedef struct tgl_machine {
    const tgl_sim_launch *launch;
    tgl_sim_hooks *hooks;
    tgl_fiber scheduler;
    tgl_sim_block blocks[TGL_SIM_MOST_BLOCKS], *now; /* the one that runs */
    tgl_sim_thread *current;
    size_t stack_size;

    uint32_t phase;      /* of the cluster */
    tgl_c_word *c_words; /* batch x m x n */
    size_t c_word_room;
    tgl_tally tally;
    int64_t barriers;

    tgl_status status; /* the first thing that went wrong, and the sentence */
    char message[TGL_SIM_MESSAGE];
    char deferred[TGL_SIM_MESSAGE]; /* a fault that another may still explain; "": none */
} tgl_machine;

bool tgl_machine_init(tgl_machine *machine);
void tgl_machine_free(tgl_machine *machine);

/* Runs the grid to its end, or to the first illegal thing: TGL_OK, TGL_KERNEL_FAULT or
 * TGL_NO_MEMORY, with machine->message. What was counted stays in machine->tally until the next
 * run. */
tgl_status tgl_machine_run(tgl_machine *machine, const tgl_sim_launch *launch);

/* ---- Between machine.c and memory.c ---------------------------------------------------------- */

/* Records what the current thread did wrong at a place (pc may be NULL) and stops the launch.
 * Called on the thread's own stack; does not come back. */
void tgl_machine_fault(tgl_machine *machine, const void *pc, const char *format, ...)
    TGL_PRINTF(3, 4);

/* Records what the current thread did wrong, but lets it go on until the next barrier: what other
 * threads do before that may tell more. Only the first one counts. */
void tgl_machine_defer_fault(tgl_machine *machine, const void *pc, const char *format, ...)
    TGL_PRINTF(3, 4);

/* The thread stops in this state, until the scheduler makes it ready. */
void tgl_machine_wait(tgl_machine *machine, tgl_thread_state state, const void *pc);

/* Prepares the books on memory for a launch or a block. */
bool tgl_memory_start_launch(tgl_machine *machine);
void tgl_memory_start_block(tgl_machine *machine);

/* The hooks of kernels/sim/hooks.h that touch memory; `run` is the machine. */
void tgl_memory_access(void *run, const void *pointer, unsigned bytes, int is_write,
                       const void *pc);
float tgl_memory_cluster_load(void *run, const float *shared, int rank, const void *pc);
void tgl_memory_async_copy(void *run, void *shared, const void *global, int bytes, int valid_bytes,
                           const void *pc);
void tgl_memory_async_commit(void *run);
void tgl_memory_async_wait(void *run, int groups_pending);

#endif
