/* SPDX-License-Identifier: Apache-2.0
 *
 * Tuned tables: what was measured to be fastest, by chip and shape. `tegula tune` writes them.
 */
#ifndef TGL_TUNED_H
#define TGL_TUNED_H

#include "plan/planner.h"

typedef struct tgl_tuned {
    const char *chip;   /* as in tgl_chip: "h200" */
    const char *type;   /* of A, B, C and D: "f32" */
    const char *layout; /* of A and B, row-major: "NT" is B transposed */
    int64_t m, n, k, batch;
    const char *kernel; /* a kernel string: "simt_128x256x8:splits=4,strips=0" */
} tgl_tuned;

/* index 0, 1, ... until NULL. */
const tgl_tuned *tgl_tuned_at(int index);

/* The measured shape that is nearest to this one, near enough to tell something of it; or NULL. */
const tgl_tuned *tgl_tuned_find(const char *chip, const tgl_shape *shape);

/* Whether the row was measured for just this shape. Rows are measured on tight matrices in place, a
 * batch strided, without an epilogue: of other products of the same sizes, those count that allow
 * the same copies and stores. */
bool tgl_tuned_is_for(const tgl_tuned *row, const tgl_shape *shape);

/* Whether what was best for the shape of `row` holds for this one, next to the best by prediction:
 * it can serve, and either it was measured for just this shape, or it is not predicted to be a good
 * deal slower, as where one more row costs one more wave. */
bool tgl_tuned_holds(const tgl_tuned *row, const tgl_shape *shape, const tgl_candidate *tuned,
                     const tgl_candidate *predicted);

#endif
