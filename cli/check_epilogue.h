/* SPDX-License-Identifier: Apache-2.0
 *
 * The epilogue of a random case of `tegula check`: which, what it reads, and what it makes of the
 * reference.
 */
#ifndef CLI_CHECK_EPILOGUE_H
#define CLI_CHECK_EPILOGUE_H

#include "check_case.h"

/* Draws c->epilogue and how bias and residual lie; the problem is drawn. */
void check_epilogue_draw(random_state *r, check_case *c);

/* Images of the operands, for a case with an epilogue. false: no memory. */
bool check_epilogue_fill(random_state *r, check_case *c);

/* What the epilogue makes of reference[j] = alpha*A*B + beta*C, for row i of problem b. */
void check_epilogue_finish(const check_case *c, int64_t b, int64_t i, reference_element *reference);

/* Such as " bias=row activation=gelu residual"; empty: none. */
void check_epilogue_describe(const check_case *c, char *text, size_t size);

#endif
