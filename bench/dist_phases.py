# SPDX-License-Identifier: Apache-2.0
"""Times the phases of GEMM + reduce-scatter on two GPUs of this host, each alone and together.

    PYTHONPATH=python TEGULA_LIBRARY=build/libtegula.so python3 bench/dist_phases.py [--csv FILE]

A phase is the product of a chunk of rows, in one of several ways, or the move of a chunk to the other GPU. One
process drives both GPUs, which do the same at the same time. Work waits in the streams until everything is
enqueued, so that the host's time does not count. Columns, in us a product (of the slower GPU):

    product    D := A*B
    beta       C := A*B + C, with the received sums in C
    residual   D := A*B + R, with the received sums as residual
    remote     D := A*B, with D in the memory of the other GPU
    copy       a copy engine moves a chunk to the other GPU; no products
    + copies   as product, while copy engines move chunks in both directions all the time
    + write    as product, after each of which the GPU sets a flag of the other one
    + flags    as product, after each of which the GPUs signal each other and wait (dist/transport_nccl.c)
"""

import argparse
import csv
import ctypes
import statistics
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import results_csv
import tegula
import torch
from tegula._library import Epilogue, Operands, PlanOptions, Problem, check, lib

GPUS = 2
BF16 = 4
SHAPES = ((256, 8192, 14336), (512, 8192, 14336), (1024, 8192, 14336), (2048, 8192, 14336), (4096, 8192, 14336),
          (8192, 8192, 14336), (4096, 8192, 4096), (1024, 8192, 7168), (1024, 8192, 2048))
WAYS = ("product", "beta", "residual", "remote", "copy", "+ copies", "+ write", "+ flags")
SPIN = 40_000_000  # clock cycles for which streams wait while the host enqueues

cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuStreamWriteValue32_v2.argtypes = [c_void_p, c_void_p, c_uint, c_uint]
cuda.cuStreamBatchMemOp_v2.argtypes = [c_void_p, c_uint, c_void_p, c_uint]
cuda.cuMemcpyDtoDAsync_v2.argtypes = [c_void_p, c_void_p, c_size_t, c_void_p]


class MemoryOperation(ctypes.Structure):
    """CUstreamBatchMemOpParams: 48 bytes. operation: 1 waits until the value is there, 2 writes it."""

    _fields_ = [("operation", c_int), ("address", c_void_p), ("value", c_uint64), ("flags", c_uint),
                ("alias", c_uint64 * 2)]


class Gpu(NamedTuple):
    device: Any
    stream: Any
    copies: Any  # the stream of the copies
    flags: torch.Tensor
    A: torch.Tensor
    B: torch.Tensor
    sums: torch.Tensor
    D: torch.Tensor


def open_gpus(m: int, n: int, k: int, fill: Callable[..., torch.Tensor]) -> List[Gpu]:
    """The GPUs with matrices that fill(rows, columns, device=...) makes."""
    gpus = []
    for number in range(GPUS):
        with torch.cuda.device(number):
            matrices = [fill(rows, columns, device=f"cuda:{number}").to(torch.bfloat16)
                        for rows, columns in ((m, k), (k, n), (m, n), (m, n))]
            gpus.append(Gpu(tegula.device(f"cuda:{number}").handle, torch.cuda.Stream(number),
                            torch.cuda.Stream(number),
                            torch.zeros(64, dtype=torch.int32, device=f"cuda:{number}"), *matrices))
    gpus[0].sums[:1].copy_(gpus[1].sums[:1])  # PyTorch lets the GPUs access each other's memory
    gpus[1].sums[:1].copy_(gpus[0].sums[:1])
    synchronize()  # the products run in other streams
    return gpus


def synchronize() -> None:
    for number in range(GPUS):
        torch.cuda.synchronize(number)


# ---- Products -----------------------------------------------------------------------------------


def make_plan(gpu: Gpu, m: int, n: int, k: int, separate_d: bool, residual: bool) -> c_void_p:
    problem, plan = Problem(), c_void_p()
    check(lib.tgl_problem_init(byref(problem), ctypes.sizeof(problem), BF16, m, n, k))
    problem.type_d = BF16 if separate_d else 0
    epilogue = Epilogue(residual=1)
    options = PlanOptions(epilogue=ctypes.pointer(epilogue)) if residual else PlanOptions()
    check(lib.tgl_plan_create(gpu.device, byref(problem), byref(options), byref(plan)))
    return plan


def product(gpu: Gpu, plan: c_void_p, target: torch.Tensor, beta: float, residual: bool) -> Callable[[], None]:
    operands = Operands(alpha=1.0, beta=beta, A=gpu.A.data_ptr(), B=gpu.B.data_ptr(), C=target.data_ptr(),
                        residual=gpu.sums.data_ptr() if residual else None)
    return lambda: check(lib.tgl_plan_run_operands(plan, byref(operands), gpu.stream.cuda_stream))


# ---- Flags --------------------------------------------------------------------------------------


def succeed(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"the driver returned {status}")


def set_flag(gpu: Gpu, other: Gpu) -> None:
    """Sets the flag of the other GPU."""
    succeed(cuda.cuStreamWriteValue32_v2(gpu.stream.cuda_stream, other.flags.data_ptr(), 1, 0))


def await_flag(gpu: Gpu) -> None:
    """Waits for the GPU's own flag, and clears it."""
    own = gpu.flags.data_ptr()
    two = (MemoryOperation * 2)(MemoryOperation(1, own, 1, 1), MemoryOperation(2, own, 0, 0))
    succeed(cuda.cuStreamBatchMemOp_v2(gpu.stream.cuda_stream, 2, two, 0))


