# SPDX-License-Identifier: Apache-2.0
"""Describes an array: its address, its form (shape, strides and type), its device and stream.

NumPy arrays and PyTorch tensors are read through their attributes, other arrays through
__cuda_array_interface__, DLPack or __array_interface__. describe() copies memory only for tensors whose
elements differ from those in memory, such as y.conj().imag.
"""

import sys
from functools import lru_cache, partial
from typing import Any, Callable, NamedTuple, Optional, Tuple

import numpy as np

from . import _dlpack
from ._devices import DeviceArray
from ._layout import Form, Ints
from ._library import ADDED_TYPES, TYPE_NAMES, TYPE_SIZES, TYPES

_NUMPY_TYPES = {np.dtype(name): number for name, number in TYPES.items()
                if name not in ADDED_TYPES}


class Operand(NamedTuple):
    """An array, described for the library."""

    array: Any  # what the caller gave
    owner: Any  # keeps the memory alive
    pointer: int
    form: Form
    device: str  # "cpu" or "cuda:N"
    stream: Optional[int]  # cuda: the stream in which the array is up to date; 0: the default
    writable: bool
    is_of_any_stream: bool = False  # True for a prepared operand: products in all streams use it


@lru_cache(maxsize=4096)
def _span(form: Form) -> Tuple[int, int]:
    """The byte offsets of an array's memory from its element 0: the least, and the end."""
    if 0 in form.shape:
        return 0, 0
    steps = [(n - 1) * s for n, s in zip(form.shape, form.strides)]
    size = TYPE_SIZES[form.type]
    return (size * sum(s for s in steps if s < 0), size * (sum(s for s in steps if s > 0) + 1))


def overlap(x: Operand, y: Operand) -> bool:
    """Whether the memory from the first to the last element of x and y overlaps."""
    x_begin, x_end = _span(x.form)
    y_begin, y_end = _span(y.form)
    return x.pointer + x_begin < y.pointer + y_end and y.pointer + y_begin < x.pointer + x_end


# ---- Descriptions -------------------------------------------------------------------------------


def _type_of(name: str, dtype: Any, type_name: str) -> int:
    number = TYPES.get(type_name)
    if number is None:
        raise TypeError(f"{name} has the type {dtype}; the types are {', '.join(TYPES)}")
    return number


def _numpy_type(name: str, dtype: np.dtype) -> int:
    number = _NUMPY_TYPES.get(dtype)
    if number is not None:
        return number
    # Types of the other byte order are not in the table.
    return _type_of(name, dtype, dtype.name if dtype.name in ADDED_TYPES else "")


