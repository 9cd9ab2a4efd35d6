#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/performance.md from bench/performance_template.md and the CSV files in bench/results.

    bench/summary.py            # writes the page
    bench/summary.py --check    # fails if the page is not what it would write

The template has the text of the page, and lines such as {{suites h200}}. Each is replaced by a table that the
function of this name in TABLES makes from the results of the machine or, without a machine, of all machines.
"""

import argparse
import math
import pathlib
import re

import markdown
import results_csv

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = ["suite", "type", "shapes", "geometric mean", "below 1", "below 0.98", "lowest", "at"]
WORST = 10            # number of shapes in the table of the lowest ratios, for each machine and type
LARGEST_SQUARE = 8192


class Suite:
    """The shapes of one type in a file, of which another library has a time too. A file is called
    SUITE-VARIANT.csv, such as "cpu_random-avx2-2threads.csv"."""

    def __init__(self, path, heading, kind, shapes):
        self.machine, self.path, self.is_older, self.shapes = path.parent.name, path, "older code" in heading, shapes
        self.name, *variants = path.stem.split("-")
        compute = re.search(r"--compute (\w+)", heading["command"])
        self.type = f"{kind}, {compute[1]}" if kind == "f32" and compute else kind
        variants = [part for part in variants if part not in (kind, compute and compute[1])]
        self.variant = ", ".join(re.sub(r"^(\d+)threads$", r"\1 threads", part) for part in variants)

    def link(self):
        """The link to the file, as the page shows it."""
        text = f"[{self.name}](../bench/results/{self.machine}/{self.path.name})"
        return text + (f", {self.variant}" if self.variant else "")

    def mean(self):
        return math.exp(sum(math.log(shape.ratio()) for shape in self.shapes) / len(self.shapes))

    def lowest(self):
        return min(self.shapes, key=results_csv.Shape.ratio)

    def share_below(self, limit):
        below = sum(shape.ratio() < limit for shape in self.shapes)
        return f"{100 * below / len(self.shapes):.0f} %"

    def row(self):
        """The cells of COLUMNS."""
        return [self.link(), self.type, str(len(self.shapes)), f"{self.mean():.3f}", self.share_below(1),
                self.share_below(0.98), f"{self.lowest().ratio():.2f}", self.lowest().name()]


def read_all(folder):
    """The suites of all machines. Files without times of another library are left out."""
    found = []
    for path in sorted(folder.glob("*/*.csv")):
        table = results_csv.rows(path)
        if not table or "time_over_tegula" not in table[0]:
            continue
        shapes = [shape for shape in results_csv.read(path)[0] if shape.best_peer()]
        heading = results_csv.heading(path)
        for kind in dict.fromkeys(shape.type for shape in shapes):
            found.append(Suite(path, heading, kind, [shape for shape in shapes if shape.type == kind]))
    return sorted(found, key=lambda suite: (suite.machine, suite.variant))


# ---- Tables ------------------------------------------------------------------------------------


def suites(found):
    """The table of the suites that today's code has run, with the distribution of their ratios."""
    return markdown.table(COLUMNS, [suite.row() for suite in found if not suite.is_older], left=2)


def worst(found):
    """The table of the shapes with the lowest ratios, a column for each type."""
    columns = {}
    for suite in found:
        if not suite.is_older:
            variant = f" ({suite.variant})" if suite.variant else ""
            columns.setdefault(suite.type, []).extend((shape.ratio(), shape.name() + variant) for shape in suite.shapes)
    lowest = [sorted(column)[:WORST] for column in columns.values()]
    rows = [[f"{cell[0]:.2f} {cell[1]}" if cell else "" for cell in
             (column[i] if i < len(column) else None for column in lowest)] for i in range(WORST)]
    return markdown.table(list(columns), rows, left=len(columns))


def speed(gflops):
    return f"{gflops:.0f} GFLOP/s" if gflops < 1e4 else f"{gflops / 1e3:.1f} TFLOP/s"


def squares(found):
    """The table of speeds of each type's largest square up to LARGEST_SQUARE."""
    best = {}
    for suite in found:
        for shape in suite.shapes:
            if not suite.is_older and shape.layout == "NN" and shape.batch == 1 and \
                    shape.m == shape.n == shape.k <= LARGEST_SQUARE:
                key = suite.machine, suite.type, suite.variant
                best[key] = max(best.get(key, shape), shape, key=lambda shape: shape.m)
    rows = []
    for (machine, kind, variant), shape in best.items():
        peer = shape.best_peer()
        rows.append([machine, kind + (f", {variant}" if variant else ""), shape.name(),
                     speed(shape.gflops(results_csv.OURS)), f"{speed(shape.gflops(peer))} ({peer})"])
    return markdown.table(["machine", "type", "m = n = k", "Tegula", "fastest peer"], rows, left=2)


def older(found):
    """The table of the files whose kernels have changed since they were measured, with the mean and the lowest
    ratio of each type."""
    files = {}
    for suite in found:
        if suite.is_older:
            files.setdefault((suite.machine, suite.link()), []).append(
                f"{suite.type} {suite.mean():.3f} ({suite.lowest().ratio():.2f} at {suite.lowest().name()})")
    return markdown.table(["machine", "suite", "geometric mean (lowest ratio) of each type"],
                          [[*key, "; ".join(cells)] for key, cells in files.items()], left=3)


TABLES = {table.__name__: table for table in (suites, worst, squares, older)}


def page(template, found):
    """The text of the page. Fails if a machine with results of today's code has no table in the template."""
    def table(match):
        chosen = [suite for suite in found if match[2] in ("", suite.machine)]
        if not chosen:
            raise SystemExit(f"there are no results of {match[2]}")
        return "\n".join(TABLES[match[1]](chosen))
    text = re.sub(r"\{\{(\w+) ?([\w-]*)\}\}", table, template)
    for machine in {suite.machine for suite in found if not suite.is_older}:
        if f"{{{{suites {machine}}}}}" not in template:
            raise SystemExit(f"bench/performance_template.md has no {{{{suites {machine}}}}}")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare the page with what would be written")
    arguments = parser.parse_args()
    target = ROOT / "docs" / "performance.md"
    template = (ROOT / "bench" / "performance_template.md").read_text(encoding="utf-8")
    text = page(template, read_all(ROOT / "bench" / "results"))
    if not arguments.check:
        target.write_text(text, encoding="utf-8")
    elif target.read_text(encoding="utf-8") != text:
        raise SystemExit("docs/performance.md is not what bench/summary.py writes: run `make performance`")


if __name__ == "__main__":
    main()
