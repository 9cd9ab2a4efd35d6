#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times products of 8-bit types with scale factors on a GPU, by Tegula and PyTorch.

The shapes are squares, and layers of Llama-3 8B. PyTorch computes them by torch._scaled_mm and torch._int_mm.

    bench/scaled.py [--csv FILE] [--burst SECONDS] [--kinds KIND ...]

Both libraries run in turn on the same arrays, after the first rows of each result have been checked. A time is
the median of three bursts (bursts.py). best_peer is PyTorch's time with the fastest kind of factors at that
size (for int8: PyTorch's time of int8), divided by the time of the row.
"""

import argparse
import sys
from typing import Callable, Dict, List, Tuple

import torch

import tegula
from bursts import begin_table, close, compare

SQUARES = [(side, side, side) for side in (2048, 4096, 8192, 16384)]
LAYERS = [(rows, n, k) for rows in (1, 16, 64, 256, 1024, 4096)
          for n, k in ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336))]
KINDS = ("tensor", "lines", "blocks", "int8")
Arrays = Tuple[torch.Tensor, ...]


def blocks_of(size: int) -> int:
    return (size + 127) // 128


def scales_of(kind: str, m: int, n: int, k: int) -> Arrays:
    """Random factors in the memory order of torch._scaled_mm. Kind "blocks": a factor for each 1 x 128
    elements of a, and for each 128 x 128 of b."""
    def draw(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, device="cuda") + 0.5
    if kind == "tensor":
        return draw(1), draw(1)
    if kind == "lines":
        return draw(m, 1), draw(1, n)
    padded = (blocks_of(k) + 3) // 4 * 4
    return draw(blocks_of(k), m).t(), draw(blocks_of(n), padded).t()[:blocks_of(k)]


def whole(scale: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """The factors, expanded to a matrix with the factor of each element."""
    for axis, size in enumerate((rows, columns)):
        if scale.dim() == 2 and scale.shape[axis] not in (1, size):
            scale = scale.repeat_interleave(128, axis).narrow(axis, 0, size)
    return scale


def arrays(kind: str, m: int, n: int, k: int) -> Arrays:
    if kind == "int8":
        a, b = (torch.randint(-128, 128, shape, device="cuda", dtype=torch.int8) for shape in ((m, k), (n, k)))
        return a, b.t()
    a, b = (torch.randn(shape, device="cuda").to(torch.float8_e4m3fn) for shape in ((m, k), (n, k)))
    return (a, b.t(), *scales_of(kind, m, n, k))


def check(kind: str, found: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *scales: torch.Tensor) -> None:
    """Compares the first rows of the result with a reference."""
    rows = min(len(a), 64)
    wide = torch.float64 if kind == "int8" else torch.float32
    x, y = a.to(wide), b.to(wide)
    if scales:
        x, y = x * whole(scales[0], *a.shape), y * whole(scales[1], *b.shape)
    wanted = x[:rows] @ y
    if kind != "int8":
        close(found[:rows], wanted)
    elif not torch.equal(found[:rows].double(), wanted):
        raise SystemExit("wrong result of int8")


def runs_of(kind: str, a: torch.Tensor, b: torch.Tensor, *scales: torch.Tensor) -> Dict[str, Callable[[], torch.Tensor]]:
    if kind == "int8":
        return {"tegula": lambda: tegula.matmul(a, b), "torch": lambda: torch._int_mm(a, b)}
    runs = {"tegula": lambda: tegula.matmul(a, b, scale_a=scales[0], scale_b=scales[1]),
            "torch": lambda: torch._scaled_mm(a, b, *scales, out_dtype=torch.bfloat16)}
    if kind == "tensor":
        runs["torch-fast"] = lambda: torch._scaled_mm(a, b, *scales, out_dtype=torch.bfloat16, use_fast_accum=True)
    return runs


def measure(kind: str, m: int, n: int, k: int, seconds: float) -> Dict[str, float]:
    """The seconds of each library. Functions of PyTorch that refuse the product are left out."""
    data = arrays(kind, m, n, k)
    runs = {}
    for name, run in runs_of(kind, *data).items():
        try:
            found = run()
        except (RuntimeError, ValueError) as error:
            if name == "tegula":
                raise
            print(f"{kind} {m}x{n}x{k}: {name}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        check(kind, found, *data)
        runs[name] = run
    return compare(runs, seconds)


def lines_of(shape: Tuple[int, int, int], kinds: List[str], seconds: float) -> List[str]:
    found = {kind: measure(kind, *shape, seconds) for kind in kinds}
    flops = 2.0 * shape[0] * shape[1] * shape[2]
    lines = []
    for kind, times in found.items():
        same = {"int8"} if kind == "int8" else set(found) - {"int8"}
        best = min((t for other in same for name, t in found[other].items() if name != "tegula"), default=None)
        for name, t in times.items():
            own = [u for other, u in times.items() if other != "tegula"]
            ratios = [f"{min(own) / t:.3f}" if own else "", f"{best / t:.3f}" if best else ""]
            lines.append(",".join([kind, *map(str, shape), name, f"{t * 1e6:.2f}", f"{flops / t * 1e-12:.1f}", *ratios]))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--csv", help="a file for the results; else they are printed")
    parser.add_argument("--burst", type=float, default=0.02, help="seconds of a burst")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    options = parser.parse_args()
    out = begin_table(options.csv, "; e4m3 with results of bf16, i8 with results of i32",
                      "factors,m,n,k,library,us,tflops,vs_torch,best_peer")
    for shape in SQUARES + LAYERS:
        for line in lines_of(shape, options.kinds, options.burst):
            print(line, file=out, flush=True)


if __name__ == "__main__":
    main()
