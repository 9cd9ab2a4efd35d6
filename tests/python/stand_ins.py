# SPDX-License-Identifier: Apache-2.0
"""Classes that stand in for arrays of other libraries. They contain NumPy arrays, and have the interfaces that the
package uses.

The fake CUDA driver (tests/fake_cuda) has host memory as device memory, so these arrays can pretend to be on a GPU.
"""

import ctypes
import os
import sys
import types
from unittest import mock

import numpy as np
from python_support import has_device

from tegula import _dlpack, _matmul


def python_only():
    """A context in which products are computed without the compiled path (python/call.c)."""
    return mock.patch.object(_matmul, "calls", None)


def no_python():
    """A context in which products fail unless the compiled path computes them."""
    return mock.patch.object(_matmul, "_describe_product", side_effect=AssertionError("in Python"))


def is_replaced():
    return "fake_cuda" in os.environ.get("TEGULA_LIBCUDA", "") and has_device("cuda")


# ---- CuPy ---------------------------------------------------------------------------------------


class CudaArray:
    """An array with __cuda_array_interface__ and the current stream, like CuPy's."""

    stream = 1

    def __init__(self, x, read_only=False, mask=None):
        self.host, self.read_only, self.mask = x, read_only, mask

    @property
    def __cuda_array_interface__(self):
        interface = dict(self.host.__array_interface__, version=3, stream=self.stream)
        interface["data"] = (interface["data"][0], self.read_only)
        if self.mask is not None:
            interface["mask"] = self.mask
        return interface


# ---- DLPack -------------------------------------------------------------------------------------

_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi))


class Dlpack:
    """An array that supports only DLPack. Its capsule is NumPy's, with another device and byte_offset.

    flags: the flags in capsules of version 1.0; None: the array supports only versions before 1.0."""

    place = 1, 0

    def __init__(self, x, flags=None, major=1):
        self.host, self.flags, self.major, self.streams, self.kept = x, flags, major, [], []

    def __dlpack_device__(self):
        return self.place

    def __dlpack__(self, stream=None, **options):
        if self.flags is None and options:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.streams.append(stream)
        capsule = self.host.__dlpack__()
        tensor = _dlpack._Tensor.from_address(_get_pointer(capsule, b"dltensor"))
        tensor.data, tensor.byte_offset = (tensor.data or 64) - 64, 64
        tensor.device_type, tensor.device_id = self.place
        if self.flags is None:
            return capsule
        managed = _dlpack._ManagedVersioned(self.major, 0, None, None, self.flags, tensor)
        self.kept.append((capsule, managed))
        return _new_capsule(ctypes.addressof(managed), b"dltensor_versioned", None)


class CudaDlpack(Dlpack):
    place = 2, 0


# ---- PyTorch ------------------------------------------------------------------------------------


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_dlpack._Tensor))
def _read(x, tensor):
    """Describes x in *tensor, as PyTorch's function in DLPackExchangeAPI does."""
    if x.layout != "strided":
        return -1
    x.reads += 1
    x.dimensions = (ctypes.c_int64 * x.host.ndim)(*x.shape), (ctypes.c_int64 * x.host.ndim)(*x.stride())
    into = tensor.contents
    into.data, into.byte_offset, into.ndim, into.type_lanes = x.data_ptr(), 0, x.host.ndim, 1
    into.type_code, into.type_bits = {"f": 2, "i": 0, "c": 5}[x.host.dtype.kind], 8 * x.host.itemsize
    into.device_type, into.device_id = {"cpu": 1, "cuda": 2}.get(x.device.type, 8), x.device.index
    into.shape, into.strides = (ctypes.cast(n, ctypes.POINTER(ctypes.c_int64)) for n in x.dimensions)
    return 0


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
def _current_stream(kind, index, stream):
    stream[0] = sys.modules["torch"].cuda.current_stream(index).cuda_stream
    return 0


class _Functions(ctypes.Structure):
    """The struct DLPackExchangeAPI of DLPack 1.3."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("others", 4 * ctypes.c_void_p),
                ("read", type(_read)), ("current_stream", type(_current_stream))]


_name = b"dlpack_exchange_api"  # the capsule does not keep it
tensor_functions = _Functions(1, 3, (None, None, None, None), _read, _current_stream)


class Tensor:
    """Stands in for torch.Tensor."""

    layout = "strided"
    reads = 0  # number of reads through DLPack's functions
    __dlpack_c_exchange_api__ = _new_capsule(ctypes.addressof(tensor_functions), _name, None)

    def __init__(self, x, place="cpu", requires_grad=False, is_negative=False, is_conjugate=False):
        self.host, self.requires_grad, self.is_negative = x, requires_grad, is_negative
        self.is_conjugate = is_conjugate
        self.device = types.SimpleNamespace(type=place, index=0)
        self.dtype = f"torch.{x.dtype.name}"
        self.shape = x.shape

    def stride(self):
        return tuple(s // self.host.itemsize for s in self.host.strides)

    def data_ptr(self):
        return self.host.ctypes.data

    def is_neg(self):
        return self.is_negative

    def is_conj(self):
        return self.is_conjugate

    def conj(self):
        return Tensor(self.host, self.device.type, is_conjugate=not self.is_conjugate)

    def resolve_conj(self):
        return Tensor(self.host.conj(), self.device.type) if self.is_conjugate else self

    def resolve_neg(self):
        return Tensor(-self.host, self.device.type) if self.is_negative else self

    def contiguous(self):
        return Tensor(np.array(self.host, order="C"), self.device.type)

    def copy_(self, source):
        self.host[...] = source.host


class Parameter(Tensor):
    """Stands in for torch.nn.Parameter."""


def fake_torch(stream, has_gradients=True):
    def empty_strided(shape, strides, dtype, device):
        return Tensor(np.full(shape, np.nan if "float" in dtype else 42, dtype), device.type)

    current = types.SimpleNamespace(cuda_stream=stream)
    return types.SimpleNamespace(
        Tensor=Tensor, nn=types.SimpleNamespace(Parameter=Parameter), strided="strided",
        is_grad_enabled=lambda: has_gradients,
        empty_strided=empty_strided,
        float32="float32", float64="float64", complex64="complex64",
        cuda=types.SimpleNamespace(current_stream=lambda device: current))
