/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of libfake_cuda.so share. Time is a count: each piece of work that a stream gets
 * has a number, and waiting means to remember the latest number.
 */
#ifndef FAKE_STATE_H
#define FAKE_STATE_H

#include "cuda/driver.h"
#include "fake_cuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { INVALID_VALUE = 1, INVALID_DEVICE = 101, INVALID_CONTEXT = 201, INVALID_HANDLE = 400 };
enum { NO_DEVICE = 100, NOT_FOUND = 500, OUT_OF_RESOURCES = 701, CAPTURE_INVALIDATED = 901 };
enum { DEVICES_MAX = 4 };

struct CUstream_st {
    uint64_t id;
    bool is_live, is_blocking;
    atomic_int
        capture; /* 0: none; 1: it is being captured; 2: the capture has been ended by a misuse */
    int capture_mode;
    struct fake_graph *graph; /* that is being captured */
    _Atomic uint64_t latest_work, waited;
};

struct CUctx_st {
    int users;
    CUresult fault; /* of a kernel; sticks */
    size_t used;
    _Atomic uint64_t waited; /* all work up to here is complete */
    struct CUstream_st default_stream;
};

struct CUfunc_st {
    CUmodule module;
    atomic_int dynamic_shared; /* that launches may ask for, beside what all may */
    char symbol[64];
    int block_m, block_n; /* of D, that a block computes; 0: the image does not tell */
    int has_separate_d, has_device_scalars;
};

struct CUmod_st {
    CUcontext context;
    struct CUfunc_st function;
    _Atomic uint64_t latest_work;
};

struct CUevent_st {
    CUcontext context;
    bool is_recorded;
    struct timespec time;
};

/* In front of each allocation, which keeps the alignment of real ones. */
typedef struct block {
    CUcontext context;
    size_t bytes;
    CUstream stream; /* of cuMemAllocAsync(); NULL: of cuMemAlloc() */
    uint64_t stream_id;
    bool is_of_graph; /* allocated by a node of a graph */
} block;
enum { BLOCK_ROOM = 256 }; /* bytes in front, so that addresses are multiples of 256 */

/* fake_cuda.c */
extern pthread_mutex_t fake_lock;
extern struct CUctx_st fake_contexts[DEVICES_MAX];
CUcontext fake_current(void);
long fake_setting(const char *name, long otherwise);
uint64_t fake_next_work(void);
void *fake_keep(void *memory); /* counts a block of host memory as an object of the context */
void fake_drop(void *memory);  /* no longer, and frees it */
void fake_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The allocation of the current context that has this address, or NULL. Under the lock. */
block *fake_block_of(const void *address);

/* The result of a call that needs a context, before it has done anything. */
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

/* A call that would end a capture of any thread unless the caller's mode is relaxed: it does, and
 * is a misuse. always: even in the relaxed mode. */
CUresult fake_unsafe(const char *function, bool always);
#define UNSAFE()                                                                                   \
    do {                                                                                           \
        CUresult unsafe = fake_unsafe(__func__, false);                                            \
        if (unsafe != CUDA_SUCCESS) return unsafe;                                                 \
    } while (0)

/* Work for a stream. *stream: the handle, then what is behind it. *graph: where the work goes
 * instead if the stream is being captured. */
CUresult fake_give_work(const char *function, CUstream *stream, struct fake_graph **graph);

/* A node of a graph. */
typedef struct fake_node {
    enum { NODE_LAUNCH, NODE_SET, NODE_ALLOC, NODE_FREE } kind;
    CUfunction function;
    fake_cuda_launch how;
    unsigned block[3];
    unsigned char arguments[1024];
    size_t argument_bytes;
    void *memory;
    size_t bytes;
    unsigned char value;
} fake_node;
void fake_add_node(struct fake_graph *graph, const fake_node *node);

/* fake_kernels.c */
CUresult fake_execute(const fake_node *node, CUstream stream);

#endif
