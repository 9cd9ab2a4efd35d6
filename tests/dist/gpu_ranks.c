/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_ranks.h"
#include "few_allocations.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int number_of(const char *variable, const char *name)
{
    void *library = dlopen(getenv(variable), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    int (*number)(void) = (int (*)(void))dlsym(library, name);
    assert_non_null(number);
    const int result = number();
    dlclose(library);
    return result;
}

int fake_number(const char *name)
{
    return number_of("TEGULA_LIBCUDA", name);
}

int nccl_number(const char *name)
{
    return number_of("TEGULA_LIBNCCL", name);
}

int nccl_messages(void)
{
    return nccl_number("fake_nccl_messages");
}

/* ---- Hosts ----------------------------------------------------------------------------------- */

int ranks_of_host;
static _Thread_local char boot_id[40]; /* the id of this rank's host; empty: the real one */

/* Replaces fopen() of the C library. libtegula_dist reads this file to find out which ranks are on
 * the same host. */
__attribute__((visibility("default"))) FILE *fopen(const char *filename, const char *modes)
{
    if (boot_id[0] != '\0' && strcmp(filename, "/proc/sys/kernel/random/boot_id") == 0)
        return fmemopen(boot_id, strlen(boot_id), "r");
    FILE *(*own)(const char *, const char *) =
        (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    return own(filename, modes);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

int spare_allocations = -1;

/* ---- Ranks ----------------------------------------------------------------------------------- */

int ranks_in_id;
bool uses_defaults;
bool prefers_collectives;
double wave_elements;

static void *run_rank(void *argument)
{
    rank_state *s = argument;
    char name[16];
    snprintf(name, sizeof name, "cuda:%d", s->rank);
    if (ranks_of_host > 0) snprintf(boot_id, sizeof boot_id, "host-%d\n", s->rank / ranks_of_host);
    if (tgl_device_open(name, NULL, &s->dev) != TGL_OK) abort();
    tgl_nccl_options options = {.size = sizeof options,
                                .id = s->id,
                                .rank = s->rank,
                                .ranks = ranks_in_id > 0 ? ranks_in_id : s->ranks,
                                .timeout_s = s->timeout_s,
                                .engine = s->engine,
                                .machine = {.flops_per_s = 1e9,
                                            .operand_bytes_per_s = 1e12,
                                            .bytes_per_s = wave_elements > 0 ? 1e12 : 1e6,
                                            .latency_s = prefers_collectives ? 1e6 : 1e-9,
                                            .product_s = 1e-9,
                                            .collective_s = prefers_collectives ? 1e-9 : 1e6,
                                            .wave_elements = wave_elements}};
    if (uses_defaults) options.machine = (tgl_dist_machine){.size = 0};
    if (s->rank == 1) allocations_left = spare_allocations;
    s->status = tgl_dist_open_nccl(&options, s->dev, &s->dist);
    if (s->status == TGL_OK) s->function(s);
    if (s->status != TGL_OK && s->error[0] == '\0') tgl_dist_last_error(s->error, sizeof s->error);
    tgl_dist_close(s->dist);
    allocations_left = -1;
    tgl_device_close(s->dev);
    return NULL;
}

void run_ranks(rank_state *states, int ranks, tgl_nccl_engine engine, double timeout_s,
               rank_function *function)
{
    pthread_t threads[RANKS];
    unsigned char id[TGL_NCCL_ID_BYTES];
    assert_int_equal(tgl_dist_nccl_id(id), TGL_OK);
    for (int rank = 0; rank < ranks; rank++) {
        states[rank] = (rank_state){.rank = rank,
                                    .ranks = ranks,
                                    .timeout_s = timeout_s,
                                    .engine = engine,
                                    .function = function};
        memcpy(states[rank].id, id, sizeof id);
        assert_int_equal(pthread_create(&threads[rank], NULL, run_rank, &states[rank]), 0);
    }
    for (int rank = 0; rank < ranks; rank++)
        pthread_join(threads[rank], NULL);
}

int check_fakes(void **state)
{
    (void)state;
    unsetenv("FAKE_CUDA_SAME_GPU");
    unsetenv("FAKE_CUDA_FAIL");
    unsetenv("FAKE_NCCL_ERROR");
    unsetenv("FAKE_NCCL_COLLECT");
    prefers_collectives = false;
    return fake_number("fake_cuda_misuses") + fake_number("fake_cuda_live") +
           fake_number("fake_cuda_mapped");
}
