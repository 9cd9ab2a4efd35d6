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
    const char *categories[SVG_POINTS_MAX]; /* labels below the axis, from left to right */
    int category_count;
    int joined_count; /* lines join the points of the first joined_count categories; the others are
                         single points */
    svg_series series[SVG_SERIES_MAX];
    int series_count;
    double ceiling; /* value at which a dashed line is drawn; 0: no line */
    const char *ceiling_name;
} svg_chart;

void svg_write(FILE *out, const svg_chart *chart);

#endif
