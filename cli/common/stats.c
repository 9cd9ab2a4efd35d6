/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantiles and geometric means.
 */
#include "stats.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double stats_quantile(double *samples, int count, double q)
{
    qsort(samples, (size_t)count, sizeof *samples, ascending);
    const double at = q * (count - 1);
    const int below = (int)at;
    if (below + 1 >= count) return samples[count - 1];
    return samples[below] + (at - below) * (samples[below + 1] - samples[below]);
}

void geometric_mean_add(geometric_mean *g, double value)
{
    g->log_sum += log(value);
    g->count++;
}

double geometric_mean_value(const geometric_mean *g)
{
    return g->count > 0 ? exp(g->log_sum / g->count) : 0;
}
