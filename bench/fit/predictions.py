#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the planner's predictions with measured times.

    bench/fit/predictions.py build/tegula bench/results/h200/tensor_*.csv [--all]
    bench/fit/predictions.py build/tegula ~/.cache/tegula/wisdom [--write bench/results/h200/candidates-f64.csv]
    bench/fit/predictions.py build/tegula bench/results/h200/candidates-f64.csv

Reads the products that Tegula computed in files of `tegula bench --csv`, and the candidates that `tegula tune`
measured in bursts, in files of the wisdom (src/plan/wisdom.h), whose columns are separated by " | ". --write stores
these candidates in a CSV file with the columns product, kernel and microseconds, which this script reads as well. They
must be of one chip, which the file's heading names. Asks `tegula explain --chip` what the planner predicts for the same
kernel string. Lines of chips that are not in CHIPS are skipped, and candidates whose kernel or options this build does
not have; the latter are counted. A file of --write with such a chip is an error.

CSV: prints for each class of products the geometric mean of predicted/measured and its standard deviation (of the
logarithm). Classes: the family, with or without a pre-pass that repacks A or B, single products and batches. --all
prints each product.

Candidates: prints for each kernel, with and without split-K, the geometric mean of measured/predicted and its standard
deviation. The loss of a product is the measured time of the candidate with the shortest prediction over the shortest
measured time, minus 1; prints its mean, the mean and the least share of the speed of the other library ("peer"), and
the ten products with the largest loss."""

import argparse
import csv
import math
import os
import pathlib
import re
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import results_csv  # pylint: disable=wrong-import-position

CHIPS = {"NVIDIA H200": "h200", "NVIDIA H100 80GB HBM3": "h100"}
CANDIDATES = ["product", "kernel", "microseconds"]  # the columns of --write
PEER = "peer"                                       # the kernel of another library's time


class Product(NamedTuple):
    chip: str
    type: str
    compute: str
    layout: str
    size: tuple[str, ...]  # m, n, k, batch

    def __str__(self):
        return f"{'tf32' if self.compute == 'tf32' else self.type} {self.layout} {'x'.join(self.size)}"


def csv_rows(path):
    """Product, kernel and microseconds of each row."""
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            if row["library"] == "tegula" and row["chip"] in CHIPS and row["kernel"]:
                compute = {"tf32": "tf32", "f32": "ieee"}.get(row["type"], "default")
                kind = "f32" if row["type"] == "tf32" else row["type"]
                size = tuple(row[name] for name in ("m", "n", "k", "batch"))
                product = Product(CHIPS[row["chip"]], kind, compute, row["layout"], size)
                yield product, row["kernel"], 1e6 * float(row["seconds"])


def wisdom_rows(path):
    """Like csv_rows(). A key of a product that names more than types, layout, size and compute mode is skipped."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            fields = line.rstrip("\n").split(" | ")
            if line.startswith("#") or len(fields) != 10 or fields[9] != "burst":
                continue
            chip = CHIPS.get(fields[0].rsplit(", ", 1)[0])
            key = re.fullmatch(r"(\w+),\1,\1,\1 ([NT]{2}) (\d+)x(\d+)x(\d+)x(\d+) (\w+)", fields[4])
            if chip and key:
                yield Product(chip, key[1], key[7], key[2], key.groups()[2:6]), fields[5], float(fields[6])


def candidate_rows(path):
    """Like csv_rows(), of a file that write_candidates() has written. It has the chip in its first line."""
    chip = results_csv.heading(path).get("chip", "unknown")
    if chip not in CHIPS:
        raise SystemExit(f"{path}: the chip in its heading is {chip}; it must be one of: {', '.join(CHIPS)}")
    for row in results_csv.rows(path):
        kind, layout, size, compute = row["product"].split()
        yield Product(CHIPS[chip], kind, compute, layout, tuple(size.split("x"))), row["kernel"], float(row["microseconds"])


def write_candidates(path, candidates):
    """candidates: microseconds by product and kernel. All must be of one chip."""
    chips = [name for name, chip in CHIPS.items() if any(product.chip == chip for product, _ in candidates)]
    if len(chips) != 1:
        found = f"of several chips: {', '.join(chips)}" if chips else f"of none of: {', '.join(CHIPS)}"
        raise SystemExit(f"{path} is not written: it must have candidates of one chip, and those read are {found}")
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(results_csv.origin(chips[0]))
        out = csv.writer(file, lineterminator="\n")
        out.writerow(CANDIDATES)
        for (product, kernel), us in candidates.items():
            out.writerow([f"{product.type} {product.layout} {'x'.join(product.size)} {product.compute}", kernel, us])


