# SPDX-License-Identifier: Apache-2.0
"""tegula.matmul() on NumPy arrays, on the devices cpu and sim."""

import itertools
import sys
import unittest
from unittest import mock

import numpy as np
from python_support import BFLOAT16, DTYPES, Comparison, has_device, layouts, random_array

import tegula
from tegula import _matmul


def no_copies():
    """Within the with-block, a copy of an operand is an error."""
    return mock.patch.object(_matmul, "row_major_copy", side_effect=AssertionError("a copy"))


class Layouts(Comparison, unittest.TestCase):
    def check_layouts(self, a, b, dtype):
        c = random_array(np.matmul(a, b).shape, np.float32, 3).astype(dtype)
        for (in_a, x, x_is_blas), (in_b, y, y_is_blas) in itertools.product(layouts(a), layouts(b)):
            with self.subTest(a=in_a, b=in_b, dtype=dtype.name):
                self.assert_product(tegula.matmul(x, y), a, b)
                if x_is_blas and y_is_blas:
                    with no_copies():
                        tegula.matmul(x, y)
        for (in_c, z, _), (in_out, out, _) in itertools.product(layouts(c), layouts(c)):
            with self.subTest(c=in_c, out=in_out, dtype=dtype.name):
                result = tegula.matmul(a, b, out, c=z, alpha=0.5, beta=-2.0)
                self.assertIs(result, out)
                self.assert_product(out, a, b, 0.5, -2.0, c)
        for in_out, out, is_blas in layouts(c):
            with self.subTest(out=in_out, dtype=dtype.name):
                tegula.matmul(a, b, out, beta=2.0)
                self.assert_product(out, a, b, 1.0, 2.0, c)
                with mock.patch.object(_matmul, "assign", side_effect=AssertionError("a copy")):
                    if is_blas:
                        tegula.matmul(a, b, out)
                    elif min(out.shape) > 1:  # otherwise strides do not matter
                        self.assertRaises(AssertionError, tegula.matmul, a, b, out)

    def test_matrices(self):
        for dtype in DTYPES:
            self.check_layouts(random_array((5, 7), dtype), random_array((7, 3), dtype, 1), dtype)

    def test_batches(self):
        for dtype in DTYPES[:1] + DTYPES[2:3]:
            self.check_layouts(random_array((4, 5, 7), dtype), random_array((4, 7, 3), dtype, 1),
                               dtype)

    def test_rows_and_columns(self):
        for m, n, k in ((1, 1, 1), (1, 6, 4), (6, 1, 4), (3, 3, 1), (1, 1, 9)):
            a, b = random_array((m, k)), random_array((k, n), seed=1)
            self.check_layouts(a, b, np.dtype(np.float32))

    def test_padding_is_not_written(self):
        a, b = random_array((5, 7)), random_array((7, 3), seed=1)
        whole = np.full((5, 9), 42, np.float32)
        tegula.matmul(a, b, whole[:, 2:5])
        self.assertTrue(np.all(np.delete(whole, [2, 3, 4], axis=1) == 42))
        self.assert_product(whole[:, 2:5], a, b)


