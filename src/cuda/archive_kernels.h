/* SPDX-License-Identifier: Apache-2.0
 *
 * Which kernels an archive has. The kernels that the planner may choose are a finite set, but their
 * macros depend on sizes, alignments and clusters, so that the set has some thousands of kernels,
 * of which a third serves nine tenths of all products. The set is therefore taken from plans: those
 * of sample products, the same ones every time. The more of them a kernel serves, the earlier it
 * comes.
 */
#ifndef TGL_ARCHIVE_KERNELS_H
#define TGL_ARCHIVE_KERNELS_H

#include "plan/chips.h"
#include "plan/launch_list.h"

typedef struct tgl_sampled {
    tgl_kernel *kernel;
    int products; /* sample products whose plans launch it first */
} tgl_sampled;

typedef struct tgl_samples {
    tgl_sampled *kernels; /* those that serve most products first */
    int count;
    int products; /* that were planned */
} tgl_samples;

/* Plans `products` sample products of each type (type: 0 for all) and compute mode on a chip, and
 * adds their kernels. The samples are empty or from earlier calls. seed: 0 for the samples of
 * archives, other numbers for other products. TGL_NO_MEMORY. */
tgl_status tgl_samples_add(tgl_samples *samples, const tgl_chip *chip, tgl_type type, int products,
                           unsigned seed);
void tgl_samples_free(tgl_samples *samples);

/* Orders the kernels. */
void tgl_samples_sort(tgl_samples *samples);

enum { TGL_SAMPLE_PRODUCTS = 6000 }; /* of a type, for an archive */

#endif