def predict(tegula, product, kernel):
    """The predicted microseconds, and whether an operand is repacked; None: the kernel does not support the
    product now."""
    m, n, k, batch = product.size
    command = [tegula, "explain", "--chip", product.chip, "-m", m, "-n", n, "-k", k, "--batch", batch, "--type",
               product.type, "--kernel", kernel]
    command += ["--compute", product.compute] if product.compute != "default" else []
    command += ["--trans-a"] * (product.layout[0] == "T") + ["--trans-b"] * (product.layout[1] == "T")
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    choice = re.search(r"^choice +([^\s,]+(,[^\s,]+)*)", result.stdout, re.M)
    predicted = re.search(r"^predicted +([\d.]+) us", result.stdout, re.M)
    if result.returncode != 0 or choice is None or predicted is None:
        return None
    if choice[1] != kernel and ":" not in kernel:  # the planner has chosen options, where the kernel has none
        return predict(tegula, product, kernel + ":splits=1")
    return float(predicted[1]), re.search("^repack", result.stdout, re.M) is not None


def mean_and_spread(logs):
    mean = sum(logs) / len(logs)
    return math.exp(mean), math.sqrt(sum((x - mean) ** 2 for x in logs) / len(logs))


def report_csv(rows, prints_all):
    classes = defaultdict(list)
    for product, kernel, measured, (predicted, repacked) in rows:
        family = re.match("[a-z_]+(?=_)", kernel)
        name = f"{family[0] if family else kernel} {'repacked' if repacked else 'in place'} " + (
            "batch" if int(product.size[3]) > 1 else "single")
        classes[name].append(math.log(predicted / measured))
        if prints_all:
            print(f"{predicted / measured:6.2f} {measured:10.2f} us  {name:28} {product} {kernel}")
    for name, logs in sorted(classes.items()):
        mean, spread = mean_and_spread(logs)
        print(f"{name:32} {len(logs):5}  predicted/measured {mean:.3f}, spread {spread:.3f}")


def report_candidates(rows, peers):
    """peers: the microseconds of the other library, by product."""
    kernels, products = defaultdict(list), defaultdict(list)
    for product, kernel, measured, (predicted, _) in rows:
        splits = re.search(r"[:,]splits=(\d+)", kernel)
        name = kernel.split(":")[0] + (" split" if splits and int(splits[1]) > 1 else "")
        kernels[name].append(math.log(measured / predicted))
        products[product].append((measured, predicted, kernel))
    for name, logs in sorted(kernels.items()):
        mean, spread = mean_and_spread(logs)
        print(f"{name:32} {len(logs):5}  measured/predicted {mean:.3f}, spread {spread:.3f}")
    losses, shares = [], []
    for product, candidates in products.items():
        choice, best = min(candidates, key=lambda c: c[1]), min(candidates)
        losses.append((choice[0] / best[0], product, choice, best))
        if product in peers:
            shares.append(math.log(peers[product] / choice[0]))
    if losses:
        print(f"{len(losses)} products, mean loss {mean_and_spread([math.log(x[0]) for x in losses])[0] - 1:.2%}")
    if shares:
        print(f"share of the peer: mean {mean_and_spread(shares)[0]:.3f}, least {math.exp(min(shares)):.3f}")
    for loss, product, choice, best in sorted(losses, reverse=True)[:10]:
        print(f"{loss - 1:6.1%} {product}: {choice[2]} {choice[0]:.2f} us (predicted {choice[1]:.2f}), "
              f"best {best[2]} {best[0]:.2f} ({best[1]:.2f})")


def with_predictions(tegula, rows):
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda row: predict(tegula, row[0], row[1]), rows))
    if found.count(None) > 0:
        print(f"{found.count(None)} of {len(found)} kernels skipped: this build does not have them")
    return [(*row, predicted) for row, predicted in zip(rows, found) if predicted is not None]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tegula")
    parser.add_argument("results", nargs="+", help="files of `tegula bench --csv`, of the wisdom, and of --write")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--write", metavar="FILE", help="store the candidates of the wisdom")
    options = parser.parse_args()
    rows, candidates = [], {}  # of two lines of a candidate the later one counts
    for path in options.results:
        with open(path, encoding="utf-8") as file:
            first = next((line.rstrip("\n") for line in file if not line.startswith("#")), "")
        if " | " in first or first == ",".join(CANDIDATES):
            read = wisdom_rows if " | " in first else candidate_rows
            candidates.update(((product, kernel), us) for product, kernel, us in read(path))
        else:
            rows += csv_rows(path)
    if options.write:
        write_candidates(options.write, candidates)
    report_csv(with_predictions(options.tegula, rows), options.all)
    peers = {product: us for (product, kernel), us in candidates.items() if kernel == PEER}
    report_candidates(with_predictions(options.tegula, [(*candidate, us) for candidate, us in candidates.items()
                                                        if candidate[1] != PEER]), peers)


if __name__ == "__main__":
    sys.exit(main())
