/* SPDX-License-Identifier: Apache-2.0
 *
 * Arenas: see arena.h. The arenas are the rows of a table, tgl_arenas. There are two kinds of
 * locks. The table's lock is held only briefly. An arena's lock is held from the first launch of a
 * list to the last, because two host threads may use one stream. A thread that waits for an arena's
 * lock is already counted as a user, so no other thread evicts the arena. Lock order: an arena's
 * lock, then the table's. A thread that holds an arena's lock locks another arena only with
 * trylock.
 */
#include "cuda/arena.h"

#include "base/integers.h"
#include "cuda/graph_memory.h"

#include <stdlib.h>

/* Counters and scratch are allocated in multiples of these sizes in bytes, so that they grow less
 * often. */
enum { COUNTER_UNIT = 64 << 10, SCRATCH_UNIT = 2 << 20 };

/* SHARED: index of the shared arena in the table. ROWS: number of rows of the table. */
enum { SHARED = 0, ROWS = 1 + TGL_ARENAS_MAX };

typedef struct memory {
    CUdeviceptr at;
    size_t bytes;
} memory;

typedef struct tgl_arena {
    /* Protected by the table's lock: */
    bool is_taken;   /* false: the row is free, and the other members are undefined */
    uint64_t stream; /* id (cuStreamGetId()) of the arena's stream. In the shared arena: id of the
                        stream of the latest run, protected by the arena's lock */
    int users;       /* number of threads that use, wait for or evict the arena */
    uint64_t latest_use; /* tgl_arenas.clock at the latest use */

    pthread_mutex_t lock; /* protects the members below */
    memory counters, scratch;
    bool is_dirty;  /* the counters might not be zero, and must be cleared before use */
    CUevent passed; /* shared arena only: an event recorded after each run */
} tgl_arena;

typedef struct tgl_arenas {
    pthread_mutex_t lock;
    uint64_t clock;
    size_t bytes, bytes_max;                 /* sum over all arenas, and its limit */
    size_t bytes_of_streams, of_streams_max; /* the sum without the shared arena, and its limit */
    bool has_ids;                            /* the driver identifies streams */
    tgl_arena arena[ROWS];                   /* arena[SHARED] is the shared one */
} tgl_arenas;

tgl_arenas *tgl_arenas_create(const tgl_cuda *cuda)
{
    tgl_arenas *arenas = calloc(1, sizeof *arenas);
    if (arenas == NULL) return NULL;
    pthread_mutex_init(&arenas->lock, NULL);
    for (int i = 0; i < ROWS; i++)
        pthread_mutex_init(&arenas->arena[i].lock, NULL);
    arenas->bytes_max = cuda->facts.memory_bytes / 4;
    arenas->of_streams_max = arenas->bytes_max / 2;
    if (arenas->of_streams_max > TGL_STREAMS_BYTES) arenas->of_streams_max = TGL_STREAMS_BYTES;
    arenas->has_ids = cuda->driver.cuStreamGetId != NULL;
    return arenas;
}

/* Frees the arena's memory and event. No work that uses the arena may be running. */
static void free_arena(const tgl_cuda *cuda, tgl_arena *arena)
{
    if (!atomic_load(&cuda->is_lost)) {
        if (arena->counters.at != NULL) cuda->driver.cuMemFree(arena->counters.at);
        if (arena->scratch.at != NULL) cuda->driver.cuMemFree(arena->scratch.at);
        if (arena->passed != NULL) cuda->driver.cuEventDestroy(arena->passed);
    }
    arena->counters = arena->scratch = (memory){.at = NULL};
    arena->passed = NULL;
}

void tgl_arenas_destroy(tgl_cuda *cuda)
{
    tgl_arenas *arenas = cuda->arenas;
    if (arenas == NULL) return;
    for (int i = 0; i < ROWS; i++) {
        free_arena(cuda, &arenas->arena[i]);
        pthread_mutex_destroy(&arenas->arena[i].lock);
    }
    pthread_mutex_destroy(&arenas->lock);
    free(arenas);
    cuda->arenas = NULL;
}

/* ---- The table ------------------------------------------------------------------------------- */

static void unpin(tgl_arenas *arenas, tgl_arena *arena)
{
    pthread_mutex_lock(&arenas->lock);
    arena->users--;
    pthread_mutex_unlock(&arenas->lock);
}

static bool is_shared(const tgl_arenas *arenas, const tgl_arena *arena)
{
    return arena == &arenas->arena[SHARED];
}

/* Returns the least recently used arena that has no users and was not used in the latest `age`
 * runs, and adds the caller to its users. NULL: there is none. The shared arena is returned only if
 * age is 0 and no other arena qualifies. */
