/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of the simulated GPU: threads, blocks, the shadows of memory; and the functions that
 * stop a thread or report an error. sim/machine_launch.h runs launches on it. Terms:
 *
 *   run      one execution of a launch list (plan/launch_list.h): a sequence of launches
 *   region   a matrix, a vector or a part of the workspace in global memory (regions.h)
 *   hook     a function of the simulator that the compiled kernel calls (kernels/sim/hooks.h)
 *   pc       a source location: the return address of the kernel's call of a hook
 *   site     an instruction of the kernel, as an index in tally.sites (tally.h)
 *   shadow   for each word of memory: which bytes were written, and who accessed it last
 *   epoch    the interval between two barriers of a block, numbered from 1
 *   phase    the interval between two barriers of the cluster, or a phase of an mbarrier
 *   actor    a thread, or an asynchronous unit that accesses shared memory (TMA, wgmma)
 *   helper   a machine that runs some clusters of another machine's launch (host_threads.h)
 */
#ifndef TGL_SIM_MACHINE_H
#define TGL_SIM_MACHINE_H

#include "sim/fiber.h"
#include "sim/regions.h"
#include "sim/sim_module.h"
#include "sim/tally.h"

#include "../../kernels/lib/tma_map.h"
#include "plan/launch_list.h"
#include "plan/limits.h"

enum {
    TGL_SIM_MESSAGE = 640,
    TGL_SIM_THREADS_MAX = 1024,
    TGL_WARP = 32,               /* threads of a warp */
    TGL_WARPGROUP = 128,         /* threads of a warpgroup */
    TGL_SIM_MBARRIERS_MAX = 64,  /* maximum number of mbarriers per block */
    TGL_SIM_READERS_MAX = 24,    /* maximum number per block of tgl_async_reader */
    TGL_SIM_NAMED_BARRIERS = 16, /* named barriers per block; barrier 0 is __syncthreads() */
};

/* ---- Launches -------------------------------------------------------------------------------- */

/* The regions of memory (regions.h) that a launch may access. A launch may write only D, the
 * counters and the scratch (the two parts of the workspace), and by atomics TGL_SIM_AMAX. */
enum {
    TGL_SIM_A,
    TGL_SIM_B,
    TGL_SIM_C, /* not accessible if C and D are the same matrix */
    TGL_SIM_D,
    TGL_SIM_COUNTERS,
    TGL_SIM_SCRATCH,
    TGL_SIM_BIAS,
    TGL_SIM_RESIDUAL,
    TGL_SIM_ALPHA, /* alpha and beta if they are device scalars */
    TGL_SIM_BETA,
    TGL_SIM_SCALE_A, /* scale factors of A, B and D */
    TGL_SIM_SCALE_B,
    TGL_SIM_SCALE_D,
    TGL_SIM_ZEROS,      /* zero points of weights */
    TGL_SIM_A_POINTERS, /* for batches given by pointers: arrays of 8-byte pointers to A, B, C, D */
    TGL_SIM_B_POINTERS,
    TGL_SIM_C_POINTERS,
    TGL_SIM_D_POINTERS,
    TGL_SIM_GROUPS,
    TGL_SIM_AMAX,   /* the largest magnitude of D: only atomics access it */
    TGL_SIM_KEPT_A, /* operands that an earlier run has prepared (tgl_operand_prepare()) */
    TGL_SIM_KEPT_B,
    TGL_SIM_REGIONS
};

typedef struct tgl_sim_launch {
    tgl_sim_module *module;
    unsigned grid[3], cluster[3], threads; /* grid, cluster, threads per block; the grid is a
                                              multiple of the cluster */
    size_t shared_limit; /* bytes of an array in shared memory that threads may access; 0: all */
    tgl_ordering order;
    const void *arguments;
    int argument_bytes;
    int64_t first_problem; /* batch index of the first product that this launch computes */
    tgl_sim_region regions[TGL_SIM_REGIONS];
    char *result;     /* address of D; NULL if D is given by an array of pointers */
    tgl_trace *trace; /* receives the trace of the first block; NULL: no trace is recorded */
} tgl_sim_launch;

/* The memory that all launches of a run share. */
typedef struct tgl_sim_memory {
    int64_t m, n, batch; /* rows, columns (two for a complex one) and batch size of D; of a bundle:
                            rows of all D, the maximum number of columns, and 1 */
    const char *counters, *scratch;
    size_t counter_bytes, scratch_bytes; /* bytes of the two parts of the workspace, multiples of
                                            4 */
} tgl_sim_memory;

