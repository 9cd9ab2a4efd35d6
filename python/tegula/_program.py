# SPDX-License-Identifier: Apache-2.0
"""Runs the program `tegula`, which the wheel contains: `tegula ARGS`, `python -m tegula ARGS`."""

import os
import sys
from pathlib import Path
from typing import NoReturn


def program() -> str:
    """The path of the program: that of the package, or the one beside TEGULA_LIBRARY."""
    library = os.environ.get("TEGULA_LIBRARY")
    path = Path(library).with_name("tegula") if library else Path(__file__).with_name("program")
    if not os.access(path, os.X_OK) or path.is_dir():
        raise FileNotFoundError(f"the program tegula is not at {path}: install the package with pip, or "
                                "build it beside the library that TEGULA_LIBRARY names")
    return str(path)


def main() -> NoReturn:
    """Replaces this process by the program, with the same arguments."""
    try:
        path = program()
    except FileNotFoundError as error:
        sys.exit(f"tegula: {error}")
    os.execv(path, ["tegula", *sys.argv[1:]])
