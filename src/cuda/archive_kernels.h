/* SPDX-License-Identifier: Apache-2.0
 *
 * Which kernels an archive has. The planner may choose among some thousands of kernels, because
 * macros depend on sizes, alignments and clusters. A third of them serves 90 % of all products. The
 * kernels of an archive are therefore taken from the plans of sample products, which are always the
 * same ones. Kernels that serve more sample products come first.
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
    tgl_sampled *kernels; /* ordered by `products`, the largest first */
    int count;
    int products; /* that were planned */
} tgl_samples;

/* Plans `products` sample products for each type (type: 0 for all) and compute mode on a chip, and
 * adds their kernels. `samples` is empty or comes from earlier calls. seed: 0 for the samples of
 * archives, other numbers for other products. Error: TGL_NO_MEMORY. */
tgl_status tgl_samples_add(tgl_samples *samples, const tgl_chip *chip, tgl_type type, int products,
                           unsigned seed);
void tgl_samples_free(tgl_samples *samples);

/* Lists the types of A that sample products have, as "bf16, f16". */
void tgl_samples_types(tgl_text *out);

/* Sorts the kernels by `products`, the largest first. */
void tgl_samples_sort(tgl_samples *samples);

enum { TGL_SAMPLE_PRODUCTS = 6000 }; /* samples per type for an archive */

#endif
