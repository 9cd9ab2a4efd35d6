/* SPDX-License-Identifier: Apache-2.0
 *
 * A suite is a list of shapes that a benchmark runs. Its file has a line for each:
 * type,m,n,k,layout,batch
 *
 *     f32,1024,1024,1024,NT,1     # B transposed; '#' starts a comment
 *     tf32,1024,1024,1024,NN,1    # f32, multiplied as TF32
 *     f16-f32,1024,1024,64,NN,8   # A and B are f16, the result is f32
 *     i8,1024,1024,64,NN,1        # A and B are i8, the result is i32
 */
#ifndef CLI_SUITE_H
#define CLI_SUITE_H

#include "tegula/tegula.h"

#include <stdbool.h>

typedef struct suite {
    tgl_problem *problems;   /* row-major and tight, and the matrices of a batch are contiguous; but
                                those of a trace (trace_file.h) are column-major and have any
                                leading dimensions and strides */
    tgl_epilogue *epilogues; /* one for each problem; NULL: no problem has an epilogue */
    int count;
} suite;

/* Adds a shape. False: out of memory, and the error has been printed. */
bool suite_add(suite *s, const tgl_problem *problem);

/* suite_read() adds the shapes of a file whose A and B have type `type`; 0: all shapes.
 * suite_add_default() adds the built-in suite: squares of f32 and f64 or, if type is not 0, of that
 * type. False: failed, or the file has no such shape, and the error has been printed. */
bool suite_read(suite *s, const char *path, tgl_type type);
bool suite_add_default(suite *s, tgl_type type);

void suite_free(suite *s);

#endif
