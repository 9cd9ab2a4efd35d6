#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares results and times of PyTorch and CuPy with and without LD_PRELOAD=libtegula_cublas.so.

    bench/cublas_preload.py build/libtegula_cublas.so [--serve faster all] [--only transformer] [--csv FILE]

Needs an NVIDIA GPU and PyTorch, CuPy or both, which are called modules below. A program is a short piece of
code with matrix products. One process runs all programs of a module with cuBLAS; a second one runs them with
the library, on the same inputs; a third one counts the products in the library's trace. The table has the
largest difference of the results relative to their largest element, the limit of that difference, the median
times, and how many products Tegula has computed. A program fails if its difference is above the limit or its
result is not finite, if it ends with an error, if no call reaches the library, or if Tegula computes no
product with --serve all. After a fault of the GPU or a crash all later programs of the module fail, too. The
exit status is the number of failures. The CSV file leaves out programs without a result.
"""
import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time

import results_csv

# Columns: name; limit of the relative difference; code that defines a function run(), which returns a tensor.
# The code can use what BEGIN defines, such as x(), which makes a random tensor.
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
    ("transformer, 8192 tokens", 1e-4, """
layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0, activation="gelu", batch_first=True).cuda()
for p in layer.parameters():
    p.data.copy_(x(*p.shape) / 32)
a = x(8, 1024, 1024).requires_grad_()
def run():
    a.grad = None
    layer(a).square().sum().backward()
    return a.grad
"""),
    ("_scaled_mm e4m3", 2e-2, "a, b = x(512, 768).to(f8), x(640, 768).to(f8)\n"
                               "run = lambda: torch._scaled_mm(a, b.t(), x1 / 2, x1 / 4, out_dtype=bf16)"),
    ("_scaled_mm e4m3, rows", 2e-2, "a, b, u, v = x(512, 768).to(f8), x(640, 768).to(f8), x(512, 1), x(1, 640)\n"
                                     "run = lambda: torch._scaled_mm(a, b.t(), u, v, out_dtype=bf16)"),
    ("_int_mm", 0, "a, b = ((100 * x(*s)).to(torch.int8) for s in ((512, 768), (640, 768)))\n"
                   "run = lambda: torch._int_mm(a, b.t())"),
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

# Code that runs before that of a program. x() makes inputs from a fixed seed.
BEGIN = {
    "torch": """
import numpy as np, torch, torch.nn.functional as F
bf16, f16, f32, f64 = torch.bfloat16, torch.float16, torch.float32, torch.float64
f8, x1 = torch.float8_e4m3fn, torch.ones((), device="cuda")
torch.backends.cuda.matmul.allow_tf32 = False
rng = np.random.default_rng(7)
def x(*shape, t=f32):
    return torch.from_numpy(rng.uniform(-1, 1, shape)).to("cuda", t)
wait = torch.cuda.synchronize
def host(y):
    return y.detach().double().cpu().numpy()
""",
    "cupy": """
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
PROGRAMS = {"torch": TORCH, "cupy": CUPY}
MARK = "program: "            # before the lines on stderr of each program
ERROR = "error: "             # before the text of an exception
SAMPLES, CALLS = 25, 10       # samples of each program, and calls in each sample
COLUMNS = ["module", "program", "serve", "difference", "limit", "cublas_us", "us", "served", "products"]


def run_program(module, code, samples):
    """The result of a program and its median time, which is 0 if samples is 0."""
    import numpy as np
    names = {}
    exec(BEGIN[module] + code, names)  # pylint: disable=exec-used
    run, wait = names["run"], names["wait"]
    result, times = names["host"](run()), []
    for _ in range(samples):
        wait()
        start = time.perf_counter()
        for _ in range(CALLS):
            run()
        wait()
        times.append((time.perf_counter() - start) / CALLS)
    return result, np.median(times) if times else 0


def child(module, folder, timed, only):
    """Runs the programs of a module, and writes the result and the median time of each to a file."""
    import numpy as np
    for index, (_, _, code) in enumerate(chosen(module, only)):
        print(f"{MARK}{index}", file=sys.stderr, flush=True)
        try:
            result, seconds = run_program(module, code, SAMPLES if timed else 0)
            np.savez(os.path.join(folder, f"{index}.npz"), result=result, seconds=seconds)
        except Exception as error:  # pylint: disable=broad-exception-caught
            print(f"{ERROR}{type(error).__name__}: {error}", file=sys.stderr, flush=True)


def chosen(module, only):
    """The programs of a module whose names contain the text `only`."""
    return [row for row in PROGRAMS[module] if only in row[0]]


