# SPDX-License-Identifier: Apache-2.0
"""Arrays that are not NumPy's: both paths of calls give the same results and errors, run in the same
streams, and keep the same arrays. Where there is no compiled path, the Python code is tested alone."""

import contextlib
import ctypes
import gc
import itertools
import os
import sys
import unittest
import weakref
from unittest import mock

import numpy as np
from python_support import Comparison, layouts, random_array
from stand_ins import (CudaArray, CudaDlpack, Dlpack, Parameter, Tensor, fake_torch, is_replaced,
                       no_python, python_only, tensor_functions)

import tegula
from tegula import _calls, _held, _matmul, _plans
from tegula._arrays import describe
from tegula._library import Operands, check, lib

try:
    import torch
except ImportError:
    torch = None
try:
    import jax
except ImportError:
    jax = None

RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Operands), ctypes.c_void_p)


@contextlib.contextmanager
def recorded_runs(status=None):
    """The streams in which the compiled path runs plans. status: what the runs return instead."""
    streams = []

    @RUN
    def run(plan, operands, stream):
        streams.append(stream or 0)
        return lib.tgl_plan_run_operands(plan, operands, stream) if status is None else status
    address = ctypes.cast(run, ctypes.c_void_p).value
    own = _calls._module.Calls(address, check, _matmul.hold)
    own.know(np.ndarray, _calls._module.BUFFER, False, None, None, None, None)
    with mock.patch.object(_matmul, "calls", own), mock.patch.object(_calls, "calls", own):
        yield streams


def host(x):
    """The elements of an array of any library."""
    if torch is not None and isinstance(x, torch.Tensor):
        return x.view(torch.int16).numpy() if x.dtype is torch.bfloat16 else x.detach().numpy()
    return np.asarray(getattr(x, "host", x))


class Paths(Comparison, unittest.TestCase):
    """The base of the test cases below."""

    def setUp(self):
        self.a, self.b = random_array((9, 7)), random_array((7, 5), seed=1)
        self.out = np.zeros((9, 5), np.float32)
        _plans.forget_plans()

    def paths(self, call, count=3):
        """Results of a call by the Python code, and then of `count` calls that may take the compiled path."""
        with python_only():
            yield call()
        call()
        for _ in range(count if _calls.calls is not None else 0):
            with no_python():
                yield call()

    def assert_same(self, call):
        expected, *results = self.paths(call)
        for result in results:
            self.assertIs(type(result), type(expected))
            self.assertEqual((host(result).dtype, host(result).shape),
                             (host(expected).dtype, host(expected).shape))
            self.assertEqual(host(result).tobytes(), host(expected).tobytes())
        return expected

    def assert_same_error(self, kind, text, call):
        """Fails unless both paths raise the same error with this text."""
        with python_only(), self.assertRaisesRegex(kind, text) as expected:
            call()
        with self.assertRaises(kind) as raised:
            call()
        self.assertEqual(str(raised.exception), str(expected.exception))


