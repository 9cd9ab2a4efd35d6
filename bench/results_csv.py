# SPDX-License-Identifier: Apache-2.0
"""Reads and writes CSV files of results (bench/results/README.md). They begin with lines of comments."""

import csv
import os
import shlex
import subprocess
import sys
import time

OURS = "tegula"


def heading(path):
    """The comments of a file as a dictionary. The first line has "commit", "date", "command" and so on, separated
    by semicolons; each other line has one key, such as "older code"."""
    with open(path, encoding="utf-8") as file:
        first, *more = [line[2:].rstrip("\n") for line in file if line.startswith("# ")] or [""]
    parts, command = first.partition("; command: ")[::2]
    pairs = [text.partition(": ") for text in parts.split("; ") + more]
    return {key: value for key, _, value in pairs} | {"command": command}


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def output_of(*command):
    """The output of a command, or "" if there is no such command or it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True,
                              cwd=os.path.dirname(os.path.abspath(__file__))).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def origin(measured=None):
    """The first line of a file that this script is about to write. measured: the chip of its results, whose driver is
    unknown unless this machine has that chip; None: this machine's GPU."""
    commit = output_of("git", "describe", "--always", "--dirty", "--exclude=*") or os.environ.get("TEGULA_COMMIT")
    driver, _, chip = output_of("nvidia-smi", "--query-gpu=driver_version,name", "--format=csv,noheader",
                                "--id=0").partition(", ")
    if measured not in (None, chip):
        driver, chip = "", measured
    date = time.strftime("%Y-%m-%d", time.gmtime())
    return (f"# commit: {commit or 'unknown'}; date: {date}; driver: {driver or 'unknown'}; chip: {chip or 'unknown'}; "
            f"command: {shlex.join(sys.argv)}\n")


class Shape:
    """A shape of a suite, and the row of each library for it."""

    def __init__(self, row):
        self.type = row["type"]
        self.layout = row["layout"]
        self.m, self.n, self.k, self.batch = (int(row[key]) for key in ("m", "n", "k", "batch"))
        self.fma = float(row["fma_gflops"]) if row["fma_gflops"] else None
        self.rows = {}

    def name(self):
        cube = self.m == self.n == self.k
        name = str(self.m) if cube else f"{self.m}x{self.n}x{self.k}"
        if self.layout != "NN":
            name += " " + self.layout
        return name if self.batch == 1 else f"{name} x{self.batch}"

    def gflops(self, library):
        row = self.rows.get(library)
        return float(row["gflops"]) if row else None

    def best_peer(self):
        """The name of the fastest other library, or None."""
        peers = [name for name in self.rows if name != OURS]
        return min(peers, key=lambda name: float(self.rows[name]["time_over_tegula"]), default=None)

    def ratio(self):
        """The time of the fastest other library over ours, or None."""
        best = self.best_peer()
        return float(self.rows[best]["time_over_tegula"]) if best else None


def read(path):
    """The shapes of a file in their order, and the first row of the file, which names the device."""
    shapes, table = {}, rows(path)
    if not table:
        raise SystemExit(f"{path} has no rows")
    for row in table:
        key = tuple(row[name] for name in ("type", "layout", "m", "n", "k", "batch"))
        shapes.setdefault(key, Shape(row)).rows[row["library"]] = row
    return list(shapes.values()), table[0]


def libraries(shapes):
    """The names of all libraries that computed the shapes, Tegula first."""
    names = {name: None for shape in shapes for name in shape.rows}
    return [OURS] + [name for name in names if name != OURS]


def place(row):
    """The device and the number of threads of a row, as text."""
    threads = int(row["threads"])
    plural = "" if threads == 1 else "s"
    clock = ", by processor time" if row["clock"] == "processor" else ""
    return f"{row['chip'] or row['device']}, {threads} thread{plural}{clock}"
