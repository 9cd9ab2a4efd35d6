# SPDX-License-Identifier: Apache-2.0
"""The C library: its structs, functions and errors. include/tegula/tegula.h is the manual."""

import ctypes
import os
from ctypes import (POINTER, Structure, byref, c_char_p, c_double, c_int, c_int64, c_size_t,
                    c_void_p)
from pathlib import Path
from typing import Any, Callable, Dict, Type

ROW_MAJOR, COL_MAJOR = 101, 102
NO_TRANS, TRANS, CONJ_TRANS, CONJ_NO_TRANS = 111, 112, 113, 114
BIAS_NONE, BIAS_ROW, BIAS_COLUMN = 0, 1, 2
COMPUTE = {"default": 0, "ieee": 1, "accurate": 2, "tf32": 3, "fast": 4}
SIDES = {"a": 1, "b": 2}
EFFORT = {None: 0, "estimate": 1, "measure": 2}
ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2, "silu": 3}

# The numbers of tgl_type, and below the bytes of an element.
TYPES = {"float32": 1, "float64": 2, "float16": 3, "bfloat16": 4, "float8_e4m3fn": 5,
         "float8_e5m2": 6, "int8": 7, "int32": 8, "complex64": 9, "complex128": 10}
TYPE_NAMES = {number: name for name, number in TYPES.items()}
TYPE_SIZES = {1: 4, 2: 8, 3: 2, 4: 2, 5: 1, 6: 1, 7: 1, 8: 4, 9: 8, 10: 16}
# Types that the package ml_dtypes adds to NumPy.
ADDED_TYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
SCALING_NONE, SCALING_TENSOR, SCALING_LINE, SCALING_BLOCK, SCALING_LINE_128 = range(5)
SCALE_BLOCK = 128  # elements of a block with its own factor, along k and along rows or columns
_USUAL_RESULTS = {TYPES["int8"]: TYPES["int32"], TYPES["float8_e4m3fn"]: TYPES["bfloat16"],
                  TYPES["float8_e5m2"]: TYPES["bfloat16"]}


def usual_result(number: int, is_scaled: bool = False) -> int:
    """The default type of the product of two arrays of this type."""
    if is_scaled and number == TYPES["int8"]:
        return TYPES["float32"]
    return _USUAL_RESULTS.get(number, number)


# ---- Errors -------------------------------------------------------------------------------------


