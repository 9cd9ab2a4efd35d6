# SPDX-License-Identifier: Apache-2.0
"""Arrays of GPU libraries, on the replacement of the CUDA driver. Its device memory is host memory,
and its kernels do not transpose.

The Python code computes all products here. test_python_other_arrays.py compares the compiled path with it.
"""

import contextlib
import ctypes
import os
import sys
import unittest
import weakref
from unittest import mock

import numpy as np
from python_support import Comparison, random_array
from stand_ins import CudaArray, CudaDlpack, Tensor, fake_torch, is_replaced, python_only

import tegula
from tegula import _held, _plans


@contextlib.contextmanager
def recorded_streams():
    """The streams of the products in a with-block."""
    streams, run = [], _plans.PlanBase.run

    def record(self, pointers, alpha, beta, stream=None, *others):
        streams.append(stream)
        return run(self, pointers, alpha, beta, stream, *others)
    with mock.patch.object(_plans.PlanBase, "run", record):
        yield streams


@unittest.skipUnless(is_replaced(), "needs the replacement of the CUDA driver")
class Cuda(Comparison, unittest.TestCase):
    def setUp(self):
        self.a, self.b = random_array((40, 30)), random_array((30, 20), seed=1)
        self.out = np.zeros((40, 20), np.float32)
        self.driver = ctypes.CDLL(os.environ["TEGULA_LIBCUDA"])
        _held.release_passed()
        without = python_only()
        without.start()
        self.addCleanup(without.stop)

    def tearDown(self):
        self.assertEqual(self.driver.fake_cuda_misuses(), 0)

    @contextlib.contextmanager
    def context(self):
        """The GPU's context is current."""
        context = ctypes.c_void_p()
        self.assertEqual(self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), 0)
        self.assertEqual(self.driver.cuCtxPushCurrent_v2(context), 0)
        yield
        self.assertEqual(self.driver.cuCtxPopCurrent_v2(ctypes.byref(context)), 0)

    def new_stream(self):
        stream = ctypes.c_void_p()
        with self.context():
            self.assertEqual(self.driver.cuStreamCreate(ctypes.byref(stream), 0), 0)
        return stream.value

    def test_device_array(self):
        cuda = tegula.device("cuda")
        self.assertEqual(cuda.name, "cuda:0")
        self.assertIs(tegula.device("cuda:0"), cuda)
        a, b = cuda.array(self.a), cuda.array(self.b.T)
        result = tegula.matmul(a, cuda.array(self.b))
        self.assertIsInstance(result, tegula.DeviceArray)
        self.assert_product(result.numpy(), self.a, self.b)
        self.assertEqual((b.shape, b.nbytes), ((20, 30), 2400))
        empty = tegula.matmul(cuda.array(self.a[:0]), cuda.array(self.b))
        self.assertEqual(empty.numpy().shape, (0, 20))
        with self.assertRaisesRegex(ValueError, "give a contiguous array of its own"):
            square = cuda.array(self.a[:20, :20])
            tegula.matmul(square, square, square)

    def test_array_interface(self):
        out = CudaArray(self.out)
        with recorded_streams() as streams:
            self.assertIs(tegula.matmul(CudaArray(self.a), CudaArray(self.b), out), out)
        self.assert_product(self.out, self.a, self.b)
        self.assertEqual(streams, [0])  # 1 in the interface is the default stream
        tegula.matmul(CudaArray(self.a), CudaArray(self.b), out, beta=-1)
        self.assertLess(abs(self.out).max(), 1e-5)

    def test_streams(self):
        stream = self.new_stream()
        with mock.patch.object(CudaArray, "stream", stream), recorded_streams() as streams:
            tegula.matmul(CudaArray(self.a), CudaArray(self.b), CudaArray(self.out))
        self.assertEqual(streams, [stream])
        self.check_capture(stream)
        other = CudaArray(self.b)
        other.stream = self.new_stream()
        with mock.patch.object(tegula.Device, "sync", autospec=True) as sync:
            tegula.matmul(CudaArray(self.a), other, CudaArray(self.out))
        self.assertEqual(sync.call_count, 2)
        self.assert_product(self.out, self.a, self.b)

    def check_capture(self, stream):
        """A product in a stream that is captured does not run."""
        arrays = [CudaArray(x) for x in (self.a, self.b, self.out.copy())]
        for array in arrays:
            array.stream = stream
        plan = tegula.plan(*arrays)
        arrays[2].host[:] = 42
        graph, handle = ctypes.c_void_p(), ctypes.c_void_p(stream)
        with self.context():
            self.assertEqual(self.driver.cuStreamBeginCapture_v2(handle, 2), 0)
            plan(*arrays)
            self.assertEqual(self.driver.cuStreamEndCapture(handle, ctypes.byref(graph)), 0)
        self.assertTrue(np.all(arrays[2].host == 42))

    def test_dlpack(self):
        a = CudaDlpack(self.a)
        tegula.matmul(a, CudaArray(self.b), CudaArray(self.out))
        self.assertEqual(a.streams, [1])
        self.assert_product(self.out, self.a, self.b)

    def temporary(self, x, freed):
        """An array as of JAX: only the DLPack capsule keeps its memory."""
        class Temporary(CudaDlpack):
            def __dlpack__(self, stream=None):
                memory = x.copy()
                weakref.finalize(memory, freed.append, memory.ctypes.data)
                exported = CudaDlpack(memory)
                return exported.__dlpack__(stream)
        return Temporary(x)

    def test_arrays_are_kept_until_products_have_run(self):
        freed, out = [], CudaArray(self.out)
        kept = CudaArray(self.b.copy())
        array = weakref.ref(kept)
        _held.release_passed()
        with mock.patch.dict(os.environ, FAKE_CUDA_FAIL="cuEventQuery=600"):  # nothing has run yet
            tegula.matmul(self.temporary(self.a, freed), kept, out)
            tegula.matmul(self.temporary(self.a, freed), CudaArray(self.b), out)
            del kept
            self.assertEqual(freed, [])
            self.assertIsNotNone(array())
        tegula.matmul(CudaArray(self.a), CudaArray(self.b), out)  # this call finds that the products before have run
        self.assertEqual(len(freed), 2)
        self.assertIsNone(array())
        _held.release_passed()
        self.assertFalse(_held._queued)

    def test_number_of_kept_products(self):
        with mock.patch.dict(os.environ, FAKE_CUDA_FAIL="cuEventQuery=600"), \
                mock.patch.object(_held, "_QUEUED_MAX", 3), \
                mock.patch.object(tegula.Device, "sync", autospec=True) as sync:
            for _ in range(4):
                tegula.matmul(CudaArray(self.a), CudaArray(self.b), CudaArray(self.out))
        self.assertEqual(sync.call_count, 1)
        _held.release_passed()

    def test_captured_products_are_not_kept(self):
        stream = self.new_stream()
        self.check_capture(stream)
        _held.release_passed()
        self.assertFalse(_held._queued)

    def test_prepared_operands_are_kept(self):
        """Tensors of PyTorch are kept, too, because products in any stream use them."""
        with mock.patch.dict(sys.modules, torch=fake_torch(0)):
            memory = self.b.copy()
            right = tegula.prepare(Tensor(memory, "cuda"))
            with mock.patch.dict(os.environ, FAKE_CUDA_FAIL="cuEventQuery=600"):
                tegula.matmul(Tensor(self.a, "cuda"), right)
                self.assertEqual([x.host is memory for x in _held._queued[-1].owners], [True])
                tegula.matmul(Tensor(self.a, "cuda"), Tensor(memory, "cuda"))
                self.assertEqual(len(_held._queued), 1)  # PyTorch keeps its memory itself
        _held.release_passed()
        self.assertFalse(_held._queued)

    def test_plans_need_no_memory(self):
        a, b = CudaArray(self.a), CudaArray(self.b)
        tegula.matmul(a, b, CudaArray(self.out))  # loads the kernel
        live = self.driver.fake_cuda_live()
        self.assertIn("on cuda:0", repr(tegula.plan(a, b)))
        self.assertIn("m=40 n=20 k=30", tegula.explain(a, b))
        self.assertEqual(self.driver.fake_cuda_live(), live)
        self.assertRaisesRegex(ValueError, "give out", tegula.plan(a, b), a, b)

    def test_bench(self):
        rows = tegula.bench([16], device="cuda", seconds=0)
        self.assertEqual(rows[0]["device"], "cuda:0")
        self.assertNotIn("numpy_seconds", rows[0])
        self.assertEqual(len(tegula.ladder(16, device="cuda")), 26)

    def test_errors(self):
        a, b = CudaArray(self.a), CudaArray(self.b)
        out = CudaArray(self.out)
        for text, arguments, options in (
                ("different devices", (a, self.b), {}),
                ("different devices", (a, b, self.out), {}),
                ("the device is cuda:0", (self.a, self.b), {"device": "cuda"}),
                ("the device is cpu", (a, b, out), {"device": "cpu"}),
                ("give out", (a, b), {}),
                ("read-only", (a, b, CudaArray(self.out, read_only=True)), {}),
                ("cannot express", (CudaArray(self.a[:, ::-1]), b, out), {})):
            with self.assertRaisesRegex(ValueError, text):
                tegula.matmul(*arguments, **options)

    def test_fork(self):
        """A child does not use the parent's GPU: it opens the device anew, or says why it cannot."""
        cuda = tegula.device("cuda")
        array = cuda.array(self.a)
        plan = tegula.plan(array, cuda.array(self.b))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with mock.patch.object(_plans.lib, "tgl_free") as free, \
                        mock.patch.object(_plans.lib, "tgl_plan_destroy") as destroy:
                    good = plan.device is not cuda and tegula.device("cuda") is not cuda
                    del array
                    code = 0 if good and not free.called and not destroy.called else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assert_product(plan(array, cuda.array(self.b)).numpy(), self.a, self.b)


