#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Grouped products of bf16 on a GPU beside torch._grouped_mm: layers of mixtures of experts, with
even and with Zipf-distributed group sizes, along the rows and along k (weight gradients).

    bench/grouped.py [--csv FILE] [--burst SECONDS] [--kernel STRING ...]

Both libraries run in turn on the same arrays, after every result has been checked. A time is the
median of some bursts. The roofline is the dense rate of a large bf16 product of the same run, or
the bytes of A, B and D at 3.0 TB/s.
"""

import argparse
import statistics
import sys
from typing import Callable, Dict, List, Tuple

import torch

import results_csv
import tegula

# Name, experts, n, k, tokens.
SHAPES = [("qwen3-30b up", 128, 1536, 2048, 65536), ("qwen3-30b down", 128, 2048, 768, 65536),
          ("qwen3-30b up", 128, 1536, 2048, 4096), ("mixtral up", 8, 14336, 4096, 8192),
          ("deepseek-v3", 32, 4096, 7168, 8192), ("deepseek-v3", 32, 4096, 7168, 1024)]
BYTES_PER_S = 3.0e12


def sizes_of(kind: str, groups: int, tokens: int) -> torch.Tensor:
    """Group sizes with the sum `tokens`; Zipf: in proportion to 1 / (rank + 1), in random order."""
    if kind == "even":
        shares = torch.full((groups,), 1.0 / groups, dtype=torch.float64)
    else:
        shares = 1.0 / torch.arange(2, groups + 2, dtype=torch.float64)
        shares = shares[torch.randperm(groups, generator=torch.Generator().manual_seed(1))]
    ends = torch.round(torch.cumsum(shares / shares.sum(), 0) * tokens).to(torch.int32)
    return ends.diff(prepend=torch.zeros(1, dtype=torch.int32)).to(torch.int32)


def burst(run: Callable[[], object], seconds: float) -> float:
    """Seconds of a run, in a burst of about this time."""
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


def compare(runs: Dict[str, Callable[[], object]], seconds: float) -> Dict[str, float]:
    times: Dict[str, List[float]] = {name: [] for name in runs}
    for _ in range(3):
        for name, run in runs.items():
            times[name].append(burst(run, seconds))
    return {name: statistics.median(found) for name, found in times.items()}


def check_rows(a: torch.Tensor, b: torch.Tensor, sizes: torch.Tensor, d: torch.Tensor) -> None:
    first = 0
    for group, size in enumerate(sizes.tolist()):
        if size > 0:
            rows = slice(first, first + min(size, 300))
            close(d[rows], a[rows].float() @ b[group].float())
        first += size


def check_depth(a: torch.Tensor, b: torch.Tensor, sizes: torch.Tensor, d: torch.Tensor) -> None:
    first = 0
    for group, size in enumerate(sizes.tolist()):
        part = slice(first, first + size)
        if group < 4 or size == 0:
            close(d[group], a[:, part].float() @ b[part].float())
        first += size


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    error = (found.float() - expected).abs().max().item()
    if not error <= 0.02 * max(1.0, expected.abs().max().item()):
        raise SystemExit(f"wrong result: error {error}")


def dense_rate(seconds: float) -> float:
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    d = torch.empty_like(a)
    runs = {"torch": lambda: torch.matmul(a, b, out=d), "tegula": lambda: tegula.matmul(a, b, out=d)}
    return 2 * 8192.0**3 / min(compare(runs, seconds).values())


def arrays(kind: str, shape: Tuple, along: str) -> Tuple[torch.Tensor, ...]:
    _, groups, n, k, tokens = shape
    sizes = sizes_of(kind, groups, tokens)
    offs = torch.cumsum(sizes, 0).to(torch.int32).cuda()
    a = torch.randn(tokens, k, device="cuda", dtype=torch.bfloat16)
    if along == "k":  # weight gradients: the transposed inputs times the gradients of the outputs
        b = torch.randn(tokens, n, device="cuda", dtype=torch.bfloat16)
        return a.t(), b, offs, sizes
    b = torch.randn(groups, n, k, device="cuda", dtype=torch.bfloat16).mul_(0.05).transpose(1, 2)
    return a, b, offs, sizes


def random_cases(count: int) -> None:
    """Results for random sizes, 0 among them, by a plan for each number of rows."""
    draw = torch.Generator().manual_seed(2)
    for case in range(count):
        sizes = torch.randint(0, 90, (16,), generator=draw, dtype=torch.int32)
        sizes[torch.randint(0, 16, (5,), generator=draw)] = 0
        a = torch.randn(16 * 90, 256, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(16, 256, 384, device="cuda", dtype=torch.bfloat16)
        d = tegula.grouped_matmul(a, b, sizes=sizes.cuda())
        check_rows(a, b, sizes, d)
        x = torch.randn(16 * 90, 384, device="cuda", dtype=torch.bfloat16)
        check_depth(a.t(), x, sizes, tegula.grouped_matmul(a.t(), x, sizes=sizes.cuda()))


def measure(shape: Tuple, kind: str, along: str, options: argparse.Namespace,
            dense: float) -> List[str]:
    name, groups, n, k, tokens = shape
    a, b, offs, sizes = arrays(kind, shape, along)
    d = tegula.grouped_matmul(a, b, offs)
    (check_depth if along == "k" else check_rows)(a, b, sizes, d)
    runs: Dict[str, Callable[[], object]] = {
        "tegula": lambda: tegula.grouped_matmul(a, b, offs, out=d),
        "torch": lambda: torch._grouped_mm(a, b, offs=offs)}
    for kernel in options.kernel:
        try:
            tegula.grouped_matmul(a, b, offs, out=d, kernel=kernel)
        except tegula.TegulaError:
            continue
        runs[kernel] = lambda kernel=kernel: tegula.grouped_matmul(a, b, offs, out=d, kernel=kernel)
    flops = 2.0 * n * k * tokens
    filled = groups if along == "k" else int((sizes > 0).sum())
    least = max(flops / dense, 2.0 * (tokens * (n + k) + filled * n * k) / BYTES_PER_S)
    times = compare(runs, options.burst)
    return [f"{name},{groups},{n},{k},{tokens},{along},{kind},{run},{seconds * 1e6:.1f},"
            f"{flops / seconds * 1e-12:.1f},{least / seconds:.3f},{times['torch'] / seconds:.3f}"
            for run, seconds in times.items()]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv", help="a file for the results; else they are printed")
    parser.add_argument("--burst", type=float, default=0.02, help="seconds of a burst")
    parser.add_argument("--kernel", action="append", default=[], help="also measure this kernel")
    parser.add_argument("--along", default="rows,k")
    parser.add_argument("--shapes", default="0,1,2,3,4,5", help="indices of the shapes")
    options = parser.parse_args()
    random_cases(8)
    dense = dense_rate(options.burst)
    out = open(options.csv, "w", encoding="utf-8") if options.csv else sys.stdout
    if options.csv:
        out.write(results_csv.origin())
    print(f"# note: {torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}, "
          f"tegula {tegula.__version__}, dense bf16 {dense * 1e-12:.0f} T/s", file=out)
    print("layer,experts,n,k,tokens,along,sizes,library,us,tflops,of_roofline,vs_torch", file=out)
    for along in options.along.split(","):
        for index in options.shapes.split(","):
            for kind in "even", "zipf":
                for line in measure(SHAPES[int(index)], kind, along, options, dense):
                    print(line, file=out, flush=True)


if __name__ == "__main__":
    main()