class Shapes(Comparison, unittest.TestCase):
    def test_as_numpy(self):
        shapes = [((4,), (4,)), ((4,), (4, 3)), ((5, 4), (4,)), ((2, 5, 4), (4,)),
                  ((4,), (2, 4, 3)), ((2, 5, 4), (4, 3)), ((5, 4), (2, 4, 3)),
                  ((2, 1, 5, 4), (3, 4, 3)), ((2, 3, 5, 4), (1, 3, 4, 6)),
                  ((2, 1, 5, 4), (1, 3, 4, 6)), ((0, 4), (4, 3)), ((5, 0), (0, 3)),
                  ((5, 4), (4, 0)), ((0, 5, 4), (0, 4, 3)), ((2, 0, 5, 4), (2, 1, 4, 3)),
                  ((1, 5, 4), (1, 4, 3)), ((0,), (0,))]
        for first, second in shapes:
            a, b = random_array(first), random_array(second, seed=1)
            with self.subTest(a=first, b=second), no_copies():
                self.assert_product(tegula.matmul(a, b), a, b)
                out = np.full(np.matmul(a, b).shape, np.nan, np.float32)
                tegula.matmul(a, b, out=out)
                self.assert_product(out, a, b)

    def test_two_vectors_give_a_scalar(self):
        self.assertIsInstance(tegula.matmul(random_array(4), random_array(4)), np.float32)

    def test_vectors_with_strides(self):
        a, b = random_array((4, 6)), random_array((6, 5), seed=1)
        with no_copies():
            self.assert_product(tegula.matmul(a[:, 2], a), a[:, 2], a)
            self.assert_product(tegula.matmul(b, b[2]), b, b[2])
            self.assert_product(tegula.matmul(b.T, b[:, 1]), b.T, b[:, 1])
        self.assert_product(tegula.matmul(a[::-1, 2], a), a[::-1, 2], a)

    def test_batches_with_strides(self):
        """Batches that no single stride describes, backwards, broadcast, and interleaved."""
        a = random_array((6, 4, 5, 7))
        b = random_array((7, 3), seed=1)
        many = random_array((6, 4, 7, 3), seed=2)
        cases = {"every second": (a[::2, 1:3], b), "backwards": (a[::-1], b),
                 "one dimension backwards": (a[::-1, 0], b),
                 "transposed": (a.transpose(1, 0, 2, 3), many.transpose(1, 0, 2, 3)),
                 "broadcast": (np.broadcast_to(a[:1, :1], a.shape), many),
                 "broadcast within": (np.broadcast_to(a[:, :1], a.shape), many),
                 "interleaved": (random_array((5, 6, 7)).transpose(1, 0, 2), b)}
        for name, (x, y) in cases.items():
            with self.subTest(name), no_copies():
                self.assert_product(tegula.matmul(x, y), x, y)

    def test_results_with_strides(self):
        a, b = random_array((6, 5, 7)), random_array((6, 7, 3), seed=1)
        outs = {"interleaved": np.zeros((5, 6, 3), np.float32).transpose(1, 0, 2),
                "backwards": np.zeros((6, 5, 3), np.float32)[::-1],
                "every second": np.zeros((12, 5, 3), np.float32)[::2],
                "last": np.zeros((5, 3, 6), np.float32).transpose(2, 0, 1)}
        for name, out in outs.items():
            with self.subTest(name):
                tegula.matmul(a, b, out=out)
                self.assert_product(out, a, b)
                tegula.matmul(a, b, out=out, beta=-1)
                self.assertLess(abs(out).max(), 1e-5)

    def test_runs(self):
        """One call of the library computes the innermost batch dimension, or several with a common stride."""
        a, b = random_array((6, 4, 5, 7)), random_array((7, 3), seed=1)
        memory = np.zeros(200, np.float32)

        def batch(stride):  # two results of 4x3 with a leading dimension of 10
            return np.lib.stride_tricks.as_strided(memory, (2, 4, 3), (4 * stride, 40, 4))
        cases = [(a, b, None, 1), (a[:, ::2], b, None, 1), (a[:, 1:], b, None, 6),
                 (a[::-1, 0], b, None, 6), (a[:2, 0, :4], b, batch(40), 1),
                 (a[:2, 0, :4], b, batch(4), 1), (a[:2, 0, :4], b, batch(14), 2)]
        for x, y, out, runs in cases:
            plan = tegula.plan(x, y, out)
            self.assertEqual(len(plan.handle().offsets), runs)
            self.assert_product(plan(x, y, out), x, y)

    def test_errors_as_numpy(self):
        for first, second in (((3, 4), (5, 6)), ((), (4,)), ((4,), ()), ((4,), (5,)),
                              ((2, 3, 4), (3, 4, 5))):
            with self.subTest(a=first, b=second):
                a, b = random_array(first), random_array(second)
                self.assertRaises(ValueError, np.matmul, a, b)
                self.assertRaises(ValueError, tegula.matmul, a, b)


