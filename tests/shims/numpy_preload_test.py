# SPDX-License-Identifier: Apache-2.0
"""Tests NumPy with LD_PRELOAD=libtegula_blas.so: the results are right, and Tegula has computed them.

Debian's NumPy calls cblas_sgemm() of libblas.so.3; the wheel calls scipy_cblas_sgemm64_().
Each test runs in a process of its own with TEGULA_BLAS_TRACE=1.
"""
import os
import subprocess
import sys
import unittest

import numpy as np

EXAMPLE = os.path.join(os.path.dirname(__file__), "../../examples/quantum_circuit.py")
BEGIN = """
import numpy as np
def random(shape, dtype, order="C"):
    draw = np.random.default_rng(7)
    values = draw.uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * draw.uniform(-1, 1, shape)
    return np.array(values, dtype=dtype, order=order)
def check(found, A, B):
    exact = np.result_type(A, np.longdouble)
    A, B = np.asarray(A, dtype=exact), np.asarray(B, dtype=exact)
    expected = (A[..., :, :, None] * B[..., None, :, :]).sum(-2) if B.ndim > 1 else (A * B).sum(-1)
    eps = np.finfo(found.dtype).eps
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert np.abs(found - expected).max() <= 2 * eps * A.shape[-1], np.abs(found - expected).max()
"""


def traced_lines(code):
    """Runs the code, and returns the lines that libtegula_blas.so prints."""
    environment = dict(os.environ, LD_PRELOAD=os.environ["TEGULA_BLAS"], TEGULA_BLAS_TRACE="1")
    done = subprocess.run([sys.executable, "-c", BEGIN + code], env=environment, text=True,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return [line for line in done.stderr.splitlines() if line.startswith("tegula_blas: ")]


class NumPy(unittest.TestCase):
    def check_served(self, code, routine, calls):
        lines = traced_lines(code)
        self.assertEqual(len(lines), calls, lines)
        for line in lines:
            self.assertRegex(line, f"^tegula_blas: {routine} .*: tegula$")

    def test_settings(self):
        """A variable that may be misspelt is named at the first call."""
        os.environ["TEGULA_BLAS_DEVISE"] = "cuda"
        try:
            lines = traced_lines("""check(random((9, 9), "float32") @ np.eye(9, dtype="f4"), random((9, 9), "f4"), np.eye(9))""")
        finally:
            del os.environ["TEGULA_BLAS_DEVISE"]
        self.assertEqual(lines[0], "tegula_blas: there is no setting TEGULA_BLAS_DEVISE. It is ignored.")
        self.assertEqual(len(lines), 2, lines)

    def test_orders(self):
        for dtype, letter in (("float32", "s"), ("float64", "d"), ("complex64", "c"), ("complex128", "z")):
            with self.subTest(dtype=dtype):
                self.check_served(f"""
for order_a in "CF":
    for order_b in "CF":
        A, B = random((50, 60), "{dtype}", order_a), random((60, 70), "{dtype}", order_b)
        check(A @ B, A, B)
        check(np.dot(A, B), A, B)
""", f"cblas_{letter}gemm", 8)

    def test_views(self):
        """Views whose rows or columns are contiguous are passed on as they are."""
        self.check_served("""
A, B = random((100, 130), "float32"), random((130, 90), "float32")
check(A[10:40, 20:80] @ B[5:65, 7:50], A[10:40, 20:80], B[5:65, 7:50])
check(A[::2, :60] @ B[:60].T[:, :60].T, A[::2, :60], B[:60])
check(B.T[3:40, :100] @ A[:, 1:], B.T[3:40, :100], A[:, 1:])
out = np.zeros((100, 200), "float32")
np.matmul(A, B, out=out[:, 50:140])
check(out[:, 50:140], A, B)
assert (out[:, :50] == 0).all() and (out[:, 140:] == 0).all()
""", "cblas_sgemm", 4)

    def test_vectors(self):
        self.check_served("""
A, x = random((80, 90), "float64"), random((200,), "float64")
check(A @ x[:90], A, x[:90])
check(x[:80] @ A, A.T, x[:80])
check(np.dot(A, x[180::-2][:90]), A, x[180::-2][:90])
check(np.asfortranarray(A) @ x[:180:2], A, x[:180:2])
""", "cblas_dgemv", 4)

    def test_complex_vectors(self):
        self.check_served("""
A, x = random((80, 90), "complex128"), random((200,), "complex128")
check(A @ x[:90], A, x[:90])
check(x[:80] @ A, A.T, x[:80])
check(np.dot(A.conj().T, x[:160:2]), A.conj().T, x[:160:2])
check(np.asfortranarray(A) @ x[:180:2], A, x[:180:2])
""", "cblas_zgemv", 4)

    def test_complex_functions(self):
        """Functions that NumPy computes by products: tensordot, einsum, powers, and chains. A batch is a product for
        each of its matrices."""
        self.check_served("""
A, B = random((3, 30, 40), "complex64"), random((40, 20), "complex64")
check(np.matmul(A, B)[1], A[1], B)
check(np.tensordot(A, B, 1)[2], A[2], B)
check(np.einsum("bij,jk->bik", A, B, optimize=True)[0], A[0], B)
check(np.linalg.multi_dot([A[0].conj(), B]), A[0].conj(), B)
check(np.linalg.matrix_power(A[0, :, :30], 2), A[0, :, :30], A[0, :, :30])
""", "cblas_cgemm", 7)

    def test_complex_values_that_are_not_finite(self):
        """An element with Inf or NaN gives the result of the four products of its parts, as with the reference BLAS."""
        self.check_served("""
A, B = random((20, 30), "complex64"), random((30, 10), "complex64")
A[3, 4], A[5, 6], B[7, 2] = complex(np.inf, 1), complex(1, np.nan), complex(0, -np.inf)
found = A @ B
with np.errstate(invalid="ignore"):
    re = A.real[..., None] * B.real - A.imag[..., None] * B.imag
    im = A.real[..., None] * B.imag + A.imag[..., None] * B.real
    for part, exact in (found.real, re.sum(1)), (found.imag, im.sum(1)):
        assert (np.isnan(part) == np.isnan(exact)).all() and (part[np.isinf(exact)] == exact[np.isinf(exact)]).all()
assert np.isfinite(found).sum() == 18 * 9
""", "cblas_cgemm", 1)

    def test_quantum_circuit(self):
        """Tegula computes the products of the example, and the norm of the state does not change."""
        lines = traced_lines(f"""
import runpy, sys
sys.argv = ["quantum_circuit.py", "--qubits", "10", "--rounds", "2"]
runpy.run_path({EXAMPLE!r}, run_name="__main__")
""")
        products = [line for line in lines if "cblas_cgemm TT m=4 n=256 k=4" in line]
        self.assertEqual(len(products), 30, products[:1])
        self.assertTrue(all(line.endswith(": tegula") for line in products), products[:1])

    def test_fork(self):
        """multiprocessing forks after the parent has used its threads."""
        lines = traced_lines("""
import multiprocessing
A = random((200, 200), "float64")
def multiply(unused):
    return A @ A[:, :199]
check(multiply(0), A, A[:, :199])
with multiprocessing.get_context("fork").Pool(3) as pool:
    for found in pool.map(multiply, range(9)):
        check(found, A, A[:, :199])
""")
        self.assertEqual(len(lines), 10, lines)


if __name__ == "__main__":
    print("NumPy", np.__version__)
    unittest.main()
