/* SPDX-License-Identifier: Apache-2.0
 *
 * Options and references of epilogues.
 */
#include "epilogue_options.h"

#include <math.h>
#include <string.h>

/* ---- Options --------------------------------------------------------------------------------- */

/* The index of a text among names; -1: reported. */
static int find(const char *option, const char *text, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(text, names[i]) == 0) return i;
    cli_misuse("%s: there is no \"%s\"", option, text);
    return -1;
}

bool epilogue_take_option(int option, tgl_epilogue *e)
{
    static const char *const biases[] = {"none", "row", "column"};
    static const char *const activations[] = {"none", "relu", "gelu", "silu"};
    int found = 0;
    switch (option) {
    case OPT_BIAS:
        found = find("--bias", optarg, biases, 3);
        if (found >= 0) e->bias = (tgl_bias)found;
        break;
    case OPT_ACTIVATION:
        found = find("--activation", optarg, activations, 4);
        if (found >= 0) e->activation = (tgl_activation)found;
        break;
    case OPT_RESIDUAL:
        e->residual = 1;
        break;
    default:
        e->expression = optarg;
        break;
    }
    return found >= 0;
}

bool epilogue_is_none(const tgl_epilogue *e)
{
    return e->bias == TGL_BIAS_NONE && e->activation == TGL_ACTIVATION_NONE && !e->residual &&
           e->expression == NULL;
}

const tgl_epilogue *epilogue_for(tgl_epilogue *e, const tgl_problem *p)
{
    e->size = sizeof *e;
    e->stride_residual = p->m * p->n;
    return epilogue_is_none(e) ? NULL : e;
}

/* ---- References ------------------------------------------------------------------------------ */

long double epilogue_activate(tgl_activation activation, long double x)
{
    switch (activation) {
    case TGL_ACTIVATION_RELU:
        return x < 0 ? 0 : x;
    case TGL_ACTIVATION_GELU:
        return 0.5L * x * (1 + erfl(x * 0.707106781186547524401L));
    case TGL_ACTIVATION_SILU:
        return x / (1 + expl(-x));
    case TGL_ACTIVATION_NONE:
        break;
    }
    return x;
}

/* Activations have slopes below 2, and rounding errors of the size of their argument and value. */
void epilogue_finish(const tgl_epilogue *epilogue, long double bias, long double residual,
                     reference_element *reference)
{
    reference_element *x = reference;
    x->value = epilogue_activate(epilogue->activation, x->value + bias);
    x->magnitude = 2 * (x->magnitude + fabsl(bias)) + fabsl(x->value) + fabsl(residual);
    x->value += residual;
}
