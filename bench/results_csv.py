# SPDX-License-Identifier: Apache-2.0
"""Reads the CSV files that `tegula bench --csv` writes, for the plots and the tables."""

import csv

OURS = "tegula"


class Shape:
    """One shape, and the row of each library."""

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
    """The shapes of a file, in its order, and its first row, which names the device."""
    shapes, first = {}, None
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            first = first or row
            key = tuple(row[name] for name in ("type", "layout", "m", "n", "k", "batch"))
            shapes.setdefault(key, Shape(row)).rows[row["library"]] = row
    if first is None:
        raise SystemExit(f"{path} has no rows")
    return list(shapes.values()), first


def libraries(shapes):
    """All libraries of the shapes, ours first."""
    names = {name: None for shape in shapes for name in shape.rows}
    return [OURS] + [name for name in names if name != OURS]


def place(row):
    """The device and the number of threads of a row, as text."""
    threads = int(row["threads"])
    plural = "" if threads == 1 else "s"
    clock = ", by processor time" if row["clock"] == "processor" else ""
    return f"{row['chip'] or row['device']}, {threads} thread{plural}{clock}"
