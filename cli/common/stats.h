/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantiles and geometric means.
 */
#ifndef CLI_STATS_H
#define CLI_STATS_H

/* The q-quantile of the samples by linear interpolation: the value below which a fraction q of them
 * is; q = 0.5 gives the median. Sorts the samples. count must be positive. */
double stats_quantile(double *samples, int count, double q);

/* A geometric mean to which values are added one at a time. */
typedef struct geometric_mean {
    double log_sum;
    int count;
} geometric_mean;

void geometric_mean_add(geometric_mean *g, double value);

/* Returns 0 if no value was added. */
double geometric_mean_value(const geometric_mean *g);

#endif
