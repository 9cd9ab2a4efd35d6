#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch and CuPy with and without LD_PRELOAD=libtegula_cublas.so: results and times.

    bench/cublas_preload.py build/libtegula_cublas.so [--serve all]

Needs an NVIDIA GPU and PyTorch, CuPy or both. Each program runs in a process of its own, once with
cuBLAS and once with the library, on the same inputs. The table has the largest difference of the
results relative to their largest element, the limit for it, the median times, and how many products
Tegula has computed. A program fails if its difference is above the limit or its result is not finite,
if it ends with an error, if no call reaches the library, or if Tegula computes no product with
--serve all. The exit status is the number of failures. With --jobs N several programs
run at a time. A lock lets only one of them measure its time, but the others may use the GPU meanwhile, to
load their kernels and to compute their first result.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile

# name, limit of the relative difference, code: a function run() that returns a tensor. torch, F, x()
# (a random tensor) and bf16, f16, f32, f64 are defined.
TORCH = [
    ("matmul f32", 1e-5, "a, b = x(1000, 999), x(999, 1001)\nrun = lambda: a @ b"),
    ("matmul f32, large", 1e-5, "a, b = x(4096, 4096), x(4096, 4096)\nrun = lambda: a @ b"),
    ("matmul f32, TF32", 2e-3, "torch.backends.cuda.matmul.allow_tf32 = True\n"
                               "a, b = x(1023, 1025), x(1025, 1027)\nrun = lambda: a @ b"),
    ("matmul f64", 1e-13, "a, b = x(500, 501, t=f64), x(501, 502, t=f64)\nrun = lambda: a @ b"),
    ("matmul bf16", 2e-2, "a, b = x(1023, 1025, t=bf16), x(1025, 1027, t=bf16)\nrun = lambda: a @ b"),
    ("matmul f16, transposed", 2e-3, "a, b = x(511, 255, t=f16), x(513, 511, t=f16)\n"
                                     "run = lambda: a.T @ b.T"),
    ("linear f32", 1e-5, "a, w, b = x(300, 777), x(555, 777), x(555)\nrun = lambda: F.linear(a, w, b)"),
    ("linear bf16", 2e-2, "a, w, b = x(300, 777, t=bf16), x(555, 777, t=bf16), x(555, t=bf16)\n"
                          "run = lambda: F.linear(a, w, b)"),
    ("bmm f32", 1e-5, "a, b = x(64, 77, 64), x(64, 64, 77)\nrun = lambda: torch.bmm(a, b)"),
    ("bmm f16", 2e-3, "a, b = x(64, 77, 65, t=f16), x(64, 65, 77, t=f16)\nrun = lambda: torch.bmm(a, b)"),
    ("addmm", 1e-5, "c, a, b = x(301, 302), x(301, 303), x(303, 302)\n"
                    "run = lambda: torch.addmm(c, a, b, beta=0.5, alpha=2)"),
    ("addmm bias, relu", 1e-5, "c, a, b = x(302), x(301, 303), x(303, 302)\n"
                               "run = lambda: torch._addmm_activation(c, a, b)"),
    ("addmm bias, gelu", 1e-4, "c, a, b = x(302), x(301, 303), x(303, 302)\n"
                               "run = lambda: torch._addmm_activation(c, a, b, use_gelu=True)"),
    ("baddbmm", 1e-5, "c, a, b = x(16, 31, 33), x(16, 31, 35), x(16, 35, 33)\n"
                      "run = lambda: torch.baddbmm(c, a, b, beta=-1, alpha=0.5)"),
    ("einsum", 1e-5, "a, b = x(8, 50, 60), x(8, 60, 70)\n"
                     "run = lambda: torch.einsum('bij,bjk->bki', a, b)"),
    ("transformer, forward and backward", 1e-4, """
layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0, batch_first=True).cuda()
for p in layer.parameters():
    p.data.copy_(x(*p.shape) / 16)
a = x(8, 99, 256).requires_grad_()
def run():
    a.grad = None
    layer(a).square().sum().backward()
    return a.grad
"""),
    ("torch.compile", 1e-4, """
w1, w2, a = x(256, 513), x(513, 128), x(100, 256)
run = torch.compile(lambda: torch.relu(a @ w1) @ w2)
"""),
    ("CUDA graph", 1e-5, """
a, b = x(300, 301), x(301, 302)
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    a @ b
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    c = a @ b
def run():
    graph.replay()
    return c
"""),
]
CUPY = [
    ("matmul f32", 1e-5, "a, b = x(1000, 999), x(999, 1001)\nrun = lambda: a @ b"),
    ("matmul f64", 1e-13, "a, b = x(500, 501, t=f64), x(501, 502, t=f64)\nrun = lambda: a @ b"),
    ("matmul f16", 2e-3, "a, b = x(511, 513, t=f16), x(513, 515, t=f16)\nrun = lambda: a @ b"),
    ("batch", 1e-5, "a, b = x(64, 77, 64), x(64, 64, 77)\nrun = lambda: cp.matmul(a, b)"),
    ("tensordot", 1e-5, "a, b = x(30, 40, 50), x(40, 50, 60)\nrun = lambda: cp.tensordot(a, b, 2)"),
]

