/* SPDX-License-Identifier: Apache-2.0
 *
 * One product of any floating-point types, row-major, with everything around it: operands in
 * buffers that border on pages which must not be touched, and a reference in double (of F64 in long
 * double) that is computed from the very elements the device reads. For types beside F32 and F64;
 * gemm_case.h has more for those two.
 */
#ifndef TGL_TYPED_CASE_H
#define TGL_TYPED_CASE_H

#include "gemm_case.h"

/* Element number i: exact, and rounded to nearest even. F32, F64, F16 and BF16. */
double typed_load(tgl_type type, const void *memory, int64_t i);
void typed_store(tgl_type type, void *memory, int64_t i, double x);

const char *typed_name(tgl_type type);

typedef struct typed_case {
    tgl_problem problem; /* row-major; leading dimensions are not 0 */
    double alpha, beta;
    bool pointers;         /* the strided matrices of a batch are found by arrays of pointers */
    tgl_epilogue epilogue; /* size 0: none. Without an expression */
    const char *kernel;    /* a kernel string */
    bool is_finite;        /* false: NaN and Inf here and there */
    bool at_end; /* each buffer ends at a forbidden page, so that it is aligned as its size happens
                    to be; else it begins at one */
    uint64_t seed;
} typed_case;

/* Runs the case on `dev`. fault: what went wrong, with the case; empty if nothing did, also where
 * the status is TGL_UNSUPPORTED. */
tgl_status typed_case_run(tgl_device *dev, const typed_case *c, char *fault, size_t size);

#endif