static tgl_arena *pin_oldest(tgl_arenas *arenas, uint64_t age)
{
    tgl_arena *oldest = NULL;
    pthread_mutex_lock(&arenas->lock);
    for (int i = SHARED + 1; i < ROWS; i++) {
        tgl_arena *arena = &arenas->arena[i];
        if (arena->is_taken && arena->users == 0 && arenas->clock - arena->latest_use >= age &&
            (oldest == NULL || arena->latest_use < oldest->latest_use))
            oldest = arena;
    }
    tgl_arena *shared = &arenas->arena[SHARED];
    if (oldest == NULL && age == 0 && shared->is_taken && shared->users == 0) oldest = shared;
    if (oldest != NULL) oldest->users++;
    pthread_mutex_unlock(&arenas->lock);
    return oldest;
}

/* Adds `more` bytes of an arena to the table's sums, and subtracts `less` bytes. Must be called
 * with the table's lock held. */
static void count(tgl_arenas *arenas, const tgl_arena *arena, size_t more, size_t less)
{
    arenas->bytes += more - less;
    if (!is_shared(arenas, arena)) arenas->bytes_of_streams += more - less;
}

/* Frees the memory and the row of the least recently used arena that was not used in the latest
 * `age` runs. Returns false if there is none, or if it cannot be freed now. A thread that starts to
 * wait for the arena in the meantime finds it empty. Must be called in relaxed capture mode. */
static bool evict_one(const tgl_cuda *cuda, uint64_t age)
{
    tgl_arenas *arenas = cuda->arenas;
    tgl_arena *arena = pin_oldest(arenas, age);
    if (arena == NULL) return false;
    if (pthread_mutex_trylock(&arena->lock) != 0) { /* another thread is about to unlock it */
        unpin(arenas, arena);
        return false;
    }
    const size_t bytes = arena->counters.bytes + arena->scratch.bytes;
    const bool done = bytes == 0 || tgl_cuda_wait_for_work(&cuda->driver) == CUDA_SUCCESS;
    if (done) free_arena(cuda, arena);
    pthread_mutex_lock(&arenas->lock);
    arena->users--;
    if (done) count(arenas, arena, 0, bytes);
    if (done && arena->users == 0) arena->is_taken = false;
    pthread_mutex_unlock(&arenas->lock);
    pthread_mutex_unlock(&arena->lock);
    return done;
}

static void use(tgl_arenas *arenas, tgl_arena *arena)
{
    arena->is_taken = true;
    arena->users++;
    arena->latest_use = ++arenas->clock;
}

/* Returns the shared arena, and adds the caller to its users. */
static tgl_arena *pin_shared(tgl_arenas *arenas)
{
    pthread_mutex_lock(&arenas->lock);
    use(arenas, &arenas->arena[SHARED]);
    pthread_mutex_unlock(&arenas->lock);
    return &arenas->arena[SHARED];
}

/* Returns the arena of a stream, and adds the caller to its users. NULL: the stream has none, and
 * no row is free. */
static tgl_arena *pin(tgl_arenas *arenas, uint64_t stream)
{
    tgl_arena *found = NULL, *free_row = NULL;
    pthread_mutex_lock(&arenas->lock);
    for (int i = SHARED + 1; i < ROWS && found == NULL; i++) {
        tgl_arena *arena = &arenas->arena[i];
        if (!arena->is_taken && free_row == NULL) free_row = arena;
        if (arena->is_taken && arena->stream == stream) found = arena;
    }
    if (found == NULL && free_row != NULL) {
        found = free_row;
        found->stream = stream;
    }
    if (found != NULL) use(arenas, found);
    pthread_mutex_unlock(&arenas->lock);
    return found;
}

void tgl_arenas_trim(const tgl_cuda *cuda)
{
    while (evict_one(cuda, 0))
        ;
}

/* Adds `bytes`, by which an arena is about to grow, to the table's sums. Allocates no memory.
 * Evicts old arenas if necessary. Returns false if a limit would be exceeded. */
static bool reserve(const tgl_cuda *cuda, const tgl_arena *arena, size_t bytes)
{
    tgl_arenas *arenas = cuda->arenas;
    for (;;) {
        pthread_mutex_lock(&arenas->lock);
        const bool fits = arenas->bytes + bytes <= arenas->bytes_max &&
                          (is_shared(arenas, arena) ||
                           arenas->bytes_of_streams + bytes <= arenas->of_streams_max);
        if (fits) count(arenas, arena, bytes, 0);
        pthread_mutex_unlock(&arenas->lock);
        if (fits) return true;
        /* A stream's arena evicts only old arenas: if that does not make room, the stream uses the
         * shared arena. The shared arena evicts arenas of any age. */
        if (!evict_one(cuda, is_shared(arenas, arena) ? 0 : TGL_ARENA_AGE)) return false;
    }
}

