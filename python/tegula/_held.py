# SPDX-License-Identifier: Apache-2.0
"""Keeps arrays in GPU memory until the queued products that use them have run.

As soon as nothing refers to an array, its library may use the memory for another array. JAX does so even
if other libraries have queued work with it. Memory of PyTorch need not be kept: PyTorch reuses it in the
order of its current stream, in which products of tensors run.
"""

import atexit
import os
from collections import deque
from ctypes import byref, c_int, c_void_p
from typing import Any, Deque, List, NamedTuple, Optional, Sequence

from ._devices import Device
from ._library import check, lib

_QUEUED_MAX = 256  # maximum number of queued products whose arrays are kept; then a call waits for the device


class _Queued(NamedTuple):
    device: Device
    timer: c_void_p  # started in the stream after the product
    owners: Sequence[Any]

    def has_passed(self) -> bool:
        """Whether the product has run. Also true after a failure, and if a CUDA graph captures the
        product, because the caller must then keep the arrays. If true, the timer is destroyed."""
        passed = c_int()
        if lib.tgl_timer_passed(self.timer, byref(passed)) == 0 and not passed.value:
            return False
        lib.tgl_timer_destroy(self.timer)
        return True


# Threads take entries out and put them back without a lock, because releasing an array may run any
# Python code, even a function of this module.
_queued: Deque[_Queued] = deque()
_of_parents: List[_Queued] = []


def release_passed() -> None:
    """Releases the arrays whose products have run."""
    for _ in range(len(_queued)):
        try:
            entry = _queued.popleft()
        except IndexError:  # another thread was faster
            return
        if not entry.has_passed():
            _queued.append(entry)


def hold(device: Device, stream: Optional[int], owners: Sequence[Any]) -> None:
    """Keeps the owners at least until the work that is now in the stream is complete. A later call of this
    function or of release_passed() releases them."""
    release_passed()
    if len(_queued) >= _QUEUED_MAX:
        device.sync()
        release_passed()
    timer = c_void_p()
    check(lib.tgl_timer_create(device.handle, byref(timer)))
    try:
        check(lib.tgl_timer_start(timer, stream))
    except Exception:
        lib.tgl_timer_destroy(timer)
        device.sync()
        raise
    _queued.append(_Queued(device, timer, owners))


def _wait_for_all() -> None:
    for entry in list(_queued):
        lib.tgl_device_sync(entry.device.handle)
    release_passed()


def _after_fork() -> None:
    """Keeps the arrays of the parent, because the child must not free memory of the parent's GPU."""
    _of_parents.extend(_queued)
    _queued.clear()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_wait_for_all)
