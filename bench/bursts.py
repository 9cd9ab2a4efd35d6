# SPDX-License-Identifier: Apache-2.0
"""Functions for scripts that time Tegula beside PyTorch on a GPU. A burst is a series of runs without a wait
between them."""

import statistics
import sys
from typing import Callable, Dict, List, Optional, TextIO

import torch

import results_csv
import tegula

Runs = Dict[str, Callable[[], object]]


def burst(run: Callable[[], object], seconds: float) -> float:
    """The mean seconds of a run, in a burst of about `seconds`."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    count = 2
    while True:
        begin.record()
        for _ in range(count):
            run()
        end.record()
        end.synchronize()
        taken = begin.elapsed_time(end) * 1e-3
        if taken >= 0.7 * seconds:
            return taken / count
        count = max(count + 1, int(count * seconds / max(taken, 1e-6)))


def compare(runs: Runs, seconds: float) -> Dict[str, float]:
    times: Dict[str, List[float]] = {name: [] for name in runs}
    for _ in range(3):
        for name, run in runs.items():
            times[name].append(burst(run, seconds))
    return {name: statistics.median(found) for name, found in times.items()}


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    error = (found.float() - expected).abs().max().item()
    if not error <= 0.02 * max(1.0, expected.abs().max().item()):
        raise SystemExit(f"wrong result: error {error}")


def begin_table(path: Optional[str], note: str, columns: str) -> TextIO:
    """Opens the file for the results (None: standard output), and writes their origin (only into a file), a
    line with the GPU and versions, and the names of the columns. note: text that is added to that line."""
    out = open(path, "w", encoding="utf-8") if path else sys.stdout
    if path:
        out.write(results_csv.origin())
    print(f"# note: {torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}, "
          f"tegula {tegula.__version__}{note}", file=out)
    print(columns, file=out)
    return out
