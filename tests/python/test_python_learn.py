# SPDX-License-Identifier: Apache-2.0
"""tegula.learn, its notebook, and the program through `python -m tegula`."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from python_support import has_device

from tegula import _program, learn

NOTEBOOK = Path(__file__).parents[2] / "python" / "learn.ipynb"


@unittest.skipUnless(has_device("sim"), "needs the device sim")
class Learn(unittest.TestCase):
    def test_exercises(self):
        exercises = learn.exercises()
        self.assertEqual(len(exercises), 24)
        self.assertEqual(exercises[0], ("coalesce", "adjacent lanes load adjacent elements"))

    def test_check(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            result = learn.check(learn.start("coalesce"))
        self.assertEqual(printed.getvalue(), result.text)
        self.assertIs(result.solved, False)
        gate, = result.gates
        self.assertEqual((gate.name, gate.limit, gate.at_least, gate.passed), ("sectors a global load", 4.0, False, False))
        self.assertGreater(gate.seen, 4)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
            path = Path(folder, "my.cu")
            path.write_text(learn.solution("coalesce"))
            printed.truncate(0)
            result = learn.check(path, quiet=True)
        self.assertIs(result.solved, True)
        self.assertIs(result.gates[0].passed, True)
        self.assertEqual(printed.getvalue().strip("\0"), "")

    def test_hints(self):
        self.assertTrue(learn.hint("coalesce").endswith("?"))
        self.assertNotEqual(learn.hint("coalesce"), learn.hint("coalesce", 2))
        with self.assertRaises(ValueError):
            learn.hint("coalesce", 9)

    def test_errors(self):
        with self.assertRaisesRegex(ValueError, "no exercise"):
            learn.start("nothing")
        with self.assertRaisesRegex(RuntimeError, "names no exercise"):
            learn.check("int x;\n")
        with mock.patch.dict(os.environ, TEGULA_LIBRARY="/nothing/libtegula.so"), \
                self.assertRaisesRegex(FileNotFoundError, "/nothing/tegula: install"):
            learn.exercises()
        with mock.patch.dict(os.environ):
            del os.environ["TEGULA_LIBRARY"]
            with self.assertRaisesRegex(FileNotFoundError, "tegula/program: install"):
                _program.program()

    def test_the_notebook_runs(self):
        names = {}
        cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            for cell in cells:
                self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None))
                exec("".join(cell["source"]), names) # pylint: disable=exec-used
        self.assertIn("\nsolved\n", printed.getvalue())
        self.assertIn("register_tile False", printed.getvalue())


class Program(unittest.TestCase):
    def test_module(self):
        ran = subprocess.run([sys.executable, "-m", "tegula", "--version"], capture_output=True, text=True, check=False)
        self.assertRegex(ran.stdout, r"^tegula \d+\.\d+\.\d+\n$")
        ran = subprocess.run([sys.executable, "-m", "tegula", "learn", "start"], capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("tegula learn: start takes one NAME", ran.stderr)


if __name__ == "__main__":
    unittest.main()
