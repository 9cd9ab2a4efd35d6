/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated GPU: one SM that runs a grid cluster by cluster, mostly of one block, with a fiber
 * for each thread, and checks every access. It runs one launch at a time; a run is a sequence of
 * launches that share the result and the workspace.
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
    TGL_SIM_MBARRIERS_MAX = 32, /* of a block */
    TGL_SIM_PLACE = 160,        /* bytes for a place in the source */
};

/* ---- Launches -------------------------------------------------------------------------------- */

/* What a launch may touch. D and the workspace may be written. */
enum {
    TGL_SIM_A,
    TGL_SIM_B,
    TGL_SIM_C, /* not to be touched where D is C */
    TGL_SIM_D,
    TGL_SIM_COUNTERS,
    TGL_SIM_SCRATCH,
    TGL_SIM_BIAS,
    TGL_SIM_RESIDUAL,
    TGL_SIM_ALPHA, /* device scalars */
    TGL_SIM_BETA,
    TGL_SIM_A_POINTERS, /* arrays of them, 8 bytes an element */
    TGL_SIM_B_POINTERS,
    TGL_SIM_C_POINTERS,
    TGL_SIM_D_POINTERS,
    TGL_SIM_REGIONS
};

typedef struct tgl_sim_launch {
    tgl_sim_module *module;
    unsigned grid[3], cluster[3], threads; /* cluster divides grid */
    tgl_ordering order;
    const void *arguments;
    int argument_bytes;
    int64_t first_problem; /* of the batch */
    tgl_sim_region regions[TGL_SIM_REGIONS];
} tgl_sim_launch;

/* What the launches of a run share. */
typedef struct tgl_sim_memory {
    int64_t m, n, batch; /* of D */
    const char *counters, *scratch;
    size_t counter_bytes, scratch_bytes; /* multiples of 4 */
} tgl_sim_memory;

/* ---- Threads and blocks ---------------------------------------------------------------------- */

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
    TGL_THREAD_AT_WINDOW,   /* goes on when its warp has been counted */
    TGL_THREAD_AT_WARP,     /* __syncwarp or a shuffle */
    TGL_THREAD_AT_MBARRIER, /* a phase of an mbarrier */
    TGL_THREAD_AT_BARRIER,  /* __syncthreads */
    TGL_THREAD_AT_CLUSTER,  /* a barrier of the cluster */
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
    int mbarrier;         /* TGL_THREAD_AT_MBARRIER: its index, */
    uint32_t phase;       /* and the phase that must be complete */
    unsigned given;       /* to a shuffle */
    uint32_t warp_epoch;  /* warp barriers that it has passed in this block, and 1 */
    uint32_t time;        /* arrivals at mbarriers, and 1 */
    bool has_waited;      /* for earlier launches */
    tgl_sim_loops loops;  /* that it is in */

    tgl_sim_copy *copies; /* in flight, oldest first, from `first_copy` */
    int first_copy, copy_count, copy_room;
    int64_t groups; /* committed */
} tgl_sim_thread;

/* Who touched a word of shared memory, and when. Epochs number the stretches between two barriers
 * from 1 in each block; 0: never. */
typedef struct tgl_shared_access {
    uint32_t epoch, warp_epoch, time, site;
    uint16_t thread; /* TGL_SIM_THREADS_MAX + i: the copies that mbarrier number i has counted;
                        `time` is then its phase */
} tgl_shared_access;

typedef enum tgl_awaited { TGL_AWAITS_NOTHING, TGL_AWAITS_CP_ASYNC, TGL_AWAITS_TMA } tgl_awaited;

/* What is known of 4 bytes of shared memory. */
typedef struct tgl_shared_word {
    tgl_shared_access write, read, other; /* other: a second reader, another thread */
    uint32_t copy_site;
    uint32_t write_phase; /* phases number the stretches between two barriers of the cluster */
    uint32_t remote_phase, remote_site; /* another block has read it */
    uint16_t copier;
    uint8_t has_data;   /* bit i: byte i was written */
    uint8_t is_awaited; /* tgl_awaited: a copy that `copier` has issued is under way */
    uint8_t write_bytes, read_bytes;
} tgl_shared_word;

