# SPDX-License-Identifier: Apache-2.0
"""Tegula: matrix multiplication on CPUs and NVIDIA GPUs.

    import numpy, tegula
    c = tegula.matmul(a, b)                                     # as numpy.matmul(a, b)
    tegula.matmul(a, b, out=c, bias=bias, activation="gelu")    # in one kernel

docs/python.md describes the package.
"""

from typing import List

from ._devices import Device, DeviceArray, device
from ._grouped import grouped_matmul
from ._library import (ArgumentError, OutOfMemoryError, TegulaError, TypeCombinationError,
                       UnsupportedError, lib)
from ._matmul import Plan, explain, matmul, plan, prepare
from ._measure import Table, bench, ladder
from ._prepared import Prepared

__version__: str = lib.tgl_version().decode()

__all__ = ["ArgumentError", "Device", "DeviceArray", "OutOfMemoryError", "Plan", "Prepared",
           "Table", "TegulaError", "TypeCombinationError", "UnsupportedError", "bench", "chips",
           "device", "explain", "grouped_matmul", "ladder", "matmul", "plan", "prepare"]


def chips() -> List[str]:
    """The GPUs that explain(chip=...) knows."""
    names: List[str] = []
    while (name := lib.tgl_chip_name(len(names))) is not None:
        names.append(name.decode())
    return names
