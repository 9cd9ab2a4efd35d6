/* SPDX-License-Identifier: Apache-2.0
 *
 * With TEGULA_CUBLAS_TRACE=1, libtegula_cublas.so, the drop-in for cuBLAS, prints a trace line for
 * each product. These are substrings of that line, for which `tegula tune --trace` searches. The
 * form of the lines is stable; docs/cublas.md describes it.
 */
#ifndef TGL_TRACE_LINE_H
#define TGL_TRACE_LINE_H

static const char trace_line_start[] = "tegula_cublas: ";
static const char trace_line_tegula[] = ": tegula, ";
static const char trace_line_faster[] = "cuBLAS is expected to be faster";
static const char trace_line_left[] = ": cuBLAS, cuBLAS is expected to be faster";

/* GELU as cuBLASLt computes it, an approximation with tanh(), as an epilogue expression.
 * TGL_ACTIVATION_GELU is the exact function. */
#define TRACE_GELU_ARGUMENT "(acc + c + bias)"
static const char trace_line_gelu[] =
    "0.5f * " TRACE_GELU_ARGUMENT " * (1.0f + tanhf(0.79788456f * " TRACE_GELU_ARGUMENT
    " * (1.0f + 0.044715f * " TRACE_GELU_ARGUMENT " * " TRACE_GELU_ARGUMENT ")))";

#endif
