# SPDX-License-Identifier: Apache-2.0
"""Times distributed products of Tegula and PyTorch on the GPUs of this host.

PyTorch is measured with NCCL, with async-TP, and with the local product alone, without communication.
bench/dist.sh starts this script.

    PYTHONPATH=python TEGULA_LIBRARY=build/libtegula.so python3 bench/dist_table.py [--gpus N ...] [--quick]

A sample is the mean time of products that are enqueued one after the other. Each rank takes the median of
its samples, and a time is the largest of these medians. "share" is the time of PyTorch's local product
divided by that time. In rows "weak" each rank has the same work for any number of ranks: m grows with the
ranks, n and k do not. The efficiency of these rows is the time of Tegula's product of m/ranks x n x k on one
GPU, divided by the time of the whole product on all GPUs.
"""

import argparse
import csv
import importlib
import os
import statistics
import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import results_csv
import tegula
import tegula.dist
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class Case(NamedTuple):
    """A product that is measured: the sizes of the whole matrices, and the collective operation."""

    name: str
    kind: str  # all-gather, reduce-scatter or all-reduce
    m: int
    n: int
    k: int
    dtype: str
    compute: str = "default"


LAYOUTS = {"all-gather": ("rows", "columns", "columns"),
           "reduce-scatter": ("columns", "rows", "rows"),
           "all-reduce": ("columns", "rows", "copy")}
CAPTURED_UP_TO = 2048  # maximum number of rows for which a CUDA graph is timed; with more rows, the time of
                       # the host does not matter
TOKENS = (64, 256, 512, 2048, 4096, 16384)


def cases(quick: bool, ranks: int) -> List[Case]:
    """The cases: squares, the two products of Llama-3 70B's feed-forward layer, and weak scaling."""
    found = []
    for side in (8192, 16384) if quick else (8192, 16384, 32768):
        found.append(Case("square", "all-gather", side, side, side, "bfloat16"))
    for side in (8192,) if quick else (8192, 16384):
        found.append(Case("square", "all-gather", side, side, side, "float32", "ieee"))
    if not quick:
        found.append(Case("square", "all-gather", 16384, 16384, 16384, "float32", "accurate"))
    for tokens in TOKENS:
        found.append(Case("layer", "all-gather", tokens, 28672, 8192, "bfloat16"))
        found.append(Case("layer", "reduce-scatter", tokens, 8192, 28672, "bfloat16"))
        found.append(Case("layer", "all-reduce", tokens, 8192, 28672, "bfloat16"))
    side = 4096 if quick else 8192
    for kind, dtype, compute in (("all-gather", "bfloat16", "default"), ("reduce-scatter", "bfloat16", "default"),
                                 ("all-gather", "float32", "ieee")):
        found.append(Case("weak", kind, side * ranks, side, side, dtype, compute))
    return found


# ---- Matrices -----------------------------------------------------------------------------------


def part(whole: torch.Tensor, layout: str, rank: int, ranks: int) -> torch.Tensor:
    if layout == "copy":
        return whole
    return whole.chunk(ranks, 0 if layout == "rows" else 1)[rank].contiguous()


