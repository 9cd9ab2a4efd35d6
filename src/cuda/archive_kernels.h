/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the kernels of an archive (kernel_archive.h). The planner may choose among some thousands
 * of kernels, because their macros depend on sizes, alignments and clusters. A third of them serves
 * 90 % of all products. The kernels of an archive are therefore taken from the plans of sample
 * products, which are always the same ones. Kernels that serve more sample products come first.
 */
#ifndef TGL_ARCHIVE_KERNELS_H
#define TGL_ARCHIVE_KERNELS_H

#include "plan/chips.h"
#include "plan/launch_list.h"

typedef struct tgl_sampled {
    tgl_kernel *kernel;
    int products; /* number of launches of the kernel in the plans of all sample products */
} tgl_sampled;

typedef struct tgl_samples {
    tgl_sampled *kernels; /* ordered by `products`, the largest first */
    int count;
    int products; /* number of sample products that were planned */
} tgl_samples;

/* Plans sample products on a chip, and adds the kernels of their plans to `samples`. type: the type
 * of A; 0: all types. products: the number of products to plan for each common kind (`kinds` in
 * archive_kernels.c); fewer are planned for a rare kind. `samples` must be empty or come
 * from earlier calls. seed: 0 for the samples of archives, other numbers for other products. Error:
 * TGL_NO_MEMORY. */
tgl_status tgl_samples_add(tgl_samples *samples, const tgl_chip *chip, tgl_type type, int products,
                           unsigned seed);
void tgl_samples_free(tgl_samples *samples);

/* Lists the types of A that sample products have, as "bf16, f16". */
void tgl_samples_types(tgl_text *out);

/* Sorts the kernels by `products`, the largest first. */
void tgl_samples_sort(tgl_samples *samples);

/* The argument `products` of tgl_samples_add() for an archive. */
enum { TGL_SAMPLE_PRODUCTS = 7500 };

#endif
