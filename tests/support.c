/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that the tests share.
 */
#include "support.h"

#include <dirent.h>

static bool is_tier(const char *name)
{
    static const char *const tiers[] = {"portable",    "avx2",        "avx512",
                                        "avx512_vnni", "avx512_bf16", "amx",
                                        "neon",        "neon_dot",    "neon_mm"};
    for (size_t i = 0; i < COUNT_OF(tiers); i++)
        if (strcmp(name, tiers[i]) == 0) return true;
    return false;
}

int threads_of_process(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    for (const struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.';
    if (tasks != NULL) closedir(tasks);
    return count;
}

tgl_device *open_cpu(int threads)
{
    const tgl_device_options options = {.size = sizeof options, .threads = threads};
    tgl_device *dev;
    tgl_status status = tgl_device_open("cpu", &options, &dev);
    if (status == TGL_OK) return dev;
    char message[256];
    tgl_last_error(message, sizeof message);
    const char *tier = getenv("TEGULA_CPU");
    if (tier != NULL && is_tier(tier) && strcmp(tier, "portable") != 0) {
        printf("skipped: %s\n", message);
        exit(77);
    }
    fail_msg("%s: %s", tgl_status_name(status), message);
    return NULL;
}

void forget_error(void)
{
    assert_status(tgl_problem_check(NULL), TGL_BAD_ARGUMENT);
    assert_sentence("problem is NULL");
}

void assert_new_sentence(void)
{
    char text[400];
    assert_true(tgl_last_error(text, sizeof text) > 0);
    assert_string_not_equal(text, "problem is NULL");
}

int setup_cpu(void **state)
{
    *state = open_cpu(2);
    return 0;
}

bool plan_explains(tgl_device *dev, const tgl_problem *problem, const char *word)
{
    tgl_plan *plan;
    char text[2000];
    assert_status(tgl_plan_create(dev, problem, NULL, &plan), TGL_OK);
    tgl_plan_explain(plan, text, sizeof text);
    tgl_plan_destroy(plan);
    return strstr(text, word) != NULL;
}

int setup_sim(void **state)
{
    tgl_device *dev;
    if (tgl_device_open("sim", NULL, &dev) != TGL_OK) return -1;
    *state = dev;
    return 0;
}

int setup_test_device(void **state)
{
    const char *name = getenv("TEGULA_TEST_DEVICE");
    tgl_device *dev;
    if (tgl_device_open(name != NULL ? name : "sim", NULL, &dev) != TGL_OK) return -1;
    *state = dev;
    return 0;
}

static int part = 0, parts = 1;

void sweep_arguments(int argc, char **argv)
{
    if (argc > 1 && (sscanf(argv[1], "%d/%d", &part, &parts) != 2 || parts < 1)) exit(2);
    if (argc > 2) cmocka_set_test_filter(argv[2]);
}

bool sweep_has(int number)
{
    return number % parts == part;
}

int teardown_device(void **state)
{
    tgl_device_close(*state);
    return 0;
}

bool check_case(tgl_device *dev, const gemm_case *c)
{
    gemm_outcome outcome;
    gemm_case_run(dev, c, false, &outcome);
    if (outcome.fault[0] != '\0') fail_msg("%s", outcome.fault);
    if (outcome.status == TGL_UNSUPPORTED && c->kernel == NULL) {
        char sentence[256];
        tgl_last_error(sentence, sizeof sentence);
        fail_msg("%s", sentence);
    }
    return outcome.status == TGL_OK;
}

bool kernel_choice(const tgl_device *dev, int i, const char **kernel)
{
    *kernel = i == 0 ? NULL : tgl_kernel_name(dev, i - 1);
    return i == 0 || *kernel != NULL;
}

void *constant_floats(tgl_device *dev, size_t count, float value)
{
    float *host = malloc(count * sizeof *host);
    void *memory;
    assert_non_null(host);
    for (size_t i = 0; i < count; i++)
        host[i] = value;
    assert_status(tgl_alloc(dev, count * sizeof *host, &memory), TGL_OK);
    assert_status(tgl_upload(dev, memory, host, count * sizeof *host, NULL), TGL_OK);
    free(host);
    return memory;
}
