# SPDX-License-Identifier: Apache-2.0
"""Prepared operands. A matrix that many products use is converted once to the form that kernels read.

A prepared operand belongs to the process that made it. tegula.prepare() in _matmul.py makes it.
"""

from ctypes import byref, c_char, c_void_p
from typing import Any, NoReturn, Optional, Tuple

from ._arrays import Operand
from ._devices import Device, process
from ._library import SIDES, TYPE_NAMES, TYPE_SIZES, UnsupportedError, check, lib
from ._plans import PlanBase


class Prepared:
    """A matrix that tegula.matmul() and plans take in place of a or b, as `side` says.

    It keeps the matrix, whose elements must not change, and memory with the form that kernels read.
    That memory is freed by release(), at the end of a with-block, and when nothing refers to this
    object any more.
    """

    def __init__(self, plan: PlanBase, side: str, operand: Operand, compute: str) -> None:
        self.side = side
        self.compute = compute
        self.device: Device = plan.device
        self._handle: Optional[c_void_p] = None
        self._process = process()
        try:
            self._wait_for(operand)
        except UnsupportedError as error:
            raise UnsupportedError(error.status, f"{side} cannot be prepared while a stream is "
                                   "captured into a CUDA graph; prepare it before") from error
        handle = c_void_p()
        check(lib.tgl_operand_prepare(plan.handle().plan, SIDES[side], operand.pointer,
                                      operand.stream, byref(handle)))
        self._handle = handle
        self._wait_for(operand)
        self.operand = operand._replace(stream=None, is_of_any_stream=True)

    def __del__(self) -> None:
        # Freeing GPU memory waits for the products that use it.
        handle = getattr(self, "_handle", None)
        if handle is not None and self._process == process():
            self._handle = None
            lib.tgl_prepared_destroy(handle)

    def _wait_for(self, operand: Operand) -> None:
        """Waits for the stream of an operand, by copying an element. Unlike Device.sync() this does not
        disturb captures of other streams. Raises UnsupportedError if this stream is being captured."""
        element = (c_char * TYPE_SIZES[operand.form.type])()
        if 0 not in operand.form.shape:
            check(lib.tgl_download(self.device.handle, element, operand.pointer, len(element),
                                   operand.stream))

    def release(self) -> None:
        """Frees the memory. Products refuse the operand from then on. May be called again."""
        self.__del__()

    def __enter__(self) -> "Prepared":
        return self

    def __exit__(self, *error: Any) -> None:
        self.release()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a prepared operand cannot be pickled, because it is memory of one process "
                        "and device; pickle the array, and prepare it where it is loaded")

    def __repr__(self) -> str:
        state = f"{self.nbytes} bytes" if self._handle is not None else "released"
        return (f"<tegula operand {self.side} of shape {self.shape}, prepared on "
                f"{self.device.name}: {state}>")

    @property
    def shape(self) -> Tuple[int, ...]:
        return self.operand.form.shape

    @property
    def dtype(self) -> str:
        """The name of the element type, such as "float32"."""
        return TYPE_NAMES[self.operand.form.type]

    @property
    def array(self) -> Any:
        """The matrix: the array that was given, or a copy if BLAS cannot express its strides."""
        return self.operand.array

    @property
    def nbytes(self) -> int:
        """The size in bytes of the device memory that it owns. 0: no product uses a prepared form."""
        return int(lib.tgl_prepared_size(self._handle))

    def taken_as(self, name: str) -> c_void_p:
        """The tgl_prepared, for a product in which this is the operand `name`."""
        if self.side != name:
            raise ValueError(f"{name} was prepared as {self.side}: prepare it with side={name!r}")
        if self._process != process():
            raise ValueError(f"{name} was prepared by the parent process: prepare it in this one")
        if self._handle is None:
            raise ValueError(f"{name} is released: prepare it again")
        return self._handle
