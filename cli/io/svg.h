/* SPDX-License-Identifier: Apache-2.0
 *
 * A chart as an SVG file: a line for each series over categories, with a legend.
 */
#ifndef CLI_SVG_H
#define CLI_SVG_H

#include <stdio.h>

enum { SVG_POINTS_MAX = 32, SVG_SERIES_MAX = 16 };

typedef struct svg_series {
    char name[64];
    double values[SVG_POINTS_MAX]; /* one for each category; 0: none */
} svg_series;

typedef struct svg_chart {
    const char *title, *unit;
    const char *categories[SVG_POINTS_MAX]; /* under the axis, from the left */
    int category_count;
    int joined_count; /* the first ones, which lines join; the others are points only */
    svg_series series[SVG_SERIES_MAX];
    int series_count;
    double ceiling; /* a dashed line across; 0: none */
    const char *ceiling_name;
} svg_chart;

void svg_write(FILE *out, const svg_chart *chart);

#endif
