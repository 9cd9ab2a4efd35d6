# SPDX-License-Identifier: Apache-2.0
"""Compares whole sessions with tests/cli/golden/*.txt, where a line "$ tegula ..." is followed by what
it prints and by its exit code unless that is 0. `test_golden.py --update` writes them anew."""

import glob
import os
import shutil
import sys
import tempfile
import unittest

import npy_files
import session

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")


def make_inputs(folder):
    """Writes the files that the sessions name."""
    files = {
        "A.npy": npy_files.file(b"\0" * 4 * 6, shape="(2, 3)"),
        "B.npy": npy_files.file(b"\0" * 4 * 12, shape="(3, 4)"),
        "D.npy": npy_files.file(b"\0" * 8 * 12, shape="(3, 4)", descr="<f8"),
        "vector.npy": npy_files.file(b"\0" * 12, shape="(3,)"),
        "bad_suite.csv": b"# two good lines\nf32,8,8,8,NN,1\n\nf64,8,8,8,TT,2\nf32,8,8,8,NX,1\n",
        "short_suite.csv": b"f32,8,8\n",
        "zero_suite.csv": b"f32,8,0,8,NN,1\n",
        "empty_suite.csv": b"# nothing\n",
        "crlf_suite.csv": b"# Windows\r\nf32,8,8,8,NX,1\r\n",
        "cr_suite.csv": b"f32,8,8,8,NN,1\rf32,9,9,9,NN,1\r",
        "cr_comment_suite.csv": b"f32,8,8,8,NN,1\n# a comment\rf32,9,9,9,NN,1\n",
        "nul_suite.csv": b"f32,8,8,8,NN,1\nf32,8,8,8,NN,1\0,2\n",
        "utf16_suite.csv": "\ufefff32,8,8,8,NN,1\n".encode("utf-16-le"),
    }
    for name, contents in files.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(contents)


def commands_of(path):
    with open(path, encoding="utf-8") as file:
        return [line[2:].rstrip("\n") for line in file if line.startswith("$ ")]


def run(path):
    folder = tempfile.mkdtemp(prefix="tegula-golden-")
    try:
        make_inputs(folder)
        return session.transcript(commands_of(path), folder)
    finally:
        shutil.rmtree(folder)


class Golden(unittest.TestCase):
    maxDiff = None

    def test_sessions(self):
        paths = sorted(glob.glob(os.path.join(GOLDEN, "*.txt")))
        self.assertTrue(paths)
        for path in paths:
            with self.subTest(os.path.basename(path)), open(path, encoding="utf-8") as file:
                self.assertMultiLineEqual(run(path), file.read())


if __name__ == "__main__":
    if "--update" in sys.argv:
        for golden in glob.glob(os.path.join(GOLDEN, "*.txt")):
            text = run(golden)
            with open(golden, "w", encoding="utf-8") as out:
                out.write(text)
    else:
        unittest.main()