class OnCpu(Paths):
    def test_types_and_layouts(self):
        for dtype, kind in itertools.product(("float32", "float64", "float16", "int8"), (None, 0)):
            scale = 100 if dtype == "int8" else 1
            a, b = ((scale * x).astype(dtype) for x in (self.a, self.b))
            for (in_a, x, x_is_blas), (in_b, y, y_is_blas) in itertools.product(layouts(a), layouts(b)):
                if x_is_blas and y_is_blas and "misaligned" not in (in_a, in_b):
                    with self.subTest(a=in_a, b=in_b, dtype=dtype, flags=kind):
                        result = self.assert_same(lambda: tegula.matmul(Dlpack(x, kind), Dlpack(y, kind)))
                        self.assertIs(type(result), np.ndarray)
                        with python_only():
                            self.assertTrue(np.array_equal(result, tegula.matmul(x, y)))

    def test_arguments(self):
        c, bias = random_array((9, 5), seed=3), random_array(5, seed=4)
        for options in ({}, {"c": Dlpack(c)}, {"c": c, "beta": -2, "bias": Dlpack(bias)},
                        {"activation": "relu"}, {"alpha": 0.5}):
            self.assert_same(lambda: tegula.matmul(Dlpack(self.a), self.b, **options))
            out = Dlpack(self.out)
            self.assertIs(self.assert_same(lambda: tegula.matmul(Dlpack(self.a), self.b, out, **options)),
                          out)
        vector = self.assert_same(lambda: tegula.matmul(Dlpack(self.a[0]), Dlpack(self.b[:, 0])))
        self.assertIsInstance(vector, np.float32)
        plan = tegula.plan(Dlpack(self.a), Dlpack(self.b))
        self.assert_same(lambda: plan(Dlpack(self.a), Dlpack(self.b)))

    def test_what_python_computes(self):
        """Copies, empty arrays without an address, and a result that overlaps an operand."""
        reversed_, square = self.a[::-1], random_array((7, 7), seed=2)
        for _ in range(3):
            self.assertRaisesRegex(ValueError, "cannot express", tegula.matmul, Dlpack(reversed_), self.b)
            empty = tegula.matmul(Dlpack(self.a[:0]), Dlpack(self.b))
            self.assertEqual(empty.shape, (0, 5))
            tegula.matmul(Dlpack(square), Dlpack(square), np.zeros_like(square))
            self.assertRaisesRegex(ValueError, "out overlaps", tegula.matmul, Dlpack(square),
                                   Dlpack(square), Dlpack(square))

    def test_read_only(self):
        """out may not be read-only, or a copy, whose result nobody would see."""
        tegula.matmul(self.a, self.b, Dlpack(self.out, 0))
        for flags in 1, 2, 3:
            self.assert_same_error(ValueError, "out is read-only", lambda: tegula.matmul(
                self.a, self.b, Dlpack(self.out, flags)))
            self.assert_same(lambda: tegula.matmul(Dlpack(self.a, flags), self.b))

    def test_errors(self):
        tegula.matmul(Dlpack(self.a), Dlpack(self.b))
        tegula.matmul(Dlpack(self.a, 0), Dlpack(self.b, 0))
        tegula.matmul(Dlpack(self.a), Dlpack(self.b), self.out)
        elsewhere = Dlpack(self.b)
        elsewhere.place = 8, 0
        for kind, text, a, b, options in (
                (TypeError, "alpha is 'x'; it must be a number", self.a, self.b, {"alpha": "x"}),
                (TypeError, "beta is 'x'", self.a, self.b, {"beta": "x", "out": self.out}),
                (ValueError, "neither c nor out", self.a, self.b, {"beta": 2}),
                (ValueError, "do not match", self.a, self.b[:6], {}),
                (TypeError, "has the type DLPack's type", self.a.astype(np.int64), self.b, {}),
                (tegula.TypeCombinationError, "", self.a.astype(float), self.b, {})):
            self.assert_same_error(kind, text, lambda: tegula.matmul(Dlpack(a), Dlpack(b), **options))
        masked = np.ma.masked_array(self.a, self.a > 0)
        for kind, text, a, b in (
                (TypeError, "masked array", masked, self.b), (TypeError, "is a list", [[1.0]], self.b),
                (TypeError, "has the type int64", self.a.astype(np.int64), self.b),
                (tegula.TypeCombinationError, "", self.a.astype(np.int32), self.b.astype(np.int32)),
                (tegula.TypeCombinationError, "", self.a, self.b.astype(float)),
                (TypeError, "has the type >f4", self.a.astype(">f4"), self.b),
                (TypeError, "is a float32, which is not an array", np.float32(1), self.b)):
            tegula.matmul(self.a, self.b)
            self.assert_same_error(kind, text, lambda: tegula.matmul(a, b))
        self.assert_same_error(ValueError, "the DLPack device 8", lambda: tegula.matmul(self.a, elsewhere))
        self.assert_same_error(TypeError, "DLPack 2.0 is not supported", lambda: tegula.matmul(
            Dlpack(self.a, 0, major=2), Dlpack(self.b, 0)))
        self.assert_same_error(TypeError, "is a list, which is not an array", lambda: tegula.matmul(
            Dlpack(self.a), [[1.0]]))

    def test_producers(self):
        """The package remembers that a producer does not have versioned capsules (max_version), and does not ask for
        one again in each call. Exceptions of a producer are passed on, also KeyboardInterrupt."""
        asked = []

        class Old(Dlpack):
            def __dlpack__(self, stream=None, **options):
                asked.append(options)
                return super().__dlpack__(stream, **options)
        tegula.matmul(Old(self.a), self.b), tegula.matmul(Old(self.a), self.b)
        if _calls.calls is not None:
            asked.clear()
            with no_python():
                tegula.matmul(Old(self.a), self.b)
            self.assertEqual(asked, [{}])
        for errors in itertools.repeat(BufferError("no")), iter((KeyboardInterrupt(), BufferError("no"))):
            expected = BufferError if isinstance(errors, itertools.repeat) else KeyboardInterrupt
            with mock.patch.object(Dlpack, "__dlpack__", side_effect=errors):
                self.assertRaises(expected, tegula.matmul, Old(self.a), self.b)

    def test_references(self):
        """Capsules and arrays are released."""
        freed, memory = [], self.a.copy()

        def work():
            tegula.matmul(Dlpack(memory), Dlpack(self.b, 0), Dlpack(self.out))
            tegula.matmul(Dlpack(memory), self.b)
            tegula.matmul(Dlpack(self.a[:, :5]), Dlpack(self.b[:5]), Dlpack(self.a[:, :5]))
        with mock.patch.object(_matmul, "assign"):
            work()
            before = [sys.getrefcount(x) for x in (memory, self.b, self.out)]
            for _ in range(50):
                work()
            gc.collect()
            after = [sys.getrefcount(x) for x in (memory, self.b, self.out)]
        self.assertTrue(all(abs(x - y) < 10 for x, y in zip(before, after)), (before, after))
        weakref.finalize(memory, freed.append, 1)
        del memory, work
        gc.collect()
        self.assertEqual(freed, [1])

    @unittest.skipIf(_calls.calls is None, "there is no compiled path")
    def test_many_types(self):
        """Python computes products of types for which the compiled path has no room."""
        with recorded_runs() as streams:
            for number in range(80):
                own = type(f"Own{number}", (Dlpack,), {})
                for _ in range(2):
                    self.assert_product(tegula.matmul(own(self.a), self.b), self.a, self.b)
        self.assertEqual(len(streams), 63)  # and one for NumPy's arrays


