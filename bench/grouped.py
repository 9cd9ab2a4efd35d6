#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times grouped products of Tegula and PyTorch on a GPU.

The products are layers of mixtures of experts. Their group sizes are equal or have a Zipf distribution. The
groups divide the rows or, for gradients of weights, k.

    bench/grouped.py [--type bf16|e4m3] [--csv FILE] [--burst SECONDS] [--kernel STRING ...]

Both libraries run in turn on the same arrays. Before that, parts of the results are checked: with bf16 the
result of the planner's kernel, with e4m3 all results. A time is the median of three bursts (bursts.py). The
roofline of bf16 is the longer of two times: that of the operations at the rate of a large dense product in
the same run, and that of the bytes of A, B and D at 3.0 TB/s. PyTorch's function is torch._grouped_mm.

e4m3: groups of rows. `tegula` has a factor for each row and 128 of k of A, and for each block of
128 x 128 of B. `tegula lines` has a factor for each row of A and each column of B, as
torch._scaled_grouped_mm has, which is timed if it exists. The roofline uses Tegula's own dense rate with
factors of blocks, and the rate at which a sum reads memory; both are measured in the same run.
"""

import argparse
from typing import Dict, List, NamedTuple, Tuple

import torch

import tegula
from bursts import Runs, begin_table, close, compare

# Columns: name, number of experts, n, k, number of tokens.
SHAPES = [("qwen3-30b up", 128, 1536, 2048, 65536), ("qwen3-30b down", 128, 2048, 768, 65536),
          ("qwen3-30b up", 128, 1536, 2048, 4096), ("mixtral up", 8, 14336, 4096, 8192),
          ("deepseek-v3", 32, 4096, 7168, 8192), ("deepseek-v3", 32, 4096, 7168, 1024)]
BYTES_PER_S = 3.0e12
BLOCK = 128  # TGL_SCALING_BLOCK
E4M3 = torch.float8_e4m3fn


def sizes_of(kind: str, groups: int, tokens: int) -> torch.Tensor:
    """Group sizes with the sum `tokens`; Zipf: in proportion to 1 / (rank + 1), in random order."""
    if kind == "even":
        shares = torch.full((groups,), 1.0 / groups, dtype=torch.float64)
    else:
        shares = 1.0 / torch.arange(2, groups + 2, dtype=torch.float64)
        shares = shares[torch.randperm(groups, generator=torch.Generator().manual_seed(1))]
    ends = torch.round(torch.cumsum(shares / shares.sum(), 0) * tokens).to(torch.int32)
    return ends.diff(prepend=torch.zeros(1, dtype=torch.int32)).to(torch.int32)


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


def dense_rate(seconds: float) -> float:
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    d = torch.empty_like(a)
    runs = {"torch": lambda: torch.matmul(a, b, out=d), "tegula": lambda: tegula.matmul(a, b, out=d)}
    return 2 * 8192.0**3 / min(compare(runs, seconds).values())


def draw(*shape: int) -> torch.Tensor:
    """Random scale factors."""
    return torch.rand(*shape, device="cuda") + 0.5


def dense_fp8_rate(seconds: float) -> float:
    """FLOP/s of Tegula's product of large e4m3 matrices with factors of blocks."""
    edge = 8192
    a, b = (torch.randn(edge, edge, device="cuda", dtype=torch.bfloat16).to(E4M3) for _ in range(2))
    scale_a, scale_b = draw(edge // BLOCK, edge).t(), draw(edge // BLOCK, edge // BLOCK).t()
    d = torch.empty(edge, edge, device="cuda", dtype=torch.bfloat16)
    run = lambda: tegula.matmul(a, b.t(), d, scale_a=scale_a, scale_b=scale_b)
    return 2 * float(edge)**3 / compare({"dense": run}, seconds)["dense"]


def read_rate(seconds: float) -> float:
    """Bytes/s of a sum over 4 GB."""
    x = torch.ones(1 << 30, device="cuda")
    return x.numel() * 4 / compare({"sum": x.sum}, seconds)["sum"]


class Fp8(NamedTuple):
    """Operands of a product of groups of rows in e4m3. blocks, lines: two kinds of factors of a and b."""

    a: torch.Tensor
    b: torch.Tensor
    offs: torch.Tensor
    sizes: torch.Tensor
    blocks: Tuple[torch.Tensor, torch.Tensor]
    lines: Tuple[torch.Tensor, torch.Tensor]


def fp8_arrays(kind: str, shape: Tuple) -> Fp8:
    _, groups, n, k, tokens = shape
    sizes = sizes_of(kind, groups, tokens)
    offs = torch.cumsum(sizes, 0).to(torch.int32).cuda()
    a = torch.randn(tokens, k, device="cuda", dtype=torch.bfloat16).to(E4M3)
    b = torch.randn(groups, n, k, device="cuda", dtype=torch.bfloat16).to(E4M3).transpose(1, 2)
    blocks = draw(k // BLOCK, tokens).t(), draw(groups, n // BLOCK, k // BLOCK).transpose(1, 2)
    return Fp8(a, b, offs, sizes, blocks, (draw(tokens), draw(groups, n)))


def check_fp8(of: Fp8, by_block: bool, d: torch.Tensor) -> None:
    first = 0
    scale_a, scale_b = of.blocks if by_block else of.lines
    for group, size in enumerate(of.sizes.tolist()):
        rows = slice(first, first + min(size, 300))
        if size > 0 and by_block:
            of_a = scale_a[rows].repeat_interleave(BLOCK, 1)
            of_b = scale_b[group].repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
            close(d[rows], (of.a[rows].float() * of_a) @ (of.b[group].float() * of_b))
        elif size > 0:
            of_a, of_b = scale_a[rows, None], scale_b[group][None, :]
            close(d[rows], (of.a[rows].float() @ of.b[group].float()) * of_a * of_b)
        first += size


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
    """Checks results for random group sizes, some of which are 0."""
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
    runs: Runs = {
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
    return lines_of(shape, kind, along, compare(runs, options.burst), least)


def lines_of(shape: Tuple, kind: str, along: str, times: Dict[str, float], least: float) -> List[str]:
    """Lines of the table for one shape. least: the time of the roofline, in seconds."""
    name, groups, n, k, tokens = shape
    flops = 2.0 * n * k * tokens
    of_torch = times.get("torch", float("nan"))
    return [f"{name},{groups},{n},{k},{tokens},{along},{kind},{run},{seconds * 1e6:.1f},"
            f"{flops / seconds * 1e-12:.1f},{least / seconds:.3f},{of_torch / seconds:.3f}"
            for run, seconds in times.items()]


def measure_fp8(shape: Tuple, kind: str, options: argparse.Namespace, dense: float,
                bytes_per_s: float) -> List[str]:
    _, groups, n, k, tokens = shape
    of = fp8_arrays(kind, shape)
    d = torch.empty(tokens, n, device="cuda", dtype=torch.bfloat16)

    def product(by_block: bool, kernel: str = "") -> object:
        scale_a, scale_b = of.blocks if by_block else of.lines
        return tegula.grouped_matmul(of.a, of.b, of.offs, out=d, kernel=kernel or None, scale_a=scale_a,
                                     scale_b=scale_b)

    runs: Runs = {"tegula": lambda: product(True), "tegula lines": lambda: product(False)}
    for kernel in options.kernel:
        try:
            product(True, kernel)
        except tegula.TegulaError:
            continue
        runs[kernel] = lambda kernel=kernel: product(True, kernel)
    for name, run in runs.items():
        d.fill_(float("nan"))
        run()
        check_fp8(of, name != "tegula lines", d)
    if hasattr(torch, "_scaled_grouped_mm"):
        scaled = lambda: torch._scaled_grouped_mm(of.a, of.b, *of.lines, offs=of.offs, out_dtype=torch.bfloat16)
        try:
            check_fp8(of, False, scaled())
            runs["torch"] = scaled
        except (RuntimeError, ValueError) as error:
            print(f"# note: torch._scaled_grouped_mm: {str(error).splitlines()[0]}")
    filled = int((of.sizes > 0).sum())
    least = max(2.0 * n * k * tokens / dense, (tokens * (2 * n + k) + filled * n * k) / bytes_per_s)
    return lines_of(shape, kind, "rows", compare(runs, options.burst), least)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv", help="a file for the results; else they are printed")
    parser.add_argument("--burst", type=float, default=0.02, help="seconds of a burst")
    parser.add_argument("--kernel", action="append", default=[], help="also measure this kernel")
    parser.add_argument("--along", default="rows,k", help="of bf16")
    parser.add_argument("--type", choices=("bf16", "e4m3"), default="bf16")
    parser.add_argument("--shapes", default="0,1,2,3,4,5", help="indices of the shapes")
    options = parser.parse_args()
    is_fp8 = options.type == "e4m3"
    random_cases(8)
    dense = (dense_fp8_rate if is_fp8 else dense_rate)(options.burst)
    bytes_per_s = read_rate(options.burst) if is_fp8 else BYTES_PER_S
    out = begin_table(options.csv, f", dense {options.type} {dense * 1e-12:.0f} T/s, {bytes_per_s * 1e-12:.2f} TB/s",
                      "layer,experts,n,k,tokens,along,sizes,library,us,tflops,of_roofline,vs_torch")
    for along in ["rows"] if is_fp8 else options.along.split(","):
        for index in options.shapes.split(","):
            for kind in "even", "zipf":
                shape = SHAPES[int(index)]
                lines = measure_fp8(shape, kind, options, dense, bytes_per_s) if is_fp8 else \
                    measure(shape, kind, along, options, dense)
                for line in lines:
                    print(line, file=out, flush=True)


if __name__ == "__main__":
    main()
