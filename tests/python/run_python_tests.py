# SPDX-License-Identifier: Apache-2.0
"""run_python_tests.py MODULE...: runs the tests in these modules.

The exit code is 77 if NumPy is missing or all tests are skipped.
"""

import sys
import unittest


def main(names):
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("NumPy is missing")
        return 77
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = unittest.TextTestRunner().run(suite)
    if not result.wasSuccessful() or result.testsRun == 0:
        return 1
    return 77 if len(result.skipped) == result.testsRun else 0


if __name__ == "__main__":  # child processes of the tests import this file
    sys.exit(main(sys.argv[1:]))
