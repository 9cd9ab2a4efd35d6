/* SPDX-License-Identifier: Apache-2.0
 *
 * The tuned table: the kernels that were measured to be fastest, by chip and shape. `tegula tune`
 * can write entries; tuned_h200.inc says how its rows were measured.
 */
#ifndef TGL_TUNED_H
#define TGL_TUNED_H

#include "plan/family.h"

typedef struct tgl_tuned {
    char chip[8];   /* name as in tgl_chip: "h200" */
    char type[5];   /* type of the product, as tuned_type() of tuned.c names it: "f32"; "tf32": F32
                       that may be rounded to TF32; "bf16": bf16 or f16 */
    char layout[3]; /* transposes of A and B: "NT" if only B is transposed */
    int m, n, k, batch;
    const char *kernel; /* a kernel string: "simt_128x256x8:splits=4,strips=0" */
} tgl_tuned;

/* Entry `index` of the table; NULL beyond the last one. */
const tgl_tuned *tgl_tuned_at(int index);

/* The entry with the most similar shape among those of this chip (for h100 those of h200) with the
 * same type, layout and widths of copies; NULL if none is similar enough. except: an entry to
 * ignore, or NULL. */
const tgl_tuned *tgl_tuned_find(const char *chip, const tgl_shape *shape, const tgl_tuned *except);

/* Whether the entry was measured on this chip for exactly this product. Entries are measured with
 * contiguous matrices, D = C, a strided batch and no epilogue. A product with padded matrices
 * matches, too, if it allows the same widths of copies and stores. */
bool tgl_tuned_is_for(const tgl_tuned *row, const char *chip, const tgl_shape *shape);

/* Whether to use the entry instead of the best predicted candidate. The entry's kernel must support
 * the problem. If the entry is only for a similar shape, its kernel must also not be predicted to
 * be much slower: one more row of tiles can cost one more wave. Entries of f32 were measured
 * without emulation kernels. */
bool tgl_tuned_holds(const tgl_tuned *row, const char *chip, const tgl_shape *shape,
                     const tgl_candidate *tuned, const tgl_candidate *predicted);

#endif
