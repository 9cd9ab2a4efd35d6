/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel and a launch of this kernel, for tests of launch lists.
 */
#ifndef SMALL_LAUNCH_H
#define SMALL_LAUNCH_H

#include "plan_shape.h"

static const tgl_kernel kernel = {.name = "a kernel",
                                  .file = "a_file.cu",
                                  .symbol = "a_symbol",
                                  .parameters = "struct arguments",
                                  .macros = "IGNORED=1"};

/* The arguments of the launches below. */
struct arguments {
    const void *A;
    void *scratch, *counters;
    float alpha, beta;
    double alpha_f64, beta_f64;
    int count, constant;
    _Alignas(64) unsigned char map[128];
};

/* A launch of the kernel. Members may be changed before it is added. */
static inline tgl_launch launch_for(const tgl_kernel *of)
{
    return (tgl_launch){.kernel = of,
                        .grid = {4, 2, 1},
                        .cluster = {1, 1, 1},
                        .threads = 32,
                        .flag = -1,
                        .part = {0, 0, 8, 8},
                        .repeats = 1,
                        .count = 1,
                        .last_count = 1};
}

static inline void add_launch(tgl_list_builder *builder, const tgl_launch *launch)
{
    const struct arguments arguments = {.constant = 7};
    tgl_list_launch(builder, launch, &arguments, sizeof arguments);
}

/* A launch list with one step of one launch. change: a function that modifies the launch before it
 * is added; NULL: the launch is not modified. */
static inline tgl_status build_list(void (*change)(tgl_launch *, tgl_list_builder *),
                                    tgl_launch_list *list)
{
    tgl_list_builder builder;
    tgl_list_begin(&builder, list);
    tgl_list_step(&builder, "tiles");
    tgl_launch launch = launch_for(tgl_list_kernel(&builder, &kernel));
    if (change != NULL) change(&launch, &builder);
    if (launch.kernel != NULL) add_launch(&builder, &launch);
    return tgl_list_end(&builder);
}

#endif
