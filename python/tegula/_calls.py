# SPDX-License-Identifier: Apache-2.0
"""The compiled path of a call (python/call.c), which computes products that were computed before."""

import ctypes
import os
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from importlib.util import module_from_spec
from typing import Any

import numpy as np

from ._library import lib


def _load(library: str) -> Any:
    """The object that calls the library, from the folder of its file. None: there is no compiled path
    for this Python, and ctypes makes all calls."""
    folder = os.path.dirname(library)
    if not folder:  # the loader of the system has found the library
        return None
    finder = FileFinder(folder, (ExtensionFileLoader, EXTENSION_SUFFIXES))
    spec = finder.find_spec("tegula._call")
    if spec is None or spec.loader is None:
        return None
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:  # it was built for another system
        return None
    run = ctypes.cast(lib.tgl_plan_run_operands, ctypes.c_void_p).value
    return module.Calls(np.ndarray, np.empty, run)


calls: Any = _load(lib._name)

if calls is not None:
    os.register_at_fork(after_in_child=calls.clear)  # plans belong to a process