class TegulaError(Exception):
    """A failure of the library: `status`, such as "TGL_NO_DEVICE", and the library's message."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message

    def __str__(self) -> str:
        return f"{self.message} ({self.status})"


class ArgumentError(TegulaError, ValueError):
    """The library refused an argument: TGL_BAD_ARGUMENT and the like."""


class TypeCombinationError(TegulaError, TypeError):
    """The element types cannot be combined: TGL_BAD_TYPE."""


class UnsupportedError(TegulaError, NotImplementedError):
    """A valid request for which the device has no kernel: TGL_UNSUPPORTED."""


class OutOfMemoryError(TegulaError, MemoryError):
    """Host or device memory is exhausted: TGL_NO_MEMORY."""


def _error_class(status: str) -> Type[TegulaError]:
    if status == "TGL_BAD_TYPE":
        return TypeCombinationError
    if status.startswith("TGL_BAD_") or status in ("TGL_TOO_LARGE", "TGL_UNKNOWN_KERNEL"):
        return ArgumentError
    return {"TGL_UNSUPPORTED": UnsupportedError,
            "TGL_NO_MEMORY": OutOfMemoryError}.get(status, TegulaError)


def check(status: int) -> None:
    """Raises the exception of a status that is not TGL_OK."""
    if status != 0:
        name = lib.tgl_status_name(status).decode()
        message = written_text(lib.tgl_last_error) or lib.tgl_status_text(status).decode()
        raise _error_class(name)(name, message)


def written_text(write: Callable[..., int], *arguments: object) -> str:
    """The text that a function writes like snprintf: write(*arguments, buffer, size) -> length."""
    size = 4096
    while True:
        buffer = ctypes.create_string_buffer(size)
        length = write(*arguments, buffer, size)
        if length < size:
            return buffer.value.decode(errors="replace")
        size = length + 1


# ---- Structs ------------------------------------------------------------------------------------


class Sized(Structure):
    """A struct whose first member is its size."""

    def __init__(self, **members: object) -> None:
        super().__init__(size=ctypes.sizeof(self), **members)


class DeviceOptions(Sized):
    _fields_ = [("size", c_size_t), ("threads", c_int), ("current_context", c_int)]


class Problem(Sized):
    _fields_ = [
        ("size", c_size_t), ("m", c_int64), ("n", c_int64), ("k", c_int64), ("order", c_int),
        ("trans_a", c_int), ("trans_b", c_int), ("type_a", c_int), ("type_b", c_int),
        ("type_c", c_int), ("type_d", c_int), ("type_accumulate", c_int), ("compute", c_int),
        ("scalars", c_int), ("lda", c_int64), ("ldb", c_int64), ("ldc", c_int64),
        ("ldd", c_int64), ("batch", c_int64), ("stride_a", c_int64), ("stride_b", c_int64),
        ("stride_c", c_int64), ("stride_d", c_int64), ("batching", c_int),
        ("alignment", c_int64), ("scaling_a", c_int), ("scaling_b", c_int),
        ("scaling_d", c_int), ("type_scale", c_int),
        ("grouping", c_int), ("group_form", c_int), ("ld_scale_a", c_int64), ("ld_scale_b", c_int64),
        ("scale_group", c_int), ("type_zero_b", c_int), ("stride_scale_b", c_int64)]


class Epilogue(Sized):
    _fields_ = [
        ("size", c_size_t), ("bias", c_int), ("activation", c_int), ("residual", c_int),
        ("expression", c_char_p), ("ld_residual", c_int64), ("stride_bias", c_int64),
        ("stride_residual", c_int64), ("type_bias", c_int), ("type_residual", c_int),
        ("amax", c_int)]


class PlanOptions(Sized):
    _fields_ = [("size", c_size_t), ("kernel", c_char_p), ("epilogue", POINTER(Epilogue)),
                ("workspace_limit", c_int64), ("effort", c_int), ("measure_seconds", c_double)]


class Operands(Sized):
    _fields_ = [
        ("size", c_size_t), ("alpha", c_double), ("beta", c_double), ("alpha_at", c_void_p),
        ("beta_at", c_void_p), ("A", c_void_p), ("B", c_void_p), ("C", c_void_p),
        ("D", c_void_p), ("A_array", c_void_p), ("B_array", c_void_p), ("C_array", c_void_p),
        ("D_array", c_void_p), ("bias", c_void_p), ("residual", c_void_p),
        ("scale_a", c_void_p), ("scale_b", c_void_p), ("scale_d", c_void_p),
        ("workspace", c_void_p), ("workspace_bytes", c_size_t),
        ("prepared_a", c_void_p), ("prepared_b", c_void_p),
        ("alpha_imag", c_double), ("beta_imag", c_double), ("groups", c_void_p),
        ("amax_d", c_void_p), ("zero_b", c_void_p)]


class Counters(Sized):
    _fields_ = [("size", c_size_t)] + [(name, c_int64) for name in (
        "blocks", "threads", "shared_bytes", "barriers",
        "global_load_requests", "global_load_sectors", "global_load_bytes",
        "global_store_requests", "global_store_sectors", "global_store_bytes",
        "shared_load_requests", "shared_load_wavefronts", "shared_load_conflicts",
        "shared_load_bytes", "shared_store_requests", "shared_store_wavefronts",
        "shared_store_conflicts", "shared_store_bytes", "async_copy_requests",
        "async_copy_sectors", "async_copy_bytes", "async_copy_wavefronts",
        "async_copy_conflicts", "needed_bytes", "mma_requests", "wgmma_requests", "wgmma_bytes",
        "tma_load_requests", "tma_load_sectors", "tma_load_bytes", "tma_multicast_bytes",
        "tma_store_requests", "tma_store_sectors", "tma_store_bytes", "mbarrier_waits")]

    def as_dict(self) -> Dict[str, int]:
        return {name: getattr(self, name) for name, *_ in self._fields_[1:]}


# ---- Functions ----------------------------------------------------------------------------------

# Devices, plans, prepared operands and timers are opaque pointers.
_FUNCTIONS = {
    "tgl_version": (c_char_p, []),
    "tgl_status_name": (c_char_p, [c_int]),
    "tgl_status_text": (c_char_p, [c_int]),
    "tgl_last_error": (c_size_t, [c_char_p, c_size_t]),
    "tgl_device_open": (c_int, [c_char_p, POINTER(DeviceOptions), POINTER(c_void_p)]),
    "tgl_device_close": (None, [c_void_p]),
    "tgl_device_name": (c_char_p, [c_void_p]),
    "tgl_device_property": (c_int, [c_void_p, c_int, POINTER(c_char_p), POINTER(c_char_p)]),
    "tgl_device_sync": (c_int, [c_void_p]),
    "tgl_device_trim": (c_int, [c_void_p]),
    "tgl_alloc": (c_int, [c_void_p, c_size_t, POINTER(c_void_p)]),
    "tgl_free": (None, [c_void_p, c_void_p]),
    "tgl_upload": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p]),
    "tgl_download": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p]),
    "tgl_kernel_name": (c_char_p, [c_void_p, c_int]),
    "tgl_problem_init": (c_int, [POINTER(Problem), c_size_t, c_int, c_int64, c_int64, c_int64]),
    "tgl_plan_create": (c_int, [c_void_p, POINTER(Problem), POINTER(PlanOptions),
                                POINTER(c_void_p)]),
    "tgl_plan_destroy": (None, [c_void_p]),
    "tgl_plan_workspace_size": (c_size_t, [c_void_p]),
    "tgl_plan_run_operands": (c_int, [c_void_p, POINTER(Operands), c_void_p]),
    "tgl_operand_prepare": (c_int, [c_void_p, c_int, c_void_p, c_void_p, POINTER(c_void_p)]),
    "tgl_prepared_destroy": (None, [c_void_p]),
    "tgl_prepared_size": (c_size_t, [c_void_p]),
    "tgl_plan_kernel": (c_char_p, [c_void_p]),
    "tgl_plan_explain": (c_size_t, [c_void_p, c_char_p, c_size_t]),
    "tgl_plan_counters": (c_int, [c_void_p, POINTER(Counters)]),
    "tgl_plan_trace": (c_size_t, [c_void_p, c_char_p, c_size_t]),
    "tgl_chip_name": (c_char_p, [c_int]),
    "tgl_chip_explain": (c_int, [c_char_p, POINTER(Problem), POINTER(PlanOptions), c_char_p,
                                 c_size_t, POINTER(c_size_t)]),
    "tgl_timer_create": (c_int, [c_void_p, POINTER(c_void_p)]),
    "tgl_timer_destroy": (None, [c_void_p]),
    "tgl_timer_start": (c_int, [c_void_p, c_void_p]),
    "tgl_timer_passed": (c_int, [c_void_p, POINTER(c_int)]),
    "tgl_timer_stop": (c_int, [c_void_p, c_void_p, POINTER(c_double)]),
}


def _load() -> ctypes.CDLL:
    """Loads TEGULA_LIBRARY if it is set, else the library inside the package."""
    path = os.environ.get("TEGULA_LIBRARY") or str(Path(__file__).with_name("libtegula.so"))
    try:
        loaded = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"the library of tegula cannot be loaded: {error}; install the package "
                          "with pip, or set TEGULA_LIBRARY to libtegula.so") from error
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(loaded, name)
        except AttributeError:
            raise ImportError(f"{path} has no function {name}: it is another version of "
                              "Tegula than this package") from None
        function.restype, function.argtypes = result, arguments
    return loaded


lib = _load()


def chip_explain(chip: str, problem: Problem, options: PlanOptions) -> str:
    """The text of tgl_chip_explain()."""
    def write(buffer: Any, size: int) -> int:
        length = c_size_t()
        check(lib.tgl_chip_explain(chip.encode(), byref(problem), byref(options), buffer, size,
                                   byref(length)))
        return length.value
    return written_text(write)
