# SPDX-License-Identifier: Apache-2.0
"""Checks that the wheel with the archive of compiled kernels has it where the library searches it,
that it is made the same twice, and that other files than archives are refused."""

import os
import subprocess
import sys
import tempfile
import zipfile

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "packaging", "make_kernels_wheel.py")


def make(folder, data):
    path = os.path.join(folder, "made.kernels")
    with open(path, "wb") as file:
        file.write(data)
    return subprocess.run([sys.executable, SCRIPT, path, folder], capture_output=True, text=True, check=False)


with tempfile.TemporaryDirectory() as scratch:
    archive = b"TEGULA KERNELS1\0" + b"1.2.3".ljust(16, b"\0") + b"sm_90a".ljust(16, b"\0") + b"code"
    made = make(scratch, archive)
    assert made.returncode == 0, made.stderr
    wheel = os.path.join(scratch, "tegula_kernels_sm90a-1.2.3-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as opened:
        assert opened.testzip() is None
        assert opened.read("tegula/tegula/sm_90a.kernels") == archive
        info = "tegula_kernels_sm90a-1.2.3.dist-info/"
        assert "Requires-Dist: tegula==1.2.3\n" in opened.read(info + "METADATA").decode()
        assert len(opened.read(info + "RECORD").splitlines()) == len(opened.namelist())
    with open(wheel, "rb") as first:
        before = first.read()
    make(scratch, archive)
    with open(wheel, "rb") as second:
        assert second.read() == before
    assert make(scratch, b"something else").returncode != 0
    assert make(scratch, archive.replace(b"sm_90a", b"../../")).returncode != 0