def shape_of_part(rows: int, columns: int, layout: str, ranks: int) -> List[int]:
    return [rows // ranks if layout == "rows" else rows,
            columns // ranks if layout == "columns" else columns]


def random_part(rows: int, columns: int, layout: str, ranks: int, dtype: Any) -> torch.Tensor:
    return torch.randn(shape_of_part(rows, columns, layout, ranks), device="cuda").to(dtype)


def check(comm: Any, case: Case) -> str:
    """Compares products of small integers, whose sums are exact in any order, with the expected result."""
    torch.manual_seed(7)
    dtype = getattr(torch, case.dtype)
    a = torch.randint(-2, 3, (case.m, case.k), device="cuda").double()
    b = torch.randint(-2, 3, (case.k, case.n), device="cuda").double()
    bias = torch.randint(-2, 3, (case.n,), device="cuda").double()
    layouts = LAYOUTS[case.kind]
    x = part(a, layouts[0], comm.rank, comm.ranks).to(dtype)
    y = part(b, layouts[1], comm.rank, comm.ranks).to(dtype)
    s = part(bias[None], "columns" if layouts[2] == "columns" else "copy", comm.rank,
             comm.ranks)[0].to(dtype)
    wanted = part(a @ b + bias, layouts[2], comm.rank, comm.ranks).to(dtype)
    for _ in range(3):
        got = comm.matmul(x, y, layouts, bias=s, compute=case.compute)
    comm.synchronize()
    wrong = int((got != wanted).sum())
    graph = Captured(lambda: comm.matmul(x, y, layouts, out=got, bias=s, compute=case.compute))
    got.zero_()
    for _ in range(3):
        graph()
    torch.cuda.synchronize()
    repeated = int((got != wanted).sum())
    if wrong + repeated == 0:
        return "right, also from a graph"
    return f"WRONG: {wrong} of {got.numel()} elements, {repeated} from a graph"


# ---- Peers --------------------------------------------------------------------------------------


def sequence(case: Case, a: torch.Tensor, b: torch.Tensor) -> Callable[[], Any]:
    """A function that runs PyTorch's product with a collective operation of NCCL before or after it."""
    ranks = dist.get_world_size()
    if case.kind == "all-gather":
        whole = a.new_empty((case.m, case.k))
        out = a.new_empty((case.m, case.n // ranks))

        def gather() -> None:
            dist.all_gather_into_tensor(whole, a)
            torch.mm(whole, b, out=out)
        return gather
    partial = a.new_empty((case.m, case.n))
    out = a.new_empty((case.m // ranks, case.n))

    def reduce() -> None:
        torch.mm(a, b, out=partial)
        if case.kind == "all-reduce":
            dist.all_reduce(partial)
        else:
            dist.reduce_scatter_tensor(out, partial)
    return reduce


def async_tp(case: Case, a: torch.Tensor, b: torch.Tensor) -> Optional[Callable[[], Any]]:
    """A function that runs the product of torch.distributed._symmetric_memory; None: PyTorch has none of this
    kind."""
    name = dist.group.WORLD.group_name
    if case.kind == "all-gather":
        return lambda: torch.ops.symm_mem.fused_all_gather_matmul(a, [b], 0, name)
    if case.kind == "reduce-scatter":
        return lambda: torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b, "sum", 0, name)
    return None


# ---- Times --------------------------------------------------------------------------------------


def seconds_of(run: Callable[[], Any], budget: float) -> float:
    """The seconds of a product, measured with events: the largest median of a rank's 5 samples. All ranks run
    it equally often."""
    run()
    torch.cuda.synchronize()
    dist.barrier()
    start = time.perf_counter()
    run()
    torch.cuda.synchronize()
    once = torch.tensor([time.perf_counter() - start], device="cuda")
    dist.all_reduce(once, dist.ReduceOp.MAX)
    runs = max(2, min(50, int(budget / 5 / max(float(once), 1e-5))))
    times = []
    for _ in range(5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        dist.barrier()
        begin.record()
        for _ in range(runs):
            run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3 / runs)
    mine = torch.tensor([statistics.median(times)], device="cuda")
    dist.all_reduce(mine, dist.ReduceOp.MAX)
    return float(mine)


class Captured:
    """A product as a CUDA graph, whose replay takes less time of the host."""

    def __init__(self, run: Callable[[], Any]) -> None:
        run()
        torch.cuda.synchronize()
        dist.barrier()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            run()

    def __call__(self) -> None:
        self.graph.replay()


def measure(comm: Any, case: Case, budget: float, with_async_tp: bool) -> Dict[str, float]:
    dtype = getattr(torch, case.dtype)
    torch.backends.cuda.matmul.allow_tf32 = False
    layouts = LAYOUTS[case.kind]
    a = random_part(case.m, case.k, layouts[0], comm.ranks, dtype)
    b = random_part(case.k, case.n, layouts[1], comm.ranks, dtype)
    rows, columns = case.m, case.n // (comm.ranks if case.kind == "all-gather" else 1)
    whole = random_part(case.m, case.k, "copy", 1, dtype) if case.kind == "all-gather" else a
    local = a.new_empty((rows, columns))
    out = a.new_empty(shape_of_part(case.m, case.n, layouts[2], comm.ranks))
    runs: Dict[str, Optional[Callable[[], Any]]] = {
        "local": lambda: torch.mm(whole, b, out=local),
        "nccl": sequence(case, a, b),
        "async_tp": async_tp(case, a, b) if with_async_tp else None,
        "tegula_local": lambda: tegula.matmul(whole, b, out=local, compute=case.compute),
        "tegula": lambda: comm.matmul(a, b, layouts, out=out, compute=case.compute)}
    if case.name == "weak":
        rows = case.m // comm.ranks
        one, factor = random_part(rows, case.k, "copy", 1, dtype), random_part(case.k, case.n, "copy", 1, dtype)
        result = a.new_empty((rows, case.n))
        runs["one_gpu"] = lambda: tegula.matmul(one, factor, out=result, compute=case.compute)
    times = {name: seconds_of(run, budget) for name, run in runs.items() if run is not None}
    for name in ("nccl", "tegula"):
        run = runs[name]
        if case.m <= CAPTURED_UP_TO and run is not None:
            times[f"{name}_graph"] = seconds_of(Captured(run), budget)
    return times


# ---- The table ----------------------------------------------------------------------------------

TIMES = ("local", "nccl", "nccl_graph", "async_tp", "tegula_local", "tegula", "tegula_graph")
COLUMNS = ("name", "kind", "m", "n", "k", "dtype", "compute", "gpus", *TIMES, "one_gpu", "panels")


def share(times: Dict[str, float], name: str) -> str:
    return f"{100 * times['local'] / times[name]:5.0f}" if name in times else "    -"


def efficiency(times: Dict[str, float]) -> str:
    return f"{100 * times['one_gpu'] / times['tegula']:4.0f}" if "one_gpu" in times else "   -"


def report(case: Case, times: Dict[str, float], comm: Any, writer: Any) -> None:
    figures = comm.figures()
    print(f"{case.name:6} {case.kind:14} {case.m:5} {case.n:5} {case.k:5} {case.dtype:8} "
          f"{case.compute:8} {1e6 * times['local']:9.1f} " +
          " ".join(share(times, name) for name in TIMES[1:]) + f" {figures['panels']:4} {efficiency(times)}",
          flush=True)
    if writer is not None:
        row = {**case._asdict(), "gpus": comm.ranks, "panels": figures["panels"]}
        row.update({name: f"{seconds:.9f}" for name, seconds in times.items()})
        writer.writerow(row)


def run_table(comm: Any, options: argparse.Namespace, with_async_tp: bool) -> None:
    first = comm.rank == 0
    is_new = comm.ranks == options.gpus[0]
    file = open(options.csv, "w" if is_new else "a", newline="", encoding="utf-8") if options.csv and first else None
    writer = csv.DictWriter(file, COLUMNS) if file else None
    if file and writer and is_new:
        file.write(results_csv.origin())
        writer.writeheader()
    compiled = getattr(sys.modules.get("tegula._calls"), "calls", None) is not None
    calls = "compiled" if compiled else "by ctypes, for want of the module tegula._call"
    if first:
        print(f"{comm.ranks} x {torch.cuda.get_device_name()}; PyTorch {torch.__version__}; local: "
              "PyTorch's local product alone in us, then shares in % of it\n"
              f"tegula.matmul: {calls}\n"
              "what   kind               m     n     k type     compute      local  nccl graph async "
              "tgl_l   tgl graph panels weak")
    for case in cases(options.quick, comm.ranks):
        over = [time.monotonic() > options.end]
        dist.broadcast_object_list(over)  # the clock of rank 0 decides for all
        if over[0]:
            if first:
                print("the time is up: the other rows are not measured")
            break
        if options.only and not all(word in map(str, case) for word in options.only):
            continue
        try:
            times = measure(comm, case, options.seconds, with_async_tp)
        except Exception as error:  # printed, because only one rank may have failed
            print(f"rank {comm.rank}: {case}: {error}", flush=True)
            raise
        if first:
            report(case, times, comm, writer)
    if file:
        file.close()


CHECKS = [Case("check", kind, 256, 512, 384, dtype, compute)
          for kind in LAYOUTS for dtype, compute in (("bfloat16", "default"), ("float32", "ieee"))]


def rank_main(rank: int, gpus: int, options: argparse.Namespace) -> None:
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=gpus,
                            device_id=torch.device("cuda", rank))
    with_async_tp = not options.no_async_tp
    if with_async_tp:
        importlib.import_module("torch.distributed._symmetric_memory")
    if with_async_tp and not hasattr(torch.ops.symm_mem, "fused_all_gather_matmul"):
        with_async_tp = False
        if rank == 0:
            print("PyTorch has no async-TP: it is not measured")
    with tegula.dist.Communicator(engine=options.engine, timeout=30) as comm:
        for case in CHECKS:
            verdict = check(comm, case)
            if rank == 0 or verdict.startswith("WRONG"):
                print(f"rank {rank}: {case.kind}, {case.dtype} {case.compute}: {verdict}",
                      flush=True)
        if not options.check:
            run_table(comm, options, with_async_tp)
    dist.destroy_process_group()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--gpus", type=int, nargs="+", default=[torch.cuda.device_count()],
                        help="numbers of GPUs, each of which gets a table")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller squares")
    parser.add_argument("--check", action="store_true", help="only whether results are right")
    parser.add_argument("--only", nargs="*", help="rows with this name, kind or type")
    parser.add_argument("--engine", default="auto", choices=("auto", "nccl"))
    parser.add_argument("--no-async-tp", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.2, help="for each time")
    parser.add_argument("--limit", type=float, default=600, help="seconds of all tables together")
    parser.add_argument("--csv", help="where to write the times")
    options = parser.parse_args()
    if min(options.gpus) < 2:
        print("two GPUs are needed: nothing is measured")
        return 0
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29555")
    os.environ["NCCL_NVLS_ENABLE"] = "0"  # NVLink multicast
    start = time.monotonic()
    for i, gpus in enumerate(options.gpus):
        options.end = start + options.limit * (i + 1) / len(options.gpus)
        mp.spawn(rank_main, (gpus, options), gpus)
    return 0


if __name__ == "__main__":
    sys.exit(main())