class TorchTensors(Comparison, unittest.TestCase):
    def setUp(self):
        self.a, self.b = random_array((40, 30)), random_array((30, 20), seed=1)
        patched = mock.patch.dict(sys.modules, torch=fake_torch(0))
        for started in patched, python_only():
            started.start()
            self.addCleanup(started.stop)

    def test_cpu(self):
        result = tegula.matmul(Tensor(self.a), Tensor(self.b))
        self.assertIsInstance(result, Tensor)
        self.assert_product(result.host, self.a, self.b)
        turned, reversed_ = Tensor(np.asfortranarray(self.a)), Tensor(self.b[::-1])
        self.assert_product(tegula.matmul(turned, reversed_).host, self.a, self.b[::-1])
        square = Tensor(random_array((30, 30)))
        before = square.host.copy()
        self.assertIs(tegula.matmul(square, square, square), square)
        self.assert_product(square.host, before, before)
        negative = Tensor(self.a, is_negative=True)
        self.assert_product(tegula.matmul(negative, Tensor(self.b)).host, -self.a, self.b)

    @unittest.skipUnless(is_replaced(), "needs the replacement of the CUDA driver")
    def test_cuda(self):
        with recorded_streams() as streams:
            result = tegula.matmul(Tensor(self.a, "cuda"), Tensor(self.b, "cuda"))
        self.assertEqual((result.device.type, streams), ("cuda", [0]))
        self.assert_product(result.host, self.a, self.b)

    def test_errors(self):
        b = Tensor(self.b)
        sparse = Tensor(self.a)
        sparse.layout = "sparse_coo"
        self.assertRaises(TypeError, tegula.matmul, sparse, b)
        self.assertRaises(TypeError, tegula.matmul, Tensor(self.a.astype(int)), b)
        with self.assertRaisesRegex(ValueError, "tegula.torch.matmul"):
            tegula.matmul(Tensor(self.a, requires_grad=True), b)
        with self.assertRaisesRegex(ValueError, "serves cpu and cuda"):
            tegula.matmul(Tensor(self.a, "mps"), b)
        with self.assertRaisesRegex(ValueError, "read-only"):
            tegula.matmul(b, b, Tensor(self.b, is_negative=True))


if __name__ == "__main__":
    unittest.main()
