# SPDX-License-Identifier: Apache-2.0
"""The compiled path (python/call.c), which computes products like those that were computed before."""

import ctypes
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from importlib.util import module_from_spec
from typing import Any

import numpy as np

from ._arrays import is_jax, is_torch
from ._held import hold
from ._library import check, lib


def _load(library: str) -> Any:
    """The compiled module, from the folder of the library's file. None: there is none for this version of
    Python, so all calls of the library are made by ctypes."""
    folder = os.path.dirname(library)
    if not folder:  # the library was found by the system's loader
        return None
    finder = FileFinder(folder, (ExtensionFileLoader, EXTENSION_SUFFIXES))
    spec = finder.find_spec("tegula._call")
    if spec is None or spec.loader is None:
        return None
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:  # the module was built for another system
        return None
    return module


_module: Any = _load(lib._name)
# The object that computes products without Python. None: there is no compiled module.
calls: Any = None

if _module is not None:
    calls = _module.Calls(ctypes.cast(lib.tgl_plan_run_operands, ctypes.c_void_p).value, check, hold)
    calls.know(np.ndarray, _module.BUFFER, False, None, None, None, None)  # first, so that it is found first
    os.register_at_fork(after_in_child=calls.clear)  # plans belong to a process


def know_type_of(x: Any) -> None:
    """Tells the compiled path how to read arrays like x, as describe() does. Arrays that only
    __array_interface__ describes, and subclasses of numpy.ndarray and torch.Tensor other than Parameter, are
    left to Python."""
    kind = type(x)
    if is_torch(x):
        torch = sys.modules["torch"]
        functions = getattr(kind, "__dlpack_c_exchange_api__", None)  # PyTorch 2.10 or later
        if functions is not None and kind in (torch.Tensor, torch.nn.Parameter):
            calls.know(kind, _module.TENSOR, False, functions, torch.Tensor.is_neg,
                       torch.Tensor.is_conj, torch.is_grad_enabled)
    elif hasattr(x, "__cuda_array_interface__") and not is_jax(x):
        calls.know(kind, _module.INTERFACE, False, None, None, None, None)
    elif hasattr(x, "__dlpack__") and not isinstance(x, np.ndarray):
        calls.know(kind, _module.CAPSULE, is_jax(x), None, None, None, None)