# ---- Times --------------------------------------------------------------------------------------


def us_of(gpus: List[Gpu], streams: List[Any], enqueue: Callable[[int, int], None], runs: int) -> float:
    """Median over 3 rounds of the microseconds of one of `runs` calls of enqueue(gpu, number), on the slower GPU."""
    rounds = []
    for _ in range(4):
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in gpus]
        for gpu in gpus:
            for stream in (gpu.stream, gpu.copies):
                with torch.cuda.device(stream.device), torch.cuda.stream(stream):
                    torch.cuda._sleep(SPIN)
        for i, stream in enumerate(streams):
            events[i][0].record(stream)
        for run in range(runs):
            for i in range(len(gpus)):
                with torch.cuda.device(i):
                    enqueue(i, run)
        for i, stream in enumerate(streams):
            events[i][1].record(stream)
        synchronize()
        rounds.append(max(a.elapsed_time(b) for a, b in events) * 1e3 / runs)
    return statistics.median(rounds[1:])


def measure(gpus: List[Gpu], m: int, n: int, k: int, runs: int) -> Dict[str, float]:
    streams = [gpu.stream for gpu in gpus]
    ways: Dict[str, List[Callable[[], None]]] = {way: [] for way in WAYS[:4]}
    plans = []
    for i, gpu in enumerate(gpus):
        plain, beta, residual = (make_plan(gpu, m, n, k, *way) for way in ((False, False), (False, False),
                                                                          (False, True)))
        plans += [plain, beta, residual]
        ways["product"].append(product(gpu, plain, gpu.D, 0, False))
        ways["beta"].append(product(gpu, beta, gpu.D, 1, False))
        ways["residual"].append(product(gpu, residual, gpu.D, 0, True))
        ways["remote"].append(product(gpu, plain, gpus[1 - i].D, 0, False))
    times = {way: us_of(gpus, streams, lambda i, _, way=way: ways[way][i](), runs) for way in ways}

    def move(i: int, _: int) -> None:
        succeed(cuda.cuMemcpyDtoDAsync_v2(gpus[1 - i].sums.data_ptr(), gpus[i].sums.data_ptr(), m * n * 2,
                                          gpus[i].copies.cuda_stream))

    def beside(i: int, run: int) -> None:
        ways["product"][i]()
        while moved[i] * times["copy"] < (run + 1) * times["product"]:
            move(i, run)
            moved[i] += 1

    def with_write(i: int, _: int) -> None:
        ways["product"][i]()
        set_flag(gpus[i], gpus[1 - i])

    def with_flags(i: int, run: int) -> None:
        with_write(i, run)
        await_flag(gpus[i])

    times["copy"] = us_of(gpus, [gpu.copies for gpu in gpus], move, runs)
    moved = [0] * GPUS
    times["+ copies"] = us_of(gpus, streams, beside, runs)
    times["+ write"] = us_of(gpus, streams, with_write, runs)
    for gpu in gpus:
        gpu.flags.zero_()
    synchronize()
    times["+ flags"] = us_of(gpus, streams, with_flags, runs)
    for plan in plans:
        lib.tgl_plan_destroy(plan)
    return times


def integers(rows: int, columns: int, device: str) -> torch.Tensor:
    return torch.randint(-2, 3, (rows, columns), device=device)


def verify(m: int, n: int, k: int) -> Optional[str]:
    """Products of integers, whose sums are exact, with a residual and in the memory of the other GPU. Returns the
    fault, or None."""
    gpus = open_gpus(m, n, k, integers)
    for i, gpu in enumerate(gpus):
        exact = gpu.A.float() @ gpu.B.float()
        synchronize()
        for name, target, has_residual in (("residual", gpu.D, True), ("remote", gpus[1 - i].D, False)):
            plan = make_plan(gpu, m, n, k, False, has_residual)
            product(gpu, plan, target, 0, has_residual)()
            synchronize()
            wanted = (exact + gpu.sums.float() if has_residual else exact).to(torch.bfloat16)
            wrong = int((target.to(gpu.A.device) != wanted).sum())
            lib.tgl_plan_destroy(plan)
            if wrong != 0:
                return f"GPU {i}, {m} x {n} x {k}: {name}: {wrong} elements are wrong"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--csv", help="where to write the times")
    parser.add_argument("--seconds", type=float, default=0.03, help="for each of four rounds of a time")
    parser.add_argument("--shapes", nargs="+", help="M,N,K of chunks, instead of those of the layers")
    options = parser.parse_args()
    shapes = [tuple(map(int, text.split(","))) for text in options.shapes] if options.shapes else SHAPES
    if torch.cuda.device_count() < GPUS:
        print("two GPUs are needed: nothing is measured")
        return 0
    rows = []
    print(f"{'m':>6} {'n':>6} {'k':>6} {'runs':>5} " + " ".join(f"{way:>9}" for way in WAYS), flush=True)
    for m, n, k in shapes:
        fault = verify(m, n, k)
        if fault is not None:
            print(fault)
            return 1
        gpus = open_gpus(m, n, k, torch.randn)
        seconds = 2 * m * n * k / 650e12
        runs = max(4, min(200, int(options.seconds / seconds)))
        times = measure(gpus, m, n, k, runs)
        rows.append({"m": m, "n": n, "k": k, **{way: f"{us:.1f}" for way, us in times.items()}})
        print(f"{m:6} {n:6} {k:6} {runs:5} " + " ".join(f"{times[way]:9.1f}" for way in WAYS), flush=True)
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            file.write(results_csv.origin())
            writer = csv.DictWriter(file, ["m", "n", "k", *WAYS])
            writer.writeheader()
            writer.writerows(rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