/* A TMA copy that has not arrived. */
typedef struct tgl_tma_copy {
    char *shared;
    struct tgl_tensor_map map;
    int at[TGL_TENSOR_RANK_MAX];
    uint32_t site;
    uint16_t thread; /* that has issued it */
} tgl_tma_copy;

typedef struct tgl_mbarrier {
    size_t offset;          /* in shared memory */
    int arrivals, pending;  /* of a phase; still to come in this one */
    int64_t missing;        /* bytes announced and not copied yet */
    uint32_t phase;         /* phases completed, and 1 */
    tgl_shared_access made; /* mbarrier_init(), */
    const void *made_at;    /* and where */
    bool is_fenced;         /* TMA may know of it */
    uint32_t *arrived,
        *complete;        /* clocks of who has arrived in this phase, and of the one before */
    tgl_tma_copy *copies; /* of this phase */
    int copy_count, copy_room;
} tgl_mbarrier;

/* A block of the cluster that runs. */
typedef struct tgl_sim_block {
    unsigned at[3]; /* blockIdx */
    bool is_done;
    tgl_sim_thread *threads;
    unsigned made; /* threads that have a stack */
    uint32_t epoch;
    uint32_t waited_epoch; /* in which a thread first waited for earlier launches; 0: none has */
    tgl_shared_word *words;
    size_t word_room;
    char *shared; /* its shared memory, while another block's is where kernels find it */
    size_t shared_room;
    uint32_t read_phase; /* another block has read from it */

    /* Only where a kernel uses mbarriers. clocks: for each thread a row of clock_row values: the
     * time of each other thread, then the phase of each mbarrier, that it has waited for. */
    tgl_mbarrier mbarriers[TGL_SIM_MBARRIERS_MAX];
    int mbarrier_count;
    uint32_t *clocks;
    size_t clock_row;
} tgl_sim_block;

/* ---- Global memory --------------------------------------------------------------------------- */

/* When a thread did something, in terms of all that orders it with what others do. */
typedef struct tgl_moment {
    uint32_t launch;  /* of the run, from 1; 0: never */
    uint32_t cluster; /* of the launch */
    uint32_t epoch, warp_epoch, phase;
    uint32_t time; /* fences and atomics that the machine had run by then */
    uint16_t thread;
    uint8_t rank; /* of the block in its cluster */
} tgl_moment;

/* What is known of an element of D or of 4 bytes of workspace. */
typedef struct tgl_global_word {
    tgl_moment written;   /* last */
    int32_t pc;           /* where, from the module's image */
    uint32_t read_launch; /* that read it last; 0: none */
    uint8_t has_data;     /* bit i: byte i was written */
    bool is_atomic;       /* it was written by an atomic */
} tgl_global_word;

/* A fence, or an atomic on a counter. */
typedef struct tgl_sync_event {
    tgl_moment at;
    uintptr_t counter; /* its address; 0: a fence */
} tgl_sync_event;

/* Those of a cluster: neighbours in the machine's list. */
typedef struct tgl_event_range {
    uint32_t first, count;
} tgl_event_range;

typedef struct tgl_global_shadow {
    tgl_global_word *words[3]; /* of D, counters and scratch */
    size_t counts[3], rooms[3];

    tgl_sync_event *events; /* of the launch */
    uint32_t event_count, event_room;
    tgl_event_range *ranges; /* by cluster */
    size_t range_room;
    uint32_t time;
    bool has_atomic;            /* of the cluster that runs */
    tgl_moment ordered, reader; /* the latest pair that was found to be ordered; launch 0: none */
} tgl_global_shadow;

/* ---- The machine ----------------------------------------------------------------------------- */

