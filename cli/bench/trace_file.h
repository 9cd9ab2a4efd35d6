/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the products in what TEGULA_CUBLAS_TRACE has printed (docs/cublas.md describes its lines).
 */
#ifndef CLI_TRACE_FILE_H
#define CLI_TRACE_FILE_H

#include "suite.h"

/* Adds to the suite each different product in a trace, with its epilogue: products that Tegula has
 * computed, and products that it has left to cuBLAS because it expected no gain. All other lines,
 * such as output of the traced program, are skipped. False: failed, and the error has been
 * printed. */
bool trace_read(suite *s, const char *path);

#endif
