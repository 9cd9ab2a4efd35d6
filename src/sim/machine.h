/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of the simulated GPU: threads, blocks, the shadows of memory; and the
 * functions that stop a thread or report an error. sim/machine_launch.h runs launches on it.
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
    TGL_SIM_MBARRIERS_MAX = 32,  /* maximum number per block */
    TGL_SIM_READERS_MAX = 24,    /* maximum per block: wgmma warpgroups + threads with TMA stores */
    TGL_SIM_NAMED_BARRIERS = 16, /* number per block; number 0 is __syncthreads() */
};

/* ---- Launches -------------------------------------------------------------------------------- */

/* The regions of memory that a launch may access. D and the workspace may be written. */
enum {
    TGL_SIM_A,
    TGL_SIM_B,
    TGL_SIM_C, /* not accessible if D is C */
    TGL_SIM_D,
    TGL_SIM_COUNTERS,
    TGL_SIM_SCRATCH,
    TGL_SIM_BIAS,
    TGL_SIM_RESIDUAL,
    TGL_SIM_ALPHA, /* alpha and beta, if they are device scalars */
    TGL_SIM_BETA,
    TGL_SIM_SCALE_A, /* then those of B and D */
    TGL_SIM_SCALE_B,
    TGL_SIM_SCALE_D,
    TGL_SIM_A_POINTERS, /* arrays of pointers, 8 bytes per element */
    TGL_SIM_B_POINTERS,
    TGL_SIM_C_POINTERS,
    TGL_SIM_D_POINTERS,
    TGL_SIM_GROUPS,
    TGL_SIM_AMAX,   /* the largest magnitude of D: only atomics access it */
    TGL_SIM_KEPT_A, /* prepared operands, which an earlier run has written */
    TGL_SIM_KEPT_B,
    TGL_SIM_REGIONS
};

typedef struct tgl_sim_launch {
    tgl_sim_module *module;
    unsigned grid[3], cluster[3], threads; /* the grid is a multiple of the cluster */
    tgl_ordering order;
    const void *arguments;
    int argument_bytes;
    int64_t first_problem; /* index in the batch of the first product of this launch */
    tgl_sim_region regions[TGL_SIM_REGIONS];
    char *result;     /* D, unless it is given by an array of pointers */
    tgl_trace *trace; /* receives the trace of the first block; NULL: none is recorded */
} tgl_sim_launch;

/* The memory that the launches of a run share. */
typedef struct tgl_sim_memory {
    int64_t m, n, batch; /* sizes of D */
    const char *counters, *scratch;
    size_t counter_bytes, scratch_bytes; /* multiples of 4 */
} tgl_sim_memory;

/* ---- Threads and blocks ---------------------------------------------------------------------- */

/* A cp.async whose group has not been waited for. */
typedef struct tgl_sim_copy {
    void *shared;
    const void *global;
    int bytes, valid_bytes;
    uint32_t site;
    int64_t group; /* number of groups that the thread committed before this copy */
} tgl_sim_copy;

/* A TMA store that has not completed. */
typedef struct tgl_box_store {
    struct tgl_box_store *next;
    int64_t group; /* number of groups that the thread committed before this store */
    uint32_t site;
    struct tgl_tensor_map map;
    int at[TGL_TENSOR_RANK_MAX];
    char data[]; /* the elements of the box, row after row without gaps */
} tgl_box_store;

/* A left operand of wgmma in registers of a thread. */
typedef struct tgl_sim_left_fragment {
    const char *begin, *end; /* its registers; NULL: unused */
    bool is_written;         /* written since the last wgmma_fence() */
    int64_t group;           /* the latest wgmma group that reads it */
    const void *pc;          /* source location of the wgmma that reads it */
} tgl_sim_left_fragment;

/* The state of a thread that executes wgmma. */
enum {
    TGL_WGMMA_ACCUMULATORS = 4,    /* maximum number of accumulators that are tracked */
    TGL_WGMMA_LEFT_FRAGMENTS = 32, /* maximum number of left operands in registers */
};
typedef struct tgl_sim_wgmma_thread {
    int64_t groups, done; /* number of groups committed; number of groups waited for */
    bool has_fenced;      /* has executed wgmma_fence() */
    int in_flight;        /* number of accumulators whose values have not been delivered */
    struct {
        const char *begin, *end; /* registers; NULL: unused */
        bool is_touched;         /* accessed since the last wgmma_fence() */
    } accumulators[TGL_WGMMA_ACCUMULATORS];
    tgl_sim_left_fragment fragments[TGL_WGMMA_LEFT_FRAGMENTS]; /* used rows come first */
} tgl_sim_wgmma_thread;

