# SPDX-License-Identifier: Apache-2.0
"""Tests libtegula_cublas.so with LD_PRELOAD, in a Python process that calls cuBLAS by ctypes.

TEGULA_CUBLAS is the path of the library. TEST_LIBRARIES is a folder with replacements of the CUDA driver, NVRTC
and cuBLAS. The replacement of cuBLAS returns 99 and computes no product.
"""
import os
import subprocess
import sys
import unittest
from pathlib import Path

PRODUCT = """
import ctypes, os
import numpy as np
from ctypes import byref, c_float, c_int, c_void_p
driver = ctypes.CDLL(os.environ["FAKE_LIBCUDA"])
context = c_void_p()
assert driver.cuDevicePrimaryCtxRetain(byref(context), 0) == driver.cuCtxPushCurrent_v2(context) == 0
cublas = ctypes.CDLL(os.environ["FAKE_LIBCUBLAS"]) # loaded locally, as the libraries of a module are
handle, pedantic = c_void_p(), 2
assert cublas.cublasCreate_v2(byref(handle)) == cublas.cublasSetMathMode(handle, pedantic) == 0
m, n, k = 40, 30, 20
A, B = np.arange(k * m, dtype="f4").reshape(k, m) % 7, np.arange(n * k, dtype="f4").reshape(n, k) % 5
C = np.full((n, m), -1, "f4") # columns lie one behind the other
sgemm = ctypes.CDLL(None).cublasSgemm_v2 # what the loader finds first
pointer = lambda x: c_void_p(x.ctypes.data)
status = sgemm(handle, 0, 0, m, n, k, byref(c_float(1)), pointer(A), m, pointer(B), k, byref(c_float(0)),
               pointer(C), m)
is_right, is_untouched = np.array_equal(C, B @ A), bool((C == -1).all())
"""


def traced_lines(code, **environment):
    """Runs the code, and returns the lines that the library prints."""
    fakes = Path(os.environ["TEST_LIBRARIES"])
    found = {name: str(next(fakes.rglob(file))) for name, file in (
        ("FAKE_LIBCUDA", "libfake_cuda.so"), ("FAKE_LIBCUBLAS", "librecorder_cublas.so"),
        ("TEGULA_NVRTC", "libnvrtc.so"))}
    everything = {**os.environ, **found, "TEGULA_LIBCUDA": found["FAKE_LIBCUDA"],
                  "LD_PRELOAD": os.environ["TEGULA_CUBLAS"], "TEGULA_CUBLAS_TRACE": "1",
                  "TEGULA_CACHE": "off", **environment}
    done = subprocess.run([sys.executable, "-c", code], env=everything, text=True,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return [line for line in done.stderr.splitlines() if line.startswith("tegula_cublas: ")]


class Preloaded(unittest.TestCase):
    def test_product(self):
        lines = traced_lines(PRODUCT + "assert status == 0 and is_right, (status, C)")
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], "^tegula_cublas: cublasSgemm_v2 NN m=40 n=30 k=20 .*: tegula, ")

    def test_without_a_driver(self):
        """Products that Tegula cannot compute are passed to the program's cuBLAS."""
        lines = traced_lines(PRODUCT + "assert status == 99 and is_untouched, (status, C)",
                             TEGULA_LIBCUDA="/none.so")
        self.assertRegex(lines[-1], "^tegula_cublas: cublasSgemm_v2 .*: cuBLAS, ")

    def test_programs_without_cublas(self):
        self.assertEqual(traced_lines("import numpy as np; np.ones((9, 9)) @ np.ones((9, 9))"), [])


if __name__ == "__main__":
    unittest.main()