/* ---- Threads and blocks ---------------------------------------------------------------------- */

/* A cp.async in flight: the thread has not yet waited for its group. */
typedef struct tgl_sim_copy {
    void *shared;
    const void *global;
    int bytes, valid_bytes;
    uint32_t site;
    int64_t group; /* number of groups that the thread had committed before this copy */
} tgl_sim_copy;

/* A TMA store that has not completed. */
typedef struct tgl_box_store {
    struct tgl_box_store *next;
    int64_t group; /* number of groups that the thread had committed before this store */
    uint32_t site;
    struct tgl_tensor_map map;
    int at[TGL_TENSOR_RANK_MAX];
    char data[]; /* the box's elements, row after row without gaps */
} tgl_box_store;

/* A left operand (A) of wgmma that is in registers of a thread. */
typedef struct tgl_sim_left_fragment {
    const char *begin, *end; /* address range of its registers; NULL: the entry is unused */
    bool is_written;         /* written since the thread's last wgmma_fence() */
    int64_t group;           /* number of the latest wgmma group that reads it */
    const void *pc;          /* source location of the latest wgmma that reads it */
} tgl_sim_left_fragment;

/* The state of a thread that executes wgmma. */
enum {
    TGL_WGMMA_ACCUMULATORS = 4,    /* maximum number per thread of accumulators that are tracked */
    TGL_WGMMA_LEFT_FRAGMENTS = 32, /* maximum number per thread of left operands in registers */
};
typedef struct tgl_sim_wgmma_thread {
    int64_t groups, done; /* number of wgmma groups that the thread has committed; number of those
                             that it has waited for */
    bool has_fenced;      /* has executed wgmma_fence() */
    int in_flight; /* number of accumulators of wgmma that the thread has not waited for: their
                      values are not yet in its registers */
    struct {
        const char *begin, *end; /* address range of the registers; NULL: the entry is unused */
        bool is_touched;         /* accessed since the thread's last wgmma_fence() */
    } accumulators[TGL_WGMMA_ACCUMULATORS];
    tgl_sim_left_fragment fragments[TGL_WGMMA_LEFT_FRAGMENTS]; /* used entries come first */
} tgl_sim_wgmma_thread;

typedef enum tgl_thread_state {
    TGL_THREAD_READY,
    TGL_THREAD_AT_WINDOW,   /* waits until the accesses of its warp have been counted (tally.h) */
    TGL_THREAD_AT_WARP,     /* at __syncwarp(), a shuffle, or an instruction of the whole warp */
    TGL_THREAD_AT_MBARRIER, /* waits for a phase of an mbarrier */
    TGL_THREAD_AT_NAMED,    /* at a named barrier */
    TGL_THREAD_AT_GROUP,    /* at an instruction of the whole warpgroup (wgmma) */
    TGL_THREAD_AT_BARRIER,  /* at __syncthreads */
    TGL_THREAD_AT_CLUSTER,  /* at a barrier of the cluster */
    TGL_THREAD_DONE
} tgl_thread_state;

typedef struct tgl_sim_thread {
    tgl_fiber fiber;
    struct tgl_machine *machine;
    char *stack;    /* the lowest address */
    unsigned index; /* threadIdx.x */
    tgl_thread_state state;
    const void *waits_at;               /* source location of the call at which the thread waits */
    uint32_t waits_for;                 /* TGL_THREAD_AT_WARP: mask of the lanes that must arrive */
    int mbarrier;                       /* TGL_THREAD_AT_MBARRIER: index of the mbarrier */
    uint32_t phase;                     /* TGL_THREAD_AT_MBARRIER: number of the phase that must
                                           complete */
    int named;                          /* TGL_THREAD_AT_NAMED: number of the barrier */
    unsigned named_count;               /* TGL_THREAD_AT_NAMED: number of threads that must
                                           arrive */
    unsigned given;                     /* value that the thread passed to a shuffle */
    struct tgl_warp_operands *operands; /* TGL_THREAD_AT_WARP: operands of mma.sync, ldmatrix or
                                           stmatrix; NULL: another instruction */
    struct tgl_wgmma_operands *wgmma;   /* TGL_THREAD_AT_GROUP: operands of wgmma */
    const char *group_word;             /* TGL_THREAD_AT_GROUP: name of the instruction */
    uint32_t warp_epoch; /* number of warp barriers that the thread has passed in this block,
                            plus 1 */
    uint32_t time;       /* number of release operations of the thread (clocks.c), plus 1 */
    bool has_waited;     /* the thread has waited for earlier launches (griddepcontrol.wait) */
    tgl_sim_loops loops; /* the loops that the thread is in, with iteration numbers */

    tgl_sim_copy *copies; /* cp.async in flight, oldest first, from index `first_copy` on */
    int first_copy, copy_count;
    size_t copy_room;
    int64_t groups; /* number of cp.async groups that the thread has committed */

    tgl_sim_wgmma_thread wgmmas;
    tgl_box_store *stores; /* TMA stores that have not completed, oldest first */
    int64_t store_groups;  /* number of groups of TMA stores that the thread has committed */
    int64_t stores_read;   /* number of those groups that have finished reading shared memory */
} tgl_sim_thread;

