/* SPDX-License-Identifier: Apache-2.0
 *
 * A process for each of some GPUs of this host. CUDA begins in the children only. The unique id of
 * NCCL comes from rank 0 through memory that all share.
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
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct shared_id {
    atomic_int is_ready; /* -1: there is none */
    unsigned char bytes[TGL_NCCL_ID_BYTES];
} shared_id;

static tgl_status share_id(int rank, shared_id *id)
{
    if (rank == 0) {
        const tgl_status status = tgl_dist_nccl_id(id->bytes);
        id->is_ready = status == TGL_OK ? 1 : -1;
        return status;
    }
    while (id->is_ready == 0)
        sched_yield();
    return id->is_ready > 0 ? TGL_OK : TGL_COMMUNICATION;
}

static int run_rank(int rank, int gpus, shared_id *id, dist_gpu_function *function,
                    const void *argument)
{
    enum { TIMEOUT = 600 }; /* seconds; the own work of a rank counts */
    char name[16], text[512];
    int code;
    snprintf(name, sizeof name, "cuda:%d", rank);
    tgl_device *dev = cli_open_device(name, 0, &code);
    if (dev == NULL) return code;
    tgl_dist *dist = NULL;
    tgl_status status = share_id(rank, id);
    const tgl_nccl_options options = {
        .size = sizeof options, .id = id->bytes, .rank = rank, .ranks = gpus, .timeout_s = TIMEOUT};
    if (status == TGL_OK) status = tgl_dist_open_nccl(&options, dev, &dist);
    if (status == TGL_OK) {
        code = function(dist, dev, argument);
    } else {
        code = EXIT_FAILED;
        if (tgl_dist_last_error(text, sizeof text) > 0) cli_fail("rank %d: %s", rank, text);
    }
    tgl_dist_close(dist);
    tgl_device_close(dev);
    return code;
}

/* The exit status of the first process that failed; the others are ended then. */
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
            const int code = run_rank(count, gpus, id, function, argument);
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