@unittest.skipUnless(is_replaced(), "needs the replacement of the CUDA driver")
class OnGpu(Paths):
    def setUp(self):
        super().setUp()
        self.driver = ctypes.CDLL(os.environ["TEGULA_LIBCUDA"])
        _held.release_passed()

    def tearDown(self):
        _held.release_passed()
        self.assertEqual(self.driver.fake_cuda_misuses(), 0)

    def new_stream(self):
        context, stream = ctypes.c_void_p(), ctypes.c_void_p()
        self.assertEqual(self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), 0)
        self.assertEqual(self.driver.cuCtxPushCurrent_v2(context), 0)
        self.assertEqual(self.driver.cuStreamCreate(ctypes.byref(stream), 0), 0)
        self.assertEqual(self.driver.cuCtxPopCurrent_v2(ctypes.byref(context)), 0)
        return stream.value

    def test_results(self):
        cuda = tegula.device("cuda")
        for kind in CudaArray, CudaDlpack:
            out = kind(self.out)
            for options in ({}, {"beta": 2}, {"c": kind(self.out)}):
                self.out[:] = 1
                self.assertIs([*self.paths(lambda: tegula.matmul(kind(self.a), kind(self.b), out,
                                                                 **options), 0)][-1], out)
                with mock.patch.object(self, "out", self.out.copy()), python_only():
                    tegula.matmul(kind(self.a), kind(self.b), kind(self.out), **options)
                    expected = self.out
                if _calls.calls is not None:
                    with no_python():
                        tegula.matmul(kind(self.a), kind(self.b), out, **options)
                    self.assertEqual(self.out.tobytes(), expected.tobytes())
        a, b = cuda.array(self.a), cuda.array(self.b)
        for result in self.paths(lambda: tegula.matmul(a, b)):
            self.assertIs(type(result), tegula.DeviceArray)
            self.assert_product(result.numpy(), self.a, self.b)

    @unittest.skipIf(_calls.calls is None, "there is no compiled path")
    def test_streams(self):
        stream = self.new_stream()
        with mock.patch.object(CudaArray, "stream", stream), recorded_runs() as streams:
            for _ in range(3):
                tegula.matmul(CudaArray(self.a), CudaArray(self.b), CudaArray(self.out))
            self.assertEqual(streams, [stream] * 2)
            other = CudaArray(self.b)
            other.stream = self.new_stream()
            with mock.patch.object(tegula.Device, "sync", autospec=True) as sync:
                tegula.matmul(CudaArray(self.a), other, CudaArray(self.out))
            self.assertEqual((sync.call_count, len(streams)), (2, 2))
        for absent in 1, None:
            with mock.patch.object(CudaArray, "stream", absent), recorded_runs() as streams:
                for _ in range(2):
                    tegula.matmul(CudaArray(self.a), CudaArray(self.b), CudaArray(self.out))
            self.assertEqual(streams, [0])
        a = CudaDlpack(self.a)
        with recorded_runs() as streams:
            for _ in range(2):
                tegula.matmul(a, CudaArray(self.b), CudaArray(self.out))
        self.assertEqual((streams, set(a.streams)), ([0], {1}))
        a.place = 13, 0  # managed memory
        with recorded_runs() as streams:
            for _ in range(2):
                tegula.matmul(a, CudaArray(self.b), CudaArray(self.out))
        self.assertEqual((streams, set(a.streams)), ([0], {1}))

    def test_devices_are_told_apart(self):
        class Second(CudaArray):
            index = 0

            def __dlpack_device__(self):
                return 2, self.index
        for _ in range(2):
            tegula.matmul(Second(self.a), Second(self.b), Second(self.out))
        with mock.patch.object(Second, "index", 7):
            self.assert_same_error(tegula.TegulaError, "", lambda: tegula.matmul(
                Second(self.a), Second(self.b), Second(self.out)))
        self.assert_same_error(ValueError, "different devices", lambda: tegula.matmul(
            Second(self.a), self.b, Second(self.out)))

    def test_errors(self):
        out = CudaArray(self.out)
        tegula.matmul(CudaArray(self.a), CudaArray(self.b), out)
        for kind, text, arguments in (
                (ValueError, "read-only", (CudaArray(self.a), CudaArray(self.b),
                                           CudaArray(self.out, read_only=True))),
                (TypeError, "masked array", (CudaArray(self.a, mask=self.a > 0), CudaArray(self.b), out)),
                (TypeError, "the types are", (CudaArray(self.a.astype(np.int64)), CudaArray(self.b), out)),
                (ValueError, "give out", (CudaArray(self.a), CudaArray(self.b)))):
            self.assert_same_error(kind, text, lambda: tegula.matmul(*arguments))

    class Temporary(CudaDlpack):
        """An array as of JAX: only the DLPack capsule keeps its memory."""

        def __dlpack__(self, stream=None):
            memory = self.host.copy()
            weakref.finalize(memory, self.flags.append, 1)
            return CudaDlpack(memory).__dlpack__(stream)

    def test_arrays_are_kept_until_products_have_run(self):
        out = CudaArray(self.out)

        def product(freed, kept):
            tegula.matmul(self.Temporary(self.a, freed), kept, out)
        product([], CudaArray(self.b))
        for path in (python_only, no_python) if _calls.calls is not None else (python_only,):
            freed, kept = [], CudaArray(self.b.copy())
            array = weakref.ref(kept)
            _held.release_passed()
            with mock.patch.dict(os.environ, FAKE_CUDA_FAIL="cuEventQuery=600"), path():
                product(freed, kept)
                product(freed, kept)
                del kept
                gc.collect()
                self.assertEqual(freed, [])
                self.assertIsNotNone(array())
            _held.release_passed()
            gc.collect()
            self.assertEqual(len(freed), 2)
            self.assertIsNone(array())
            self.assertFalse(_held._queued)

    @unittest.skipIf(_calls.calls is None, "there is no compiled path")
    def test_failures_are_not_repeated(self):
        """A product that was begun is not computed again: beta would be applied twice."""
        out = CudaArray(self.out)
        with mock.patch.object(_matmul, "hold", side_effect=RuntimeError("no event")), \
                recorded_runs() as streams, mock.patch.object(_matmul, "_hold"):
            tegula.matmul(CudaArray(self.a), CudaArray(self.b), out)
            before = self.out.copy()
            with no_python(), self.assertRaisesRegex(RuntimeError, "no event"):
                tegula.matmul(CudaArray(self.a), CudaArray(self.b), out, beta=1)
            self.assertEqual(len(streams), 1)
            self.assertTrue(np.array_equal(self.out, 2 * before))
        with recorded_runs(status=4):
            tegula.matmul(self.a, self.b)
            with no_python(), self.assertRaises(tegula.TegulaError) as raised:
                tegula.matmul(self.a, self.b)
        self.assertEqual(raised.exception.status, lib.tgl_status_name(4).decode())


