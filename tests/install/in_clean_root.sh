#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs as root in the Debian that clean_root_test.sh makes: installs the wheel and the packages that are in
# /tegula, tests the installed library and program, and removes the packages.
set -eu
cd /tegula

fail() { echo "$*"; exit 1; }

if ls ./*.whl; then
  echo "== the wheel in a new environment"
  python3 -m venv --system-site-packages environment # NumPy is Debian's
  environment/bin/pip install --quiet --no-index ./*.whl
  environment/bin/python - <<'EOF'
import numpy as np
import tegula

assert tegula.__file__.startswith("/tegula/environment/"), tegula.__file__
rng = np.random.default_rng(1)
for dtype in np.float32, np.float64:
    a, b = rng.uniform(-1, 1, (70, 90)).astype(dtype), rng.uniform(-1, 1, (90, 50)).astype(dtype)
    d = tegula.matmul(a, b, activation="relu")
    expected = np.maximum(a.astype(np.longdouble) @ b.astype(np.longdouble), 0)
    assert np.abs(d - expected).max() < 200 * np.finfo(dtype).eps
print("tegula", tegula.__version__, "with NumPy", np.__version__)
EOF
  environment/bin/tegula check --device cpu --cases 20 >log || { cat log; fail "the program of the wheel"; }
  test "$(environment/bin/python -m tegula --version)" = "$(environment/bin/tegula --version)" || fail "python -m tegula"
fi

echo "== the packages"
mkdir later && mv ./libtegula-blas3*.deb later
apt-get install -y -q --no-install-recommends ./*.deb >log 2>&1 || { cat log; exit 1; }
version=$(dpkg-query -W -f '${Version}' tegula)
packages="libtegula0 libtegula-dev tegula libtegula-dist libtegula-blas libtegula-cublas"
for package in $packages; do
  test "$(dpkg-query -W -f '${Version}' "$package")" = "$version" || fail "$package is not installed"
  test -s "/usr/share/doc/$package/copyright" || fail "$package has no licence"
done
for package in libtegula-dev libtegula-dist libtegula-blas libtegula-cublas; do # the dependency on the library
  apt-get -s -q remove libtegula0 | grep "^Remv $package " || fail "$package does not need libtegula0"
done
test -z "$(dpkg-query -W -f '${Provides}' libtegula-blas)" || fail "libtegula-blas offers a whole BLAS"
if readelf -d /usr/lib/*/libtegula*.so* /usr/bin/tegula | grep -E 'RPATH|RUNPATH'; then fail "an rpath"; fi

echo "== the program"
test "$(tegula --version)" = "tegula ${version%-*}" || fail "the program has another version"
tegula check --device cpu --cases 10
zcat /usr/share/man/man1/tegula.1.gz | grep -q '^\.SH TEGULA BENCH' || fail "no manual page"
for file in bash-completion/completions/tegula zsh/site-functions/_tegula; do
  test -s /usr/share/$file || fail "no $file"
done

echo "== a C program, with the shared and with the static library"
gcc installed_product.c -ltegula -o shared
gcc installed_product.c -l:libtegula.a -ldl -lm -pthread -o static
test "$(./shared)" = "$(./static)" || fail "the programs print different results"
readelf -d shared | grep 'NEEDED.*libtegula\.so\.0' || fail "the program does not use libtegula0"

echo "== NumPy with libtegula_blas.so preloaded"
TEGULA_BLAS=libtegula_blas.so python3 numpy_preload_test.py

echo "== a Python process with libtegula_cublas.so preloaded"
TEGULA_CUBLAS=libtegula_cublas.so TEST_LIBRARIES=libraries python3 cublas_preload_test.py

echo "== NumPy with libtegula-blas3 as the system's BLAS"
blas=$(echo /usr/lib/*/libblas.so.3) others=$(readlink -f /usr/lib/*/libblas.so.3)
apt-get install -y -q --no-install-recommends ./later/*.deb >log 2>&1 || { cat log; exit 1; }
readlink -f "$blas" | grep /tegula-blas/ || fail "libtegula-blas3 is not the alternative of $blas"
TEGULA_BLAS='' python3 numpy_preload_test.py
python3 -c 'import numpy as np; assert np.allclose(np.linalg.inv(2 * np.eye(99)), np.eye(99) / 2)'
apt-get purge -y -q libtegula-blas3 >log 2>&1 || { cat log; exit 1; }
test "$(readlink -f "$blas")" = "$others" || fail "$blas is not the alternative of before"

echo "== removal"
# shellcheck disable=SC2086 # a list
apt-get purge -y -q $packages >log 2>&1 || { cat log; exit 1; }
left=$(find /usr /etc -name '*tegula*')
test -z "$left" || fail "left: $left"
echo "the packages and the wheel work"