typedef enum tgl_thread_state {
    TGL_THREAD_READY,
    TGL_THREAD_AT_WINDOW,   /* continues when the accesses of its warp have been counted */
    TGL_THREAD_AT_WARP,     /* at __syncwarp, a shuffle, or an instruction of the whole warp */
    TGL_THREAD_AT_MBARRIER, /* waits for a phase of an mbarrier */
    TGL_THREAD_AT_NAMED,    /* at a named barrier */
    TGL_THREAD_AT_GROUP,    /* at an instruction of the whole warpgroup */
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
    const void *waits_at;               /* source location of the call that waits */
    uint32_t waits_for;                 /* TGL_THREAD_AT_WARP: mask of the lanes to wait for */
    int mbarrier;                       /* TGL_THREAD_AT_MBARRIER: index of the mbarrier */
    uint32_t phase;                     /* TGL_THREAD_AT_MBARRIER: the phase that must complete */
    int named;                          /* TGL_THREAD_AT_NAMED: number of the barrier */
    unsigned named_count;               /* TGL_THREAD_AT_NAMED: number of threads of the barrier */
    unsigned given;                     /* value passed to a shuffle */
    struct tgl_warp_operands *operands; /* TGL_THREAD_AT_WARP, instructions of a warp; else NULL */
    struct tgl_wgmma_operands *wgmma;   /* TGL_THREAD_AT_GROUP: operands of wgmma */
    const char *group_word;             /* TGL_THREAD_AT_GROUP: name of the instruction */
    uint32_t warp_epoch; /* number of warp barriers that it has passed in this block, plus 1 */
    uint32_t time;       /* number of release operations (clocks.c) of the thread, plus 1 */
    bool has_waited;     /* the thread has waited for earlier launches */
    tgl_sim_loops loops; /* the loops that it is in */

    tgl_sim_copy *copies; /* cp.async in flight, oldest first, starting at `first_copy` */
    int first_copy, copy_count;
    size_t copy_room;
    int64_t groups; /* number of groups of cp.async committed */

    tgl_sim_wgmma_thread wgmmas;
    tgl_box_store *stores; /* TMA stores that have not completed, oldest first */
    int64_t store_groups;  /* number of groups of TMA stores committed */
    int64_t stores_read;   /* number of groups that have finished reading shared memory */
} tgl_sim_thread;

/* The thread that accessed a word of shared memory, and when. Epochs are the intervals between two
 * barriers, numbered from 1 in each block; 0: no access. */
typedef struct tgl_shared_access {
    uint32_t epoch, warp_epoch, time, site;
    uint16_t thread; /* index in the block, or an asynchronous actor (below) */
} tgl_shared_access;

enum {
    /* TGL_ACTOR_MBARRIER + i: the TMA copies of mbarrier number i. `time` is its phase. */
    TGL_ACTOR_MBARRIER = TGL_SIM_THREADS_MAX,
    /* TGL_ACTOR_READER + i: asynchronous reader number i of the block. `time` is the number of its
     * group, from 1. */
    TGL_ACTOR_READER = TGL_ACTOR_MBARRIER + TGL_SIM_MBARRIERS_MAX,
};

/* An actor that reads shared memory asynchronously: the wgmma instructions of a warpgroup, or the
 * TMA stores of a thread. */
typedef struct tgl_async_reader {
    bool is_wgmma;
    unsigned thread; /* the first thread of the warpgroup, or the thread that stores */
} tgl_async_reader;

typedef enum tgl_awaited { TGL_AWAITS_NOTHING, TGL_AWAITS_CP_ASYNC, TGL_AWAITS_TMA } tgl_awaited;

/* The shadow of 4 bytes of shared memory. */
typedef struct tgl_shared_word {
    tgl_shared_access write, read, other; /* other: a reader that is another thread than `read` */
    uint32_t copy_site;
    uint32_t write_phase; /* phase of the last write; barriers of the cluster separate phases */
    uint32_t remote_phase, remote_site; /* the last read by another block */
    uint16_t copier;
    uint8_t has_data;   /* bit i: byte i was written */
    uint8_t is_awaited; /* tgl_awaited: a copy to it, issued by `copier`, is in flight */
    uint8_t write_bytes, read_bytes;
} tgl_shared_word;

/* A TMA copy in flight. */
typedef struct tgl_tma_copy {
    char *shared;
    struct tgl_tensor_map map;
    int at[TGL_TENSOR_RANK_MAX];
    uint32_t site;
    uint16_t thread; /* the thread that issued it */
    uint8_t rank;    /* rank of that thread's block in the cluster */
} tgl_tma_copy;

