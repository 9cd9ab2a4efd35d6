/* SPDX-License-Identifier: Apache-2.0
 *
 * The tuned table: the kernels that were measured to be fastest, by chip and shape. `tegula tune`
 * writes its entries.
 */
#ifndef TGL_TUNED_H
#define TGL_TUNED_H

#include "plan/family.h"

typedef struct tgl_tuned {
    char chip[8];   /* as in tgl_chip: "h200" */
    char type[5];   /* type of A, B, C and D: "f32"; "tf32": F32 that may be rounded to TF32;
                       "bf16": bf16 or f16 */
    char layout[3]; /* transposes of A and B: "NT" means that B is transposed */
    int m, n, k, batch;
    const char *kernel; /* a kernel string: "simt_128x256x8:splits=4,strips=0" */
} tgl_tuned;

/* The entries of the table: index 0, 1, ... until NULL. */
const tgl_tuned *tgl_tuned_at(int index);

/* The entry for this chip whose shape is most similar, without considering the entry `except`
 * (NULL: all are considered). NULL if no shape is similar enough. */
const tgl_tuned *tgl_tuned_find(const char *chip, const tgl_shape *shape, const tgl_tuned *except);

/* Whether the entry was measured on this chip for exactly this shape. Entries are measured with
 * contiguous matrices, D = C, a strided batch and no epilogue. Other products of the same sizes
 * match if they allow the same widths of copies and stores. */
bool tgl_tuned_is_for(const tgl_tuned *row, const char *chip, const tgl_shape *shape);

/* Whether the planner should use the entry instead of the best candidate by prediction: it supports
 * the problem, and it was measured for exactly this product or is not predicted to be much slower.
 * One more row of tiles, for example, can cost one more wave. Entries of f32 were measured in IEEE
 * arithmetic, without the kernels of an emulation. */
bool tgl_tuned_holds(const tgl_tuned *row, const char *chip, const tgl_shape *shape,
                     const tgl_candidate *tuned, const tgl_candidate *predicted);

#endif
