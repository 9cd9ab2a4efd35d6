/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the products of a suite or trace. The library measures and remembers; a product that it
 * knows takes no time.
 */
#include "tune_plans.h"
#include "cli.h"
#include "problem_options.h"
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints the kernel of a plan and what was measured. False: no memory, reported. */
static bool print_plan(const tgl_problem *p, const tgl_plan *plan)
{
    static const char key[] = "\nmeasured    ";
    char *text = cli_explain(plan);
    if (text == NULL) return cli_fail_false("no memory for the explanation");
    const char *found = strstr(text, key);
    const char *measured = found != NULL ? found + strlen(key) : "not measured";
    printf("%s %s batch %" PRId64 ": %s, %.*s\n", problem_type_label(p).text,
           problem_shape_label(p).text, p->batch, tgl_plan_kernel(plan),
           (int)strcspn(measured, "\n"), measured);
    free(text);
    return true;
}

static tgl_status measure(tgl_device *dev, const suite *s, int i, double seconds)
{
    const tgl_epilogue *epilogue = s->epilogues != NULL ? &s->epilogues[i] : NULL;
    const tgl_plan_options options = {
        .size = sizeof options,
        .epilogue = epilogue != NULL && !epilogue_is_none(epilogue) ? epilogue : NULL,
        .effort = TGL_EFFORT_MEASURE,
        .measure_seconds = seconds};
    tgl_plan *plan;
    CLI_TRY(tgl_plan_create(dev, &s->problems[i], &options, &plan));
    const bool is_printed = print_plan(&s->problems[i], plan);
    tgl_plan_destroy(plan);
    return is_printed ? TGL_OK : TGL_NO_MEMORY;
}

/* Whether the library can remember what it measures. False: reported. */
static bool check_wisdom(const tgl_device *dev)
{
    const char *wisdom = cli_device_property(dev, "wisdom");
    if (wisdom[0] == '\0')
        return cli_fail_false("the plans of %s are not measured", tgl_device_name(dev));
    if (strncmp(wisdom, "off", 3) == 0 || strstr(wisdom, ", read-only)") != NULL)
        return cli_fail_false("the wisdom cannot be written: %s", wisdom);
    return true;
}

int tune_plans(tgl_device *dev, const suite *s, double minutes, double seconds)
{
    const double end = cli_clock() + 60 * minutes;
    int code = EXIT_DONE, left = 0;
    progress line;
    if (!check_wisdom(dev)) return EXIT_FAILED;
    progress_start(&line, s->count);
    for (int i = 0; i < s->count; i++) {
        if (cli_clock() > end) {
            left = s->count - i;
            break;
        }
        const shape_label what = problem_shape_label(&s->problems[i]);
        progress_update(&line, i, what.text);
        const tgl_status status = measure(dev, s, i, seconds);
        progress_clear(&line);
        if (status == TGL_OK) continue;
        code = cli_fail_at(what.text, status);
        if (status == TGL_DEVICE_LOST) break;
    }
    progress_clear(&line);
    if (left > 0)
        printf("time is up: %d shapes are left; the same command goes on with them\n", left);
    return code;
}
