/* SPDX-License-Identifier: Apache-2.0
 *
 * Which accesses of the lanes of a warp form one request.
 */
#include "support.h"

#include "sim/tally.h"

static const char instruction[4]; /* their addresses stand for instructions */

static bool access_at(tgl_tally *tally, int which, int lane, uint64_t round, uintptr_t address)
{
    uint32_t site;
    bool is_full;
    assert_true(tgl_tally_access(tally, &instruction[which], TGL_GLOBAL_LOAD, 0, lane, round, 4, 0,
                                 address, &site, &is_full));
    assert_ptr_equal(tally->sites[site].pc, &instruction[which]);
    return is_full;
}

static const tgl_site *site_of(const tgl_tally *tally, int which)
{
    for (size_t i = 0; i < tally->slots; i++)
        if (tally->sites[i].pc == &instruction[which]) return &tally->sites[i];
    return NULL;
}

static int setup(void **state)
{
    static tgl_tally tally;
    *state = &tally;
    return tgl_tally_init(&tally) ? 0 : -1;
}

static int teardown(void **state)
{
    tgl_tally_free(*state);
    return 0;
}

/* All lanes execute three iterations of a loop. */
static void test_uniform(void **state)
{
    for (int lane = 0; lane < 32; lane++)
        for (uint64_t round = 0; round < 3; round++)
            access_at(*state, 0, lane, round, 4096 + 1024 * round + 4 * (uintptr_t)lane);
    tgl_tally_flush(*state);
    const tgl_site *site = site_of(*state, 0);
    assert_int_equal(site->requests, 3);
    assert_int_equal(site->sectors, 3 * 4);
    assert_int_equal(site->bytes, 3 * 32 * 4);
}

/* The two halves of the warp are active in alternate iterations, which are counted separately. */
static void test_divergent(void **state)
{
    for (int lane = 0; lane < 32; lane++)
        for (uint64_t round = 0; round < 8; round++)
            if (round % 2 == (uint64_t)(lane / 16))
                access_at(*state, 0, lane, round, 4096 + 4 * (uintptr_t)lane);
    tgl_tally_flush(*state);
    assert_int_equal(site_of(*state, 0)->requests, 8);
    assert_int_equal(site_of(*state, 0)->sectors, 8 * 2);
}

/* A lane that leaves its loop early is combined with the others again after the loop. */
static void test_early_exit(void **state)
{
    for (int lane = 0; lane < 32; lane++) {
        for (uint64_t round = 1; round <= (lane < 31 ? 4 : 2); round++)
            access_at(*state, 0, lane, round, 4096);
        access_at(*state, 1, lane, 0, 8192);
    }
    tgl_tally_flush(*state);
    assert_int_equal(site_of(*state, 0)->requests, 4);
    assert_int_equal(site_of(*state, 1)->requests, 1);
}

/* Two accesses of an instruction in one iteration, as when a struct is copied word by word, are two
 * requests. */
static void test_same_round(void **state)
{
    for (int lane = 0; lane < 32; lane++)
        for (int word = 0; word < 2; word++)
            access_at(*state, 0, lane, 7, 4096 + 8 * (uintptr_t)lane + 4 * (uintptr_t)word);
    tgl_tally_flush(*state);
    assert_int_equal(site_of(*state, 0)->requests, 2);
    assert_int_equal(site_of(*state, 0)->sectors, 2 * 8);
}

/* A lane must stop at the end of the window, and no access is lost. */
static void test_window(void **state)
{
    enum { ROUNDS = 3 * TGL_TALLY_WINDOW };
    for (int first = 0; first < ROUNDS; first += TGL_TALLY_WINDOW) {
        for (int lane = 0; lane < 32; lane++)
            for (int i = 0; i < TGL_TALLY_WINDOW; i++)
                assert_int_equal(
                    access_at(*state, 0, lane, (uint64_t)(first + i), 4096 + 4 * (uintptr_t)lane),
                    i == TGL_TALLY_WINDOW - 1);
        tgl_tally_flush(*state);
    }
    assert_int_equal(site_of(*state, 0)->requests, ROUNDS);
    assert_int_equal(site_of(*state, 0)->sectors, 4 * ROUNDS);
}

/* A trace has the first executions of each instruction, by the first warp that executes it, in the
 * order of the first lane. */
static void test_trace(void **state)
{
    enum { FEW = 3, MANY = 2 * TGL_TRACE_EACH };
    tgl_tally *tally = *state;
    tgl_trace trace = {.count = 0};
    tally->trace = &trace;
    for (tally->warp = 2; tally->warp < 4; tally->warp++) {
        for (int lane = 0; lane < 32; lane++)
            for (uint64_t round = 0; round < MANY; round++) {
                const uintptr_t address = 4096 + 256 * round + 4 * (uintptr_t)lane;
                if (round < FEW) access_at(tally, 0, lane, round, address);
                access_at(tally, 1, lane, round, 65536 + address);
            }
        tgl_tally_flush(tally);
    }
    tally->trace = NULL; /* this instruction is not traced */
    access_at(tally, 2, 0, 0, 4096);
    tgl_tally_flush(tally);
    tgl_trace_sort(&trace);
    assert_int_equal(trace.count, FEW + TGL_TRACE_EACH);
    for (size_t i = 0; i < trace.count; i++) {
        const tgl_trace_step *step = &trace.steps[i];
        const size_t round = i < 2 * FEW ? i / 2 : i - FEW;
        const int which = i < 2 * FEW ? (int)i % 2 : 1;
        assert_ptr_equal(step->pc, &instruction[which]);
        assert_int_equal(step->warp, 2);
        assert_int_equal(step->global.lanes, 0xffffffff);
        assert_int_equal(step->shared.lanes, 0);
        assert_int_equal(step->global.address[31],
                         65536 * which + 4096 + 256 * (int)round + 4 * 31);
    }
    assert_int_equal(site_of(tally, 1)->requests, 2 * MANY); /* counted, not traced */
    tgl_trace_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_uniform, setup, teardown),
        cmocka_unit_test_setup_teardown(test_divergent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_early_exit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_same_round, setup, teardown),
        cmocka_unit_test_setup_teardown(test_window, setup, teardown),
        cmocka_unit_test_setup_teardown(test_trace, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
