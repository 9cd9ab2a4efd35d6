/* SPDX-License-Identifier: Apache-2.0
 *
 * The epilogue of a random case of `tegula check`: its options, its operands and its reference.
 */
#ifndef CLI_CHECK_EPILOGUE_H
#define CLI_CHECK_EPILOGUE_H

#include "case_data.h"

/* Draws c->epilogue and the layouts of its bias and residual, and raises c->bound. c->problem and
 * c->bound must be set already. */
void check_epilogue_draw(random_state *r, check_case *c);

/* Fills the bias and the residual with random numbers. False: out of memory. */
bool check_epilogue_fill(random_state *r, check_case *c);

/* Applies the epilogue to the elements of row i of product b: reference[j] holds alpha*A*B + beta*C
 * on entry, and the result of the epilogue on return. */
void check_epilogue_finish(const check_case *c, int64_t b, int64_t i, reference_element *reference);

/* Describes the epilogue, as " bias=row gelu residual"; empty if there is none. */
void check_epilogue_describe(const check_case *c, char *text, size_t size);

#endif
