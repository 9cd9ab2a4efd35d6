/* SPDX-License-Identifier: Apache-2.0
 *
 * The buffers of a case of `tegula check` in device memory.
 */
#ifndef CLI_CHECK_MEMORY_H
#define CLI_CHECK_MEMORY_H

#include "check_case.h"

enum { AT_A, AT_B, AT_C, AT_D, AT_BIAS, AT_RESIDUAL, BUFFERS, ARRAYS = AT_D + 1 };

typedef struct case_memory {
    void *at[BUFFERS];           /* buffers in device memory; NULL: the case has no such operand */
    void *arrays[ARRAYS];        /* arrays of pointers to the matrices of A, B, C and D; NULL:
                                    none */
    void *scalars;               /* alpha and beta in device memory; NULL: they are in host
                                    memory */
    void *groups;                /* tgl_operands.groups; NULL: the product is not grouped */
    unsigned char *back, *first; /* host memory: back: contents of a buffer after the latest run;
                                    first: the result of the first run, to which the results of
                                    later runs must be equal */
} case_memory;

/* Allocates and fills the device memory of a case. *memory must be all zeros. The caller must
 * release it even after a failure. */
tgl_status case_memory_make(tgl_device *dev, const check_case *c, case_memory *memory);
void case_memory_release(tgl_device *dev, case_memory *memory);

/* The arguments of the product: operands and scalars of the case, without a workspace. */
tgl_operands case_operands(const check_case *c, const case_memory *memory);

/* The address in device memory of the buffer that the product writes. */
void *case_result_at(const check_case *c, const case_memory *memory);

/* Sets *verdict if the product has changed one of its inputs. */
tgl_status case_compare_inputs(tgl_device *dev, const check_case *c, const case_memory *memory,
                               check_verdict *verdict);

#endif
