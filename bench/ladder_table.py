#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of CSV files of `tegula ladder --csv` into docs/ladder.md.

    bench/ladder_table.py bench/results/h200/ladder.csv bench/results/sim/ladder-512.csv

A file of a timed ladder gives a table of speeds, a file of the simulator a table of memory accesses, for
each chapter.
"""

import argparse
import glob
import os
import re

import markdown
import results_csv


def read(path):
    rows = results_csv.rows(path)
    if not rows:
        raise SystemExit(f"{path} has no rows")
    return rows


def size_of(row):
    m, n, k = row["m"], row["n"], row["k"]
    return m + "³" if m == n == k else f"{m}×{n}×{k}"


def in_order(values):
    return list(dict.fromkeys(values))


def by_rung_and_size(rows):
    return {(row["rung"], size_of(row)): row for row in rows}


# ---- Chapters ----------------------------------------------------------------------------------

PREFIXES = {2: "f16_", 3: "words_"}
WORD_RUNGS = ["words_one", "words_three", "words_promoted"]  # three kernels of one file, by its macros


def chapter_of(rung):
    return next((chapter for chapter, prefix in PREFIXES.items() if rung.startswith(prefix)), 1)


def rungs_of(chapter):
    """The names of the rungs in their order, such as "naive" for kernels/ladder/01_naive.cu."""
    folder = os.path.join(os.path.dirname(__file__), "..", "kernels", "ladder")
    names = [re.sub(r"^\d+_|\.cu$", "", os.path.basename(path))
             for path in sorted(glob.glob(os.path.join(folder, "*.cu")))]
    names = [name for name in names if name != "words"] + WORD_RUNGS
    return [name for name in names if chapter_of(name) == chapter]


def section(name, chapter):
    """The name of a chapter's part of the page: "speeds", "speeds of chapter 2"."""
    return name if chapter == 1 else f"{name} of chapter {chapter}"


# ---- Speeds ------------------------------------------------------------------------------------

PEERS = {"cublas": "cuBLAS", "cublaslt": "cuBLASLt, best candidate"}


def speed(row):
    """TFLOP/s, and the percentage of cuBLAS's speed."""
    if row is None or not row["tflops"]:
        return "–"
    value = float(row["tflops"])
    text = f"{value:.2f}" if value < 10 else f"{value:.1f}"
    share = row["percent_cublas"]
    return text if row["rung"] == "cublas" or not share else f"{text} ({float(share):.1f} %)"


def speeds(rows):
    sizes, cells = in_order(map(size_of, rows)), by_rung_and_size(rows)
    first = next(row for row in rows if row["rung"] not in ("reference", *PEERS))
    lines = [f"{first['chip']}, driver {first['driver']}, NVRTC {first['nvrtc']}, cuBLAS "
             f"{first['cublas']}, {first['date'][:10]}; an FFMA loop measures "
             f"{float(first['ffma_tflops']):.1f} TFLOP/s.",
             "TFLOP/s, and in brackets the share of cuBLAS in the same run.", ""]
    peers = [rung for rung in in_order(row["rung"] for row in rows) if rung in PEERS]
    table = [[PEERS.get(rung, rung)] + [speed(cells.get((rung, size))) for size in sizes]
             for rung in rungs_of(chapter_of(first["rung"])) + peers]
    return lines + markdown.table(["rung"] + sizes, table)


# ---- Counts ------------------------------------------------------------------------------------


def ratio(x, y, digits):
    return f"{x / y:.{digits}f}" if y else "–"


def spaced(count):
    return f"{count:,}".replace(",", " ")


def counts_of(row):
    """The figures of a rung, from its counts. cp.async counts as a load of global memory and a store to shared
    memory. The async copies include TMA, except in the stores to shared memory: writes of TMA have no
    wavefronts there."""
    x = {key: int(value) for key, value in row.items()
         if key.endswith(("requests", "sectors", "wavefronts", "conflicts", "bytes", "barriers", "waits"))
         or key in ("blocks", "m", "n", "k")}
    ffmas = x["m"] * x["n"] * x["k"] / 32
    loads = x["global_load_requests"] + x["async_copy_requests"]
    sectors = x["global_load_sectors"] + x["async_copy_sectors"]
    moved = 32 * (sectors + x["global_store_sectors"])
    stores = x["shared_store_requests"] + x["async_copy_requests"] - x["tma_load_requests"]
    wavefronts = x["shared_store_wavefronts"] + x["async_copy_wavefronts"]
    kinds = ("shared_load", "shared_store", "async_copy")
    conflicts = sum(x[kind + "_conflicts"] for kind in kinds)
    return [row["rung"], ratio(sectors, loads, 1), ratio(loads, ffmas, 4),
            ratio(moved, x["needed_bytes"], 1), ratio(x["shared_load_requests"], ffmas, 3),
            ratio(x["shared_load_wavefronts"], ffmas, 3),
            ratio(x["shared_load_wavefronts"], x["shared_load_requests"], 2),
            ratio(wavefronts, stores, 2), spaced(conflicts),
            ratio(x["barriers"], x["blocks"], 0),
            spaced(x["mma_requests"]), spaced(x["wgmma_requests"]), spaced(x["wgmma_bytes"]),
            spaced(x["tma_multicast_bytes"]), spaced(x["mbarrier_waits"])]


COUNTED = ["rung", "sectors per load", "global loads per FFMA", "moved / needed",
           "shared loads per FFMA", "wavefronts per FFMA", "wavefronts per load", "wavefronts per store",
           "bank conflicts", "barriers per block"]
TENSOR = ["mma.sync", "wgmma", "bytes read by wgmma", "bytes by multicast", "waits at mbarriers"]


def counts(rows):
    lines = []
    for size in in_order(map(size_of, rows)):
        table = [COUNTED + TENSOR] + [counts_of(row) for row in rows if size_of(row) == size]
        header, *chosen = zip(*(column for column in zip(*table)
                                if column[0] in COUNTED or set(column[1:]) != {"0"}))
        lines += [f"{size}:", ""] + markdown.table(list(header), chosen) + [""]
    return lines[:-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv", nargs="+", help="a file that `tegula ladder --csv` wrote")
    parser.add_argument("--page", default="docs/ladder.md", help="the page (docs/ladder.md)")
    arguments = parser.parse_args()
    timed, counted = {}, {}
    for rows in map(read, arguments.csv):
        chapter = max(chapter_of(row["rung"]) for row in rows)
        chosen = timed if "tflops" in rows[0] else counted
        chosen.setdefault(chapter, []).extend(rows)
    for chapter, rows in timed.items():
        lines = speeds(rows)
        drawing = "ladder.svg" if chapter == 1 else f"ladder_{chapter}.svg"
        if os.path.exists(os.path.join(os.path.dirname(arguments.page), drawing)):
            lines += ["", f"![The ladder's speeds]({drawing})"]
        markdown.fill_in(arguments.page, section("speeds", chapter), lines)
    for chapter, rows in counted.items():
        markdown.fill_in(arguments.page, section("counts", chapter), counts(rows))


if __name__ == "__main__":
    main()
