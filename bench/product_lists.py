#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times lists of products of unrelated sizes on a GPU.

Compared are tgl_grouped_list(), a loop of tgl_gemm(), a loop of torch.mm() (single calls of cuBLAS), and
cublasGemmGroupedBatchedEx().

    bench/product_lists.py [--csv FILE] [--burst SECONDS] [--lists NAME,...]

Columns: us: microseconds of a list that the host calls in a loop. graph_us: microseconds of a replay of a
CUDA graph of the same calls, which takes no time of the host. vs_cublas, graph_vs_cublas: the time of the
loop of torch.mm() divided by this time. The results of a list are checked before the list is timed.
"""

import argparse
import ctypes
import random
import sys
from ctypes import c_int, c_void_p
from typing import Callable, Dict, List, Tuple

import torch

import tegula
from bursts import begin_table, compare
from tegula._library import Operands, Problem, TYPES, check, lib

Sizes = List[Tuple[int, int, int]]
Run = Callable[[], object]

lib.tgl_grouped_list.argtypes = [c_void_p, ctypes.c_int64, c_void_p, c_void_p, c_void_p]
lib.tgl_gemm.argtypes = [c_void_p, c_void_p, ctypes.c_double, c_void_p, c_void_p, ctypes.c_double,
                         c_void_p, c_void_p]

# cudaDataType_t and cublasComputeType_t of each type.
CUBLAS_TYPES = {torch.float32: (0, 68), torch.float16: (2, 68), torch.bfloat16: (14, 68)}


def drawn(count: int, least: int, most: int, unit: int) -> Sizes:
    """Random sizes (m, n, k) from `least` to `most`, uniform on a logarithmic scale, multiples of `unit`."""
    draw = random.Random(count * most + unit)

    def side() -> int:
        return max(unit, round(least * (most / least)**draw.random() / unit) * unit)
    return [(side(), side(), side()) for _ in range(count)]


# Columns: name, type, sizes. The lists are products of several sizes, odd sizes, adapters (LoRA), and blocks of
# a sparse matrix.
LISTS: List[Tuple[str, torch.dtype, Sizes]] = [
    ("small", torch.bfloat16, drawn(16, 16, 256, 8)), ("small", torch.bfloat16, drawn(64, 16, 256, 8)),
    ("medium", torch.bfloat16, drawn(16, 128, 1024, 8)),
    ("medium", torch.bfloat16, drawn(64, 128, 1024, 8)),
    ("large", torch.bfloat16, drawn(32, 512, 1400, 8)),
    ("odd", torch.bfloat16, drawn(32, 16, 512, 1)),
    ("lora", torch.bfloat16, [(m, 4096, 16) for m in range(8, 8 * 33, 8)]),
    ("equal", torch.bfloat16, [(256, 256, 256)] * 48),
    ("small", torch.float32, drawn(64, 16, 256, 4)), ("medium", torch.float32, drawn(32, 128, 768, 4)),
    ("odd", torch.float32, drawn(32, 16, 256, 1)), ("200", torch.bfloat16, drawn(200, 16, 256, 8))]


class Matrices:
    """The matrices of a list, row-major, and the C structs that describe them."""

    def __init__(self, dtype: torch.dtype, sizes: Sizes) -> None:
        self.sizes = sizes
        self.dtype = dtype
        self.a = [torch.randn(m, k, device="cuda", dtype=dtype) for m, _, k in sizes]
        self.b = [torch.randn(k, n, device="cuda", dtype=dtype) for _, n, k in sizes]
        self.c = [torch.empty(m, n, device="cuda", dtype=dtype) for m, n, _ in sizes]
        count = len(sizes)
        self.problems, self.operands = (Problem * count)(), (Operands * count)()
        for i, (m, n, k) in enumerate(sizes):
            number = TYPES[str(dtype).rpartition(".")[2]]
            check(lib.tgl_problem_init(ctypes.byref(self.problems[i]), ctypes.sizeof(Problem), number, m, n, k))
            if dtype == torch.float32:
                self.problems[i].compute = 1  # TGL_COMPUTE_IEEE, as torch.mm() computes
            self.operands[i] = Operands(alpha=1.0, A=self.a[i].data_ptr(), B=self.b[i].data_ptr(),
                                        C=self.c[i].data_ptr())

    def flops(self) -> float:
        return sum(2.0 * m * n * k for m, n, k in self.sizes)

    def check(self, name: str) -> None:
        torch.cuda.synchronize()
        for a, b, c in zip(self.a, self.b, self.c):
            expected = (a.double() @ b.double())
            error = (c.double() - expected).abs().max().item()
            if not error <= 0.02 * max(1.0, expected.abs().max().item()):
                raise SystemExit(f"{name}: wrong result: error {error}")
            c.fill_(float("nan"))


def stream() -> int:
    return torch.cuda.current_stream().cuda_stream


def list_run(device: tegula.Device, of: Matrices) -> Run:
    count, problems, operands = len(of.sizes), ctypes.addressof(of.problems), ctypes.addressof(of.operands)
    return lambda: check(lib.tgl_grouped_list(device.handle, count, problems, operands, stream()))


def single_run(device: tegula.Device, of: Matrices) -> Run:
    calls = [(ctypes.addressof(p), o.A, o.B, o.C) for p, o in zip(of.problems, of.operands)]

    def run() -> None:
        at = stream()
        for problem, a, b, c in calls:
            check(lib.tgl_gemm(device.handle, problem, 1.0, a, b, 0.0, c, at))
    return run


def torch_run(of: Matrices) -> Run:
    def run() -> None:
        for a, b, c in zip(of.a, of.b, of.c):
            torch.mm(a, b, out=c)
    return run


def cublas_path() -> str:
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next((line.split()[-1] for line in maps if "libcublas.so" in line), "")


def cublas_run(of: Matrices) -> Run:
    """A function that calls cublasGemmGroupedBatchedEx() with a group for each product. cuBLAS is column-major,
    so it computes the transposed product, and A and B are exchanged."""
    function = ctypes.CDLL(cublas_path()).cublasGemmGroupedBatchedEx
    count = len(of.sizes)
    m, n, k = ((c_int * count)(*column) for column in zip(*of.sizes))
    none, ones = (c_int * count)(), (c_int * count)(*[1] * count)
    alpha, beta = (ctypes.c_float * count)(*[1.0] * count), (ctypes.c_float * count)()
    a, b, c = (torch.tensor([x.data_ptr() for x in matrices], device="cuda", dtype=torch.int64)
               for matrices in (of.a, of.b, of.c))
    kind, compute = CUBLAS_TYPES[of.dtype]

    def run() -> None:
        status = function(c_void_p(torch.cuda.current_blas_handle()), none, none, n, m, k, alpha,
                          c_void_p(b.data_ptr()), kind, n, c_void_p(a.data_ptr()), kind, k, beta,
                          c_void_p(c.data_ptr()), kind, n, count, ones, compute)
        if status != 0:
            raise RuntimeError(f"cublasGemmGroupedBatchedEx: {status}")
    return run


def captured(run: Run) -> Run:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def measure(name: str, dtype: torch.dtype, sizes: Sizes, seconds: float) -> List[str]:
    device = tegula.device(f"cuda:{torch.cuda.current_device()}")
    of = Matrices(dtype, sizes)
    runs: Dict[str, Run] = {"tegula list": list_run(device, of), "tegula single": single_run(device, of),
                            "torch": torch_run(of)}
    try:
        grouped = cublas_run(of)
        grouped()
        runs["cublas grouped"] = grouped
    except (AttributeError, OSError, RuntimeError) as error:
        print(f"# {name}: {error}", file=sys.stderr)
    for library, run in runs.items():
        run()
        of.check(f"{name}, {library}")
    graphs = {library: captured(run) for library, run in runs.items()}
    called, replayed = compare(runs, seconds), compare(graphs, seconds)
    return [f"{name},{str(dtype).rpartition('.')[2]},{len(sizes)},{library},{called[library] * 1e6:.1f},"
            f"{replayed[library] * 1e6:.1f},{of.flops() / replayed[library] * 1e-12:.2f},"
            f"{called['torch'] / called[library]:.3f},{replayed['torch'] / replayed[library]:.3f}"
            for library in runs]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv", help="a file for the results; else they are printed")
    parser.add_argument("--burst", type=float, default=0.02, help="seconds of a burst")
    parser.add_argument("--lists", help="names of the lists; else all")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    out = begin_table(options.csv, "", "list,type,count,library,us,graph_us,graph_tflops,vs_cublas,graph_vs_cublas")
    for name, dtype, sizes in LISTS:
        if options.lists is None or name in options.lists.split(","):
            for line in measure(name, dtype, sizes, options.burst):
                print(line, file=out, flush=True)


if __name__ == "__main__":
    main()
