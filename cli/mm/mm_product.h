/* SPDX-License-Identifier: Apache-2.0
 *
 * The product of `tegula mm`: what the options and the files' headers say, as a problem.
 */
#ifndef CLI_MM_PRODUCT_H
#define CLI_MM_PRODUCT_H

#include "array_file.h"
#include "problem_options.h"

typedef struct mm_options {
    problem_options common;
    const char *a, *b, *c0, *output; /* c0: NULL if there is none */
    double alpha, beta;
    bool has_beta;
} mm_options;

typedef struct mm_files {
    array_file a, b, c0; /* c0: all zeros if there is none */
} mm_files;

/* The product: its problem, and the shape of C as NumPy has it. */
typedef struct mm_product {
    tgl_problem problem;
    npy_header result;
} mm_product;

/* Whether the path is "-"; false for NULL. */
int mm_is_stdin(const char *path);

/* false: reported, and no file is open. */
bool mm_open_files(const mm_options *o, mm_files *files);
void mm_close_files(mm_files *files);

/* The product that the files and options describe, as numpy.matmul() computes it. false: they do
 * not fit, and this is reported. */
bool mm_make_product(const mm_options *o, const mm_files *files, mm_product *x);
size_t mm_result_bytes(const mm_product *x);

#endif