def run_programs(module, only, timed=True, **variables):
    """The result, the median time and the lines on stderr of each program. The result of a program that fails is
    a text. If the process ends with an error after the last program, all programs fail."""
    import numpy as np
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, __file__, "--child", module, folder, "timed" if timed else "", only],
                              text=True, env={**os.environ, **variables}, stderr=subprocess.PIPE, check=False)
        lines, of_program = {}, None
        for line in done.stderr.splitlines():
            if line.startswith(MARK):
                of_program = int(line[len(MARK):])
            else:
                lines.setdefault(of_program, []).append(line)
        count, runs = len(chosen(module, only)), []
        ended_badly = done.returncode != 0 and os.path.exists(os.path.join(folder, f"{count - 1}.npz"))
        for index in range(count):
            path = os.path.join(folder, f"{index}.npz")
            errors = [line[len(ERROR):] for line in lines.get(index, []) if line.startswith(ERROR)]
            if errors:
                runs.append((errors[0], 0, []))
            elif not os.path.exists(path) or ended_badly:
                runs.append((f"exit status {done.returncode}", 0, []))
            else:
                with np.load(path) as saved:
                    runs.append((saved["result"], float(saved["seconds"]), lines.get(index, [])))
        return runs


def compare(module, row, serve, runs):
    """The row of the CSV file, the line of the table, and whether the program fails. runs: three results of
    run_programs(): with cuBLAS, with the library, and with the library's trace."""
    import numpy as np
    name, limit, _ = row
    for result, _, _ in runs:
        if isinstance(result, str):
            return None, f"| {module}: {name} | {serve} | FAILS: {result} | | | | | |", True
    (expected, before, _), (found, after, _), (_, _, lines) = runs
    difference = np.abs(expected - found).max() / np.abs(expected).max()
    trace = [line for line in lines if line.startswith("tegula_cublas: ")]
    served = sum(": tegula, " in line for line in trace)
    is_right = np.isfinite(found).all() and difference <= limit
    is_used = served > 0 or (serve != "all" and len(trace) > 0)
    text = (f"| {module}: {name} | {serve} | {difference:.1e}{'' if is_right else ' FAILS'} | {limit:.0e} | "
            f"{before * 1e6:.1f} | {after * 1e6:.1f} | {before / after:.2f} | {served} of {len(trace)}"
            f"{'' if is_used else ' FAILS'} |")
    values = [module, name, serve, f"{difference:.3g}", f"{limit:g}", f"{before * 1e6:.5g}", f"{after * 1e6:.5g}",
              served, len(trace)]
    return values, text, not (is_right and is_used)


def has_module(module):
    if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0:
        return True
    print(f"{module} is not installed", file=sys.stderr)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", help="libtegula_cublas.so")
    parser.add_argument("--serve", nargs="+", default=["faster"], choices=["faster", "all", "none"],
                        help="TEGULA_CUBLAS_SERVE of the programs with the library, one after the other")
    parser.add_argument("--only", default="", metavar="TEXT", help="only programs whose names contain this")
    parser.add_argument("--csv", help="write a line for each program")
    arguments = parser.parse_args()
    if not os.path.exists(arguments.library):
        parser.error(f"there is no {arguments.library}")
    modules = [module for module in PROGRAMS if chosen(module, arguments.only) and has_module(module)]
    if not any(chosen(module, arguments.only) for module in PROGRAMS):
        parser.error(f"no program's name contains {arguments.only!r}")
    if not modules:
        return 1
    print("| program | serve | difference | limit | cuBLAS, us | with the library, us | ratio | served |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    failures, values = 0, []
    for module in modules:
        before = run_programs(module, arguments.only)
        for serve in arguments.serve:
            library = {"LD_PRELOAD": os.path.abspath(arguments.library), "TEGULA_CUBLAS_SERVE": serve}
            after = run_programs(module, arguments.only, **library)
            traced = run_programs(module, arguments.only, timed=False, TEGULA_CUBLAS_TRACE="1", **library)
            for row, *runs in zip(chosen(module, arguments.only), before, after, traced):
                of_row, text, fails = compare(module, row, serve, runs)
                print(text, flush=True)
                failures += fails
                values += [of_row] if of_row else []
    if arguments.csv:
        with open(arguments.csv, "w", newline="", encoding="utf-8") as file:
            file.write(results_csv.origin())
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *values])
    return failures


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], sys.argv[4] == "timed", sys.argv[5])
    else:
        sys.exit(main())