/* An access to a word of shared memory: by whom and when. epoch 0: there was no access. */
typedef struct tgl_shared_access {
    uint32_t epoch, warp_epoch, time, site;
    uint16_t thread; /* index in the block, or number of an asynchronous actor (below) */
} tgl_shared_access;

enum {
    /* TGL_ACTOR_MBARRIER + i: the TMA copies that mbarrier i counts. The access's `time` is a phase
     * of this mbarrier. */
    TGL_ACTOR_MBARRIER = TGL_SIM_THREADS_MAX,
    /* TGL_ACTOR_READER + i: asynchronous reader i of the block. The access's `time` is the number
     * of the reader's group that the access belongs to, from 1. */
    TGL_ACTOR_READER = TGL_ACTOR_MBARRIER + TGL_SIM_MBARRIERS_MAX,
};

/* An actor that reads shared memory asynchronously: all wgmma instructions of a warpgroup, or all
 * TMA stores of a thread. */
typedef struct tgl_async_reader {
    bool is_wgmma;
    unsigned thread; /* first thread of the warpgroup, or the thread that stores */
} tgl_async_reader;

typedef enum tgl_awaited { TGL_AWAITS_NOTHING, TGL_AWAITS_CP_ASYNC, TGL_AWAITS_TMA } tgl_awaited;

/* The shadow of 4 bytes of shared memory. */
typedef struct tgl_shared_word {
    /* The last write; the earliest read that is not ordered before a later one; the last read by
     * another thread than that of `read`. */
    tgl_shared_access write, read, other;
    uint32_t copy_site;
    uint32_t write_phase; /* cluster phase of the last write; a barrier of the cluster starts a new
                             phase */
    uint32_t remote_phase, remote_site; /* cluster phase and source location of the last read by
                                           another block */
    uint16_t copier;
    uint8_t has_data;   /* bit i: byte i has been written */
    uint8_t is_awaited; /* a tgl_awaited; if not 0, an asynchronous copy to this word, which thread
                           `copier` issued, is in flight */
    uint8_t write_bytes, read_bytes;
} tgl_shared_word;

/* A TMA copy in flight. */
typedef struct tgl_tma_copy {
    char *shared;
    struct tgl_tensor_map map;
    int at[TGL_TENSOR_RANK_MAX];
    uint32_t site;
    uint16_t thread; /* the thread that issued it */
    uint8_t rank;    /* rank in the cluster of that thread's block */
} tgl_tma_copy;

typedef struct tgl_mbarrier {
    size_t offset;          /* byte offset of the mbarrier in shared memory */
    int arrivals, pending;  /* arrivals per phase; arrivals that the current phase still expects */
    int64_t missing;        /* bytes of TMA copies that the current phase still expects */
    uint32_t phase;         /* number of completed phases, plus 1 */
    tgl_shared_access made; /* the call of mbarrier_init(), as an access */
    const void *made_at;    /* source location of the call of mbarrier_init() */
    bool is_fenced;         /* mbarrier_init_fence() was called after mbarrier_init() */
    uint32_t *arrived, *complete; /* maximum of the vector clocks (clocks.h) of the arrivals: in the
                                     current phase; in the previous phase */
    tgl_tma_copy *copies;         /* TMA copies that the current phase counts */
    int copy_count;
    size_t copy_room;
} tgl_mbarrier;

