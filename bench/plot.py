#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plots a CSV file of `tegula bench`: speed by shape, and the ratio to the fastest other library.

    bench/plot.py bench/results/h200/squares.csv -o docs/h200-squares.svg

Needs matplotlib (python3-matplotlib).
"""

import argparse

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

import results_csv  # noqa: E402

COLOURS = {results_csv.OURS: "#c1440e"}
OTHERS = ["#4c72b0", "#55a868", "#8172b2", "#937860", "#64b5cd", "#8c8c8c"]


def draw_speed(axes, shapes, names):
    """Draws GFLOP/s of every library, and the measured FMA rate."""
    positions = range(len(shapes))
    for index, name in reversed(list(enumerate(names))):
        axes.plot(positions, [shape.gflops(name) for shape in shapes], "o-", markersize=3.5,
                  linewidth=2 if name == results_csv.OURS else 1, label=name,
                  color=COLOURS.get(name, OTHERS[(index - 1) % len(OTHERS)]))
    if all(shape.fma for shape in shapes):
        axes.plot(positions, [shape.fma for shape in shapes], ":", color="black", linewidth=1,
                  label="FMA rate")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("GFLOP/s")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=7, ncol=3, loc="lower right")


def draw_ratio(axes, shapes):
    """Draws the time of the fastest other library divided by Tegula's: above 1 where Tegula is faster."""
    ratios = [shape.ratio() or 0 for shape in shapes]
    colours = [COLOURS[results_csv.OURS] if ratio >= 1 else "#b0b0b0" for ratio in ratios]
    axes.bar(range(len(shapes)), ratios, color=colours)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_ylabel("best peer's time\nover Tegula's")
    axes.grid(axis="y", alpha=0.3)


def draw(path, output):
    shapes, first = results_csv.read(path)
    types = sorted({shape.type for shape in shapes})
    figure, grid = pyplot.subplots(2, len(types), squeeze=False, sharex="col",
                                   figsize=(5.5 * len(types), 6), height_ratios=(2, 1),
                                   layout="constrained")
    for column, kind in enumerate(types):
        chosen = [shape for shape in shapes if shape.type == kind]
        draw_speed(grid[0][column], chosen, results_csv.libraries(chosen))
        draw_ratio(grid[1][column], chosen)
        grid[0][column].set_title(kind, fontsize=10)
        grid[1][column].set_xticks(range(len(chosen)), [shape.name() for shape in chosen],
                                   rotation=70, ha="right", rotation_mode="anchor", fontsize=7)
    figure.suptitle(results_csv.place(first), fontsize=10)
    # These settings make the same file give the same picture, byte for byte.
    matplotlib.rcParams["svg.hashsalt"] = "tegula"
    figure.savefig(output, format="svg", metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv", help="a file that `tegula bench --csv` wrote")
    parser.add_argument("-o", "--output", required=True, help="the .svg file to write")
    arguments = parser.parse_args()
    draw(arguments.csv, arguments.output)


if __name__ == "__main__":
    main()
