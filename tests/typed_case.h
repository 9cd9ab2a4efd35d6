/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one row-major product of F32, F64, F16 or BF16. The operands are in buffers beside
 * inaccessible pages. A reference is computed in long double from the same stored elements. For
 * tests of a kernel in several types; gemm_case.h tests more.
 */
#ifndef TGL_TYPED_CASE_H
#define TGL_TYPED_CASE_H

#include "gemm_case.h"

/* typed_load(): element number i. typed_store(): stores x as element number i, rounded to nearest,
 * ties to even. For F32, F64, F16 and BF16. */
double typed_load(tgl_type type, const void *memory, int64_t i);
void typed_store(tgl_type type, void *memory, int64_t i, double x);

const char *typed_name(tgl_type type);

typedef struct typed_case {
    tgl_problem problem; /* row-major; leading dimensions are not 0 */
    double alpha, beta;
    bool pointers;         /* the run gets arrays of pointers to the matrices of the batch */
    tgl_epilogue epilogue; /* size 0: none; must have no expression */
    const char *kernel;    /* a kernel string */
    bool is_finite;        /* false: some elements are NaN or Inf */
    bool at_end; /* true: each buffer ends at an inaccessible page, so that its alignment depends on
                    its size; false: it begins after one */
    uint64_t seed;
} typed_case;

/* Runs the case on `dev`. fault: the fault and the case; empty: the result is right, or the status
 * is TGL_UNSUPPORTED. */
tgl_status typed_case_run(tgl_device *dev, const typed_case *c, char *fault, size_t size);

#endif
