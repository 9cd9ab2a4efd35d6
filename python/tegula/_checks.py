# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments that are not arrays. A message has the name, the given and the expected value."""

import operator
from typing import Any


def number(name: str, x: Any) -> float:
    try:
        if not isinstance(x, (str, bytes)):
            return float(x)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name} is {x!r}; it must be a number")


def factor(name: str, x: Any) -> complex:
    """As number(), but a complex number stays complex. float() of NumPy's would drop the imaginary part."""
    try:
        if not isinstance(x, (str, bytes)):
            value = complex(x)
            return value if value.imag != 0 else value.real
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name} is {x!r}; it must be a number")


def integer(name: str, x: Any, least: int) -> int:
    try:
        value = operator.index(x)
    except TypeError:
        raise TypeError(f"{name} is {x!r}; it must be an integer") from None
    if value < least:
        raise ValueError(f"{name} is {x}; it must be " +
                         {0: "0 or more", 1: "positive"}.get(least, f"{least} or more"))
    return value


def check_text(name: str, x: Any) -> None:
    """Raises TypeError unless x is text or None."""
    if x is not None and not isinstance(x, str):
        raise TypeError(f"{name} is {x!r}; it must be text")
