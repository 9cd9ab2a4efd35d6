/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula explain --ranks`.
 */
#include "explain_ranks.h"

#include "cli.h"
#include "dist_layouts.h"

#include <stdio.h>

int explain_ranks(const tgl_problem *problem, const char *layouts_text, int ranks,
                  const tgl_dist_machine *machine, const tgl_epilogue *epilogue)
{
    const tgl_dist_options options = {.size = sizeof options, .epilogue = epilogue};
    dist_layouts layouts;
    char text[2048];
    size_t length;
    if (!dist_layouts_parse(layouts_text, problem, ranks, &layouts)) return EXIT_MISUSE;
    const tgl_status status = tgl_dist_explain(problem, &layouts.a, &layouts.b, &layouts.c, ranks,
                                               machine, &options, NULL, text, sizeof text, &length);
    if (status == TGL_OK) {
        fputs(text, stdout);
        return EXIT_DONE;
    }
    tgl_dist_last_error(text, sizeof text);
    return cli_misuse("%s", text);
}
