/* SPDX-License-Identifier: Apache-2.0
 *
 * Matches names of kernels and groups of kernels.
 */
#include "kernel_names.h"
#include "cli.h"

#include <stdio.h>
#include <string.h>

static size_t name_length(const char *kernel)
{
    return strcspn(kernel, ":");
}

static bool is_name_of(const char *kernel, const char *name)
{
    const size_t length = name_length(kernel);
    return strlen(name) == length && strncmp(kernel, name, length) == 0;
}

bool kernel_is_rung(const char *name)
{
    return strncmp(name, "ladder/", 7) == 0;
}

bool kernel_is_one(const tgl_device *dev, const char *asked)
{
    const char *name;
    for (int i = 0; (name = tgl_kernel_name(dev, i)) != NULL; i++)
        if (is_name_of(asked, name)) return true;
    return false;
}

bool kernel_is_asked(const tgl_device *dev, const char *asked, const char *name)
{
    if (kernel_is_one(dev, asked)) return is_name_of(asked, name);
    if (strcmp(asked, "all") == 0) return true;
    if (strcmp(asked, "gemm") == 0) return !kernel_is_rung(name);
    const size_t length = strlen(asked);
    return strncmp(name, asked, length) == 0 && (name[length] == '/' || name[length] == '_');
}

bool kernel_is_auto_asked(const tgl_device *dev, const char *asked)
{
    return !kernel_is_one(dev, asked);
}

bool kernel_has_option(const char *kernel, const char *options)
{
    char string[160];
    const char *chip = tgl_chip_name(0);
    const tgl_problem problem = cli_problem(TGL_F32, 256, 256, 256);
    const tgl_plan_options plan = {.size = sizeof plan, .kernel = string};
    if (chip == NULL) return false;
    snprintf(string, sizeof string, "%.*s:%s", (int)name_length(kernel), kernel, options);
    /* TGL_BAD_ARGUMENT and TGL_UNKNOWN_KERNEL mean that the kernel lacks the options. Any other
     * failure means that it has them, but does not support this problem. */
    const tgl_status status = tgl_chip_explain(chip, &problem, &plan, NULL, 0, NULL);
    return status != TGL_BAD_ARGUMENT && status != TGL_UNKNOWN_KERNEL;
}
