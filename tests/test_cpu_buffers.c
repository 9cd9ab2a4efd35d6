/* SPDX-License-Identifier: Apache-2.0
 *
 * The buffers that the cpu device keeps from run to run (src/cpu/run/buffer_pool.c).
 */
#include "support.h"

#include "cpu/plan/cpu_plan.h"
#include "cpu/run/buffer_pool.h"

#include <pthread.h>

static void buffers_are_used_again(void **state)
{
    (void)state;
    cpu_buffer_pool pool = {0};
    assert_true(tgl_buffer_pool_reserve(&pool, 0));
    assert_true(tgl_buffer_pool_reserve(&pool, 1000));
    const cpu_buffer first = tgl_buffer_pool_take(&pool, 1000);
    assert_non_null(first.memory);
    assert_int_equal((uintptr_t)first.memory % CPU_ALIGNMENT, 0);
    const cpu_buffer second = tgl_buffer_pool_take(&pool, 500); /* the only buffer is in use */
    assert_non_null(second.memory);
    assert_ptr_not_equal(first.memory, second.memory);
    tgl_buffer_pool_give(&pool, first);
    assert_ptr_equal(tgl_buffer_pool_take(&pool, 900).memory, first.memory);
    tgl_buffer_pool_give(&pool, first);
    tgl_buffer_pool_give(&pool, second);
    assert_false(tgl_buffer_pool_reserve(&pool, SIZE_MAX - 10));
    assert_null(tgl_buffer_pool_take(&pool, SIZE_MAX - 10).memory);
    tgl_buffer_pool_close(&pool);
}

static void a_full_pool_still_gives(void **state)
{
    (void)state;
    enum { TAKEN = CPU_BUFFER_SLOTS + 5, BYTES = 3000 };
    cpu_buffer_pool pool = {0};
    cpu_buffer taken[TAKEN];
    for (int i = 0; i < TAKEN; i++) {
        taken[i] = tgl_buffer_pool_take(&pool, BYTES);
        assert_non_null(taken[i].memory);
        assert_int_equal(taken[i].slot >= 0, i < CPU_BUFFER_SLOTS);
        memset(taken[i].memory, i, BYTES);
    }
    for (int i = 0; i < TAKEN; i++) {
        const unsigned char *bytes = taken[i].memory;
        assert_int_equal(bytes[0], i);
        assert_int_equal(bytes[BYTES - 1], i);
        tgl_buffer_pool_give(&pool, taken[i]);
    }
    assert_true(tgl_buffer_pool_reserve(&pool, 10 * BYTES)); /* it replaces a smaller one */
    const cpu_buffer large = tgl_buffer_pool_take(&pool, 10 * BYTES);
    assert_non_null(large.memory);
    memset(large.memory, 0, 10 * BYTES);
    tgl_buffer_pool_give(&pool, large);
    tgl_buffer_pool_close(&pool);
}

static size_t bytes_of(const cpu_buffer_pool *pool)
{
    size_t bytes = 0;
    for (int i = 0; i < CPU_BUFFER_SLOTS; i++)
        bytes += atomic_load(&pool->slots[i].bytes);
    return bytes;
}

/* The memory of idle buffers has a limit. Buffers in use do not count. */
static void peaks_are_given_back(void **state)
{
    (void)state;
    enum { SMALL = 3000, TAKEN = 10, LARGE = 100000 };
    cpu_buffer_pool pool = {.most = 4 * SMALL};
    cpu_buffer taken[TAKEN];
    const cpu_buffer large = tgl_buffer_pool_take(&pool, LARGE);
    for (int i = 0; i < TAKEN; i++)
        taken[i] = tgl_buffer_pool_take(&pool, SMALL);
    for (int i = 0; i < TAKEN; i++) {
        assert_non_null(taken[i].memory);
        tgl_buffer_pool_give(&pool, taken[i]);
    }
    assert_int_equal(bytes_of(&pool), LARGE + 4 * SMALL);
    tgl_buffer_pool_give(&pool, large);
    assert_int_equal(bytes_of(&pool), 4 * SMALL);
    const cpu_buffer again = tgl_buffer_pool_take(&pool, LARGE);
    assert_non_null(again.memory);
    memset(again.memory, 1, LARGE);
    tgl_buffer_pool_give(&pool, again);
    assert_int_equal(bytes_of(&pool), 4 * SMALL);
    const cpu_buffer used = tgl_buffer_pool_take(&pool, SMALL);
    tgl_buffer_pool_trim(&pool);
    assert_int_equal(bytes_of(&pool), SMALL);
    memset(used.memory, 1, SMALL);
    tgl_buffer_pool_give(&pool, used);
    tgl_buffer_pool_trim(&pool);
    assert_int_equal(bytes_of(&pool), 0);
    tgl_buffer_pool_close(&pool);
}

/* Takes and gives back buffers of changing sizes, and checks that no other thread writes to them.
 */
static void *use_buffers(void *argument)
{
    cpu_buffer_pool *pool = argument;
    uintptr_t faults = 0;
    for (size_t i = 0; i < 100000; i++) {
        const size_t words = 1 + i * 37 % 64;
        const cpu_buffer buffer = tgl_buffer_pool_take(pool, words * sizeof(uintptr_t));
        uintptr_t *memory = buffer.memory;
        for (size_t j = 0; j < words; j++)
            memory[j] = (uintptr_t)&faults + j;
        for (size_t j = 0; j < words; j++)
            faults += memory[j] != (uintptr_t)&faults + j;
        tgl_buffer_pool_give(pool, buffer);
    }
    return (void *)faults; /* NOLINT(performance-no-int-to-ptr) */
}

static void threads_never_share_a_buffer(void **state)
{
    (void)state;
    enum { THREADS = 6 };
    cpu_buffer_pool pool = {.most = 800};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_buffers, &pool), 0);
    for (int i = 0; i < THREADS; i++) {
        void *faults;
        pthread_join(threads[i], &faults);
        assert_null(faults);
    }
    tgl_buffer_pool_close(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_are_used_again),
        cmocka_unit_test(a_full_pool_still_gives),
        cmocka_unit_test(peaks_are_given_back),
        cmocka_unit_test(threads_never_share_a_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