typedef struct tgl_mbarrier {
    size_t offset;          /* byte offset in shared memory */
    int arrivals, pending;  /* arrivals per phase; arrivals still expected in the current one */
    int64_t missing;        /* bytes announced and not yet copied */
    uint32_t phase;         /* number of completed phases, plus 1 */
    tgl_shared_access made; /* the call of mbarrier_init() */
    const void *made_at;    /* source location of that call */
    bool is_fenced;         /* mbarrier_init_fence() was called after mbarrier_init() */
    uint32_t *arrived, *complete; /* joined clocks of arrivals: current phase; previous phase */
    tgl_tma_copy *copies;         /* copies of the current phase */
    int copy_count;
    size_t copy_room;
} tgl_mbarrier;

/* A block of the cluster that is running. */
typedef struct tgl_sim_block {
    unsigned at[3]; /* blockIdx */
    bool is_done;
    tgl_sim_thread *threads;
    unsigned made; /* number of threads that have a stack */
    uint32_t epoch;
    uint32_t waited_epoch; /* first epoch with a wait for earlier launches; 0: none */
    tgl_shared_word *words;
    size_t word_room;
    char *shared; /* copy of its shared memory, while another block runs */
    size_t shared_room;
    uint32_t read_phase; /* the last phase in which another block read its shared memory */

    uint32_t phase_epoch; /* the first epoch after the latest barrier of the cluster */
    uint32_t phase_time;  /* the greatest time of a thread of the block before that barrier */
    tgl_mbarrier mbarriers[TGL_SIM_MBARRIERS_MAX];
    int mbarrier_count;
    tgl_async_reader readers[TGL_SIM_READERS_MAX];
    int reader_count;
    struct tgl_sim_warpgroup *warpgroups; /* indexed by warpgroup; NULL: none uses wgmma */
} tgl_sim_block;

/* ---- Global memory --------------------------------------------------------------------------- */

/* When a thread did something, in terms of everything that orders it relative to other threads. */
typedef struct tgl_moment {
    uint32_t launch;  /* number of the launch in the run, from 1; 0: never */
    uint32_t cluster; /* number of the cluster in the launch */
    uint32_t epoch, warp_epoch, phase;
    uint32_t time; /* fences, atomics and named barriers of all threads up to here */
    uint16_t thread;
    uint8_t rank; /* rank of the block in its cluster */
} tgl_moment;

/* The shadow of an element of D or of 4 bytes of workspace. */
typedef struct tgl_global_word {
    tgl_moment written;   /* the last write */
    int32_t pc;           /* source of the last write, relative to the module's image */
    uint32_t read_launch; /* the last launch that read it; 0: none */
    uint8_t has_data;     /* bit i: byte i was written */
    bool is_atomic;       /* the last write was an atomic */
} tgl_global_word;

/* A fence, or an atomic operation on a counter. */
typedef struct tgl_sync_event {
    tgl_moment at;
    uintptr_t counter; /* address of the counter; 0: a fence */
} tgl_sync_event;

/* Threads of a block that have passed a named barrier together. */
typedef struct tgl_sync_meeting {
    uint32_t time;
    uint32_t threads[TGL_SIM_THREADS_MAX / 32]; /* bit mask */
    uint8_t rank;                               /* rank of the block in its cluster */
} tgl_sync_meeting;

/* The events and meetings of a cluster: ranges of the machine's lists. */
typedef struct tgl_event_range {
    uint32_t first, count;
    uint32_t first_meeting, meeting_count;
} tgl_event_range;

typedef struct tgl_global_shadow {
    tgl_global_word *words[3]; /* the shadows of D, counters and scratch */
    size_t counts[3], rooms[3];

    tgl_sync_event *events; /* events of the current launch */
    uint32_t event_count;
    size_t event_room;
    tgl_sync_meeting *meetings; /* meetings of the current launch */
    uint32_t meeting_count;
    size_t meeting_room;
    tgl_event_range *ranges; /* indexed by cluster */
    size_t range_room;
    uint32_t time;
    bool has_atomic;            /* the cluster that is running has executed an atomic */
    tgl_moment ordered, reader; /* the latest write found to be ordered before a reader, and that
                                   reader; ordered.launch is 0: none */
} tgl_global_shadow;

/* ---- The machine ----------------------------------------------------------------------------- */