class Types(Comparison, unittest.TestCase):
    def test_wide_results(self):
        for dtype in [np.dtype(np.float16)] + BFLOAT16:
            a, b = random_array((20, 300), dtype), random_array((300, 9), dtype, 1)
            out = np.zeros((20, 9), np.float32)
            tegula.matmul(a, b, out)
            self.assert_product(out, a, b)
            tegula.matmul(a, b, np.zeros((20, 18), np.float32)[:, ::2])  # the result is copied

    def test_other_objects(self):
        a, b = random_array((5, 7)), random_array((7, 3), seed=1)

        class Interface:
            __array_interface__ = a.__array_interface__

        class Dlpack:
            def __dlpack__(self, **options):
                return a.__dlpack__(**options)

            def __dlpack_device__(self):
                return a.__dlpack_device__()

        for x in (Interface(), Dlpack()):
            result = tegula.matmul(x, b)
            self.assertIsInstance(result, np.ndarray)
            self.assert_product(result, a, b)

    def test_strided_dlpack(self):
        """An array that is read through DLPack cannot be copied, so it must be contiguous."""
        a, b = random_array((5, 14))[:, ::2], random_array((7, 3), seed=1)

        class Dlpack:
            def __dlpack__(self, **options):
                return a.__dlpack__(**options)

            def __dlpack_device__(self):
                return a.__dlpack_device__()

        with self.assertRaisesRegex(ValueError, "a has the strides"):
            tegula.matmul(Dlpack(), b)

    def test_jax(self):
        try:
            import jax.numpy as jnp
        except ImportError:
            self.skipTest("needs JAX")
        for dtype in [np.dtype(np.float32), np.dtype(np.float16)] + BFLOAT16:
            a, b = random_array((2, 5, 7), dtype), random_array((7, 3), dtype, 1)
            x, y = jnp.asarray(a), jnp.asarray(b)
            for result in (tegula.matmul(x, y), tegula.matmul(x, b), tegula.plan(x, y)(x, y)):
                self.assertIsInstance(result, np.ndarray)
                self.assert_product(result, a, b)
            self.assert_product(np.asarray(jnp.asarray(tegula.matmul(y.T, x[0].T))), b.T, a[0].T)
            # JAX's arrays never change.
            with self.assertRaisesRegex(ValueError, "read-only"):
                tegula.matmul(a, b, jnp.zeros((2, 5, 3), dtype))

    def test_dlpack_results(self):
        a, b = random_array((5, 7)), random_array((7, 3), seed=1)
        memory = np.zeros((5, 3), np.float32)

        class Dlpack:
            def __dlpack__(self, **options):
                return memory.__dlpack__(**options)

            def __dlpack_device__(self):
                return memory.__dlpack_device__()

        references = sys.getrefcount(memory)
        out = Dlpack()
        memory.flags.writeable = False
        # NumPy before 2.1 does not export arrays that are read-only.
        self.assertRaises((ValueError, BufferError, TypeError), tegula.matmul, a, b, out)
        memory.flags.writeable = True
        self.assertIs(tegula.matmul(a, b, out), out)
        self.assert_product(memory, a, b)
        self.assertEqual(sys.getrefcount(memory), references)  # the capsules were released

    def test_errors(self):
        a = random_array((4, 4))
        for other in (a.astype(np.int32), a.astype(">f4"), a.astype(np.complex64),
                      [[1.0, 2.0]], "text", None, 3, np.float32(3), object()):
            with self.subTest(str(other)):
                self.assertRaises(TypeError, tegula.matmul, a, other)
                self.assertRaises(TypeError, tegula.matmul, other, a)
        with self.assertRaises(TypeError) as caught:
            tegula.matmul(a, a.astype(np.float64))
        self.assertIsInstance(caught.exception, tegula.TegulaError)
        self.assertEqual(caught.exception.status, "TGL_BAD_TYPE")
        self.assertIn("A is f32 and B is f64", str(caught.exception))


