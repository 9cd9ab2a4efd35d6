#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_sdist.py FOLDER: writes tegula-VERSION.tar.gz, from which pip builds the wheel.

The Python package needs the C sources beside it, and pip wants pyproject.toml at the root of an archive. So the
archive has the files of the repository that the build needs, and the package's pyproject.toml at its root, with its
paths from there.
Its content depends on the files alone."""

import gzip
import io
import os
import re
import subprocess
import sys
import tarfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))

# What building the wheel needs; the rest of the repository is left out.
PARTS = ("CMakeLists.txt", "LICENSE", "README.md", "CHANGELOG.md", "cmake", "include", "src", "kernels", "cli", "exercises",
         "python", "bench/results/h200")

# Paths in pyproject.toml, and what they are from the root.
PATHS = [('readme = "README.md"', 'readme = "python/README.md"'),
         ('wheel.packages = ["tegula"]', 'wheel.packages = ["python/tegula"]\ncmake.source-dir = "python"'),
         ('input = "../CMakeLists.txt"', 'input = "CMakeLists.txt"')]


def read(path):
    with open(os.path.join(ROOT, path), "rb") as file:
        return file.read()


def project():
    """The text of pyproject.toml for the root."""
    text = read("python/pyproject.toml").decode()
    for old, new in PATHS:
        if text.count(old) != 1:
            sys.exit(f"python/pyproject.toml has not one line {old}")
        text = text.replace(old, new)
    return text.encode()


def metadata(version):
    """PKG-INFO, which an index reads."""
    text = read("python/pyproject.toml").decode()
    summary = re.search(r'^description = "(.*)"$', text, re.M)[1]
    requires = re.search(r'^requires-python = "(.*)"$', text, re.M)[1]
    return (f"Metadata-Version: 2.1\nName: tegula\nVersion: {version}\nSummary: {summary}\nLicense: Apache-2.0\n"
            f"Requires-Python: {requires}\nDescription-Content-Type: text/markdown\n\n").encode() + read("python/README.md")


def main():
    version = re.search(r"project\(tegula VERSION ([0-9.]+)", read("CMakeLists.txt").decode())[1]
    listed = subprocess.run(["git", "ls-files", "-z", "--", *PARTS], cwd=ROOT, capture_output=True, check=True).stdout
    names = sorted(name for name in listed.decode().split("\0") if name and name != "python/pyproject.toml")
    files = {name: read(name) for name in names if os.path.isfile(os.path.join(ROOT, name))}
    files["pyproject.toml"] = project()
    files["PKG-INFO"] = metadata(version)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"tegula-{version}/{name}")
            entry.size = len(content)
            entry.mode = 0o755 if os.access(os.path.join(ROOT, name), os.X_OK) else 0o644
            tar.addfile(entry, io.BytesIO(content))
    os.makedirs(sys.argv[1], exist_ok=True)
    path = os.path.join(sys.argv[1], f"tegula-{version}.tar.gz")
    with open(path, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
        packed.write(archive.getvalue())
    print(path)


if __name__ == "__main__":
    main()
