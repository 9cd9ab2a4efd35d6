# SPDX-License-Identifier: Apache-2.0
"""tegula.prepare(): on the simulator, and on the replacement of the CUDA driver."""

import contextlib
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import unittest
from unittest import mock

import numpy as np
from python_support import Comparison, has_device, random_array
from test_python_gpu_arrays import CudaArray, Tensor, fake_torch, is_replaced, recorded_streams

import tegula
from tegula import _plans, _prepared

KERNEL = "accurate_128x64"  # the planner would choose others for products that are this small
M, N, K = 66, 60, 257


def prepare(x, side="b", device="sim", **options):
    return tegula.prepare(x, side, device=device, kernel=KERNEL, **options)


def plan(*arrays, device="sim", **options):
    return tegula.plan(*arrays, device=device, kernel=KERNEL, compute="accurate", **options)


class Prepares(Comparison):
    def setUp(self):
        self.a, self.b = random_array((M, K)), random_array((K, N), seed=1)
        self.c = random_array((M, N), seed=2)


@unittest.skipUnless(has_device("sim"), "the device sim needs a C compiler")
class Simulator(Prepares, unittest.TestCase):
    def assert_same(self, a, b):
        """Products with a, b or both prepared have the same bits, and fewer blocks of threads."""
        whole = plan(a, b)
        expected = whole(a, b)
        blocks = whole.counters()["blocks"]
        with prepare(a, "a") as left, prepare(b) as right:
            self.assertGreater(min(left.nbytes, right.nbytes), 0)
            for x, y in (left, b), (a, right), (left, right):
                self.assertTrue(np.array_equal(whole(x, y), expected))
                self.assertLess(whole.counters()["blocks"], blocks)

    def test_same_bits(self):
        self.assert_same(self.a, self.b)
        self.assert_same(self.a.T.copy().T, self.b.T.copy().T)
        self.assert_same(np.stack([self.a, -self.a]), self.b)
        self.assert_same(self.a[:, ::-1], np.repeat(self.b, 2, 1)[:, ::2])  # operands that are copied

    def test_other_products(self):
        """One prepared operand in products of other sizes, results and epilogues."""
        with prepare(self.b, size=999) as right:
            for rows in 20, M:
                a = self.a[:rows]
                self.assert_product(plan(a, right)(a, right), a, self.b)
            bias = random_array(N, seed=3)
            planned = plan(self.a, right, c=self.c, bias=bias, activation="relu")
            self.assert_product(planned(self.a, right, c=self.c, bias=bias), self.a, self.b, 1.0, 1.0,
                                self.c, bias, lambda x: np.maximum(x, 0))
            self.assertIn("m=66 n=60 k=257", tegula.explain(self.a, right, chip="h200"))
            # out and c are stored by columns.
            out, c = (np.asfortranarray(x) for x in (np.zeros_like(self.c), self.c))
            self.assertIs(tegula.matmul(self.a, right, out, c=c), out)
            self.assert_product(out, self.a, self.b, 1.0, 1.0, self.c)
            tegula.matmul(self.a, right, out, beta=-1, alpha=2)
            self.assert_product(out, self.a, self.b, 1.0, -1.0, self.c)

    def test_batches(self):
        a, b = random_array((3, 4, 9, K)), random_array((4, K, N), seed=1)
        with prepare(b) as right, prepare(a, "a") as left:
            self.assertEqual(right.shape, (4, K, N))
            self.assert_product(plan(a, right)(a, right), a, b)  # three runs with the same b
            with self.assertRaisesRegex(ValueError, "a is prepared, and its batch dimensions"):
                tegula.matmul(left, b)
        with self.assertRaisesRegex(ValueError, "the batch dimensions of a have no common stride"):
            prepare(a[:, 1:], "a")

    def test_takes_the_device_and_the_arithmetic(self):
        with prepare(self.b) as right, mock.patch.object(
                _plans.PlanBase, "run", autospec=True, side_effect=_plans.PlanBase.run) as run:
            for given, compute in ({}, "accurate"), ({"compute": "ieee"}, "ieee"):
                tegula.matmul(self.a[:3], right, **given)
                used, *_, prepared, _ = run.call_args[0]
                self.assertEqual(used.device.name, "sim")
                self.assertEqual(used.recipe.options.compute, compute)
                self.assertEqual(prepared, (None, right._handle))
            left = tegula.prepare(self.a, "a", compute="tf32", device="sim")
            with self.assertRaisesRegex(ValueError, "different arithmetic: give compute"):
                tegula.matmul(left, right)
            self.assert_product(tegula.matmul(left, right, compute="accurate"), self.a, self.b)

    def test_release(self):
        right = prepare(self.b)
        self.assertGreater(right.nbytes, self.b.nbytes)
        self.assertRegex(repr(right), rf"b of shape \(257, 60\), prepared on sim: {right.nbytes} bytes")
        for _ in range(2):
            right.release()
        self.assertEqual((right.nbytes, right.shape), (0, (K, N)))
        self.assertIn("released", repr(right))
        for call in (lambda: tegula.matmul(self.a, right), lambda: plan(self.a, right),
                     lambda: plan(self.a, self.b)(self.a, right)):
            with self.assertRaisesRegex(ValueError, "b is released: prepare it again"):
                call()

    def test_memory(self):
        """A prepared operand keeps its matrix, and is destroyed once."""
        b = self.b.copy()
        references = sys.getrefcount(b)
        with mock.patch.object(_prepared.lib, "tgl_prepared_destroy",
                               side_effect=_prepared.lib.tgl_prepared_destroy) as destroy:
            right = prepare(b)
            self.assertIs(right.array, b)
            self.assertGreater(sys.getrefcount(b), references)
            del right
            gc.collect()
            self.assertEqual((sys.getrefcount(b), destroy.call_count), (references, 1))
            with self.assertRaises(KeyError), prepare(b) as right:
                raise KeyError
            right.release()
            del right
            self.assertEqual(destroy.call_count, 2)
        self.assertIsNot(prepare(b[:, ::2]).array, b)

    def test_fork(self):
        right = prepare(self.b)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with mock.patch.object(_prepared.lib, "tgl_prepared_destroy") as destroy:
                    try:
                        tegula.matmul(self.a, right)
                    except ValueError as error:
                        code = 0 if "by the parent process" in str(error) else 2
                    right.release()
                    code = code or destroy.call_count
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assert_product(tegula.matmul(self.a, right), self.a, self.b)

    def test_wrong_arguments(self):
        right = prepare(self.b)
        for error, text, call in (
                (ValueError, "side is 'c'; it must be 'a' or 'b'", lambda: prepare(self.b, "c")),
                (ValueError, "size is 0; it must be positive", lambda: prepare(self.b, size=0)),
                (ValueError, "compute is 'no'", lambda: prepare(self.b, compute="no")),
                (ValueError, "b has no dimensions", lambda: prepare(np.float32(1)[...])),
                (ValueError, "a has no dimensions", lambda: prepare(np.float32(1)[...], "a")),
                (TypeError, "b has the type int64", lambda: prepare(np.ones((3, 3), int))),
                (TypeError, "b is a Prepared, which is not an array", lambda: prepare(right)),
                (TypeError, "c is a Prepared", lambda: tegula.matmul(self.a, self.b, c=right)),
                (ValueError, "a was prepared as b: prepare it with side='a'",
                 lambda: tegula.matmul(right, self.b.T)),
                (ValueError, "columns of a do not match", lambda: tegula.matmul(self.b, right)),
                (ValueError, "prepared B is of another device than cpu",
                 lambda: tegula.matmul(self.a, right, device="cpu")),
                (ValueError, "out overlaps b, which is prepared and must not change",
                 lambda: tegula.matmul(random_array((K, K)), right, self.b)),
                (TypeError, "cannot be pickled", lambda: pickle.dumps(right))):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                call()
        self.assertTrue(np.array_equal(self.b, random_array((K, N), seed=1)))

    def test_exit(self):
        """Nothing is printed when the interpreter ends with a prepared operand."""
        code = ("import tegula, numpy; a = numpy.ones((300, 300), 'f4');"
                f"b = tegula.prepare(a, device='sim', kernel={KERNEL!r}); print(b.nbytes > 0)")
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "True\n", ""))


