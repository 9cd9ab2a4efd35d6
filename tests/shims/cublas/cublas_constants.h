/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TGL_CUBLAS_CONSTANTS_H
#define TGL_CUBLAS_CONSTANTS_H

typedef struct cublas_constant {
    const char *name; /* NULL: the end */
    long long value;
} cublas_constant;

extern const cublas_constant own_constants[], nvidia_constants[];

#endif