class Complex(unittest.TestCase):
    """Complex arrays, and complex alpha and beta."""

    def test_products(self):
        for dtype, bound in (np.complex64, 1e-4), (np.complex128, 1e-12):
            for shape in (5, 6, 7), (70, 90, 80), (1, 30, 40):
                with self.subTest(dtype=dtype, shape=shape):
                    m, k, n = shape
                    a = (random_array((m, k)) + 1j * random_array((m, k))).astype(dtype)
                    b = (random_array((n, k)) - 1j * random_array((n, k))).astype(dtype).T
                    c = (random_array((m, n)) * 1j).astype(dtype)
                    result = tegula.matmul(a, b)
                    self.assertEqual(result.dtype, dtype)
                    self.assertLess(np.abs(result - a @ b).max(), bound)
                    result = tegula.matmul(a, b, c=c, alpha=2j, beta=dtype(1 - 0.5j))
                    self.assertLess(np.abs(result - (2j * (a @ b) + (1 - 0.5j) * c)).max(), 4 * bound)

    def test_real_arrays_take_real_factors(self):
        a = random_array((4, 4))
        for _ in range(2): # the second call is that of the compiled path
            tegula.matmul(a, a, alpha=2)
            for alpha in 1j, np.complex64(1j):
                with self.assertRaises(tegula.TegulaError) as caught:
                    tegula.matmul(a, a, alpha=alpha)
                self.assertEqual(caught.exception.status, "TGL_BAD_SCALAR")
            self.assertRaises(TypeError, tegula.matmul, a, a, alpha="1")


class Refused(unittest.TestCase):
    """Arrays that mean more than their elements in memory."""

    def test_masks(self):
        a = random_array((3, 3))
        masked = np.ma.masked_array(a, mask=a > 0)

        class Interface:
            __array_interface__ = dict(a.__array_interface__, mask=(a > 0))

        class CudaInterface:
            __cuda_array_interface__ = Interface.__array_interface__
        for x in masked, masked[:2].T, np.ma.masked_array(a), Interface(), CudaInterface():
            for arguments in ((x, a), (a, x), (a, a, x)):
                with self.assertRaisesRegex(TypeError, "is a masked array"):
                    tegula.matmul(*arguments)
            for options in {"c": x}, {"bias": x}:
                self.assertRaisesRegex(TypeError, "is a masked array", tegula.matmul, a, a, **options)
            self.assertRaises(TypeError, tegula.plan, a, x)
            self.assertRaises(TypeError, tegula.prepare, x)

    def test_subclasses(self):
        class Unit(np.ndarray):
            def __array_ufunc__(self, *arguments, **options):
                return NotImplemented

        class Plain(np.ndarray):
            pass
        a = random_array((3, 3))
        self.assertRaisesRegex(TypeError, "b is a Unit", tegula.matmul, a, a.view(Unit))
        for kind in Plain, np.matrix, np.memmap:
            result = tegula.matmul(a.view(kind), a)
            self.assertIs(type(result), np.ndarray)
            self.assertTrue(np.array_equal(result, tegula.matmul(a, a)))


class Messages(unittest.TestCase):
    def test_wrong_types(self):
        a = random_array((3, 3))
        for error, text, call in (
                (TypeError, "alpha is 'x'; it must be a number", lambda: tegula.matmul(a, a, alpha="x")),
                (TypeError, "alpha is '2'; it must be", lambda: tegula.matmul(a, a, alpha="2")),
                (TypeError, "beta is 'x'; it must", lambda: tegula.matmul(a, a, c=a, beta="x")),
                (TypeError, "alpha is None", lambda: tegula.matmul(a, a, alpha=None)),
                (TypeError, "compute is 3; it must be text", lambda: tegula.matmul(a, a, compute=3)),
                (TypeError, r"activation is \['relu'\]", lambda: tegula.matmul(a, a, activation=["relu"])),
                (TypeError, "epilogue is 1", lambda: tegula.matmul(a, a, epilogue=1)),
                (TypeError, "kernel is 2", lambda: tegula.plan(a, a, kernel=2)),
                (TypeError, "effort is 2; it must be text", lambda: tegula.plan(a, a, effort=2)),
                (ValueError, "effort is 'much'; it must be None or one of estimate, measure",
                 lambda: tegula.plan(a, a, effort="much")),
                (TypeError, "workspace_limit is 'x'", lambda: tegula.plan(a, a, workspace_limit="x")),
                (TypeError, "device is 3; it must be a name", lambda: tegula.matmul(a, a, device=3)),
                (TypeError, "threads is '4'; it must be an int", lambda: tegula.device("cpu", threads="4")),
                (ValueError, "threads is -1; it must be 0 or more", lambda: tegula.device("cpu", -1)),
                (TypeError, "name is 3", lambda: tegula.device(3)),
                (TypeError, "size is 'x'; it must be an int", lambda: tegula.prepare(a, size="x")),
                (ValueError, r"side is 3; it must be 'a' or 'b'", lambda: tegula.prepare(a, 3)),
                (ValueError, "size is 0; it must be a positive int", lambda: tegula.ladder(0)),
                (ValueError, r"size is \(1, 2\); it must", lambda: tegula.ladder((1, 2))),
                (TypeError, "size is 'x'; it must be a positive", lambda: tegula.bench(["x"])),
                (TypeError, "sizes is 256; it must be a list", lambda: tegula.bench(256)),
                (TypeError, "seconds is 'x'", lambda: tegula.bench([8], seconds="x"))):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                call()


