# SPDX-License-Identifier: Apache-2.0
"""The compiled path of calls: it computes what the Python code computes, or leaves it to that."""

import gc
import itertools
import os
import sys
import threading
import time
import unittest
import weakref
from unittest import mock

import numpy as np
from python_support import Comparison, has_device, layouts, random_array
from stand_ins import no_python, python_only

import tegula
from tegula import _matmul, _plans
from tegula._calls import calls

DTYPES = [np.dtype(name) for name in ("float32", "float64", "float16", "int8", "complex64", "complex128")]


def factors(m, k, n, dtype):
    scale = 100 if dtype.kind == "i" else 1
    found = [(scale * random_array(shape, np.float32, seed)).astype(dtype)
             for seed, shape in enumerate(((m, k), (k, n)))]
    if dtype.kind == "c":
        found = [x - 1j * np.roll(x, 1) for x in found]
    return tuple(found)


@unittest.skipIf(calls is None, "there is no compiled path: it needs the headers of Python")
class Calls(Comparison, unittest.TestCase):
    def setUp(self):
        self.a, self.b = factors(9, 7, 5, np.dtype(np.float32))
        self.out = np.zeros((9, 5), np.float32)
        _plans.forget_plans()

    def assert_same(self, call):
        """Fails unless the second call has the result of the Python code. Returns whether that computed it."""
        with python_only():
            expected = np.array(call())
        call()
        with mock.patch.object(_matmul, "_describe_product",
                               side_effect=_matmul._describe_product) as describe:
            result = call()
        kind = np.ndarray if expected.shape else type(expected[()])
        self.assertEqual((type(result), result.dtype, result.shape),
                         (kind, expected.dtype, expected.shape))
        self.assertEqual(np.asarray(result).tobytes(), expected.tobytes())
        return describe.called

    def test_types_and_layouts(self):
        for dtype in DTYPES:
            a, b = factors(9, 7, 5, dtype)
            for (in_a, x, x_is_blas), (in_b, y, y_is_blas) in itertools.product(layouts(a), layouts(b)):
                with self.subTest(a=in_a, b=in_b, dtype=dtype.name):
                    in_python = self.assert_same(lambda: tegula.matmul(x, y))
                    are_blas = all(is_blas or (dtype == np.int8 and name == "misaligned")
                                   for name, is_blas in ((in_a, x_is_blas), (in_b, y_is_blas)))
                    self.assertEqual(in_python, not are_blas)

    def test_shapes(self):
        for first, second in (((4,), (4,)), ((4,), (4, 3)), ((5, 4), (4,)), ((2, 5, 4), (4, 3)),
                              ((2, 3, 5, 4), (1, 1, 4, 6)), ((2, 3, 5, 4), (2, 3, 4, 6)),
                              ((5, 0), (0, 3)), ((0, 4), (4, 3)), ((1, 1), (1, 1))):
            a, b = random_array(first), random_array(second, seed=1)
            with self.subTest(a=first, b=second):
                self.assertFalse(self.assert_same(lambda: tegula.matmul(a, b)))
        for first, second in (((2, 1, 5, 4), (1, 3, 4, 6)), (5 * (1,) + (5, 4), (4, 3))):
            a, b = random_array(first), random_array(second, seed=1)
            self.assertTrue(self.assert_same(lambda: tegula.matmul(a, b)))

    def test_arguments(self):
        c, bias = random_array((9, 5), seed=3), random_array(5, seed=4)
        rows = random_array((9, 1), seed=5)

        def computed(in_place, **options):
            out = c.copy() if in_place else None
            if options.pop("c_is_out", False):
                options["c"] = out
            return tegula.matmul(self.a, self.b, out, **options)
        for in_place, options in itertools.product((False, True), (
                {}, {"alpha": 0.5}, {"alpha": np.float32(2)}, {"c": c}, {"c": c, "beta": -2},
                {"c": c, "beta": 0}, {"c": c, "bias": bias, "activation": "relu"}, {"bias": rows},
                {"bias": bias, "activation": "gelu"}, {"compute": "ieee"}, {"device": "cpu"},
                {"device": tegula.device("cpu", threads=1)}, {"alpha": float("nan")})):
            with self.subTest(in_place=in_place, **options):
                self.assertFalse(self.assert_same(lambda: computed(in_place, **options)))
        for options in ({"beta": 2}, {"c_is_out": True}, {"c_is_out": True, "beta": 3}):
            with self.subTest(**options):
                self.assertFalse(self.assert_same(lambda: computed(True, **options)))

    def test_factors(self):
        a, b = factors(9, 7, 5, np.dtype(np.int8))
        lines, columns = (np.abs(random_array(size, seed=size)) for size in (9, 5))
        one = np.array([0.5], np.float32)
        for scale_a, scale_b in ((one, one), (lines, columns), (lines[:, None], one), (None, columns)):
            with self.subTest(a=scale_a, b=scale_b):
                self.assertFalse(self.assert_same(
                    lambda: tegula.matmul(a, b, scale_a=scale_a, scale_b=scale_b)))
        # Factors with another order in memory are copied, and so is out if it overlaps them.
        self.assertTrue(self.assert_same(lambda: tegula.matmul(a, b, scale_a=np.repeat(lines, 2)[::2])))
        memory = np.ones(9 * 5 + 9, np.float32)
        for begin in (9, 9, 0, 3):
            memory[:9] = lines
            out = memory[begin:begin + 45].reshape(9, 5)
            expected = ((a.astype(np.int32) @ b) * lines[:, None]).astype(np.float32)
            np.testing.assert_array_equal(tegula.matmul(a, b, out, scale_a=memory[:9]), expected)

    def test_options_are_told_apart(self):
        for activation in None, "relu", "gelu", "silu":
            self.assertFalse(self.assert_same(
                lambda: tegula.matmul(self.a, self.b, activation=activation)))
        a = random_array((33, 9))
        one, two = (np.ascontiguousarray(x) for x in (a, a[:, :7]))
        tegula.matmul(one.T, a)
        self.assert_product(tegula.matmul(two.T, a), two.T, a)

    def test_plans(self):
        plan = tegula.plan(self.a, self.b)
        self.assertFalse(self.assert_same(lambda: plan(self.a, self.b)))
        self.assertFalse(self.assert_same(lambda: plan(self.a, self.b, alpha=2)))
        with self.assertRaisesRegex(ValueError, "a does not fit the plan"):
            plan(self.a[:5], self.b)
        other = tegula.plan(self.a, self.b, activation="relu")
        self.assertTrue(np.any(plan(self.a, self.b) < 0))
        for _ in range(3):
            self.assertFalse(np.any(other(self.a, self.b) < 0))
        kept = weakref.ref(plan)
        del plan
        gc.collect()
        self.assertIsNone(kept())  # the compiled path does not keep the plans of the caller

    @unittest.skipUnless(has_device("sim"), "the device sim needs a C compiler")
    def test_sim(self):
        self.assertFalse(self.assert_same(lambda: tegula.matmul(self.a, self.b, device="sim")))

    def test_out_that_overlaps(self):
        """Whether out overlaps an operand is checked in each call."""
        n = 6
        memory = random_array((3 * n, n))
        a, b = memory[:n], random_array((n, n), seed=1)
        for begin in (2 * n, 2 * n, n, n - 1, 1, 0):
            out, before = memory[begin:begin + n], a.copy()
            tegula.matmul(a, b, out)
            self.assert_product(out, before, b)
            before = b.copy()
            tegula.matmul(a, b, b)
            b[...], before = before, b.copy()
            self.assert_product(before, a, b)
        c, out = random_array((n, n), seed=2), np.zeros((n, n), np.float32)
        for addend in (c, c, out):
            before = addend.copy()
            tegula.matmul(memory[:n], b, out, c=addend)
            self.assert_product(out, memory[:n], b, 1.0, 1.0, before)
        shifted = random_array((n + 1, n), seed=3)
        before = shifted[1:].copy()
        tegula.matmul(memory[:n], b, shifted[:-1], c=shifted[1:])
        self.assert_product(shifted[:-1], memory[:n], b, 1.0, 1.0, before)
        bias = random_array((n, n), seed=4)
        for vector in (bias[1].copy(), bias[1].copy(), bias[1]):
            before = vector.copy()
            tegula.matmul(memory[:n], b, bias, bias=vector)
            self.assert_product(bias, memory[:n], b, bias=before)

    def test_errors(self):
        """Errors are those of the Python code, and nothing is written."""
        tegula.matmul(self.a, self.b), tegula.matmul(self.a, self.b, self.out)
        locked = self.out.copy()
        locked.flags.writeable = False
        raw = np.zeros(4 * 45 + 1, np.uint8)[1:].view(np.float32).reshape(9, 5)
        self.assert_product(tegula.matmul(self.a, self.b, raw), self.a, self.b)
        integers = factors(9, 7, 5, np.dtype(np.int8))
        tegula.matmul(*integers)
        before = self.out.copy()
        for arguments, options in (
                ((self.a, self.b, locked), {}), ((self.a, self.b), {"beta": 2}),
                ((self.a, self.b), {"beta": float("nan")}), ((self.a, self.b), {"alpha": "x"}),
                ((self.a, self.b, self.out), {"beta": "x"}), ((self.a, self.b), {"alpha": None}),
                ((self.a.astype(">f4"), self.b), {}), ((self.a.astype(int), self.b), {}),
                (integers, {"alpha": 0.5}), ((self.a, self.b[:6]), {}), ((self.a, [[1.0]]), {})):
            with self.subTest(options=options):
                with python_only(), self.assertRaises(Exception) as expected:
                    tegula.matmul(*arguments, **options)
                with self.assertRaises(type(expected.exception)) as raised:
                    tegula.matmul(*arguments, **options)
                self.assertEqual(str(raised.exception), str(expected.exception))
        self.assertEqual(self.out.tobytes(), before.tobytes())

    def test_references(self):
        """No references to arrays, options and results remain, also after calls that Python computes."""
        plan = tegula.plan(self.a, self.b)
        text = "".join(["re", "lu"])
        held = (self.a, self.b, self.out, text, plan, None, np.dtype(np.float32))

        def work():
            tegula.matmul(self.a, self.b, self.out, activation=text)
            tegula.matmul(self.a, self.b)
            tegula.matmul(self.a[0], self.b[:, 0])
            plan(self.a, self.b)
            tegula.matmul(self.a, self.b, self.a[:, :5])
        work()
        before = [sys.getrefcount(x) for x in held]
        for _ in range(100):
            work()
        after = [sys.getrefcount(x) for x in held]
        self.assertTrue(all(abs(x - y) < 20 for x, y in zip(before, after)), (before, after))
        _plans.forget_plans()
        self.assertLess(sys.getrefcount(text), before[3])

    def test_least_recently_used(self):
        """The compiled path keeps at least the last hundred kinds of products, and forgets those
        that were not used for long."""
        for n in range(1, 600):
            tegula.matmul(np.ones((1, n)), np.ones((n, 1)))
            with no_python():
                tegula.matmul(np.ones((1, max(1, n - 100))), np.ones((max(1, n - 100), 1)))
                tegula.matmul(np.ones((1, 1)), np.ones((1, 1)))
        with no_python(), self.assertRaisesRegex(AssertionError, "in Python"):
            tegula.matmul(np.ones((1, 2)), np.ones((2, 1)))

    def test_time(self):
        """A call of a small product takes at most 3 us of its thread: as long as numpy.matmul(), and not 20 us as in
        Python. The least of several rounds."""
        a, count, least = random_array((4, 4)), 2000, float("inf")
        for _ in range(10):
            start = time.thread_time()
            for _ in range(count):
                tegula.matmul(a, a)
            least = min(least, (time.thread_time() - start) / count)
        self.assertLess(least, 3e-6)

    def test_threads(self):
        """Threads compute while others evict the plans."""
        pairs = [factors(m, 300, 40, np.dtype(np.float64)) for m in range(1, 9)]
        expected = [tegula.matmul(a, b) for a, b in pairs]
        wrong = []

        def work(number):
            for i in range(60):
                a, b = pairs[(i + number) % 8]
                if not np.array_equal(tegula.matmul(a, b), expected[(i + number) % 8]):
                    wrong.append(i)
                if i % 7 == number:
                    _plans.forget_plans()
        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_fork(self):
        """The child makes plans of its own."""
        expected = tegula.matmul(self.a, self.b)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with mock.patch.object(_plans, "Handle", wraps=_plans.Handle) as handle:
                    same = np.array_equal(tegula.matmul(self.a, self.b), expected)
                    code = 0 if same and handle.call_count == 1 else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


if __name__ == "__main__":
    unittest.main()
