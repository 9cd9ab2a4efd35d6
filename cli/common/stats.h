/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantiles and geometric means.
 */
#ifndef CLI_STATS_H
#define CLI_STATS_H

/* The value below which the fraction `q` of the samples lies, by linear interpolation; q = 0.5 is
 * the median. Sorts the samples. count > 0. */
double stats_quantile(double *samples, int count, double q);

/* A geometric mean, to which values are added one by one. */
typedef struct geometric_mean {
    double log_sum;
    int count;
} geometric_mean;

void geometric_mean_add(geometric_mean *g, double value);

/* 0 if nothing was added. */
double geometric_mean_value(const geometric_mean *g);

#endif
