/* SPDX-License-Identifier: Apache-2.0
 *
 * Epilogues on the command line, and what they make of a reference.
 */
#ifndef CLI_EPILOGUE_OPTIONS_H
#define CLI_EPILOGUE_OPTIONS_H

#include "cli.h"
#include "reference.h"

/* Rows for the table of long options of a command whose own count from OPT_EPILOGUE_END. */
enum {
    OPT_BIAS = OPT_COMMAND,
    OPT_ACTIVATION,
    OPT_RESIDUAL,
    OPT_EXPRESSION,
    OPT_EPILOGUE_END,
};
#define CLI_OPTIONS_EPILOGUE                                                                       \
    {"bias", required_argument, NULL, OPT_BIAS},                                                   \
        {"activation", required_argument, NULL, OPT_ACTIVATION},                                   \
        {"residual", no_argument, NULL, OPT_RESIDUAL},                                             \
    {                                                                                              \
        "epilogue", required_argument, NULL, OPT_EXPRESSION                                        \
    }
#define CLI_HELP_EPILOGUE                                                                          \
    "  --bias row|column            what the kernel does besides: adds a bias,\n"                  \
    "  --activation relu|gelu|silu  applies a function,\n"                                         \
    "  --residual                   adds a matrix; or\n"                                           \
    "  --epilogue EXPR              evaluates C code over acc, c, bias, row, col\n"

/* One of these options' values; false: reported. */
bool epilogue_take_option(int option, tgl_epilogue *epilogue);

bool epilogue_is_none(const tgl_epilogue *epilogue);

/* NULL for an epilogue that does nothing. Strides of bias 0, of residual those of tight matrices.
 */
const tgl_epilogue *epilogue_for(tgl_epilogue *epilogue, const tgl_problem *problem);

/* The activation of x. */
long double epilogue_activate(tgl_activation activation, long double x);

/* reference: alpha*A*B + beta*C before, and after what comes then. An expression is not known:
 * epilogues that have one are not to be compared. */
void epilogue_finish(const tgl_epilogue *epilogue, long double bias, long double residual,
                     reference_element *reference);

/* Rounding errors that an epilogue may add to those of the product, in the units of the check. */
enum { EPILOGUE_ERRORS = 8 };

#endif
