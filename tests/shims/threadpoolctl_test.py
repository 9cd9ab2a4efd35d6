#!/usr/bin/env python3
"""Tests that threadpoolctl limits the threads of NumPy's products by libtegula_blas.so.

TEGULA_BLAS names the library. Skips without NumPy or threadpoolctl."""

import ctypes
import os
import subprocess
import sys

SKIP = 77


def main() -> int:
    """Starts itself with the library preloaded. There it limits the threads and reads their number."""
    try:
        import numpy  # pylint: disable=import-outside-toplevel
        import threadpoolctl  # type: ignore[import-not-found]  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        print(error)
        return SKIP
    library = os.environ["TEGULA_BLAS"]
    if os.environ.get("LD_PRELOAD") != library:
        environment = dict(os.environ, LD_PRELOAD=library)
        return subprocess.run([sys.executable, __file__], env=environment, check=False).returncode
    count = ctypes.CDLL(library).tegula_blas_get_num_threads
    numpy.ones((9, 9)) @ numpy.ones((9, 9))
    before = count()
    with threadpoolctl.threadpool_limits(1):
        if count() != 1:
            print("threadpoolctl has no effect:", threadpoolctl.threadpool_info())
            return 1
    return 0 if count() == before else 1


sys.exit(main())
