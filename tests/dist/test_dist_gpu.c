/* SPDX-License-Identifier: Apache-2.0
 *
 * tegula/nccl.h between threads, each with a device of the fake driver: random products by copy
 * engines and by NCCL, and failures.
 */
#include "dist_case.h"
#include "tegula/nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 4, TIMEOUT = 20 };

typedef struct rank_state rank_state;
typedef void rank_function(rank_state *s);

/* What a rank does and finds. */
struct rank_state {
    int rank, ranks;
    unsigned char id[TGL_NCCL_ID_BYTES];
    double timeout_s;
    tgl_nccl_engine engine;
    rank_function *function;
    tgl_device *dev;
    tgl_dist *dist;
    tgl_status status;
    char error[400];
    bool ok;
};

static int fake_number(const char *name)
{
    void *library = dlopen(getenv("TEGULA_LIBCUDA"), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    int (*number)(void) = (int (*)(void))dlsym(library, name);
    assert_non_null(number);
    const int result = number();
    dlclose(library);
    return result;
}

static void *run_rank(void *argument)
{
    rank_state *s = argument;
    char name[16];
    snprintf(name, sizeof name, "cuda:%d", s->rank);
    if (tgl_device_open(name, NULL, &s->dev) != TGL_OK) abort();
    const tgl_nccl_options options = {.size = sizeof options,
                                      .id = s->id,
                                      .rank = s->rank,
                                      .ranks = s->ranks,
                                      .timeout_s = s->timeout_s,
                                      .engine = s->engine};
    s->status = tgl_dist_open_nccl(&options, s->dev, &s->dist);
    if (s->status == TGL_OK) s->function(s);
    if (s->status != TGL_OK) tgl_dist_last_error(s->error, sizeof s->error);
    tgl_dist_close(s->dist);
    tgl_device_close(s->dev);
    return NULL;
}

/* Runs a function on all ranks. */
static void run_ranks(rank_state *states, int ranks, tgl_nccl_engine engine, double timeout_s,
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

static int check_fakes(void **state)
{
    (void)state;
    unsetenv("FAKE_CUDA_SAME_GPU");
    unsetenv("FAKE_NCCL_ERROR");
    return fake_number("fake_cuda_misuses") + fake_number("fake_cuda_live") +
           fake_number("fake_cuda_mapped");
}

/* ---- Products -------------------------------------------------------------------------------- */

static void run_cases(rank_state *s)
{
    enum { CASES = 40 };
    s->ok = true;
    for (unsigned i = 0; i < CASES && s->ok; i++)
        s->ok = dist_case_run(s->dist, s->dev, 7000 * (unsigned)s->ranks + i);
}

static void random_products(tgl_nccl_engine engine)
{
    for (int ranks = 1; ranks <= RANKS; ranks++) {
        rank_state states[RANKS];
        run_ranks(states, ranks, engine, TIMEOUT, run_cases);
        for (int rank = 0; rank < ranks; rank++) {
            assert_int_equal(states[rank].status, TGL_OK);
            assert_true(states[rank].ok);
        }
    }
}

static void by_copy_engines(void **state)
{
    (void)state;
    random_products(TGL_NCCL_ENGINE_AUTO);
}

static void by_nccl(void **state)
{
    (void)state;
    random_products(TGL_NCCL_ENGINE_NCCL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(by_copy_engines, check_fakes),
        cmocka_unit_test_teardown(by_nccl, check_fakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
