#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a line for each CSV file of `tegula bench` and type, and the shapes of each type with the lowest ratios.

    bench/summary.py bench/results/h200_squares.csv bench/results/h200_odd.csv --worst 10
"""

import argparse
import math
import pathlib

import results_csv


def mean(shapes):
    return math.exp(sum(math.log(shape.ratio()) for shape in shapes) / len(shapes))


def by_type(shapes):
    """The shapes of each type, in the order of the types' first shapes."""
    types = {}
    for shape in shapes:
        types.setdefault(shape.type, []).append(shape)
    return types.items()


def print_table(files):
    print("| file | type | shapes | geometric mean | lowest | at | below 1 |")
    print("|---|---|---|---|---|---|---|")
    for name, everything in files:
        for kind, shapes in by_type(everything):
            worst = min(shapes, key=results_csv.Shape.ratio)
            slower = sum(shape.ratio() < 1 for shape in shapes)
            print(f"| {name} | {kind} | {len(shapes)} | {mean(shapes):.3f} | {worst.ratio():.2f} | {worst.name()} "
                  f"| {slower} |")


def print_worst(files, count):
    file_of = {id(shape): name for name, shapes in files for shape in shapes}
    for kind, shapes in by_type(shape for _, shapes in files for shape in shapes):
        print(f"\n| {kind}: m x n x k | file | ratio | GFLOP/s |")
        print("|---|---|---|---|")
        for shape in sorted(shapes, key=results_csv.Shape.ratio)[:count]:
            print(f"| {shape.name()} | {file_of[id(shape)]} | {shape.ratio():.2f} "
                  f"| {shape.gflops(results_csv.OURS):.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--worst", type=int, default=10, help="number of shapes with the lowest ratios to list")
    arguments = parser.parse_args()
    files = []
    for path in arguments.files:
        shapes, _ = results_csv.read(path)
        files.append((path.stem, [shape for shape in shapes if shape.best_peer()]))
    print_table(files)
    print_worst(files, arguments.worst)


if __name__ == "__main__":
    main()
