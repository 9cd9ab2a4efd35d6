/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the products in a trace, which is the output of a program that ran with libtegula_cublas.so
 * and TEGULA_CUBLAS_TRACE=1. docs/cublas.md describes its lines.
 */
#ifndef CLI_TRACE_FILE_H
#define CLI_TRACE_FILE_H

#include "suite.h"

/* Adds each product of a trace to the suite once, with its epilogue: products that Tegula has
 * computed, and products that it has left to cuBLAS because it expected no gain. Skipped are
 * products with arrays of pointers, a C other than D, or scales, and all other lines, such as
 * output of the traced program. False: failed, and the error has been printed. */
bool trace_read(suite *s, const char *path);

#endif
