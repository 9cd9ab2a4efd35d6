#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plots error against speed for FP32 products: IEEE arithmetic, ACCURATE, TF32 and cuBLAS.

    bench/plot_accuracy.py -o docs/h200-accuracy.svg

The speeds are those of `tegula bench` at 4096 and 8192 cubed; the errors are the RMS of
`tegula check --accuracy` at 4096x4096x1024, in units of 2^-24 |A||B|. Needs matplotlib.
"""

import argparse

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

import results_csv  # noqa: E402

RESULTS = "bench/results/"
ERRORS = ("4096", "4096", "1024")  # the product whose error is drawn
SIZES = (4096, 8192)               # the products whose speed is drawn
FORMER = {"uniform(-1,1)": "symmetric", "uniform(0,1)": "positive"}  # names in older files

# Columns: label, colour, file and library of the speeds, file and column of the error.
POINTS = [
    ("cuBLAS SGEMM", "#4c72b0", "h200/accurate.csv", "cublas", "h200/accuracy-accurate.csv", "cublas_rms"),
    ("Tegula, IEEE", "#937860", "h200/squares.csv", "tegula", "h200/accuracy-ieee.csv", "tegula_rms"),
    ("Tegula, ACCURATE", "#c1440e", "h200/accurate.csv", "tegula", "h200/accuracy-accurate.csv", "tegula_rms"),
    ("cuBLAS, TF32", "#64b5cd", "h200/tensor_squares-tf32.csv", "cublas", "h100/accuracy-tf32.csv", "cublas_rms"),
    ("Tegula, TF32", "#8172b2", "h200/tensor_squares-tf32.csv", "tegula", "h100/accuracy-tf32.csv", "tegula_rms"),
]
# GEMMul8, accurate mode, 7 moduli, on a GH200, as its authors published (November 2025): TFLOP/s at SIZES.
GEMMUL8 = (78, 124)


def speeds(path, library):
    """TFLOP/s of the squares of SIZES without transposes."""
    shapes = [shape for shape in results_csv.read(RESULTS + path)[0]
              if shape.type in ("f32", "tf32") and shape.layout == "NN" and shape.m == shape.n == shape.k]
    return [1e-3 * shape.gflops(library) for size in SIZES for shape in shapes if shape.m == size]


def error(path, column, inputs):
    for row in results_csv.rows(RESULTS + path):
        if row["inputs"] in (inputs, FORMER[inputs]) and (row["m"], row["n"], row["k"]) == ERRORS:
            return float(row[column])
    raise SystemExit(f"{path}: no product of {'x'.join(ERRORS)} with elements {inputs}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    figure, grid = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for axes, inputs in zip(grid, ("uniform(-1,1)", "uniform(0,1)")):
        for label, colour, path, library, errors, column in POINTS:
            x = speeds(path, library)
            y = [error(errors, column, inputs)] * len(x)
            axes.plot(x, y, "-", color=colour, linewidth=1)
            for at, size, marker in zip(x, SIZES, "os"):
                axes.plot(at, y[0], marker, color=colour, markersize=6,
                          label=label if size == SIZES[0] else None)
            print(f"{inputs:14} {label:18} {x[0]:6.1f} {x[1]:6.1f} TFLOP/s, RMS {y[0]:.3g}")
        for at, size, style in zip(GEMMUL8, SIZES, (":", "--")):  # its error is in another unit
            axes.axvline(at, color="gray", linewidth=1, linestyle=style, label=f"GEMMul8, GH200, {size} cubed")
        axes.set_yscale("log")
        axes.set_xlim(left=0)
        axes.set_xlabel("TFLOP/s (circle: 4096 cubed, square: 8192 cubed)")
        axes.set_title(f"elements {inputs}", fontsize=10)
        axes.grid(alpha=0.3)
    grid[0].set_ylabel("RMS error, units of $2^{-24}\\,|A||B|$")
    grid[0].legend(fontsize=8, loc="center")
    figure.savefig(options.output, metadata={"Date": None})


if __name__ == "__main__":
    main()
