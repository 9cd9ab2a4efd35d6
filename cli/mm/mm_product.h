/* SPDX-License-Identifier: Apache-2.0
 *
 * The product of `tegula mm`: makes a problem from the options and the headers of the files.
 */
#ifndef CLI_MM_PRODUCT_H
#define CLI_MM_PRODUCT_H

#include "array_file.h"
#include "problem_options.h"

typedef struct mm_options {
    problem_options common;
    const char *a, *b, *c0, *output; /* paths of A, B, C0 and the result C := alpha*op(A)*op(B) +
                                        beta*C0; c0 is NULL if there is no C0 */
    double alpha, beta;
    bool has_beta;
} mm_options;

typedef struct mm_files {
    array_file a, b, c0; /* c0 is all zeros if there is no C0 */
} mm_files;

/* The problem, and the type, shape and order of its result as a NumPy array. */
typedef struct mm_product {
    tgl_problem problem;
    npy_header result;
} mm_product;

/* Returns 1 if the path is "-", which means standard input, else 0. path may be NULL. */
int mm_is_stdin(const char *path);

/* Opens the files. False: failed, the error has been printed, and no file is open. */
bool mm_open_files(const mm_options *o, mm_files *files);
void mm_close_files(mm_files *files);

/* mm_make_product(): makes the problem from the files and options, by the rules of numpy.matmul().
 * Returns false if the files do not fit together, after printing the error. mm_result_bytes(): the
 * size of the result in bytes. */
bool mm_make_product(const mm_options *o, const mm_files *files, mm_product *x);
size_t mm_result_bytes(const mm_product *x);

#endif