# Before and after the code of a program: inputs by a fixed seed; result and median time to a file.
BEGIN = {
    "torch": """
import fcntl, sys, time
import numpy as np, torch, torch.nn.functional as F
bf16, f16, f32, f64 = torch.bfloat16, torch.float16, torch.float32, torch.float64
rng = np.random.default_rng(7)
def x(*shape, t=f32):
    return torch.from_numpy(rng.uniform(-1, 1, shape)).to("cuda", t)
wait = torch.cuda.synchronize
def host(y):
    return y.detach().double().cpu().numpy()
""",
    "cupy": """
import fcntl, sys, time
import numpy as np, cupy as cp
f16, f32, f64 = cp.float16, cp.float32, cp.float64
rng = np.random.default_rng(7)
def x(*shape, t=f32):
    return cp.asarray(rng.uniform(-1, 1, shape), dtype=t)
wait = cp.cuda.Device().synchronize
def host(y):
    return cp.asnumpy(y.astype(f64))
""",
}
END = """
result = host(run())
lock = open(sys.argv[2], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
times = []
for _ in range(25):
    wait()
    start = time.perf_counter()
    for _ in range(10):
        run()
    wait()
    times.append((time.perf_counter() - start) / 10)
np.savez(sys.argv[1], result=result, seconds=np.median(times))
"""


LOCK = os.path.join(tempfile.gettempdir(), f"cublas_preload.{os.getpid()}.lock")


def run_program(module, code, **variables):
    """The result, the median time and the lines on stderr of a process with these variables."""
    import numpy as np
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.npz")
        done = subprocess.run([sys.executable, "-c", BEGIN[module] + code + END, path, LOCK], text=True,
                              env={**os.environ, **variables}, stderr=subprocess.PIPE, check=False)
        lines = done.stderr.splitlines()
        if done.returncode != 0:
            raise RuntimeError(lines[-1] if lines else f"exit status {done.returncode}")
        with np.load(path) as saved:
            return saved["result"], float(saved["seconds"]), lines


def compare(module, row, arguments):
    """A line of the table, and whether the program fails."""
    import numpy as np
    name, limit, code = row
    library = {"LD_PRELOAD": os.path.abspath(arguments.library), "TEGULA_CUBLAS_SERVE": arguments.serve}
    try:
        expected, before, _ = run_program(module, code)
        found, after, _ = run_program(module, code, **library)
        # Once more, because the trace takes time.
        _, _, lines = run_program(module, code, TEGULA_CUBLAS_TRACE="1", **library)
    except RuntimeError as error:
        return f"| {module}: {name} | FAILS: {error} | | | | | |", True
    difference = np.abs(expected - found).max() / np.abs(expected).max()
    trace = [line for line in lines if line.startswith("tegula_cublas: ")]
    served = sum(": tegula, " in line for line in trace)
    is_right = np.isfinite(found).all() and difference <= limit
    is_used = served > 0 or (arguments.serve != "all" and len(trace) > 0)
    fails = not (is_right and is_used)
    return (f"| {module}: {name} | {difference:.1e}{'' if is_right else ' FAILS'} | {limit:.0e} | "
            f"{before * 1e6:.1f} | {after * 1e6:.1f} | {before / after:.2f} | {served} of {len(trace)}"
            f"{'' if is_used else ' FAILS'} |",
            fails)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", help="libtegula_cublas.so")
    parser.add_argument("--serve", default="faster", choices=["faster", "all", "none"],
                        help="TEGULA_CUBLAS_SERVE of the programs with the library")
    parser.add_argument("--jobs", type=int, default=1, help="programs that run at a time (1)")
    arguments = parser.parse_args()
    if not os.path.exists(arguments.library):
        parser.error(f"there is no {arguments.library}")
    programs = []
    for module, rows in (("torch", TORCH), ("cupy", CUPY)):
        found = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True,
                               check=False)
        if found.returncode == 0:
            programs += [(module, row) for row in rows]
        else:
            print(f"{module} is not installed", file=sys.stderr)
    if not programs:
        return 1
    print("| program | difference | limit | cuBLAS, us | with the library, us | ratio | served |")
    print("|---|---|---|---|---|---|---|", flush=True)
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for line, fails in pool.map(lambda program: compare(*program, arguments), programs):
            print(line, flush=True)
            failures += fails
    if os.path.exists(LOCK):
        os.unlink(LOCK)
    return failures


if __name__ == "__main__":
    sys.exit(main())
