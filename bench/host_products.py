#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times SGEMM and DGEMM of matrices in host memory: libtegula_blas.so on the GPU and on the CPU, NVBLAS, a CPU's BLAS.

    bench/host_products.py build/libtegula_blas.so [--nvblas libnvblas.so] [--sizes 2048,4096] [--csv FILE]

Needs an NVIDIA GPU and a BLAS (libblas.so.3). NVBLAS is part of the CUDA toolkit, and is left out if it is
not found. Each library computes the same products in a process of its own, with LD_PRELOAD. The table has
the best time of up to --runs calls after a first call, and a lower bound, the time of the copies alone. For
the bound the script first measures the speed of large copies of pinned memory in both directions at the same
time. Sampled elements of each result are compared with their exact values. The exit status is the number of
libraries with an error.
"""
import argparse
import csv
import ctypes
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from array import array

import results_csv

TYPES = {"f32": ("f", 4, "sgemm_", ctypes.c_float), "f64": ("d", 8, "dgemm_", ctypes.c_double)}
PERIOD_A, PERIOD_B = 1009, 1013  # numbers of elements after which the elements of A and of B repeat
LONG = 10  # after this number of seconds a product is not called again, if it has been called twice


def element(i, period):
    """Element number i of a matrix: a small whole number, so that all sums are exact."""
    return float(i % period * 7 % 9 - 4)


def matrix(code, count, period):
    part = array(code, [element(i, period) for i in range(period)])
    return (part * (count // period + 1))[:count]


def check(C, n, beta_runs):
    """Compares sampled elements of the column-major C. With beta_runs > 0, C was 1 and A*B was added to it
    beta_runs times; else C is A*B."""
    for sample in range(20):
        i, j = sample * 7919 % n, sample * 104729 % n
        dot = sum(element(i + l * n, PERIOD_A) * element(l + j * n, PERIOD_B) for l in range(n))
        expected = 1 + beta_runs * dot if beta_runs else dot
        if C[i + j * n] != expected:
            raise SystemExit(f"C({i}, {j}) is {C[i + j * n]}, not {expected}")


def child(types, sizes, runs):
    """Times the GEMM functions that the loader finds first, and prints a line of JSON for each product."""
    library = ctypes.CDLL(None)
    for name in types:
        code, size, function, scalar = TYPES[name]
        gemm = getattr(library, function)
        for n in sizes:
            A, B = matrix(code, n * n, PERIOD_A), matrix(code, n * n, PERIOD_B)
            for beta in (0, 1):
                C = array(code, [1]) * (n * n)
                pointers = [ctypes.c_void_p(x.buffer_info()[0]) for x in (A, B, C)]
                N, one, factor = ctypes.c_int(n), scalar(1), scalar(beta)
                seconds = []
                while len(seconds) <= runs and (len(seconds) < 2 or sum(seconds) < LONG):
                    start = time.perf_counter()
                    gemm(b"N", b"N", ctypes.byref(N), ctypes.byref(N), ctypes.byref(N), ctypes.byref(one),
                         pointers[0], ctypes.byref(N), pointers[1], ctypes.byref(N), ctypes.byref(factor),
                         pointers[2], ctypes.byref(N), ctypes.c_size_t(1), ctypes.c_size_t(1))
                    seconds.append(time.perf_counter() - start)
                check(C, n, len(seconds) * beta)
                print(json.dumps([name, n, beta, min(seconds[1:])]), flush=True)


def link(size=256 << 20, repeats=5):
    """Prints the bytes per second of copies of pinned memory to and from the GPU at the same time."""
    cuda = ctypes.CDLL(os.environ.get("TEGULA_LIBCUDA", "libcuda.so.1"))

    def call(name, *arguments):
        result = getattr(cuda, name)(*arguments)
        if result != 0:
            raise SystemExit(f"{name}: error {result}")

    context, device = ctypes.c_void_p(), ctypes.c_int()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxPushCurrent_v2", context)
    host, memory, stream = [[ctypes.c_void_p() for _ in range(2)] for _ in range(3)]
    for i in range(2):
        call("cuMemHostAlloc", ctypes.byref(host[i]), ctypes.c_size_t(size), 0)
        call("cuMemAlloc_v2", ctypes.byref(memory[i]), ctypes.c_size_t(size))
        call("cuStreamCreate", ctypes.byref(stream[i]), 1)
    best = 1e9
    for _ in range(repeats):
        start = time.perf_counter()
        call("cuMemcpyHtoDAsync_v2", memory[0], host[0], ctypes.c_size_t(size), stream[0])
        call("cuMemcpyDtoHAsync_v2", host[1], memory[1], ctypes.c_size_t(size), stream[1])
        for i in range(2):
            call("cuStreamSynchronize", stream[i])
        best = min(best, time.perf_counter() - start)
    print(size / best)


def run(mode, options, preload=None, **environment):
    """Runs this script in a process of its own. Returns the lines that it prints, or None after an error."""
    command = [sys.executable, __file__, mode, "--types", options.types, "--sizes", options.sizes,
               "--runs", str(options.runs)]
    environment = {**os.environ, **environment}
    if preload:
        environment["LD_PRELOAD"] = " ".join(preload)
    lines = []
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line, end="", file=sys.stderr, flush=True)  # shows the progress of a long measurement
            lines.append(line)
    return lines if process.returncode == 0 else None


def has_library(name):
    try:
        ctypes.CDLL(name)
        return True
    except OSError:
        return False


def measure(options, config):
    """The seconds of each product for each library, and the number of libraries that failed."""
    libraries = {"cpu": ([options.blas], {}),
                 "tegula_cpu": ([os.path.abspath(options.library), options.blas], {"TEGULA_BLAS_DEVICE": "cpu"}),
                 "tegula": ([os.path.abspath(options.library), options.blas],
                            {"TEGULA_BLAS_DEVICE": "cuda", "TEGULA_BLAS_GPU_SIZE": "1"}),
                 "nvblas": ([options.nvblas, options.blas], {"NVBLAS_CONFIG_FILE": config})}
    if not has_library(options.nvblas):
        print(f"{options.nvblas} was not found", file=sys.stderr)
        del libraries["nvblas"]
    times, failed = {}, 0
    for name, (preload, environment) in libraries.items():
        if name not in options.libraries.split(","):
            continue
        print(f"measuring {name}", file=sys.stderr, flush=True)
        output = run("--child", options, preload, **environment)
        failed += output is None
        times[name] = {tuple(row[:3]): row[3] for row in map(json.loads, output or [])}
    return times, failed


def cell(x):
    if not isinstance(x, float):
        return x
    return "" if math.isnan(x) else f"{x:.4g}"


def report(times, speed, options):
    """Prints the table and writes the CSV file, where a time that was not measured is empty."""
    columns = ["type", "n", "beta", "cpu_ms", "tegula_cpu_ms", "nvblas_ms", "tegula_ms", "copies_ms", "tegula_tflops"]
    rows = []
    for name, n, beta in times["tegula"]:
        key, size = (name, n, beta), TYPES[name][1] * n * n
        ms = [1e3 * times[library][key] if key in times.get(library, {}) else float("nan")
              for library in ("cpu", "tegula_cpu", "nvblas", "tegula")]
        rows.append([name, n, beta, *ms, 1e3 * (2 + beta) * size / speed,
                     2e-9 * n**3 / ms[3]])
    print(f"copies: {1e-9 * speed:.1f} GB/s in each direction")
    print(" ".join(f"{column:>13}" for column in columns))
    for row in rows:
        print(" ".join(f"{x:>13.2f}" if isinstance(x, float) else f"{x:>13}" for x in row))
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            file.write(results_csv.origin())
            csv.writer(file, lineterminator="\n").writerows([columns, *([cell(x) for x in row] for row in rows)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("library", nargs="?", default="build/libtegula_blas.so")
    parser.add_argument("--blas", default="libblas.so.3", help="the BLAS of the CPU")
    parser.add_argument("--nvblas", default="libnvblas.so")
    parser.add_argument("--libraries", default="cpu,tegula_cpu,nvblas,tegula",
                        help="those to measure, tegula among them")
    parser.add_argument("--types", default="f32,f64")
    parser.add_argument("--sizes", default="1024,2048,4096,8192,16384")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--csv")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--link", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.types.split(","), [int(n) for n in options.sizes.split(",")], options.runs)
    if options.link:
        return link()
    speed = run("--link", options)
    if speed is None:
        return 1
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as config:
        config.write(f"NVBLAS_LOGFILE /dev/null\nNVBLAS_CPU_BLAS_LIB {options.blas}\nNVBLAS_GPU_LIST 0\n")
        config.flush()
        times, failed = measure(options, config.name)
    report(times, float(speed[-1]), options)
    return failed


if __name__ == "__main__":
    sys.exit(main())
