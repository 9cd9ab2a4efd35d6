# SPDX-License-Identifier: Apache-2.0
"""python/ladder.ipynb runs without an exception, and is kept without outputs."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from python_support import has_device

try:
    import ipykernel  # noqa: F401
    import matplotlib  # noqa: F401
    import nbclient  # noqa: F401
    CAN_RUN = has_device("sim")
except ImportError:
    CAN_RUN = False

FOLDER = Path(__file__).parents[2] / "python"
NOTEBOOK = FOLDER / "ladder.ipynb"


@unittest.skipUnless(CAN_RUN, "needs nbclient, ipykernel, matplotlib and the device sim")
class Notebook(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.notebook = json.loads(NOTEBOOK.read_text())
        self.code = [cell for cell in self.notebook["cells"] if cell["cell_type"] == "code"]

    def run_notebook(self, source):
        """Runs the cells. Returns the finished process, and the cells with outputs or None."""
        output = self.folder / "output.ipynb"
        private = dict.fromkeys(("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR"), str(self.folder))
        ran = subprocess.run([sys.executable, FOLDER / "run_notebook.py", source, output], text=True,
                             capture_output=True, env={**os.environ, **private})
        return ran, json.loads(output.read_text())["cells"] if output.exists() else None

    def test_has_no_outputs(self):
        for cell in self.code:
            self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None), cell["id"])

    def test_runs(self):
        ran, cells = self.run_notebook(NOTEBOOK)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        plots = {cell["id"] for cell in cells for output in cell.get("outputs", [])
                 if "image/png" in output.get("data", {})}
        self.assertEqual(plots, {cell["id"] for cell in self.code if cell["id"].startswith("plot-")})
        self.assertGreaterEqual(len(plots), 6)

    def test_fails_if_a_cell_raises(self):
        failing = {**self.code[0], "source": ["assert 1 == 2, 'not equal'"]}
        source = self.folder / "source.ipynb"
        source.write_text(json.dumps({**self.notebook, "cells": [failing]}))
        ran, cells = self.run_notebook(source)
        self.assertEqual((ran.returncode, cells), (1, None))
        self.assertIn("not equal", ran.stderr)


if __name__ == "__main__":
    unittest.main()
