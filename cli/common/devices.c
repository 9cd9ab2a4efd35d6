/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens devices and reads their properties; makes problems and plans.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Devices --------------------------------------------------------------------------------- */

/* Whether the text has the form of a device name: auto, cpu, sim, cuda or cuda:N. */
static bool is_device_name(const char *name)
{
    const char *const fixed[] = {"auto", "cpu", "sim", "cuda"};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, fixed[i]) == 0) return true;
    return strncmp(name, "cuda:", 5) == 0 && name[5] != '\0' &&
           name[5 + strspn(name + 5, "0123456789")] == '\0';
}

tgl_device *cli_open_device(const char *name, int threads, int *code)
{
    const tgl_device_options options = {.size = sizeof options, .threads = threads};
    tgl_device *dev;
    if (!is_device_name(name)) {
        *code = cli_misuse("--device: there is no device \"%s\"; the devices are auto, cpu, cuda, "
                           "cuda:0, cuda:1 and so on, and sim",
                           name);
        return NULL;
    }
    tgl_status status = tgl_device_open(name, &options, &dev);
    if (status == TGL_OK) {
        if (threads > 0) cli_warn_of_threads(dev);
        return dev;
    }
    char detail[1024] = "";
    tgl_last_error(detail, sizeof detail);
    *code = cli_fail("cannot open the device \"%s\": %s (%s)", name,
                     detail[0] != '\0' ? detail : tgl_status_text(status), tgl_status_name(status));
    return NULL;
}

void cli_warn_of_threads(const tgl_device *dev)
{
    const double threads = cli_device_number(dev, TGL_NUMBER_THREADS);
    const double processors = cli_device_number(dev, TGL_NUMBER_PROCESSORS);
    if (strcmp(tgl_device_name(dev), "cpu") == 0 && threads > processors)
        fprintf(stderr, "note: %.0f threads on %.0f processors, which they must share\n", threads,
                processors);
}

bool cli_device_is_host(const tgl_device *dev)
{
    const char *name = tgl_device_name(dev);
    return strcmp(name, "cpu") == 0 || strcmp(name, "sim") == 0;
}

const char *cli_device_property(const tgl_device *dev, const char *wanted)
{
    const char *key, *value;
    for (int i = 0; tgl_device_property(dev, i, &key, &value) == TGL_OK; i++)
        if (strcmp(key, wanted) == 0) return value;
    return "";
}

double cli_device_number(const tgl_device *dev, tgl_number number)
{
    double value = 0;
    return tgl_device_number(dev, number, &value) == TGL_OK ? value : 0;
}

/* ---- Problems and plans ---------------------------------------------------------------------- */

tgl_problem cli_problem(tgl_type type, int64_t m, int64_t n, int64_t k)
{
    tgl_problem problem;
    tgl_problem_init(&problem, sizeof problem, type, m, n, k);
    return problem;
}

tgl_status cli_plan(tgl_device *dev, const tgl_problem *p, const char *kernel, tgl_plan **plan)
{
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    return tgl_plan_create(dev, p, &options, plan);
}

tgl_status cli_multiply(tgl_device *dev, const tgl_problem *p, const char *kernel, double alpha,
                        const void *A, const void *B, double beta, void *C)
{
    tgl_plan *plan;
    CLI_TRY(cli_plan(dev, p, kernel, &plan));
    tgl_status status = tgl_plan_run(plan, alpha, A, B, beta, C, NULL);
    if (status == TGL_OK) status = tgl_device_sync(dev);
    tgl_plan_destroy(plan);
    return status;
}

char *cli_explain(const tgl_plan *plan)
{
    const size_t size = tgl_plan_explain(plan, NULL, 0) + 1;
    char *text = malloc(size);
    if (text != NULL) tgl_plan_explain(plan, text, size);
    return text;
}