class StandInForTorch(Paths):
    """The protocol by which PyTorch 2.10 and later tells C code about tensors."""

    def setUp(self):
        super().setUp()
        self.replace(fake_torch(0))
        if _calls.calls is not None:
            self.start(recorded_runs())  # it does not know the functions of other stand-ins

    def replace(self, replacement):
        self.start(mock.patch.dict(sys.modules, torch=replacement))

    def start(self, context):
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def test_results(self):
        x, y = Tensor(self.a), Tensor(self.b)
        self.assert_same(lambda: tegula.matmul(x, y))
        self.assertEqual(x.reads, 4 if _calls.calls is not None else 0)  # x is read by learn() and by the three calls
        self.assert_same(lambda: tegula.matmul(Tensor(self.a.T.copy().T), y, Tensor(self.out)))
        self.assert_same(lambda: tegula.matmul(x, self.b))
        integers = Tensor((self.a * 100).astype(np.int8)), Tensor((self.b * 100).astype(np.int8))
        with mock.patch.object(sys.modules["torch"], "int32", "int32", create=True):
            self.assert_same(lambda: tegula.matmul(*integers))

    def test_what_is_not_plain(self):
        y = Tensor(self.b)
        tegula.matmul(Tensor(self.a), y)
        tegula.matmul(Parameter(self.a), y)
        for kind in Tensor, Parameter:
            self.assert_same_error(ValueError, "tegula.torch.matmul", lambda: tegula.matmul(
                kind(self.a, requires_grad=True), y))
        for _ in range(2):
            negative = tegula.matmul(Tensor(self.a, is_negative=True), y)
            self.assert_product(negative.host, -self.a, self.b)
        z = (self.b + 1j).astype(np.complex64)
        w = (self.a - 2j).astype(np.complex64)
        tegula.matmul(Tensor(w), Tensor(z))
        # Both libraries sum 2k products in FP32, and the sums of opposite products cancel.
        bound = 2 * 2 * w.shape[1] * 2.0**-24 * (abs(w) @ abs(z)).max()
        for _ in range(2):
            np.testing.assert_allclose(
                tegula.matmul(Tensor(w), Tensor(z).conj()).host.imag, (w @ z.conj()).imag, rtol=0, atol=bound)
        sparse, elsewhere = Tensor(self.a), Tensor(self.a, "mps")
        sparse.layout = "sparse_coo"
        self.assert_same_error(TypeError, "only dense", lambda: tegula.matmul(sparse, y))
        self.assert_same_error(ValueError, "serves cpu and cuda", lambda: tegula.matmul(elsewhere, y))
        own = type("Own", (Tensor,), {})
        for _ in range(2):
            tegula.matmul(own(self.a), y)
            with no_python(), self.assertRaises(AssertionError):
                tegula.matmul(own(self.a), y)  # a subclass can mean anything

    def test_parameters(self):
        """Where gradients are off, parameters are treated as plain tensors."""
        self.replace(fake_torch(0, has_gradients=False))
        x, y = Parameter(self.a, requires_grad=True), Tensor(self.b)
        self.assert_product(self.assert_same(lambda: tegula.matmul(x, y)).host, self.a, self.b)

    @unittest.skipIf(_calls.calls is None, "there is no compiled path")
    def test_other_versions(self):
        """Tensors of a PyTorch before 2.10, or of another version of the protocol, are left to Python."""
        for functions, major in ((None, 1), (42, 1), (Tensor.__dlpack_c_exchange_api__, 2)):
            tensor_functions.major = major
            with mock.patch.object(Tensor, "__dlpack_c_exchange_api__", functions), \
                    recorded_runs() as streams:
                for _ in range(2):
                    self.assert_product(tegula.matmul(Tensor(self.a), Tensor(self.b)).host, self.a, self.b)
            tensor_functions.major = 1
            self.assertEqual(streams, [])

    @unittest.skipUnless(is_replaced() and _calls.calls is not None, "there is no GPU or compiled path")
    def test_streams(self):
        """Products run in the current stream, and tensors are not kept: PyTorch does that."""
        x, y = Tensor(self.a, "cuda"), Tensor(self.b, "cuda")
        with recorded_runs() as streams, mock.patch.object(_matmul, "hold") as hold:
            for _ in range(3):
                result = tegula.matmul(x, y)
        self.assertEqual((result.device.type, streams), ("cuda", [0, 0]))
        self.assertFalse(hold.called)
        self.assert_product(result.host, self.a, self.b)


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Torch(Paths):
    def test_types_and_layouts(self):
        for dtype in "float32", "float64", "float16", "bfloat16", "int8":
            a, b = ((100 * torch.from_numpy(x)).to(getattr(torch, dtype)) for x in (self.a, self.b))
            for x, y in itertools.product((a, a.T.contiguous().T, a[::2]), (b, b.T.contiguous().T)):
                result = self.assert_same(lambda: tegula.matmul(x, y))
                self.assertEqual((type(result), result.device), (torch.Tensor, x.device))
                self.assertIs(result.dtype, torch.int32 if dtype == "int8" else x.dtype)
                self.assertEqual(result.stride(), (5, 1))

    def test_gradients(self):
        x, y = torch.nn.Parameter(torch.from_numpy(self.a)), torch.from_numpy(self.b)
        tegula.matmul(x.detach(), y)
        self.assert_same_error(ValueError, "requires a gradient", lambda: tegula.matmul(x, y))
        with torch.no_grad():
            self.assert_same(lambda: tegula.matmul(x, y))
        self.assert_same_error(ValueError, "requires a gradient", lambda: tegula.matmul(x, y))

    def test_conjugates(self):
        """Views of conjugates are not copied: the product takes the conjugates."""
        a, b = (torch.from_numpy(x).to(torch.complex64) * (1 + 2j) for x in (self.a, self.b))
        for x in (a, a.conj(), a.mT.contiguous().mT, a.mT.contiguous().mH, a[:, ::2],
                  a[:, ::2].conj()):
            for y in b, b.conj(), b.mT.contiguous().mH:
                y = y[:x.shape[1]]
                found = self.assert_same(lambda: tegula.matmul(x, y))
                torch.testing.assert_close(found, x.resolve_conj() @ y.resolve_conj())
        self.assertEqual(describe("a", a.conj()).pointer, a.data_ptr())
        out = a.new_empty(a.shape[0], b.shape[1])
        view = out.conj()
        self.assertTrue(view.is_conj())
        self.assert_same_error(ValueError, "read-only", lambda: tegula.matmul(a, b, view))

    def test_what_is_not_plain(self):
        x, y = torch.from_numpy(self.a), torch.from_numpy(self.b)
        tegula.matmul(x, y)
        negative = torch.complex(x, x).conj().imag
        self.assertTrue(negative.is_neg())
        for _ in range(2):
            self.assertTrue(torch.equal(tegula.matmul(negative, y), -tegula.matmul(x, y)))
        self.assert_same_error(TypeError, "only dense", lambda: tegula.matmul(x.to_sparse(), y))
        self.assert_same_error(ValueError, "meta", lambda: tegula.matmul(x.to("meta"), y))
        self.assertRaises(Exception, torch.func.vmap(lambda row: tegula.matmul(row, y)),
                          torch.stack([x, x]))


@unittest.skipIf(jax is None, "JAX is not installed")
class Jax(Paths):
    def test_results(self):
        x, y = jax.numpy.asarray(self.a), jax.numpy.asarray(self.b)
        result = self.assert_same(lambda: tegula.matmul(x, y))
        self.assert_product(result, self.a, self.b)
        self.assert_same(lambda: tegula.matmul(x, y, self.out))
        out = jax.numpy.asarray(self.out)
        self.assert_same_error(ValueError, "out is read-only", lambda: tegula.matmul(x, y, out))


if __name__ == "__main__":
    unittest.main()