class Arguments(Comparison, unittest.TestCase):
    def setUp(self):
        self.a, self.b = random_array((5, 7)), random_array((7, 3), seed=1)

    def test_epilogue(self):
        a, b = self.a, self.b
        c = random_array((5, 3), seed=2)
        column, row = random_array(3, seed=4), random_array((5, 1), seed=5)
        for bias in (column, column[None], row, random_array(6)[::2],
                     random_array((2, 5)).T[:, :1], row[::-1]):
            self.assert_product(tegula.matmul(a, b, bias=bias), a, b, bias=bias)
            self.assert_product(tegula.matmul(a, b, c=c, bias=bias, activation="relu"), a, b,
                                1.0, 1.0, c, bias, lambda x: np.maximum(x, 0))
        silu = tegula.matmul(a, b, activation="silu")
        self.assert_product(silu, a, b, function=lambda x: x / (1 + np.exp(-x)))

    def test_batches_of_bias(self):
        a, b = random_array((2, 4, 5, 7)), random_array((4, 7, 3), seed=1)
        for shape in ((3,), (2, 4, 1, 3), (4, 5, 1), (2, 1, 1, 3), (2, 4, 5, 1)):
            bias = random_array(shape, seed=4)
            with self.subTest(shape):
                self.assert_product(tegula.matmul(a, b, bias=bias), a, b, bias=bias)
        c = random_array((4, 5, 3), seed=6)
        self.assert_product(tegula.matmul(a, b, c=c), a, b, 1.0, 1.0, c)

    def test_bias_of_vectors(self):
        bias = random_array(5, seed=4)
        self.assert_product(tegula.matmul(self.a, self.b[:, 0], bias=bias), self.a, self.b[:, 0],
                            bias=bias)
        bias = random_array(3, seed=4)
        self.assert_product(tegula.matmul(self.a[0], self.b, bias=bias), self.a[0], self.b,
                            bias=bias)

    def test_beta(self):
        c = random_array((5, 3), seed=2)
        nan = np.full((5, 3), np.nan, np.float32)
        self.assert_product(tegula.matmul(self.a, self.b, c=c), self.a, self.b, 1.0, 1.0, c)
        self.assert_product(tegula.matmul(self.a, self.b, c=nan, beta=0), self.a, self.b)
        self.assert_product(tegula.matmul(self.a, self.b, nan), self.a, self.b)
        zero = tegula.matmul(self.a * np.nan, self.b, alpha=0, c=c, beta=2)
        self.assertTrue(np.array_equal(zero, 2 * c))

    def test_compute(self):
        for compute in ("default", "ieee", "accurate", "tf32", "fast"):
            self.assert_product(tegula.matmul(self.a, self.b, compute=compute), self.a, self.b)

    def test_overlap(self):
        """The result is right whatever memory out shares with the operands."""
        for n in (4, 40):
            a, b = random_array((n, n)), random_array((n, n), seed=1)
            for which in range(3):
                operands = [a.copy(), b.copy(), random_array((n, n), seed=2)]
                before = [x.copy() for x in operands]
                tegula.matmul(operands[0], operands[1], operands[which], c=operands[2])
                self.assert_product(operands[which], a, b, 1.0, 1.0, before[2])
            memory = random_array((n + 1, n), seed=3)
            x, out = memory[:-1], memory[1:]
            before = x.copy()
            tegula.matmul(x, b, out)
            self.assert_product(out, before, b)
            memory = random_array((n + 1, n), seed=3)
            c, out = memory[:-1], memory[1:]
            before = c.copy()
            tegula.matmul(a, b, out, c=c)
            self.assert_product(out, a, b, 1.0, 1.0, before)
            bias = random_array((n, n), seed=4)
            before = bias[0].copy()
            tegula.matmul(a, b, bias, bias=bias[0])
            self.assert_product(bias, a, b, bias=before)
        memory = random_array((4, 4, 4), seed=5)
        x, out = memory[:0:-1], memory[:3]  # x begins behind out and runs backwards into it
        before = x.copy()
        tegula.matmul(x, random_array((4, 4)), out)
        self.assert_product(out, before, random_array((4, 4)))
        with mock.patch.object(_matmul, "assign", side_effect=AssertionError("a copy")):
            tegula.matmul(memory[0], memory[1], memory[2], c=memory[2])

    def test_errors(self):
        a, b = self.a, self.b
        good = np.zeros((5, 3), np.float32)
        locked = good.copy()
        locked.flags.writeable = False
        flat = np.lib.stride_tricks.as_strided(good, (5, 3), (0, 4))
        cases = {
            "out has the shape": dict(out=np.zeros((3, 5), np.float32)),
            "read-only": dict(out=locked),
            "share memory": dict(out=flat),
            "c has the shape": dict(c=np.zeros(3, np.float32)),
            "c has the batch": dict(c=np.zeros((2, 5, 3), np.float32)),
            "bias has the shape": dict(bias=np.zeros(5, np.float32)),
            "bias has no dimensions": dict(bias=np.float32(1)[...]),
            "beta is 2": dict(beta=2),
            "compute is 'fp8'": dict(compute="fp8"),
            "activation is 'tanh'": dict(activation="tanh"),
            "an expression and an activation": dict(activation="relu", epilogue="acc"),
            "read-only ": dict(out=np.broadcast_to(np.float32(0), (5, 3))),
        }
        for text, options in cases.items():
            with self.subTest(text), self.assertRaises(ValueError) as caught:
                tegula.matmul(a, b, **options)
            self.assertIn(text.strip(), str(caught.exception))
        self.assertTrue(np.all(good == 0))
        with self.assertRaises(NotImplementedError) as caught:
            tegula.matmul(a, b, epilogue="acc * 2")
        self.assertEqual(caught.exception.status, "TGL_UNSUPPORTED")


