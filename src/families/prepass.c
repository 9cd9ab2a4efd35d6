/* SPDX-License-Identifier: Apache-2.0
 *
 * The launch of a pre-pass: see prepass.h.
 */
#include "families/prepass.h"

tgl_launch tgl_prepass_launch(const tgl_partition *of, const tgl_kernel *kernel, double blocks,
                              int threads)
{
    return (tgl_launch){
        .kernel = kernel,
        .conditions = {{.kind = TGL_IF_PRODUCT}},
        .condition_count = 1,
        .grid = {(unsigned)blocks, 1, 1},
        .cluster = {1, 1, 1},
        .threads = (unsigned)threads,
        .order = (of->chip->features & TGL_HAS_OVERLAP) != 0 ? TGL_WAITS : TGL_AFTER_ALL,
        .flag = -1,
        .repeats = 1,
        .count = (int)of->shape->batch,
        .last_count = (int)of->shape->batch,
    };
}
