#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_dsc.py FOLDER: writes the Debian source package, tegula_VERSION-1.dsc and the archives that it names, of the
commit that is checked out. `dpkg-buildpackage` and sbuild build the packages of `make deb` from it. Needs dpkg-dev.

cmake/debian.cmake describes the packages; debian/control gets their names, sections and summaries from there."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as file:
        return file.read()


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True).stdout


def write(text, *parts):
    with open(os.path.join(*parts), "w", encoding="utf-8") as file:
        file.write(text)


def stanzas(text):
    """The binary packages of debian/control, from the lines describe(NAME SECTION DEPENDS SUMMARY ...)."""
    found = re.findall(r'^describe\(([\w-]+) (\w+) "[^"]*"\s+"([^"]*)"', text, re.M)
    return "".join(f"\nPackage: {name}\nArchitecture: any\nSection: {section}\nDescription: {summary}\n"
                   for name, section, summary in found)


def main():
    version = re.search(r"project\(tegula VERSION ([0-9.]+)", read("CMakeLists.txt"))[1]
    described = read("cmake", "debian.cmake")
    maintainer = re.search(r'TEGULA_MAINTAINER "(.*?)"', described)[1]
    folder = os.path.abspath(sys.argv[1])
    os.makedirs(folder, exist_ok=True)
    archive = os.path.join(folder, f"tegula_{version}.orig.tar.gz")
    with open(archive, "wb") as file:
        file.write(git("archive", "--format=tar.gz", f"--prefix=tegula-{version}/", "HEAD"))
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(["tar", "-xzf", archive, "-C", work], check=True)
        tree = os.path.join(work, f"tegula-{version}")
        debian = os.path.join(tree, "debian")
        shutil.copytree(os.path.join(ROOT, "packaging", "debian"), debian)
        shutil.copy(os.path.join(ROOT, "packaging", "debian_copyright"), os.path.join(debian, "copyright"))
        write(read("packaging", "debian", "control").replace("@TEGULA_MAINTAINER@", maintainer) + stanzas(described), debian, "control")
        date = git("log", "-1", "--format=%aD").decode().strip()
        facts = {"PROJECT_VERSION": version, "TEGULA_MAINTAINER": maintainer, "TEGULA_DATE": date}
        write(re.sub(r"@(\w+)@", lambda match: facts[match[1]], read("packaging", "debian_changelog.in")), debian, "changelog")
        subprocess.run(["dpkg-source", "--build", tree], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    print(os.path.join(folder, f"tegula_{version}-1.dsc"))


if __name__ == "__main__":
    main()
