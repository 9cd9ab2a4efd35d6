# SPDX-License-Identifier: Apache-2.0
"""The blocks of Python in the documents run as they are, one after the other, from an empty namespace."""

import importlib.util
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

from python_support import has_device

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README.md", "python/README.md", "docs/python.md")


def is_missing(code):
    """The module or compiler that `code` needs and this machine does not have, or None."""
    for module, sign in ("torch", "tegula.torch"), ("matplotlib", "plot("):
        if sign in code and importlib.util.find_spec(module) is None:
            return module
    return None if has_device("sim") or "ladder(" not in code else "a C compiler"


class Documents(unittest.TestCase):
    def test_blocks(self):
        folder = tempfile.TemporaryDirectory()  # of matplotlib, which writes to the user's folders otherwise
        self.addCleanup(folder.cleanup)
        os.environ.update(MPLCONFIGDIR=folder.name, MPLBACKEND="Agg")
        for name in DOCUMENTS:
            blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / name).read_text(), re.M | re.S)
            self.assertTrue(blocks, name)
            names = {}
            for number, code in enumerate(blocks):
                if is_missing(code):
                    print(f"{name}, block {number}: needs {is_missing(code)}", file=sys.stderr)
                    continue
                with self.subTest(document=name, block=number):
                    exec(compile(code, f"{name}, block {number}", "exec"), names)


if __name__ == "__main__":
    unittest.main()
