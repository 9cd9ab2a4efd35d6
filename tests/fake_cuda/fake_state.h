/* SPDX-License-Identifier: Apache-2.0
 *
 * The state that the files of libfake_cuda.so share. Time is a counter: each piece of work in a
 * stream has a number, and a wait stores the number of the latest work.
 */
#ifndef FAKE_STATE_H
#define FAKE_STATE_H

#include "cuda/driver.h"
#include "fake_cuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { INVALID_VALUE = 1, INVALID_DEVICE = 101, INVALID_CONTEXT = 201, INVALID_HANDLE = 400 };
enum {
    NO_DEVICE = 100,
    NOT_FOUND = 500,
    OUT_OF_RESOURCES = 701,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURED_EVENT = 907
};
enum { DEVICES_MAX = 4 };
enum { FAKE_STREAMS_MAX = 4096 };

struct CUstream_st {
    uint64_t id;
    bool is_live, is_blocking;
    atomic_int capture; /* 0: none; 1: being captured; 2: a misuse has ended the capture */
    int capture_mode;
    CUgraph graph;               /* the graph that is being captured */
    _Atomic uint64_t capture_id; /* id of the latest capture */
    _Atomic uint64_t latest_work, waited;
};

struct CUctx_st {
    int users;
    uint64_t id;    /* changes with a reset; 0: nobody has asked for it yet */
    CUresult fault; /* the error of a kernel, which all later calls return */
    size_t used;
    _Atomic uint64_t waited; /* all work up to here is complete */
    struct CUstream_st default_stream;
};

struct CUfunc_st {
    CUmodule module;
    atomic_int dynamic_shared; /* bytes that launches may request beyond the default limit */
    char symbol[64];
    int macros[FAKE_MACROS]; /* values of the macros; 0: the image does not have it */
};

struct CUmod_st {
    CUcontext context;
    struct CUfunc_st function;
    _Atomic uint64_t latest_work;
};

struct CUevent_st {
    CUcontext context;
    bool is_recorded, is_captured;
    CUgraph graph; /* the graph that has captured the record of the event */
    uint64_t capture_id;
    struct timespec time;
    uint64_t device_ns;                /* fake_device_ns when it was recorded */
    uint64_t passed[FAKE_STREAMS_MAX]; /* for each stream: its latest work before the event */
};

/* The header in front of each allocation. Its size preserves the alignment of real allocations. */
typedef struct block {
    CUcontext context;
    size_t bytes;
    CUstream stream; /* stream of cuMemAllocAsync(); NULL: other memory */
    bool is_pinned;  /* whether it is host memory from cuMemHostAlloc() */
    uint64_t stream_id;
    bool is_of_graph;             /* allocated by a node of a graph */
    _Atomic uint64_t latest_work; /* number of the latest work that may use the memory */
} block;
enum { BLOCK_ROOM = 256 }; /* size of the header with padding; addresses are multiples of 256 */

/* fake_cuda.c */
extern pthread_mutex_t fake_lock;
extern struct CUctx_st fake_contexts[DEVICES_MAX];
CUcontext fake_current(void);
long fake_setting(const char *name, long otherwise);
uint64_t fake_next_work(void);
void fake_raise(_Atomic uint64_t *to, uint64_t value); /* *to = max(*to, value) */
void *fake_keep(void *memory); /* counts a block of host memory as an object of the context */
void fake_drop(void *memory);  /* removes it from the count and frees it */
void fake_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The allocation that contains this address, or NULL. The caller holds the lock. */
block *fake_block_of(const void *address);

/* Makes the checks of every call that needs a context. Returns the result of the call if one fails.
 */
CUresult fake_begin(const char *function);
/* The result that FAKE_CUDA_FAIL chooses for a function. */
CUresult fake_told(const char *function);

#define BEGIN()                                                                                    \
    do {                                                                                           \
        CUresult begun = fake_begin(__func__);                                                     \
        if (begun != CUDA_SUCCESS) return begun;                                                   \
    } while (0)
#define TOLD()                                                                                     \
    do {                                                                                           \
        CUresult result_told = fake_told(__func__);                                                \
        if (result_told != CUDA_SUCCESS) return result_told;                                       \
    } while (0)

/* fake_streams.c: the stream behind a handle; NULL: there is none. */
CUstream fake_stream(CUstream handle);

/* For a call that must not be made while a stream is captured, unless the calling thread is in
 * relaxed mode: ends the captures and counts a misuse. always: also in relaxed mode. */
CUresult fake_unsafe(const char *function, bool always);
#define UNSAFE()                                                                                   \
    do {                                                                                           \
        CUresult unsafe = fake_unsafe(__func__, false);                                            \
        if (unsafe != CUDA_SUCCESS) return unsafe;                                                 \
    } while (0)

/* Enqueues work. *stream: the handle, replaced by the stream. *graph: the graph that gets the work
 * if the stream is being captured. */
CUresult fake_give_work(const char *function, CUstream *stream, CUgraph *graph);

/* A node of a graph. */
typedef struct fake_node {
    enum { NODE_LAUNCH, NODE_SET, NODE_ALLOC, NODE_FREE, NODE_GRAPH } kind;
    CUfunction function;
    fake_cuda_launch how;
    unsigned block[3];
    unsigned char arguments[4096];
    size_t argument_bytes;
    void *memory;
    size_t bytes;
    unsigned char value;
    CUgraph graph; /* graph of a child node, which owns it */
} fake_node;

/* fake_graphs.c */
CUgraph fake_new_graph(void);
void fake_add_node(CUgraph graph, const fake_node *node);
CUresult fake_run_graph(CUgraph graph, CUstream stream);
CUresult cuGraphDestroy(CUgraph graph);

/* Whether this thread is in the destructor of a user object, which may not call CUDA. */
bool fake_is_in_destructor(void);
/* Destroys the user objects that FAKE_CUDA_LATE has kept. Returns their number. */
int fake_run_destructors(void);

/* ---- fake_order.c: which work is complete when other work begins ----------------------------- */

/* Records that work was enqueued in a stream. It comes after all work that the stream and the host
 * have waited for. */
void fake_order_work(CUstream stream);
void fake_order_record(CUevent event, CUstream stream);
void fake_order_wait(CUstream stream, CUevent event);

/* fake_order_signal(): a stream writes a word of memory. fake_order_await(): a stream waits for
 * such a write. */
void fake_order_signal(const void *address, CUstream stream);
void fake_order_await(CUstream stream, const void *address);

/* Record that the host has waited for a stream, an event or all work. */
void fake_host_waits_for_stream(CUstream stream);
void fake_host_waits_for_event(CUevent event);
void fake_host_waits_for_all(void);

/* Records that the latest work of a stream reads or writes this memory. Counts a misuse if other
 * work may access it at the same time and one of them writes. Ignores memory that is neither device
 * memory nor pinned. */
void fake_access(const void *first, size_t bytes, bool writes, CUstream stream);

/* Copies memory: at once or, if dst is pinned, when the host waits for the latest work of the
 * stream. */
void fake_copy(void *dst, const void *src, size_t bytes, CUstream stream);

/* Forgets the accesses to an allocation that is freed. If the memory is allocated again, the
 * device's memory pool orders the work before and after. */
void fake_forget(const block *it);
/* Forgets the accesses to an allocation of a context that is destroyed, whose work has ended. The
 * caller holds the lock. */
void fake_lose(const block *it);

/* fake_kernels.c */
extern _Atomic uint64_t fake_device_ns; /* sum of the times of all launches, from FAKE_CUDA_US */
CUresult fake_execute(const fake_node *node, CUstream stream);

#endif
