#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# clean_root_test.sh PACKAGES WHEELS TESTS: makes a Debian 12 in a temporary folder, with a C compiler and
# NumPy but nothing of this project, and runs in_clean_root.sh there. PACKAGES: the folder of the Debian
# packages. WHEELS: the folder of the wheel, if there is one. TESTS: the build folder of the tests, which
# has replacements of the CUDA driver, NVRTC and cuBLAS. Needs root, the network and mmdebstrap.
set -eu
packages=$1 wheels=$2 tests=$3
here=$(cd "$(dirname "$0")" && pwd)
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT

# mmdebstrap leaves no mounts behind.
if ! mmdebstrap --quiet --variant=apt --include=gcc,libc6-dev,libblas3,libopenblas0,python3-numpy,python3-venv bookworm "$root"; then
  echo "SKIPPED: this machine cannot make a Debian 12 (network, rights)"
  exit
fi
mkdir -p "$root/tegula/libraries"
find "$wheels" -name '*.whl' -exec cp {} "$root/tegula" ';'
cp "$packages"/*.deb "$here/in_clean_root.sh" "$here/installed_product.c" \
  "$here/../shims/numpy_preload_test.py" "$here/../shims/cublas/cublas_preload_test.py" "$root/tegula"
mkdir "$root/examples" # numpy_preload_test.py, in /tegula, looks for ../../examples
cp "$here/../../examples/quantum_circuit.py" "$root/examples"
cp "$tests/fake_cuda/fake_cuda/libfake_cuda.so" "$tests/fake_cuda/fake_nvrtc/libnvrtc.so" \
  "$tests/shims/cublas/librecorder_cublas.so" "$root/tegula/libraries"
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
  chroot "$root" sh /tegula/in_clean_root.sh