static void unreserve(tgl_arenas *arenas, const tgl_arena *arena, size_t bytes)
{
    pthread_mutex_lock(&arenas->lock);
    count(arenas, arena, 0, bytes);
    pthread_mutex_unlock(&arenas->lock);
}

/* ---- Growing: the arena's lock is held, the capture mode relaxed ----------------------------- */

/* Waits for the work that uses the memory `old`, and frees it. In an arena of a stream, waits for
 * the stream; in the shared arena, for the arena's latest run. */
static CUresult free_old(const tgl_cuda *cuda, const tgl_arena *arena, CUdeviceptr old,
                         CUstream stream)
{
    const tgl_driver *driver = &cuda->driver;
    if (old == NULL) return CUDA_SUCCESS;
    CUresult result = arena->passed != NULL ? driver->cuEventSynchronize(arena->passed)
                                            : driver->cuStreamSynchronize(stream);
    return result == CUDA_SUCCESS ? driver->cuMemFree(old) : result;
}

/* Waits for the work that uses the memory *it, and replaces *it by a larger one. If memory is
 * exhausted, evicts other arenas and frees the memory of graphs that no longer exist. If the
 * allocation fails, *it is empty. */
static CUresult replace(const tgl_cuda *cuda, const tgl_arena *arena, memory *it, size_t bytes,
                        CUstream stream)
{
    CUresult result = free_old(cuda, arena, it->at, stream);
    if (result != CUDA_SUCCESS) return result;
    *it = (memory){.at = NULL};
    do
        result = cuda->driver.cuMemAlloc(&it->at, bytes);
    while (result == CUDA_ERROR_OUT_OF_MEMORY &&
           (evict_one(cuda, 0) || tgl_graph_memories_trim(cuda)));
    if (result == CUDA_SUCCESS) it->bytes = bytes;
    return result;
}

/* The size to which a memory grows. It grows at least by half, so that it grows rarely: each growth
 * waits for the stream. */
static size_t grown(const memory *it, size_t wanted, int64_t unit)
{
    if (wanted <= it->bytes) return it->bytes;
    const size_t half_more = it->bytes + it->bytes / 2;
    return (size_t)tgl_round_up((int64_t)(wanted > half_more ? wanted : half_more), unit);
}

/* Replaces the memories for counters and scratch whose sizes change. The caller must have reserved
 * their additional bytes (reserve()). */
static CUresult replace_both(const tgl_cuda *cuda, tgl_arena *arena, size_t counters,
                             size_t scratch, CUstream stream)
{
    CUresult result = CUDA_SUCCESS;
    if (counters != arena->counters.bytes) {
        arena->is_dirty = true;
        result = replace(cuda, arena, &arena->counters, counters, stream);
    }
    if (result == CUDA_SUCCESS && scratch != arena->scratch.bytes)
        result = replace(cuda, arena, &arena->scratch, scratch, stream);
    return result;
}

/* Grows the arena for a run of the list. *fits: false if a limit of arena.h would be exceeded; the
 * arena is then unchanged. */
static tgl_status grow(tgl_device *dev, tgl_arena *arena, const tgl_launch_list *list,
                       const tgl_run *run, CUstream stream, bool *fits)
{
    const tgl_cuda *cuda = dev->state;
    const size_t counters = grown(&arena->counters, list->counter_bytes, COUNTER_UNIT);
    const size_t scratch = grown(&arena->scratch, tgl_list_scratch_of(list, run), SCRATCH_UNIT);
    const size_t before = arena->counters.bytes + arena->scratch.bytes;
    *fits = true;
    if (counters + scratch == before) return TGL_OK;
    const int mode = tgl_cuda_relax_capture(&cuda->driver);
    *fits = reserve(cuda, arena, counters + scratch - before);
    CUresult result = CUDA_SUCCESS;
    if (*fits) {
        result = replace_both(cuda, arena, counters, scratch, stream);
        unreserve(cuda->arenas, arena,
                  counters + scratch - arena->counters.bytes - arena->scratch.bytes);
    }
    tgl_cuda_restore_capture(&cuda->driver, mode);
    return tgl_cuda_check(dev, result, "allocating workspace for a stream");
}

/* ---- Arenas for a run ------------------------------------------------------------------------ */

/* Makes a run in the shared arena wait for the arena's previous run, unless that is known to be in
 * the same stream. */
static tgl_status wait_for_others(tgl_device *dev, tgl_arena *arena, CUstream stream)
{
    const tgl_cuda *cuda = dev->state;
    uint64_t id = 0;
    CUresult result = CUDA_SUCCESS;
    if (!is_shared(cuda->arenas, arena)) return TGL_OK;
    if (cuda->arenas->has_ids) result = cuda->driver.cuStreamGetId(stream, &id);
    if (result == CUDA_SUCCESS && arena->passed == NULL)
        result = cuda->driver.cuEventCreate(&arena->passed, CU_EVENT_DISABLE_TIMING);
    else if (result == CUDA_SUCCESS && (id == 0 || id != arena->stream))
        result = cuda->driver.cuStreamWaitEvent(stream, arena->passed, 0);
    if (result == CUDA_SUCCESS) arena->stream = id;
    return tgl_cuda_check(dev, result, "waiting for another stream's workspace");
}

