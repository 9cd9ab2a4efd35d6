/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks with a GPU each. If this program starts the processes of the ranks itself, only the
 * children use CUDA, because CUDA does not work in a child of a process that has used it. Rank 0
 * then passes its unique id of NCCL to the other ranks through shared memory.
 */
#include "dist_gpus.h"

#include "cli.h"
#include "dist_world.h"
#include "tegula/nccl.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The rank of this process ---------------------------------------------------------------- */

/* Whether this process sees no second GPU. */
static bool sees_one_gpu(void)
{
    tgl_device *second;
    const tgl_status status = tgl_device_open("cuda:1", NULL, &second);
    tgl_device_close(second);
    return status == TGL_NO_DEVICE;
}

/* Opens the GPU of this rank. NULL: failed, and *code is an exit code. */
static tgl_device *open_gpu(const dist_gpu_rank *rank, int *code)
{
    char name[16];
    tgl_device *dev;
    snprintf(name, sizeof name, "cuda:%d", rank->gpu);
    if (tgl_device_open(name, NULL, &dev) == TGL_OK) return dev;
    if (rank->may_see_one && rank->gpu > 0 && sees_one_gpu() &&
        tgl_device_open("cuda:0", NULL, &dev) == TGL_OK)
        return dev;
    return cli_open_device(name, 0, code);
}

/* Loads NCCL, and on rank 0 makes its unique id. False: failed, and the error has been printed. */
static bool load_nccl(int rank, unsigned char *id)
{
    char text[512] = "";
    if (tgl_dist_nccl_id(rank == 0 ? id : NULL) == TGL_OK) return true;
    tgl_dist_last_error(text, sizeof text);
    return cli_fail_false("rank %d: %s", rank, text);
}

int dist_gpu_run(const dist_gpu_rank *rank, dist_bring_id *bring_id, void *state,
                 dist_gpu_function *function, const void *argument)
{
    /* Seconds that a rank waits for another rank. The wait includes the time in which the other
     * rank still computes. */
    enum { TIMEOUT = 600 };
    unsigned char id[TGL_NCCL_ID_BYTES] = {0};
    char text[512] = "";
    int code = EXIT_FAILED;
    tgl_device *dev = open_gpu(rank, &code);
    tgl_dist *dist = NULL;
    const tgl_nccl_options options = {.size = sizeof options,
                                      .id = id,
                                      .rank = rank->rank,
                                      .ranks = rank->ranks,
                                      .timeout_s = TIMEOUT};
    /* A rank without NCCL finds out before the others wait for it. */
    const bool is_ready = dev != NULL && load_nccl(rank->rank, id);
    const bool has_id = bring_id(rank, state, is_ready, id);
    if (dev == NULL) return code;
    if (!has_id) {
        code = EXIT_FAILED;
    } else if (tgl_dist_open_nccl(&options, dev, &dist) == TGL_OK) {
        code = function(dist, dev, argument);
    } else {
        tgl_dist_last_error(text, sizeof text);
        code = cli_fail("rank %d: %s", rank->rank, text);
    }
    tgl_dist_close(dist);
    tgl_device_close(dev);
    return code;
}

/* ---- A process for each GPU ------------------------------------------------------------------ */

typedef struct shared_id {
    atomic_int is_ready; /* 1: rank 0 has written `bytes`; -1: not all ranks were started; 0:
                            neither yet */
    unsigned char bytes[TGL_NCCL_ID_BYTES];
} shared_id;

/* The dist_bring_id of ranks that this program has started. A rank that is not ready need not tell
 * the other ranks: its process fails, and wait_for() in the parent then ends them. */
static bool share_id(const dist_gpu_rank *rank, void *state, bool is_ready, unsigned char *id)
{
    shared_id *shared = state;
    if (!is_ready) return false;
    if (rank->rank == 0) {
        memcpy(shared->bytes, id, sizeof shared->bytes);
        shared->is_ready = 1;
    }
    while (shared->is_ready == 0)
        sched_yield();
    memcpy(id, shared->bytes, sizeof shared->bytes);
    return shared->is_ready > 0;
}

/* Waits for all processes. As soon as one fails, sends SIGTERM to the others. Returns the exit code
 * of the first one that failed, or EXIT_DONE. */
static int wait_for(const pid_t *children, int count)
{
    int code = EXIT_DONE, status;
    for (int left = count; left > 0; left--) {
        const pid_t ended = wait(&status);
        const int own = ended < 0 || !WIFEXITED(status) ? EXIT_FAILED : WEXITSTATUS(status);
        if (own == EXIT_DONE || code != EXIT_DONE) continue;
        code = own;
        for (int i = 0; i < count; i++)
            if (children[i] > 0 && children[i] != ended) kill(children[i], SIGTERM);
    }
    return code;
}

int dist_gpus_run(int gpus, dist_gpu_function *function, const void *argument)
{
    shared_id *id =
        mmap(NULL, sizeof *id, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t *children = calloc((size_t)gpus, sizeof *children);
    if (id == MAP_FAILED || children == NULL) {
        free(children);
        return cli_fail("no memory for %d processes", gpus);
    }
    fflush(stdout);
    int count = 0;
    for (; count < gpus; count++) {
        children[count] = fork();
        if (children[count] == 0) {
            const dist_gpu_rank rank = {.rank = count, .ranks = gpus, .gpu = count};
            const int code = dist_gpu_run(&rank, share_id, id, function, argument);
            fflush(stdout);
            _exit(code);
        }
        if (children[count] < 0) break;
    }
    const bool has_all = count == gpus;
    if (!has_all) id->is_ready = -1;
    const int code = wait_for(children, count);
    free(children);
    munmap(id, sizeof *id);
    return has_all ? code : cli_fail("%d processes cannot be started", gpus);
}
