# SPDX-License-Identifier: Apache-2.0
"""Devices of the library, and arrays in their memory.

A process opens each device once for each number of threads and keeps it open. After fork() the child opens
its own devices: it must not use the parent's GPU, and the threads of the parent's devices do not exist there.
"""

import os
from ctypes import CDLL, byref, c_char_p, c_void_p
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from ._checks import integer
from ._library import DeviceOptions, check, lib

_open_devices: Dict[Tuple[str, int], "Device"] = {}
_process = 0  # counts the forks between the process that imported the package and this one


def _after_fork() -> None:
    global _process
    _process += 1
    _open_devices.clear()


os.register_at_fork(after_in_child=_after_fork)


def process() -> int:
    """A number that differs between a process and its child by fork(). It tells to which process a handle
    belongs."""
    return _process


class Device:
    """A device of this process. tegula.device() makes it; it stays open until the process ends."""

    def __init__(self, handle: c_void_p, threads: int) -> None:
        self.handle = handle
        self.threads = threads
        self.name: str = lib.tgl_device_name(handle).decode()

    def __repr__(self) -> str:
        return f"tegula.device({self.name!r})"

    def __reduce__(self) -> Tuple[Any, ...]:
        return device, (self.name, self.threads)

    @property
    def properties(self) -> Dict[str, str]:
        """The properties of the device as text, for people to read."""
        result: Dict[str, str] = {}
        key, value = c_char_p(), c_char_p()
        while lib.tgl_device_property(self.handle, len(result), byref(key), byref(value)) == 0:
            result[(key.value or b"").decode()] = (value.value or b"").decode()
        return result

    def kernels(self) -> List[str]:
        """The names that tegula.plan(kernel=...) accepts."""
        names: List[str] = []
        while (name := lib.tgl_kernel_name(self.handle, len(names))) is not None:
            names.append(name.decode())
        return names

    def sync(self) -> None:
        """Waits for all work of the device."""
        check(lib.tgl_device_sync(self.handle))

    def trim(self) -> None:
        """Frees what the device keeps for later calls: cached plans, unused kernels, workspace."""
        check(lib.tgl_device_trim(self.handle))

    def array(self, source: Any) -> Any:
        """A row-major copy of a NumPy array in the device's memory: a DeviceArray on cuda, else an
        array. It begins at a multiple of 128 bytes."""
        if not self.name.startswith("cuda"):
            return _aligned_copy(np.asarray(source))
        result = DeviceArray(self, np.shape(source), np.asarray(source).dtype)
        host = np.ascontiguousarray(source)
        check(lib.tgl_upload(self.handle, result.pointer, host.ctypes.data, host.nbytes, None))
        return result


def _aligned_copy(x: np.ndarray) -> np.ndarray:
    """A copy that is aligned as GPU memory is, so that the simulator counts the sectors of a GPU."""
    memory = np.empty(x.nbytes + 128, np.uint8)
    begin = -memory.ctypes.data % 128
    copy: np.ndarray = memory[begin:begin + x.nbytes].view(x.dtype).reshape(x.shape)
    copy[...] = x
    return copy


class DeviceArray:
    """A row-major array in GPU memory, for programs that use neither CuPy nor PyTorch."""

    def __init__(self, owner: Device, shape: Tuple[int, ...], dtype: np.dtype) -> None:
        self.device = owner
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.pointer: Optional[int] = None
        self._process = process()
        pointer = c_void_p()
        check(lib.tgl_alloc(owner.handle, self.nbytes, byref(pointer)))
        self.pointer = pointer.value

    def __del__(self) -> None:
        if getattr(self, "pointer", None) is not None and self._process == process():
            lib.tgl_free(self.device.handle, self.pointer)

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        return {"shape": self.shape, "typestr": self.dtype.str, "strides": None, "version": 3,
                "data": (self.pointer or 0, False), "stream": 1}

    def __dlpack_device__(self) -> Tuple[int, int]:
        return 2, int(self.device.name.partition(":")[2])  # kDLCUDA

    def empty_like(self, shape: Tuple[int, ...], dtype: np.dtype) -> "DeviceArray":
        """A new array on the same device. Its contents are undefined."""
        return DeviceArray(self.device, shape, dtype)

    def numpy(self) -> np.ndarray:
        """A copy in host memory. Waits for the work in the default stream."""
        host = np.empty(self.shape, self.dtype)
        check(lib.tgl_download(self.device.handle, host.ctypes.data, self.pointer, self.nbytes,
                               None))
        return host


def _load_nvrtc() -> None:
    """Loads NVRTC from the packages of this Python (pip install nvidia-cuda-nvrtc) if there is a
    driver, so that the C library finds it by its name. By itself the C library searches such packages
    only in activated environments."""
    if "TEGULA_NVRTC" in os.environ:
        return
    nvidia = find_spec("nvidia")
    folders = nvidia.submodule_search_locations if nvidia else None
    files = [file for x in folders or () for file in Path(x).glob("c*/lib/libnvrtc.so.*")]
    try:
        if files:
            CDLL(os.environ.get("TEGULA_LIBCUDA", "libcuda.so.1"))
            CDLL(str(max(files)))
    except OSError:
        pass  # the C library says what is missing


def device(name: str = "auto", threads: int = 0) -> Device:
    """The device "cpu", "cuda", "cuda:1", "sim" or "auto" (a GPU if there is one, else the CPU).

    threads: the maximum number of threads of the CPU; 0: OMP_NUM_THREADS, or all processors.
    """
    if not isinstance(name, str):
        raise TypeError(f"name is {name!r}; it must be text such as 'cpu' or 'cuda:0'")
    threads = integer("threads", threads, 0)
    found = _open_devices.get((name, threads))
    if found is not None:
        return found
    if name.startswith(("auto", "cuda")):
        _load_nvrtc()
    handle = c_void_p()
    check(lib.tgl_device_open(name.encode(), byref(DeviceOptions(threads=threads)),
                              byref(handle)))
    opened = Device(handle, threads)
    # Another thread may have opened the device meanwhile; then all threads use the first handle. "cuda"
    # and "auto" are further names of the same device.
    kept = _open_devices.setdefault((opened.name, threads), opened)
    if kept is not opened:
        lib.tgl_device_close(handle)
    return _open_devices.setdefault((name, threads), kept)