/* A block of the running cluster. */
typedef struct tgl_sim_block {
    unsigned at[3]; /* blockIdx */
    bool is_done;
    tgl_sim_thread *threads;
    unsigned made; /* number of its threads that have a stack */
    uint32_t epoch;
    uint32_t waited_epoch; /* epoch in which a thread first waited for earlier launches
                              (griddepcontrol.wait); 0: no thread has waited */
    tgl_shared_word *words;
    size_t word_room;
    char *shared; /* saved shared memory of this block while another block runs */
    size_t shared_room;
    uint32_t read_phase; /* last cluster phase in which another block read this block's shared
                            memory */

    uint32_t phase_epoch; /* first epoch after the latest barrier of the cluster */
    uint32_t phase_time;  /* time of the block's threads before the latest cluster barrier, which is
                             the same for all threads while there are no clocks */
    tgl_mbarrier mbarriers[TGL_SIM_MBARRIERS_MAX];
    int mbarrier_count;
    tgl_async_reader readers[TGL_SIM_READERS_MAX];
    int reader_count;
    struct tgl_sim_warpgroup *warpgroups; /* state of wgmma per warpgroup; NULL: no warpgroup uses
                                             it */
} tgl_sim_block;

/* ---- Global memory --------------------------------------------------------------------------- */

/* A moment in the execution: the thread that did something, and the numbers of launches, barriers
 * and events up to then. Moments are compared by these numbers. */
typedef struct tgl_moment {
    uint32_t launch;  /* number of the launch in the run, from 1; 0: never */
    uint32_t cluster; /* number of the cluster in the launch */
    uint32_t epoch, warp_epoch, phase;
    uint32_t time; /* number of fences, atomics and named barriers of all threads in this launch so
                      far */
    uint16_t thread;
    uint8_t rank; /* rank of the block in its cluster */
} tgl_moment;

/* The shadow of one element of D, or of 4 bytes of the workspace. */
typedef struct tgl_global_word {
    tgl_moment written;   /* the last write */
    int32_t pc;           /* source location of the last write, relative to the module's image */
    uint32_t read_launch; /* number of the last launch that read it; 0: none */
    uint8_t has_data;     /* bit i: byte i has been written */
    bool is_atomic;       /* the last write was an atomic operation */
} tgl_global_word;

/* A synchronisation event of a thread: a fence, or an atomic operation on a counter. */
typedef struct tgl_sync_event {
    tgl_moment at;
    uintptr_t counter; /* address of the counter; 0: a fence */
} tgl_sync_event;

/* Threads of a block that passed a named barrier together, at this time. */
typedef struct tgl_sync_meeting {
    uint32_t time;
    uint32_t threads[TGL_SIM_THREADS_MAX / 32]; /* bit mask of the threads */
    uint8_t rank;                               /* rank of the block in its cluster */
} tgl_sync_meeting;

/* The events and meetings of one cluster, as ranges of the lists in tgl_global_shadow. */
typedef struct tgl_event_range {
    uint32_t first, count;
    uint32_t first_meeting, meeting_count;
} tgl_event_range;

typedef struct tgl_global_shadow {
    tgl_global_word *words[3]; /* shadow words of D, of the counters and of the scratch */
    size_t counts[3], rooms[3];

    tgl_sync_event *events; /* fences and atomics of the current launch */
    uint32_t event_count;
    size_t event_room;
    tgl_sync_meeting *meetings; /* meetings of the current launch */
    uint32_t meeting_count;
    size_t meeting_room;
    tgl_event_range *ranges; /* indexed by cluster */
    size_t range_room;
    uint32_t time;
    bool has_atomic; /* the running cluster has executed an atomic operation */
    /* The latest pair for which is_ordered() (shadow_global.c) was true: the write `ordered` is
     * ordered before the moment `reader`. ordered.launch is 0: none. */
    tgl_moment ordered, reader;
} tgl_global_shadow;

/* ---- The machine ----------------------------------------------------------------------------- */

