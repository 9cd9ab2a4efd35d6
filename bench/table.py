#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints all shapes of a CSV file of `tegula bench` as Markdown tables, one per type.

    bench/table.py bench/results/h200/squares.csv
"""

import argparse
import math

import results_csv


def cell(value, digits=1):
    return "" if value is None else f"{value:.{digits}f}"


def print_table(shapes):
    """Prints a table with GFLOP/s of all libraries, the percentage of the FMA rate, and the ratio to the fastest
    other library."""
    names = results_csv.libraries(shapes)
    print("| m x n x k | " + " | ".join(names) + " | % of FMA | best peer | ratio |")
    print("|---" * (len(names) + 4) + "|")
    for shape in shapes:
        speeds = [cell(shape.gflops(name)) for name in names]
        ours = shape.gflops(results_csv.OURS)
        share = cell(100 * ours / shape.fma, 0) if shape.fma else ""
        best = shape.best_peer() or ""
        print(f"| {shape.name()} | " + " | ".join(speeds) +
              f" | {share} | {best} | {cell(shape.ratio(), 2)} |")


def print_mean(shapes):
    ratios = [shape.ratio() for shape in shapes if shape.ratio()]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        worst = min((shape for shape in shapes if shape.ratio()), key=results_csv.Shape.ratio)
        print(f"\nGeometric mean of the ratio: **{mean:.3f}** over "
              f"{len(ratios)} shape{'' if len(ratios) == 1 else 's'}; lowest {worst.ratio():.2f} at {worst.name()}.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv", help="a file that `tegula bench --csv` wrote")
    shapes, first = results_csv.read(parser.parse_args().csv)
    for kind in sorted({shape.type for shape in shapes}):
        chosen = [shape for shape in shapes if shape.type == kind]
        print(f"### {kind}, {results_csv.place(first)}\n")
        print_table(chosen)
        print_mean(chosen)


if __name__ == "__main__":
    main()
