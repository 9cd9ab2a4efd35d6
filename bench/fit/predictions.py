#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the planner's predictions with measured times.

    bench/fit/predictions.py build/tegula bench/results/h200/tensor_*.csv [--all]

Reads the products that Tegula computed in files of `tegula bench --csv`, asks `tegula explain --chip` what the
planner predicts for the same kernel string, and prints for each class of products the geometric mean of
predicted/measured and its standard deviation (of the logarithm). Classes: the family, with or without a
pre-pass that repacks A or B, single products and batches. --all prints each product."""

import argparse
import csv
import math
import re
import subprocess
import sys
from collections import defaultdict

CHIPS = {"NVIDIA H200": "h200", "NVIDIA H100 80GB HBM3": "h100"}


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            if row["library"] == "tegula" and row["chip"] in CHIPS and row["kernel"]:
                yield row


def predict(tegula, row):
    """The predicted microseconds, and whether an operand is repacked; None: the kernel does not support the
    product now."""
    command = [tegula, "explain", "--chip", CHIPS[row["chip"]], "-m", row["m"], "-n", row["n"], "-k", row["k"],
               "--batch", row["batch"], "--kernel", row["kernel"]]
    command += ["--type", "f32", "--compute", "tf32"] if row["type"] == "tf32" else ["--type", row["type"]]
    command += ["--trans-a"] * (row["layout"][0] == "T") + ["--trans-b"] * (row["layout"][1] == "T")
    if row["type"] == "f32":
        command += ["--compute", "ieee"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    predicted = re.search(r"^predicted +([\d.]+) us", result.stdout, re.M)
    if result.returncode != 0 or predicted is None:
        return None
    return float(predicted[1]), re.search("^repack", result.stdout, re.M) is not None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tegula")
    parser.add_argument("results", nargs="+")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    classes = defaultdict(list)
    for path in options.results:
        for row in rows_of(path):
            found = predict(options.tegula, row)
            if found is None:
                continue
            measured, family = 1e6 * float(row["seconds"]), re.match("[a-z_]+(?=_)", row["kernel"])
            ratio = found[0] / measured
            name = (family[0] if family else row["kernel"], "repacked" if found[1] else "in place",
                    "batch" if int(row["batch"]) > 1 else "single")
            classes[name].append(math.log(ratio))
            if options.all:
                print(f"{ratio:6.2f} {measured:10.2f} us  {' '.join(name):28} {row['type']} {row['layout']} "
                      f"{row['m']}x{row['n']}x{row['k']} x{row['batch']} {row['kernel']}")
    for name, logs in sorted(classes.items()):
        mean = sum(logs) / len(logs)
        spread = math.sqrt(sum((x - mean) ** 2 for x in logs) / len(logs))
        print(f"{' '.join(name):32} {len(logs):5}  predicted/measured {math.exp(mean):.3f}, spread {spread:.3f}")


if __name__ == "__main__":
    sys.exit(main())