class Cpu(Prepares, unittest.TestCase):
    def test_nothing_is_prepared(self):
        for a, b in ((self.a, self.b), (self.a.astype(float), self.b.astype(float)),
                     (self.a, self.b[:, 3]), (self.a[:0], self.b), (self.a[:, :0], self.b[:0]),
                     (self.a, self.b[:, :0])):
            with tegula.prepare(b) as right, tegula.prepare(a, side="a", size=7) as left:
                self.assertEqual((right.nbytes, right.device.name, right.dtype),
                                 (0, "cpu", b.dtype.name))
                self.assert_product(tegula.matmul(a, right), a, b)
                self.assert_product(tegula.matmul(left, right), a, b)


class Launch(ctypes.Structure):
    """A fake_cuda_launch, of which only the grid is read."""
    _fields_ = [("grid", ctypes.c_uint * 3), ("others", ctypes.c_ubyte * 4096)]


@unittest.skipUnless(is_replaced(), "needs the replacement of the CUDA driver")
class Cuda(Prepares, unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.driver = ctypes.CDLL(os.environ["TEGULA_LIBCUDA"])
        self.driver.fake_cuda_launched.restype = Launch
        self.cuda = tegula.device("cuda")

    def tearDown(self):
        self.assertEqual(self.driver.fake_cuda_misuses(), 0)

    def blocks(self, back):
        """The number of blocks of the latest launch (0), or of one of the three before it."""
        return self.driver.fake_cuda_launched(back).grid[0]

    def test_products(self):
        a, b = self.cuda.array(self.a), self.cuda.array(self.b)
        planned = plan(a, b, device=None)

        def run(x, y):
            self.assert_product(planned(x, y).numpy(), self.a, self.b)
            return self.blocks(0), self.blocks(1)
        product, both = run(a, b)
        with prepare(b, device=None) as right, prepare(a, "a", device=None) as left:
            self.assertEqual(right.device.name, "cuda:0")
            self.assertGreater(right.nbytes, self.b.nbytes)
            blocks_of_a, blocks_of_b = run(a, right)[1], run(left, b)[1]
            self.assertEqual(blocks_of_a + blocks_of_b, both)
            run(left, right)
            self.assertEqual(run(left, right), (product, product))  # the product alone
            self.assert_product(tegula.matmul(a, right).numpy(), self.a, self.b)
            with self.assertRaisesRegex(ValueError, "the arrays are on different devices"):
                tegula.matmul(self.a, right)
        empty = tegula.prepare(self.cuda.array(self.b[:, :0]))
        self.assertEqual((empty.nbytes, tegula.matmul(a, empty).shape), (0, (M, 0)))
        with self.assertRaisesRegex(ValueError, "the arrays are on cpu, and the device is cuda"):
            prepare(self.b, device="cuda")

    def test_memory(self):
        b = self.cuda.array(self.b)
        prepare(b, device=None).release()
        before = self.driver.fake_cuda_live()
        right = prepare(b, device=None)
        self.assertEqual(self.driver.fake_cuda_live(), before + 1)
        right.release()
        self.assertEqual(self.driver.fake_cuda_live(), before)

    def new_stream(self):
        stream, context = ctypes.c_void_p(), ctypes.c_void_p()
        self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        self.driver.cuCtxPushCurrent_v2(context)
        self.assertEqual(self.driver.cuStreamCreate(ctypes.byref(stream), 0), 0)
        self.driver.cuCtxPopCurrent_v2(ctypes.byref(context))
        return stream.value

    def test_streams(self):
        """An operand is prepared in the stream of its array, and used in the streams of the other arrays."""
        a, b, out = CudaArray(self.a), CudaArray(self.b), CudaArray(np.zeros_like(self.c))
        b.stream, first = self.new_stream(), self.new_stream()
        a.stream = out.stream = first
        calls = mock.Mock()
        with mock.patch.object(_prepared.lib, "tgl_operand_prepare",
                               side_effect=_prepared.lib.tgl_operand_prepare) as made, \
                mock.patch.object(_prepared.lib, "tgl_download",
                                  side_effect=_prepared.lib.tgl_download) as waits, \
                mock.patch.object(tegula.Device, "sync", autospec=True) as sync:
            calls.attach_mock(made, "prepare")
            calls.attach_mock(waits, "wait")
            right = prepare(b, device=None)
            self.assertEqual([(name, arguments[-2] if name == "prepare" else arguments[-1])
                              for name, arguments, _ in calls.mock_calls],
                             [("wait", b.stream), ("prepare", b.stream), ("wait", b.stream)])
            with recorded_streams() as streams:
                tegula.matmul(a, right, out)
            self.assertEqual((streams, sync.call_count), ([first], 0))
        self.assert_product(out.host, self.a, self.b)

    def test_captured_streams(self):
        """A preparation in a captured stream is refused. Those in other streams do not disturb the capture."""
        b, other = CudaArray(self.b), CudaArray(self.b)
        b.stream, other.stream = self.new_stream(), self.new_stream()
        stream, context, graph = ctypes.c_void_p(b.stream), ctypes.c_void_p(), ctypes.c_void_p()
        self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        self.driver.cuCtxPushCurrent_v2(context)
        self.assertEqual(self.driver.cuStreamBeginCapture_v2(stream, 2), 0)
        try:
            with mock.patch.object(_prepared.lib, "tgl_operand_prepare") as made, \
                    self.assertRaisesRegex(NotImplementedError, "b cannot be prepared while a stream"):
                prepare(b, device=None)
            self.assertFalse(made.called)
            self.assertGreater(prepare(other, device=None).nbytes, 0)
        finally:
            self.assertEqual(self.driver.cuStreamEndCapture(stream, ctypes.byref(graph)), 0)
            self.driver.cuCtxPopCurrent_v2(ctypes.byref(context))

    def test_stream_of_the_result(self):
        """The result of two prepared operands belongs to PyTorch's current stream."""
        stream = self.new_stream()
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.dict(sys.modules, torch=fake_torch(stream)))
            left = prepare(Tensor(self.a, "cuda"), "a", device=None)
            right = prepare(Tensor(self.b, "cuda"), device=None)
            streams = stack.enter_context(recorded_streams())
            result = tegula.matmul(left, right)
            self.assertEqual(streams, [stream])
            self.assert_product(result.host, self.a, self.b)


if __name__ == "__main__":
    unittest.main()