static tgl_status clear_counters(tgl_device *dev, tgl_arena *arena, CUstream stream)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    if (!arena->is_dirty || arena->counters.at == NULL) return TGL_OK;
    TGL_TRY(tgl_cuda_check(
        dev, driver->cuMemsetD8Async(arena->counters.at, 0, arena->counters.bytes, stream),
        "clearing counters"));
    arena->is_dirty = false;
    return TGL_OK;
}

/* *arena := the stream's arena, with the caller added to its users. NULL: the run needs more than
 * TGL_STREAM_BYTES, streams cannot be identified, or there is no free row. */
static tgl_status find_arena(tgl_device *dev, size_t bytes, CUstream stream, tgl_arena **arena)
{
    const tgl_cuda *cuda = dev->state;
    uint64_t id;
    *arena = NULL;
    if (!cuda->arenas->has_ids || bytes > TGL_STREAM_BYTES) return TGL_OK;
    TGL_TRY(tgl_cuda_check(dev, cuda->driver.cuStreamGetId(stream, &id),
                           "asking for a stream's number"));
    *arena = pin(cuda->arenas, id);
    if (*arena != NULL) return TGL_OK;
    const int mode = tgl_cuda_relax_capture(&cuda->driver);
    while (*arena == NULL && evict_one(cuda, TGL_ARENA_AGE))
        *arena = pin(cuda->arenas, id);
    tgl_cuda_restore_capture(&cuda->driver, mode);
    return TGL_OK;
}

/* Takes memory of an arena that counts the caller among its users (pin()). space->arena stays NULL
 * if a limit of arena.h would be exceeded. */
static tgl_status take_from(tgl_device *dev, tgl_arena *arena, const tgl_launch_list *list,
                            const tgl_run *run, CUstream stream, tgl_arena_space *space)
{
    const tgl_cuda *cuda = dev->state;
    bool fits = true;
    pthread_mutex_lock(&arena->lock);
    tgl_status status = wait_for_others(dev, arena, stream);
    if (status == TGL_OK) status = grow(dev, arena, list, run, stream, &fits);
    if (status == TGL_OK && fits) status = clear_counters(dev, arena, stream);
    if (status == TGL_OK && fits) {
        *space = (tgl_arena_space){arena->counters.at, arena->scratch.at, arena};
        return TGL_OK;
    }
    pthread_mutex_unlock(&arena->lock);
    unpin(cuda->arenas, arena);
    return status;
}

tgl_status tgl_arena_take(tgl_device *dev, const tgl_launch_list *list, const tgl_run *run,
                          CUstream stream, tgl_arena_space *space)
{
    const tgl_cuda *cuda = dev->state;
    const size_t bytes = list->counter_bytes + tgl_list_scratch_of(list, run);
    tgl_arena *arena;
    *space = (tgl_arena_space){.arena = NULL};
    TGL_TRY(find_arena(dev, bytes, stream, &arena));
    if (arena != NULL) TGL_TRY(take_from(dev, arena, list, run, stream, space));
    if (space->arena == NULL)
        TGL_TRY(take_from(dev, pin_shared(cuda->arenas), list, run, stream, space));
    if (space->arena != NULL) return TGL_OK;
    return tgl_fail(TGL_NO_MEMORY,
                    "%zu bytes of workspace are more than %s may keep for its streams, %zu", bytes,
                    dev->name, cuda->arenas->bytes_max);
}

/* Records the event after which other runs may use the shared arena. If that fails, waits for the
 * work instead, because later runs cannot wait for the event. */
static CUresult record_passed(const tgl_driver *driver, const tgl_arena *arena, CUstream stream)
{
    CUresult result = driver->cuEventRecord(arena->passed, stream);
    if (result != CUDA_SUCCESS) {
        const int mode = tgl_cuda_relax_capture(driver);
        driver->cuStreamSynchronize(stream);
        tgl_cuda_restore_capture(driver, mode);
    }
    return result;
}

CUresult tgl_arena_give_back(const tgl_cuda *cuda, tgl_arena *arena, CUstream stream,
                             bool has_failed)
{
    CUresult result = CUDA_SUCCESS;
    if (has_failed) arena->is_dirty = true;
    if (is_shared(cuda->arenas, arena)) result = record_passed(&cuda->driver, arena, stream);
    pthread_mutex_unlock(&arena->lock);
    unpin(cuda->arenas, arena);
    return result;
}
