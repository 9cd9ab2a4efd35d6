# SPDX-License-Identifier: Apache-2.0
"""Reads arrays through DLPack capsules: JAX's, and others that do not support __cuda_array_interface__.

A consumer that takes over the memory renames the capsule. This module does not, so the memory still
belongs to the capsule, whose destructor frees it.
"""

import ctypes
from ctypes import (POINTER, Structure, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32,
                    c_uint64, c_void_p, py_object)
from typing import Any, NamedTuple, Optional, Tuple

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
_TYPE_NAMES = {(2, 16): "float16", (2, 32): "float32", (2, 64): "float64", (4, 16): "bfloat16",
               (10, 8): "float8_e4m3fn",
               (12, 8): "float8_e5m2", (0, 8): "int8", (0, 32): "int32", (5, 64): "complex64", (5, 128): "complex128"}
_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY
_IS_COPIED = 2  # the producer has made a copy, so a result that is written to it would be lost
_LEGACY_STREAM = 1  # CUDA's default stream in the protocol


class _Tensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("type_code", c_uint8), ("type_bits", c_uint8),
                ("type_lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _Managed(Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class _ManagedVersioned(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p),
                ("deleter", c_void_p), ("flags", c_uint64), ("tensor", _Tensor)]


_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, py_object, c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi))
_get_pointer = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))


class Described(NamedTuple):
    """The tensor in a capsule. Strides count elements. The owner keeps the memory alive."""

    owner: Any
    pointer: int
    shape: Tuple[int, ...]
    strides: Optional[Tuple[int, ...]]  # None: row-major without padding
    type_name: str
    device_type: int
    device_id: int
    writable: bool


def _export(array: Any) -> Any:
    """The capsule of an array. Its memory is up to date in CUDA's default stream."""
    on_gpu = array.__dlpack_device__()[0] in (CUDA, CUDA_MANAGED)
    options = {"stream": _LEGACY_STREAM} if on_gpu else {}
    try:
        return array.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # the producer supports a version of DLPack before 1.0
        return array.__dlpack__(**options)


def describe(array: Any) -> Described:
    capsule = _export(array)
    if _is_valid(capsule, b"dltensor_versioned"):
        managed = _ManagedVersioned.from_address(_get_pointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise TypeError(f"DLPack {managed.major}.{managed.minor} is not supported")
        tensor, writable = managed.tensor, not managed.flags & (_READ_ONLY | _IS_COPIED)
    else:
        tensor = _Managed.from_address(_get_pointer(capsule, b"dltensor")).tensor
        writable = True
    bits = (tensor.type_code, tensor.type_bits)
    type_name = _TYPE_NAMES.get(bits if tensor.type_lanes == 1 else (0, 0), f"DLPack's type {bits}")
    return Described(
        owner=capsule,
        pointer=(tensor.data or 0) + tensor.byte_offset,
        shape=tuple(tensor.shape[:tensor.ndim]),
        strides=tuple(tensor.strides[:tensor.ndim]) if tensor.strides else None,
        type_name=type_name,
        device_type=tensor.device_type,
        device_id=tensor.device_id,
        writable=writable)
