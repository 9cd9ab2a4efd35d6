#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_kernels_wheel.py ARCHIVE FOLDER: writes the wheel tegula-kernels-ARCH with an archive that `tegula warm --archive`
made. pip puts it beside the library of the package tegula, which finds it there. Its content depends on the archive alone."""

import base64
import hashlib
import os
import re
import sys
import zipfile

DATE = (1980, 1, 1, 0, 0, 0)


def header(data):
    """The version of Tegula and the architecture in the archive: kernel_archive.c."""
    if data[:15] != b"TEGULA KERNELS1":
        sys.exit("this is no archive of kernels")
    version, arch = (data[at:at + 16].split(b"\0")[0].decode() for at in (16, 32))
    if not re.fullmatch(r"[0-9.]+", version) or not re.fullmatch(r"sm_[0-9]+[a-z]?", arch):
        sys.exit("the header of the archive is damaged")
    return version, arch


def main(path, folder):
    with open(path, "rb") as file:
        data = file.read()
    version, arch = header(data)
    name = "tegula_kernels_" + arch.replace("_", "")
    info = f"{name}-{version}.dist-info"
    files = {
        f"tegula/tegula/{arch}.kernels": data,
        f"{info}/METADATA": (f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
                             f"Summary: Compiled CUDA kernels of Tegula for {arch}\nLicense: Apache-2.0\n"
                             f"Requires-Dist: tegula=={version}\n").encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tegula\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
    }
    record = ""
    for file, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{file},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    os.makedirs(folder, exist_ok=True)
    wheel = os.path.join(folder, f"{name}-{version}-py3-none-any.whl")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for file, content in files.items():
            entry = zipfile.ZipInfo(file, DATE)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, content)
    print(wheel)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