@lru_cache(maxsize=4096)
def _form(shape: Ints, byte_strides: Optional[Ints], number: int, is_aligned: bool) -> Form:
    """The form of an array. byte_strides: its strides in bytes; None: row-major."""
    size = TYPE_SIZES[number]
    if byte_strides is None:
        return Form(shape, (), number).row_major._replace(usable=is_aligned)
    return Form(shape, tuple(s // size for s in byte_strides), number,
                is_aligned and all(s % size == 0 for s in byte_strides))


def _from_numpy(name: str, array: Any, x: np.ndarray) -> Operand:
    form = _form(x.shape, x.strides, _numpy_type(name, x.dtype), x.flags.aligned)
    pointer, read_only = x.__array_interface__["data"]
    return Operand(array, x, pointer, form, "cpu", None, not read_only)


def _from_torch(name: str, torch: Any, x: Any) -> Operand:
    if x.layout is not torch.strided:
        raise TypeError(f"{name} has the layout {x.layout}; only dense tensors can be multiplied")
    if x.requires_grad and torch.is_grad_enabled():
        raise ValueError(f"{name} requires a gradient: use tegula.torch.matmul(), or detach()")
    # `owner` is x, unless x is a view such as y.conj() or y.conj().imag, whose elements differ from
    # those in memory. The library can conjugate a and b itself, so their conjugates are not copied.
    conj = x.is_conj() and name in ("a", "b")
    owner = (x.conj() if conj else x.resolve_conj()).resolve_neg()
    form = Form(tuple(x.shape), tuple(owner.stride()),
                _type_of(name, x.dtype, str(x.dtype).rpartition(".")[2]), conj=conj)
    place, stream = x.device.type, None
    if place == "cuda":
        place = f"cuda:{x.device.index}"
        stream = torch.cuda.current_stream(x.device).cuda_stream
    elif place != "cpu":
        raise ValueError(f"{name} is on {x.device}; the library serves cpu and cuda")
    return Operand(x, owner, owner.data_ptr(), form, place, stream, owner is x)


def _from_cuda_interface(name: str, x: Any) -> Operand:
    facts = x.__cuda_array_interface__
    dtype = np.dtype(getattr(x, "dtype", facts["typestr"]))
    pointer, read_only = facts["data"]
    form = _form(tuple(facts["shape"]), facts.get("strides"), _numpy_type(name, dtype),
                 pointer % dtype.itemsize == 0)
    # The interface does not name the GPU. If the array does not support DLPack either, GPU 0 is assumed.
    index = x.__dlpack_device__()[1] if hasattr(x, "__dlpack_device__") else 0
    stream = facts.get("stream") or 0
    return Operand(x, x, pointer, form, f"cuda:{index}",
                   0 if stream == 1 else stream,  # 1: the default stream, which the library calls 0
                   not read_only)


def _from_dlpack(name: str, array: Any) -> Operand:
    x = _dlpack.describe(array)
    form = Form(x.shape, (), _type_of(name, x.type_name, x.type_name)).row_major
    form = form._replace(strides=form.strides if x.strides is None else x.strides,
                         usable=x.pointer % TYPE_SIZES[form.type] == 0)
    writable = x.writable and not is_jax(array)
    if x.device_type in (_dlpack.CPU, _dlpack.CUDA_HOST):
        return Operand(array, x.owner, x.pointer, form, "cpu", None, writable)
    if x.device_type in (_dlpack.CUDA, _dlpack.CUDA_MANAGED):
        return Operand(array, x.owner, x.pointer, form, f"cuda:{x.device_id}", 0, writable)
    raise ValueError(f"{name} is on the DLPack device {x.device_type}; the library serves the CPU "
                     "(1) and CUDA (2)")


def _check_is_plain(name: str, x: Any) -> None:
    """Raises TypeError if an array has more than its elements in memory, such as a mask or a unit."""
    kind = type(x)
    is_masked = isinstance(x, np.ma.MaskedArray)
    for interface in "__array_interface__", "__cuda_array_interface__":
        if not is_masked and not isinstance(x, np.ndarray) and hasattr(x, interface):
            is_masked = getattr(x, interface).get("mask") is not None
    if is_masked:
        raise TypeError(f"{name} is a masked array; matmul() has no masks: give {name}.filled(0), or "
                        "an array without a mask")
    own = np.ndarray.__array_ufunc__
    if isinstance(x, np.ndarray) and getattr(kind, "__array_ufunc__", own) is not own:
        raise TypeError(f"{name} is a {kind.__name__}, which has a matmul() of its own; "
                        f"numpy.ndarray.view({name}, numpy.ndarray) is the array in it")


def describe(name: str, x: Any) -> Operand:
    """The operand of an array. name: its name in error messages."""
    if isinstance(x, np.ndarray):
        if type(x) is not np.ndarray:
            _check_is_plain(name, x)
        return _from_numpy(name, x, x)
    if is_torch(x):
        return _from_torch(name, sys.modules["torch"], x)
    if hasattr(x, "__cuda_array_interface__") and not is_jax(x):
        _check_is_plain(name, x)
        return _from_cuda_interface(name, x)
    if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
        return _from_dlpack(name, x)
    if hasattr(x, "__array_interface__") and not isinstance(x, np.generic):
        _check_is_plain(name, x)
        return _from_numpy(name, x, np.asarray(x))
    raise TypeError(f"{name} is a {type(x).__name__}, which is not an array: it has neither "
                    "__array_interface__ nor __cuda_array_interface__ nor DLPack; numpy.asarray() "
                    "makes arrays of lists")


def is_torch(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_jax(x: Any) -> bool:
    """Whether x is an array of JAX. These arrays never change, but their DLPack capsules do not say that they
    are read-only."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.Array)


def _is_cupy(x: Any) -> bool:
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(x, cupy.ndarray)


# ---- New arrays ---------------------------------------------------------------------------------


def numpy_dtype(number: int) -> np.dtype:
    if TYPE_NAMES[number] not in ADDED_TYPES:
        return np.dtype(TYPE_NAMES[number])
    import ml_dtypes  # installed wherever NumPy arrays of these types exist
    dtype: np.dtype = np.dtype(getattr(ml_dtypes, TYPE_NAMES[number]))
    return dtype


def _empty_of_cupy(device: Any, shape: Ints, dtype: np.dtype) -> Any:
    with device:
        return sys.modules["cupy"].empty(shape, dtype)


def maker_like(x: Operand, form: Form) -> Callable[[], Any]:
    """A function that makes arrays of this form, of the same library and on the same device as x; on the CPU
    NumPy arrays, unless x is a tensor of PyTorch. It holds no reference to x."""
    array = x.array
    if is_torch(array):
        torch = sys.modules["torch"]
        # empty_strided() takes 1 us less than torch.empty() (PyTorch 2.15).
        return partial(torch.empty_strided, form.shape, form.strides,
                       dtype=getattr(torch, TYPE_NAMES[form.type]), device=array.device)
    if x.device == "cpu":
        return partial(np.empty, form.shape, numpy_dtype(form.type))
    if _is_cupy(array):
        return partial(_empty_of_cupy, array.device, form.shape, numpy_dtype(form.type))
    if isinstance(array, DeviceArray):
        return partial(DeviceArray, array.device, form.shape, numpy_dtype(form.type))
    raise ValueError(f"the result of a {type(array).__name__} on {x.device} cannot be "
                     "allocated: give out")


def empty_like(x: Operand, form: Form) -> Operand:
    """A new array of this form, as maker_like() makes it for x."""
    return describe("out", maker_like(x, form)())


def row_major_copy(name: str, x: Operand) -> Operand:
    """A row-major copy of an array whose strides BLAS cannot express."""
    if is_torch(x.array):
        return describe(name, x.owner.contiguous())
    if _is_cupy(x.array):
        return describe(name, sys.modules["cupy"].ascontiguousarray(x.array))
    if isinstance(x.owner, np.ndarray):
        return describe(name, np.array(x.owner, order="C"))
    raise ValueError(f"{name} has the strides {x.form.strides}, which BLAS cannot express: give a "
                     "contiguous array")


def column_major_copy(name: str, x: Operand) -> Operand:
    """A copy of matrices (..., rows, columns) whose columns are contiguous."""
    if is_torch(x.array):
        return describe(name, x.owner.transpose(-2, -1).contiguous().transpose(-2, -1))
    if _is_cupy(x.array):
        return describe(name, sys.modules["cupy"].ascontiguousarray(x.array.swapaxes(-2, -1)).swapaxes(-2, -1))
    if isinstance(x.owner, np.ndarray):
        return describe(name, np.array(x.owner.swapaxes(-2, -1), order="C").swapaxes(-2, -1))
    raise ValueError(f"{name} has the strides {x.form.strides}: give an array whose columns are contiguous")


def assign(destination: Operand, source: Operand) -> None:
    """Copies an array to another one of the same library."""
    if is_torch(destination.array):
        destination.array.copy_(source.array)
    elif isinstance(destination.owner, np.ndarray):
        destination.owner[...] = source.array
    elif _is_cupy(destination.array):
        destination.array[...] = source.array
    else:
        raise ValueError("out overlaps an operand, or has strides that BLAS cannot express: give a "
                         "contiguous array of its own")