typedef struct tgl_machine {
    const tgl_sim_launch *launch;
    tgl_sim_hooks *hooks;
    tgl_fiber scheduler;
    tgl_sim_block blocks[TGL_CLUSTER_MAX], *now; /* the one that runs */
    unsigned cluster_size;                       /* blocks */
    tgl_sim_thread *current;
    size_t stack_size;

    bool is_shuffled; /* clusters run in a random order, drawn from the seed */
    uint64_t seed;
    uint32_t *order;
    size_t order_room;

    tgl_sim_memory memory;    /* of the run */
    uint32_t number;          /* of the launch in the run, from 1 */
    uint32_t first_beside;    /* launches from this one on may still run; number: none */
    bool is_beside;           /* the launch is TGL_BESIDE */
    bool has_waited;          /* a thread of the launch, for earlier launches */
    tgl_sim_module **modules; /* of the run's launches */
    size_t module_room;
    uint32_t cluster; /* number of the one that runs */
    uint32_t phase;   /* of the cluster */
    tgl_global_shadow global;
    tgl_tally tally;
    int64_t barriers;

    tgl_status status; /* the first thing that went wrong, and the sentence */
    char message[TGL_SIM_MESSAGE];
    char deferred[TGL_SIM_MESSAGE]; /* a fault that another may still explain; "": none */
} tgl_machine;

bool tgl_machine_init(tgl_machine *machine);
void tgl_machine_free(tgl_machine *machine);

/* Begins a run: D and the scratch are not written yet, and the counters are zero. TGL_NO_MEMORY. */
tgl_status tgl_machine_begin(tgl_machine *machine, const tgl_sim_memory *memory);

/* Runs the grid to its end, or to the first illegal thing: TGL_OK, TGL_KERNEL_FAULT or
 * TGL_NO_MEMORY. What was counted stays in machine->tally until the next launch. */
tgl_status tgl_machine_run(tgl_machine *machine, const tgl_sim_launch *launch);

/* Ends a run: TGL_KERNEL_FAULT if a counter is not zero. */
tgl_status tgl_machine_end(tgl_machine *machine);

/* ---- Between the files of the machine -------------------------------------------------------- */

/* The number of a block in its grid. */
uint64_t tgl_machine_block_number(const tgl_sim_launch *launch, const unsigned at[3]);

/* blockIdx of a block, told by its cluster and its rank there. */
void tgl_machine_block_at(const tgl_sim_launch *launch, uint32_t cluster, unsigned rank,
                          unsigned at[3]);

/* Records what the current thread did wrong at a place (pc may be NULL) and stops the launch.
 * Called on the thread's own stack; does not come back. */
_Noreturn void tgl_machine_fault(tgl_machine *machine, const void *pc, const char *format, ...)
    TGL_PRINTF(3, 4);

/* The same for a thread that does not run; comes back. */
void tgl_machine_fault_of(tgl_machine *machine, const tgl_sim_thread *thread, const void *pc,
                          const char *format, ...) TGL_PRINTF(4, 5);

/* Records what the current thread did wrong, but lets it go on until the next barrier: what other
 * threads do before that may tell more. Only the first one counts. */
void tgl_machine_defer_fault(tgl_machine *machine, const void *pc, const char *format, ...)
    TGL_PRINTF(3, 4);

/* There is no memory to go on; does not come back. */
_Noreturn void tgl_machine_give_up(tgl_machine *machine);

/* The thread stops in this state, until the scheduler makes it ready. */
void tgl_machine_wait(tgl_machine *machine, tgl_thread_state state, const void *pc);

/* `words` := room for `count` elements, zeros if they are new. */
bool tgl_machine_reserve(void **memory, size_t *room, size_t count, size_t element);

static inline const char *tgl_verb(bool is_write)
{
    return is_write ? "writes" : "reads";
}

/* ---- shadow_memory.c: any access ------------------------------------------------------------- */

/* The hooks of kernels/sim/hooks.h that touch memory; `run` is the machine. */
void tgl_memory_access(void *run, const void *pointer, unsigned bytes, int is_write,
                       const void *pc);
void tgl_memory_atomic(void *run, const void *pointer, const void *pc);
float tgl_memory_cluster_load(void *run, const float *shared, int rank, const void *pc);
void tgl_memory_async_copy(void *run, void *shared, const void *global, int bytes, int valid_bytes,
                           const void *pc);
void tgl_memory_async_commit(void *run);
void tgl_memory_async_wait(void *run, int groups_pending);

