/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the products in what TEGULA_CUBLAS_TRACE has printed (docs/cublas.md describes its lines).
 */
#ifndef CLI_TRACE_FILE_H
#define CLI_TRACE_FILE_H

#include "suite.h"

/* Adds each product of a trace once, with its epilogue: those that Tegula computed, or would
 * compute if it were expected to be faster. Other lines, of the program for example, are skipped.
 * False: reported. */
bool trace_read(suite *s, const char *path);

#endif
