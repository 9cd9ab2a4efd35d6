/* SPDX-License-Identifier: Apache-2.0
 *
 * The probe family on the simulator: results, chosen alternatives, counts, and independence of the
 * order of blocks.
 */
#include "probe_case.h"
#include "support.h"

static void test_results(void **state)
{
    const probe_case *c;
    for (int i = 0; (c = probe_case_at(i)) != NULL; i++)
        probe_case_run(*state, c);
}

static tgl_counters count(tgl_device *dev, const probe_case *c)
{
    const tgl_problem problem = probe_problem(c);
    tgl_counters counters = {.size = sizeof counters};
    probe_operands x;
    tgl_plan *plan;
    assert_status(plan_of_probe(dev, &problem, &plan), TGL_OK);
    probe_operands_make(dev, c, tgl_plan_workspace_size(plan), &x);
    assert_status(probe_run(plan, c, &x, NULL), TGL_OK);
    probe_check(dev, c, &x);
    assert_status(tgl_plan_counters(plan, &counters), TGL_OK);
    probe_operands_free(dev, &x);
    tgl_plan_destroy(plan);
    return counters;
}

/* For 64 x 64 x 128, A is read by the scan, and through the tensor map once for each of two columns
 * of tiles. Repacking stores it once more. */
static void test_alternatives(void **state)
{
    enum { SIDE = 64, K = 128 };
    probe_case c = {.m = SIDE, .n = SIDE, .k = K, .alpha = 1, .beta = 0};
    const tgl_counters direct = count(*state, &c);
    c.offset = 1;
    const tgl_counters packed = count(*state, &c);
    assert_int_equal(direct.async_copy_bytes, 2 * SIDE * K * 4);
    assert_int_equal(packed.async_copy_bytes, direct.async_copy_bytes);
    assert_int_equal(packed.global_store_bytes - direct.global_store_bytes, SIDE * K * 4);
    assert_int_equal(direct.async_copy_requests, 2 * SIDE / 32 * K / 32);
    assert_int_equal(direct.async_copy_sectors * 32, direct.async_copy_bytes);
    assert_int_equal(direct.blocks, SIDE + 2 * 2 * 2 + SIDE);
    assert_int_equal(direct.threads, 128); /* of the product kernel, not of the scan */
    c.alpha = 0;
    const tgl_counters without = count(*state, &c);
    assert_int_equal(without.blocks, 2 * 2 * 2);
    assert_int_equal(without.global_load_bytes, 0);
}

/* The last step runs only if the flag is set. The counts show whether it has run. */
static void test_flag(void **state)
{
    probe_case c = {.m = 40, .n = 50, .k = 60, .alpha = 1, .beta = 0};
    const tgl_counters skipped = count(*state, &c);
    c.is_beyond = true;
    const tgl_counters negated = count(*state, &c);
    /* C is loaded and stored. Each block increments the counter, the last block clears two words,
     * and the scan sets one. */
    assert_int_equal(negated.global_store_bytes - skipped.global_store_bytes,
                     40 * 50 * 4 + 40 * 4 + 2 * 4 + 4);
}

static void test_explain(void **state)
{
    const probe_case *c = probe_case_at(0);
    const tgl_problem problem = probe_problem(c);
    char text[8192];
    tgl_plan *plan;
    assert_status(plan_of_probe(*state, &problem, &plan), TGL_OK);
    tgl_plan_explain(plan, text, sizeof text);
    assert_non_null(strstr(text, "scan A"));
    assert_non_null(strstr(text, "negate C"));
    tgl_plan_destroy(plan);
}

static tgl_device *open_with_seed(const char *seed)
{
    tgl_device *dev;
    setenv("TEGULA_SIM_SEED", seed, 1);
    const tgl_status status = tgl_device_open("sim", NULL, &dev);
    unsetenv("TEGULA_SIM_SEED");
    assert_status(status, TGL_OK);
    return dev;
}

static void test_seeds(void **state)
{
    static const char *const seeds[] = {"0", "1", "18446744073709551615"};
    const probe_case c = {.m = 70, .n = 90, .k = 60, .offset = 1, .alpha = 1, .is_beyond = true};
    const tgl_counters expected = count(*state, &c);
    for (size_t i = 0; i < COUNT_OF(seeds); i++) {
        tgl_device *dev = open_with_seed(seeds[i]);
        const tgl_counters counters = count(dev, &c);
        assert_memory_equal(&counters, &expected, sizeof counters);
        const probe_case *other;
        for (int j = 0; (other = probe_case_at(j)) != NULL; j++)
            probe_case_run(dev, other);
        tgl_device_close(dev);
    }
}

/* ---- Broken versions ------------------------------------------------------------------------- */

/* A kernel of the list, a text in its source, its replacement, and a part of the simulator's
 * message. */
