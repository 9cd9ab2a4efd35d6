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
    double values[SVG_POINTS_MAX]; /* one for each category; 0: no value */
} svg_series;

typedef struct svg_chart {
    const char *title, *unit;
    const char *categories[SVG_POINTS_MAX]; /* labels under the axis, from the left */
    int category_count;
    int joined_count; /* number of series drawn as lines, which are the first; others are points */
    svg_series series[SVG_SERIES_MAX];
    int series_count;
    double ceiling; /* the height of a dashed line; 0: no line */
    const char *ceiling_name;
} svg_chart;

void svg_write(FILE *out, const svg_chart *chart);

#endif