typedef struct tgl_machine {
    const tgl_sim_launch *launch;
    tgl_sim_hooks *hooks;
    tgl_fiber scheduler;
    tgl_sim_block blocks[TGL_CLUSTER_MAX], *now; /* now: the block that is running */
    unsigned cluster_size;                       /* blocks per cluster */
    tgl_sim_thread *current;
    size_t stack_size;

    /* Vector clocks (clocks.c), allocated when a cluster first executes an mbarrier, a named
     * barrier, a proxy fence or an asynchronous operation. */
    uint32_t *clocks;                /* a row for each thread of the cluster */
    size_t clock_room;               /* size of `clocks` */
    size_t clock_row, clock_columns; /* values per row; columns of each half of a row */
    bool has_clocks;
    uint32_t clock_version; /* incremented when any clock changes */

    bool is_helper; /* runs some clusters of another machine's launches (host_threads.h) */

    bool is_shuffled; /* clusters, their blocks, and the warps of a block run in random orders */
    uint64_t seed;    /* the orders depend on the seed, the launch and the cluster */
    uint64_t random;  /* state of the random number generator */
    uint32_t *order;
    size_t order_room;

    tgl_sim_memory memory;    /* memory of the current run */
    uint32_t number;          /* number of the launch in the run, from 1 */
    uint32_t first_beside;    /* earlier launches from this number on may be running */
    bool is_beside;           /* the ordering of the launch is TGL_BESIDE */
    bool has_waited;          /* a thread of the launch has waited for earlier launches */
    tgl_sim_module **modules; /* modules of the run's launches; a helper does not own them */
    size_t module_room;
    uint32_t cluster; /* number of the cluster that is running */
    uint32_t phase;   /* current phase of that cluster */
    tgl_global_shadow global;
    tgl_tally tally;
    int64_t barriers, mbarrier_waits;
    int64_t multicast_bytes; /* bytes that multicast wrote to blocks other than the first */

    tgl_status status; /* status of the first error, whose text is `message` */
    char message[TGL_SIM_MESSAGE];
    char
        deferred[TGL_SIM_MESSAGE]; /* text of a fault that was deferred (see below); "": no fault */
} tgl_machine;

/* ---- Functions for all files of the simulator ------------------------------------------------ */

/* The linear index of a block in its grid. */
uint64_t tgl_machine_block_number(const tgl_sim_launch *launch, const unsigned at[3]);

/* blockIdx of the block with this rank in this cluster. */
void tgl_machine_block_at(const tgl_sim_launch *launch, uint32_t cluster, unsigned rank,
                          unsigned at[3]);

/* Whether an address is on the current thread's stack, which stands for the registers of a GPU. */
bool tgl_machine_is_register(const tgl_machine *machine, const void *address);

/* Resets the number of loop iterations that a thread may make before it must reach a barrier. */
void tgl_machine_rest(tgl_sim_thread *thread);

/* Records an error of the current thread at a source location (pc may be NULL) and stops the
 * launch. Called on the thread's stack; does not return. */
_Noreturn void tgl_machine_fault(tgl_machine *machine, const void *pc, const char *format, ...)
    TGL_PRINTF(3, 4);

/* Like tgl_machine_fault(), for a thread that is not running. Returns to the caller. */
void tgl_machine_fault_of(tgl_machine *machine, const tgl_sim_thread *thread, const void *pc,
                          const char *format, ...) TGL_PRINTF(4, 5);

/* Records an error of the current thread, but lets it run until the next barrier: errors of other
 * threads before that barrier may explain it better. Only the first deferred error is kept. */
void tgl_machine_defer_fault(tgl_machine *machine, const void *pc, const char *format, ...)
    TGL_PRINTF(3, 4);

/* Stops the launch because there is no memory; does not return. */
_Noreturn void tgl_machine_give_up(tgl_machine *machine);

/* Stops the thread in this state until the scheduler makes it ready. */
void tgl_machine_wait(tgl_machine *machine, tgl_thread_state state, const void *pc);

/* Returns memory for `count` elements: `memory` if its `*room` elements suffice; else new memory of
 * zeros, after `memory` has been freed. NULL, with *room = 0: there is no memory. */
void *tgl_machine_reserve(void *memory, size_t *room, size_t count, size_t element);

/* Counts an execution of an instruction that is not an access by a warp: a TMA copy, an instruction
 * of the tensor cores. Returns the index of the instruction. */
uint32_t tgl_machine_count(tgl_machine *machine, const void *pc, tgl_access_kind kind, int target,
                           int64_t bytes, int64_t sectors);

/* The bytes of a 4-byte word that an access to `bytes` bytes at `address` covers, as a mask. */
static inline uint8_t tgl_byte_mask(uintptr_t address, unsigned bytes)
{
    return bytes >= 4 ? 0xf : (uint8_t)(((1u << bytes) - 1) << address % 4);
}

static inline const char *tgl_verb(bool is_write)
{
    return is_write ? "writes" : "reads";
}

#endif
