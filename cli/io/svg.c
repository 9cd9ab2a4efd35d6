/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a chart. Text stays text and is not converted to paths.
 */
#include "svg.h"

#include <math.h>

enum { WIDTH = 960, HEIGHT = 480, LEFT = 60, RIGHT = 180, TOP = 40, BOTTOM = 110 };

static const char *const colours[] = {"#4477aa", "#ee6677", "#228833", "#ccbb44",
                                      "#66ccee", "#aa3377", "#888888", "#994455"};
enum { COLOURS = sizeof colours / sizeof colours[0] };

static void put_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else
            fputc(*text, out);
}

/* Writes an SVG text element. attributes: text that is added to its tag. */
static void text_at(FILE *out, double x, double y, const char *attributes, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    put_text(out, text);
    fputs("</text>\n", out);
}

static double greatest(const svg_chart *c)
{
    double max = c->ceiling;
    for (int s = 0; s < c->series_count; s++)
        for (int i = 0; i < c->category_count; i++)
            if (c->series[s].values[i] > max) max = c->series[s].values[i];
    return max > 0 ? max : 1;
}

/* The distance between ticks of the axis, for values up to `max`: 1, 2 or 5 times a power of ten,
 * so that there are at most eight intervals. */
static double choose_tick(double max)
{
    const double power = pow(10, floor(log10(max / 8)));
    const double times = max / 8 / power;
    return power * (times > 5 ? 10 : times > 2 ? 5 : times > 1 ? 2 : 1);
}

static double x_of(const svg_chart *c, int category)
{
    const double step = (double)(WIDTH - LEFT - RIGHT) / c->category_count;
    return LEFT + step * (category + 0.5);
}

static double y_of(double value, double top)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top;
}

static void draw_axes(FILE *out, const svg_chart *c, double tick, double top)
{
    char text[96];
    const int ticks = (int)(top / tick + 0.5);
    for (int i = 0; i <= ticks; i++) {
        const double value = i * tick, y = y_of(value, top);
        fprintf(out,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#888\" "
                "stroke-width=\"0.4\"/>\n",
                LEFT, WIDTH - RIGHT, y, y);
        snprintf(text, sizeof text, "%g", value);
        text_at(out, LEFT - 6, y + 4, "text-anchor=\"end\"", text);
    }
    for (int i = 0; i < c->category_count; i++) {
        const double x = x_of(c, i), y = HEIGHT - BOTTOM + 14;
        snprintf(text, sizeof text, "text-anchor=\"end\" transform=\"rotate(-40 %.1f %.1f)\"", x,
                 y);
        text_at(out, x, y, text, c->categories[i]);
    }
    text_at(out, LEFT, TOP - 10, "", c->unit);
    if (c->ceiling <= 0) return;
    const double y = y_of(c->ceiling, top);
    fprintf(out,
            "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#888\" "
            "stroke-dasharray=\"6 4\"/>\n",
            LEFT, WIDTH - RIGHT, y, y);
    text_at(out, WIDTH - RIGHT + 8, y + 4, "", c->ceiling_name);
}

/* Draws series number s: a point for each category, and lines between neighbouring points. A
 * category without a value leaves a gap. */
static void draw_series(FILE *out, const svg_chart *c, int s, double top)
{
    const svg_series *series = &c->series[s];
    const char *colour = colours[s % COLOURS];
    fprintf(out, "<g stroke=\"%s\" fill=\"%s\">\n", colour, colour);
    for (int i = 0; i < c->category_count; i++) {
        const double value = series->values[i], x = x_of(c, i), y = y_of(value, top);
        if (value <= 0) continue;
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", x, y);
        if (i > 0 && i < c->joined_count && series->values[i - 1] > 0)
            fprintf(
                out,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke-width=\"1.5\"/>\n",
                x_of(c, i - 1), y_of(series->values[i - 1], top), x, y);
    }
    const double y = TOP + 40 + 18 * s;
    fprintf(out, "<circle cx=\"%d\" cy=\"%.1f\" r=\"4\"/>\n</g>\n", WIDTH - RIGHT + 14, y);
    text_at(out, WIDTH - RIGHT + 24, y + 4, "", series->name);
}

void svg_write(FILE *out, const svg_chart *c)
{
    const double max = greatest(c), tick = choose_tick(max), top = ceil(max / tick) * tick;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, HEIGHT);
    text_at(out, LEFT, 16, "font-weight=\"bold\"", c->title);
    draw_axes(out, c, tick, top);
    for (int s = 0; s < c->series_count; s++)
        draw_series(out, c, s, top);
    fputs("</svg>\n", out);
}