static const struct {
    const char *kernel, *text, *instead, *says;
} broken[] = {
    {"probe_multiply", "mbarrier_wait(&full[stage], (unsigned)((step - first) / STAGES % 2));", "",
     "before the TMA copy that thread 0 issued"},
    {"probe_multiply", "if (thread == 0 && step + STAGES", "if (thread == 1 && step + STAGES",
     NULL},
    {"probe_multiply", "        __syncthreads();\n        if (thread == 0 && step",
     "        if (thread == 0 && step", "race: writes As + "},
    {"probe_multiply", "mbarrier_init_fence();", "", "without a following mbarrier_init_fence()"},
    {"probe_multiply", "&full[s], sizeof As[s]", "&full[s], sizeof As[s] + 16",
     "deadlock: waits for a phase of the mbarrier at full + 0 bytes, where 16 bytes were "
     "announced"},
    {"probe_multiply", "mbarrier_init(&full[s], 1)", "mbarrier_init(&full[s], 2)",
     "1 of 2 arrivals never come"},
    {"probe_multiply", "wait_for_earlier_launches();", "",
     "accesses global memory before it has waited"},
    {"probe_multiply", "cluster_sync(); /*", "/*", "of a block of the cluster that has ended"},
    {"probe_multiply", "tma_load_2d(As[s],", "tma_load_2d(&As[s][32],", "not a multiple of 1024"},
    {"probe_multiply", "swizzle_128((unsigned)(row * BK + p) * 4)", "(row * BK + p) * 4", "wrong"},
    {"probe_scan", "packed[blockIdx.x * pitch + p] = a;",
     "if (p > 0) packed[blockIdx.x * pitch + p] = a;", "which no launch of this run has written"},
    {"probe_scan", "packed[blockIdx.x * pitch + p] = a;", "packed[p] = a;",
     "race: writes number 0"},
    {"probe_scan", "if (is_beyond) atomicOr(flag, 1u)", "*flag = 1",
     "race: writes number 0 of the counters"},
    {"probe_negate", "    *flag = 0;\n", "", "probe_scan leaves counter 0 at 1"},
};

static char *replaced(const char *source, const char *text, const char *instead)
{
    const char *at = strstr(source, text);
    char *result = malloc(strlen(source) + strlen(instead) + 1);
    if (at == NULL || result == NULL) {
        fail_msg("\"%s\" is not in the kernel", text);
        abort(); /* for static analysers, which do not know that fail_msg() does not return */
    }
    memcpy(result, source, (size_t)(at - source));
    strcpy(result + (at - source), instead);
    strcat(result, at + strlen(text));
    return result;
}

/* Runs the case with kernel number i of `broken`; `message` is the error message. */
static void run_broken(tgl_device *dev, const probe_case *c, size_t i, char *message, size_t size)
{
    const tgl_problem problem = probe_problem(c);
    tgl_shape shape;
    tgl_launch_list list;
    probe_operands x;
    tgl_plan *plan;
    char *sources[8] = {NULL}; /* one for each kernel of the list */
    assert_status(list_of_probe(dev, &problem, &shape, &list), TGL_OK);
    assert_in_range(list.kernel_count, 1, COUNT_OF(sources));
    for (int j = 0; j < list.kernel_count; j++) {
        if (strcmp(list.kernels[j]->name, broken[i].kernel) != 0) continue;
        sources[j] = replaced(list.kernels[j]->source, broken[i].text, broken[i].instead);
        list.kernels[j]->source = sources[j];
    }
    assert_status(tgl_plan_of_list(dev, &shape, &list, &plan), TGL_OK);
    probe_operands_make(dev, c, 0, &x);
    const tgl_status status = probe_run(plan, c, &x, NULL);
    if (status == TGL_OK)
        snprintf(message, size, "%s", memcmp(x.C, x.expected, x.size_C) == 0 ? "right" : "wrong");
    else
        tgl_last_error(message, size);
    probe_operands_free(dev, &x);
    tgl_plan_destroy(plan);
    for (size_t j = 0; j < COUNT_OF(sources); j++)
        free(sources[j]);
}

static void test_broken(void **state)
{
    const probe_case c = {.m = 40, .n = 40, .k = 200, .lda = 201, .alpha = 1, .is_beyond = true};
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        char message[2048];
        const char *says = broken[i].says != NULL ? broken[i].says : "right";
        run_broken(*state, &c, i, message, sizeof message);
        if (strstr(message, says) == NULL)
            fail_msg("\"%s\" without \"%s\": \"%s\"", broken[i].kernel, broken[i].text, message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results), cmocka_unit_test(test_alternatives),
        cmocka_unit_test(test_flag),    cmocka_unit_test(test_explain),
        cmocka_unit_test(test_seeds),   cmocka_unit_test(test_broken),
    };
    return cmocka_run_group_tests(tests, setup_sim, teardown_device);
}
