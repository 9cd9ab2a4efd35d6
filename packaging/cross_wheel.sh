#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# cross_wheel.sh MACHINE FOLDER: writes a wheel for MACHINE (x86_64 or aarch64) and glibc 2.28 or later, on any machine.
# Zig's C compiler targets that glibc. Needs pip, and the package ziglang from PyPI. A wheel for another kind of machine
# than this one has no compiled path of calls (python/call.cmake): ctypes makes them.
set -eu
machine=$1 folder=$2
root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
zig=$("$python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))') || {
  echo "The package ziglang is missing: pip install ziglang" >&2
  exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

printf '#!/bin/sh\nexec "%s" cc -target %s-linux-gnu.2.28 "$@"\n' "$zig" "$machine" >"$work/cc"
chmod +x "$work/cc"
CC=$work/cc LDFLAGS=-s _PYTHON_HOST_PLATFORM=linux-$machine \
  SKBUILD_CMAKE_ARGS="-DCMAKE_SYSTEM_NAME=Linux;-DCMAKE_SYSTEM_PROCESSOR=$machine" \
  "$python" -m pip wheel --no-deps --wheel-dir "$work" "$root/python"
"$python" -m pip install -q --target "$work/tool" wheel
PYTHONPATH=$work/tool "$python" -m wheel tags --remove --platform-tag "manylinux_2_28_$machine" "$work"/tegula-*.whl
mkdir -p "$folder"
mv "$work"/tegula-*.whl "$folder"
ls "$folder"