@unittest.skipUnless(has_device("sim"), "the device sim needs a C compiler")
class Simulator(Comparison, unittest.TestCase):
    def test_types(self):
        """Two of the four pairs of orders for each type: every combination compiles a kernel."""
        for number, dtype in enumerate(DTYPES):
            for a_order, b_order in ("CC", "FF") if number % 2 == 0 else ("CF", "FC"):
                a = np.array(random_array((33, 20), dtype), order=a_order)
                b = np.array(random_array((20, 17), dtype, 1), order=b_order)
                with self.subTest(dtype=dtype.name, a=a_order, b=b_order):
                    self.assert_product(tegula.matmul(a, b, device="sim"), a, b)

    def test_expression(self):
        a, b, bias = random_array((9, 5)), random_array((5, 7), seed=1), random_array(7, seed=2)
        out = np.zeros((9, 7), np.float32, order="F")
        tegula.matmul(a, b, out, bias=bias, epilogue="(acc + bias) * row + col", device="sim")
        row, col = np.indices((9, 7))
        self.assert_product(out, a, b, bias=bias, function=lambda x: x * row + col)

    def test_errors(self):
        a = random_array((9, 9))
        with self.assertRaises(tegula.TegulaError) as caught:
            tegula.matmul(a, a, epilogue="acc +", device="sim")
        self.assertEqual(caught.exception.status, "TGL_COMPILE")
        self.assertIn("expression", caught.exception.message)


if __name__ == "__main__":
    unittest.main()
