#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a line for each CSV file of `tegula bench`, and the shapes with the lowest ratios.

    bench/summary.py bench/results/h200_squares.csv bench/results/h200_odd.csv --worst 10
"""

import argparse
import math
import pathlib

import results_csv


def mean(shapes):
    return math.exp(sum(math.log(shape.ratio()) for shape in shapes) / len(shapes))


def print_table(files):
    print("| file | shapes | geometric mean | lowest | at | below 1 |")
    print("|---|---|---|---|---|---|")
    for name, shapes in files:
        worst = min(shapes, key=results_csv.Shape.ratio)
        slower = sum(shape.ratio() < 1 for shape in shapes)
        print(f"| {name} | {len(shapes)} | {mean(shapes):.3f} | {worst.ratio():.2f} | {worst.name()} "
              f"| {slower} |")


def print_worst(files, count):
    everything = [(shape, name) for name, shapes in files for shape in shapes]
    everything.sort(key=lambda pair: pair[0].ratio())
    print("\n| m x n x k | file | ratio | GFLOP/s |")
    print("|---|---|---|---|")
    for shape, name in everything[:count]:
        print(f"| {shape.name()} | {name} | {shape.ratio():.2f} | {shape.gflops(results_csv.OURS):.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--worst", type=int, default=10, help="number of shapes with the lowest ratios to list")
    arguments = parser.parse_args()
    files = []
    for path in arguments.files:
        shapes, _ = results_csv.read(path)
        files.append((path.stem, [shape for shape in shapes if shape.best_peer()]))
    print_table([file for file in files if file[1]])
    print_worst(files, arguments.worst)


if __name__ == "__main__":
    main()