typedef struct tgl_machine {
    const tgl_sim_launch *launch;
    tgl_sim_hooks *hooks;
    tgl_fiber scheduler;
    tgl_sim_block blocks[TGL_CLUSTER_MAX], *now; /* blocks of the running cluster; now: the block
                                                    that is running */
    unsigned cluster_size;                       /* blocks per cluster */
    tgl_sim_thread *current;
    size_t stack_size;

    /* Vector clocks (clocks.c), allocated when a cluster first executes an mbarrier, a named
     * barrier, a proxy fence, a TMA store or a wgmma. */
    uint32_t *clocks;                /* a row of clock_row values for each thread of the cluster */
    size_t clock_room;               /* allocated size of `clocks` */
    size_t clock_row, clock_columns; /* values per row; columns in each of the two halves of a
                                        row */
    bool has_clocks;
    uint32_t clock_version; /* incremented when any clock changes */

    bool is_helper; /* true: a machine that runs some clusters of another machine's launches
                       (host_threads.h) */

    bool is_shuffled; /* clusters, the blocks of a cluster and the warps of a block run in random
                         orders */
    uint64_t seed;    /* the orders depend on the seed, the launch and the cluster */
    uint64_t random;  /* state of the random number generator */
    uint32_t *order;
    size_t order_room;

    tgl_sim_memory memory;    /* memory of the current run */
    uint32_t number;          /* number of the current launch in the run, from 1 */
    uint32_t first_beside;    /* launches from this number on may still be running */
    bool is_beside;           /* the launch may run concurrently with earlier ones (TGL_BESIDE) */
    bool has_waited;          /* a thread of this launch has waited for earlier launches */
    tgl_sim_module **modules; /* modules of the run's launches, for the source lines of their
                                 writes; not owned by a helper */
    size_t module_room;
    uint32_t cluster; /* number of the running cluster in the launch */
    uint32_t phase;   /* number of barriers that the cluster has passed, plus 1 */
    tgl_global_shadow global;
    tgl_tally tally;
    int64_t barriers, mbarrier_waits;
    int64_t multicast_bytes; /* bytes that TMA multicast wrote to blocks other than the first */

    tgl_status status; /* TGL_OK, or the status of the first error, whose text is `message` */
    char message[TGL_SIM_MESSAGE];
    char deferred[TGL_SIM_MESSAGE]; /* text of a deferred fault (tgl_machine_defer_fault()); "":
                                       none */
} tgl_machine;

/* ---- Functions for all files of the simulator ------------------------------------------------ */

/* The linear index of a block in the grid. */
uint64_t tgl_machine_block_number(const tgl_sim_launch *launch, const unsigned at[3]);

/* Computes blockIdx of a block from the number of its cluster and its rank in the cluster. */
void tgl_machine_block_at(const tgl_sim_launch *launch, uint32_t cluster, unsigned rank,
                          unsigned at[3]);

/* Whether an address is on the current thread's stack. The stack holds the variables that a GPU
 * keeps in registers. */
bool tgl_machine_is_register(const tgl_machine *machine, const void *address);

/* Restarts the count of loop iterations of a thread, because it has reached a barrier (ROUNDS_MAX
 * in machine.c). */
void tgl_machine_rest(tgl_sim_thread *thread);

/* Records an error of the current thread and stops the launch. pc: the source location, or NULL.
 * Must be called on the thread's stack; does not return. */
_Noreturn void tgl_machine_fault(tgl_machine *machine, const void *pc, const char *format, ...)
    TGL_PRINTF(3, 4);

/* As tgl_machine_fault(), for a thread that is not running; returns to the caller. */
void tgl_machine_fault_of(tgl_machine *machine, const tgl_sim_thread *thread, const void *pc,
                          const char *format, ...) TGL_PRINTF(4, 5);

/* Records an error of the current thread, but lets the block run to its next barrier. Until then
 * another thread may fail with an error that explains the cause better. Only the first deferred
 * error is kept. */
void tgl_machine_defer_fault(tgl_machine *machine, const void *pc, const char *format, ...)
    TGL_PRINTF(3, 4);

/* Stops the launch because memory is exhausted; does not return. */
_Noreturn void tgl_machine_give_up(tgl_machine *machine);

/* Suspends the current thread in this state, until the scheduler makes it ready. */
void tgl_machine_wait(tgl_machine *machine, tgl_thread_state state, const void *pc);

/* Returns an array of at least `count` elements: `memory` itself if *room suffices; otherwise
 * `memory` is freed and the result is new and zero. NULL, with *room = 0: out of memory. */
void *tgl_machine_reserve(void *memory, size_t *room, size_t count, size_t element);

/* Counts one execution of an instruction that is not a warp's memory access: a TMA copy or an
 * instruction of the tensor cores. Returns the index of the instruction in the tally. */
uint32_t tgl_machine_count(tgl_machine *machine, const void *pc, tgl_access_kind kind, int target,
                           int64_t bytes, int64_t sectors);

/* Bit mask of the bytes that an access covers in the 4-byte word at `address`. */
static inline uint8_t tgl_byte_mask(uintptr_t address, unsigned bytes)
{
    return bytes >= 4 ? 0xf : (uint8_t)(((1u << bytes) - 1) << address % 4);
}

static inline const char *tgl_verb(bool is_write)
{
    return is_write ? "writes" : "reads";
}

#endif
