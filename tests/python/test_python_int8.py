# SPDX-License-Identifier: Apache-2.0
"""Products of int8 arrays: int32 results, exact modulo 2^32."""

import itertools
import unittest

import numpy as np
from python_support import has_device, layouts

import tegula

LEAST, GREATEST = -2**31, 2**31 - 1


def integers(shape, dtype=np.int8, seed=0):
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max, shape, dtype, endpoint=True)


def wrapped(x):
    """int64 to int32, modulo 2^32."""
    return np.asarray(x, np.int64).astype(np.int32)


def product(a, b):
    return wrapped(np.matmul(a.astype(np.int64), b.astype(np.int64)))


class Int8(unittest.TestCase):
    def assert_exact(self, result, expected):
        self.assertEqual(result.dtype, np.int32)
        np.testing.assert_array_equal(result, wrapped(expected))

    def test_layouts(self):
        for batch in (), (3,):
            a, b = integers(batch + (5, 7)), integers(batch + (7, 4), seed=1)
            c, ab = integers(batch + (5, 4), np.int32, 2), product(a, b).astype(np.int64)
            for (in_a, x, _), (in_b, y, _) in itertools.product(layouts(a), layouts(b)):
                with self.subTest(a=in_a, b=in_b):
                    self.assert_exact(tegula.matmul(x, y), ab)
            for (in_c, z, _), (in_out, out, _) in itertools.product(layouts(c), layouts(c)):
                with self.subTest(c=in_c, out=in_out):
                    self.assertIs(tegula.matmul(a, b, out, c=z, alpha=-3, beta=65537), out)
                    self.assert_exact(out, -3 * ab + 65537 * c.astype(np.int64))

    def test_shapes(self):
        for first, second in (((4,), (4, 3)), ((5, 4), (4,)), ((2, 1, 5, 4), (3, 4, 3)),
                              ((0, 4), (4, 3)), ((5, 0), (0, 3)), ((200, 300), (300, 100))):
            a, b = integers(first), integers(second, seed=1)
            with self.subTest(a=first, b=second):
                self.assert_exact(tegula.matmul(a, b), product(a, b))
        self.assertIsInstance(tegula.matmul(integers(4), integers(4)), np.int32)

    def test_sums_wrap(self):
        x = np.full((2, 140000), -128, np.int8)
        self.assert_exact(tegula.matmul(x, x.T), np.full((2, 2), 140000 * 2**14))
        for alpha, beta in ((LEAST, GREATEST), (GREATEST, LEAST), (-1.0, 0)):
            a, b, c = integers((3, 9)), integers((9, 4), seed=1), integers((3, 4), np.int32, 2)
            expected = int(alpha) * product(a, b).astype(object) + beta * c.astype(object)
            self.assert_exact(tegula.matmul(a, b, c=c, alpha=alpha, beta=beta),
                              [[(int(x) + 2**31) % 2**32 - 2**31 for x in row] for row in expected])

    def test_bias_and_relu(self):
        a, b = integers((5, 7)), integers((7, 4), seed=1)
        ab = product(a, b).astype(np.int64)
        for shape in (4,), (5, 1):
            bias = integers(shape, np.int32, 3)
            self.assert_exact(tegula.matmul(a, b, bias=bias), ab + bias)
            self.assert_exact(tegula.matmul(a, b, bias=bias, activation="relu"),
                              np.maximum(wrapped(ab + bias), 0))

    def test_plans_and_prepared_operands(self):
        a, b = integers((30, 70)), integers((70, 20), seed=1)
        plan = tegula.plan(a, b)
        self.assert_exact(plan(a, b), product(a, b))
        self.assertIn("A i8, B i8, C i32", plan.explain())
        with tegula.prepare(b) as prepared:
            self.assertEqual(prepared.dtype, "int8")
            self.assert_exact(tegula.matmul(a, prepared), product(a, b))

    def test_dlpack(self):
        a, b = integers((5, 7)), integers((7, 3), seed=1)

        class Dlpack:
            def __dlpack__(self, **options):
                return a.__dlpack__(**options)

            def __dlpack_device__(self):
                return a.__dlpack_device__()

        self.assert_exact(tegula.matmul(Dlpack(), b), product(a, b))

    def test_bench(self):
        row = tegula.bench([8], dtype=np.int8, device="cpu", seconds=0)[0]
        self.assertGreater(min(row["gflops"], row["numpy_gflops"]), 0)

    def test_errors(self):
        a, b = integers((5, 7)), integers((7, 3), seed=1)
        out = np.full((5, 3), 42, np.int32)
        for name, value in itertools.product(("alpha", "beta"), (0.5, 2.0**40, np.nan, -np.inf)):
            with self.subTest(name, value=value), self.assertRaises(ValueError) as caught:
                tegula.matmul(a, b, out, **{name: value})
            self.assertEqual(caught.exception.status, "TGL_BAD_SCALAR")
            self.assertIn(f"{name} is ", caught.exception.message)
        for x, options in ((b.astype(np.float32), {}), (b.astype(np.int16), {}),
                           (b.astype(np.int32), {}), (b, {"out": np.zeros((5, 3), np.int8)}),
                           (b, {"c": np.zeros((5, 3), np.float32)})):
            self.assertRaises(TypeError, tegula.matmul, a, x, **options)
        for options in {"activation": "gelu"}, {"epilogue": "acc + c"}:
            self.assertRaises(tegula.UnsupportedError, tegula.matmul, a, b, **options)
        self.assertTrue(np.all(out == 42))

    @unittest.skipUnless(has_device("sim"), "the device sim needs a C compiler")
    def test_simulator(self):
        a = integers((8, 8))
        np.testing.assert_array_equal(tegula.matmul(a, a, device="sim"), tegula.matmul(a, a, device="cpu"))


if __name__ == "__main__":
    unittest.main()