/* The region of a global access, checked against everything but other threads. */
int tgl_memory_check_region(tgl_machine *machine, uintptr_t address, unsigned bytes, bool is_write,
                            const void *pc);

/* ---- shadow_shared.c: shared memory ---------------------------------------------------------- */

/* Prepares the shadow of shared memory for a launch or a block. */
bool tgl_shared_start_launch(tgl_machine *machine);
void tgl_shared_start_block(tgl_machine *machine);

/* "As + 128 bytes" */
const char *tgl_shared_describe(const tgl_sim_module *module, size_t offset,
                                char text[TGL_SIM_WHERE]);

/* Whether an address lies in shared memory or just behind it. */
bool tgl_shared_has(const tgl_sim_module *module, uintptr_t address);

/* All bytes are in one __shared__ array: its index. */
int tgl_shared_check_bounds(tgl_machine *machine, size_t offset, size_t bytes, bool is_write,
                            const void *pc);

/* An access by the current thread. */
void tgl_shared_access_words(tgl_machine *machine, size_t offset, unsigned bytes, bool is_write,
                             uint32_t site, const void *pc);

/* An access to a block of the cluster, which is stopped. */
float tgl_shared_remote_load(tgl_machine *machine, tgl_sim_block *block, size_t offset,
                             uint32_t site, const void *pc);

/* The current thread issues an asynchronous copy to these bytes, a multiple of 4. */
void tgl_shared_await(tgl_machine *machine, size_t offset, size_t bytes, tgl_awaited kind,
                      uint32_t site, const void *pc);

/* It arrives, and counts as this access. */
void tgl_shared_arrive(tgl_machine *machine, size_t offset, size_t bytes,
                       const tgl_shared_access *access);

/* Whether something that a thread of this block did is ordered before what the current thread does:
 * by a barrier, a warp barrier or an mbarrier that both passed, or because it is the same thread.
 */
bool tgl_shared_is_before(const tgl_machine *machine, const tgl_shared_access *x);

/* ---- shadow_global.c: the result and the workspace ------------------------------------------- */

bool tgl_global_start_run(tgl_machine *machine);
bool tgl_global_start_launch(tgl_machine *machine, size_t clusters);
void tgl_global_start_cluster(tgl_machine *machine);
void tgl_global_end_cluster(tgl_machine *machine);
void tgl_global_free(tgl_global_shadow *shadow);

/* Checks and records an access by the current thread to D, counters or scratch. */
void tgl_global_access(tgl_machine *machine, int region, uintptr_t address, unsigned bytes,
                       bool is_write, bool is_atomic, const void *pc);

/* A fence by the current thread. */
void tgl_global_fence(void *run, const void *pc);

/* ---- mbarriers.c: mbarriers and TMA ---------------------------------------------------------- */

void tgl_mbarriers_start_block(tgl_machine *machine);
void tgl_mbarriers_free_block(tgl_sim_block *block);

void tgl_mbarrier_init(void *run, const void *barrier, int arrivals, const void *pc);
void tgl_mbarrier_fence(void *run);
void tgl_mbarrier_arrive(void *run, const void *barrier, unsigned bytes, const void *pc);
void tgl_mbarrier_wait(void *run, const void *barrier, unsigned parity, const void *pc);
void tgl_tma_load(void *run, void *shared, const void *map, const int *at, int rank,
                  const void *barrier, const void *pc);

/* Whether the phase that a thread of the running block waits for can complete. */
bool tgl_mbarrier_is_open(const tgl_machine *machine, const tgl_sim_thread *thread);

/* Reports a thread that waits for a phase that cannot complete, or a copy that is still under way
 * when all threads are done. */
void tgl_mbarrier_fault_stuck(tgl_machine *machine, const tgl_sim_thread *thread);
void tgl_mbarriers_check_end(tgl_machine *machine);

/* Lanes of a warp have passed a warp barrier: what one has waited for, all have. */
void tgl_mbarriers_join_lanes(tgl_machine *machine, tgl_sim_thread *warp, uint32_t lanes);

#endif
