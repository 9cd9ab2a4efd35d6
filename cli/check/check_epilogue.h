/* SPDX-License-Identifier: Apache-2.0
 *
 * The epilogue of a random case of `tegula check`: its options, its operands and its reference.
 */
#ifndef CLI_CHECK_EPILOGUE_H
#define CLI_CHECK_EPILOGUE_H

#include "case_data.h"

/* Draws c->epilogue and the layout of bias and residual, for a problem that is drawn already. */
void check_epilogue_draw(random_state *r, check_case *c);

/* Fills bias and residual. false: no memory. */
bool check_epilogue_fill(random_state *r, check_case *c);

/* Applies the epilogue to reference[j] = alpha*A*B + beta*C, row i of problem b. */
void check_epilogue_finish(const check_case *c, int64_t b, int64_t i, reference_element *reference);

/* Describes the epilogue: " bias=row activation=gelu residual"; empty if there is none. */
void check_epilogue_describe(const check_case *c, char *text, size_t size);

#endif
