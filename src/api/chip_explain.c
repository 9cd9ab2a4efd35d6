/* SPDX-License-Identifier: Apache-2.0
 *
 * Explains the planner's choice for a chip that need not be present.
 */
#include "api/default_compute.h"
#include "base/error.h"
#include "plan/measured_choice.h"
#include "plan/plan_text.h"
#include "problem/shape.h"
#include "problem/struct_size.h"

#include <stdlib.h>

/* The smallest accepted size of tgl_plan_options: the size in its first version. */
static const size_t least_size = TGL_SIZE_UP_TO(tgl_plan_options, workspace_limit);

const char *tgl_chip_name(int index)
{
    const tgl_chip *chip = index < 0 ? NULL : tgl_chip_at(index);
    return chip != NULL ? chip->name : NULL;
}

static tgl_status explain_shape(tgl_text *out, const tgl_chip *chip, const tgl_shape *shape,
                                const tgl_plan_options *options)
{
    tgl_request request;
    tgl_candidate choice;
    TGL_TRY(tgl_request_make(options->kernel, options->workspace_limit, &request));
    if (tgl_shape_is_empty(shape)) {
        tgl_text_add(out, "nothing to do: C has no elements\n");
        return TGL_OK;
    }
    TGL_TRY(tgl_planner_choose(chip, shape, &request, &choice));
    tgl_text_problem(out, shape);
    tgl_text_choice(out, chip, shape, &choice);
    return TGL_OK;
}

static tgl_status explain(tgl_text *out, const char *name, const tgl_problem *problem,
                          const tgl_plan_options *given)
{
    static const tgl_plan_options no_options = {.size = sizeof no_options};
    tgl_plan_options copy;
    const void *options = &no_options;
    if (given != NULL)
        TGL_TRY(tgl_struct_read(given, sizeof copy, least_size, "options", &copy, &options));
    const tgl_chip *chip = name != NULL ? tgl_chip_find(name) : NULL;
    if (chip == NULL)
        return tgl_fail(TGL_NO_DEVICE, "no chip of the name \"%s\" is known",
                        name != NULL ? name : "");
    tgl_shape shape;
    char *source;
    tgl_compute asked;
    TGL_TRY(tgl_compute_of_environment(&asked));
    TGL_TRY(tgl_shape_make(problem, true, &shape));
    tgl_shape_set_compute(&shape, tgl_compute_for(asked, chip));
    TGL_TRY(tgl_epilogue_make(((const tgl_plan_options *)options)->epilogue, &shape, &source));
    const tgl_status status = explain_shape(out, chip, &shape, options);
    free(source);
    return status;
}

tgl_status tgl_chip_explain(const char *chip, const tgl_problem *problem,
                            const tgl_plan_options *options, char *text, size_t size,
                            size_t *length)
{
    tgl_text out = {text, text != NULL ? size : 0, 0};
    if (out.size > 0) text[0] = '\0';
    const tgl_status status = explain(&out, chip, problem, options);
    if (length != NULL) *length = out.length;
    return status;
}
