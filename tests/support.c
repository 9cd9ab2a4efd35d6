/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests share.
 */
#include "support.h"

static bool is_tier(const char *name)
{
    static const char *const tiers[] = {"portable", "avx2", "avx512"};
    for (size_t i = 0; i < COUNT_OF(tiers); i++)
        if (strcmp(name, tiers[i]) == 0) return true;
    return false;
}

tgl_device *open_cpu(int threads)
{
    char message[256] = "";
    const tgl_device_options options = {.size = sizeof options,
                                        .threads = threads,
                                        .message = message,
                                        .message_size = sizeof message};
    tgl_device *dev;
    tgl_status status = tgl_device_open("cpu", &options, &dev);
    if (status == TGL_OK) return dev;
    const char *tier = getenv("TEGULA_CPU");
    if (tier != NULL && is_tier(tier) && strcmp(tier, "portable") != 0) {
        printf("skipped: %s\n", message);
        exit(77);
    }
    fail_msg("%s: %s", tgl_status_name(status), message);
    return NULL;
}

int setup_cpu(void **state)
{
    *state = open_cpu(2);
    return 0;
}

int teardown_device(void **state)
{
    tgl_device_close(*state);
    return 0;
}
