#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# install_test.sh BUILD CC [CXX]: installs BUILD under a temporary prefix, moves it, and builds and runs
# installed_product.c against it: by CMake's find_package() and by pkg-config, shared and static, C and C++.
# Also installed_blas.c, by pkg-config with the shared drop-in, if that and a BLAS are there.
set -eu
build=$1 cc=$2 cxx=${3-}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/moved" # no installed file may depend on the prefix
prefix=$work/moved
libdir=$(dirname "$(find "$prefix" -name libtegula.a)")

echo "== the installed files"
for file in "$prefix/include/tegula/tegula.h" "$prefix/bin/tegula" "$libdir/libtegula.so" \
  "$libdir/libtegula.so.0" "$libdir/pkgconfig/tegula.pc" \
  "$libdir/cmake/tegula/tegulaConfig.cmake" "$libdir/cmake/tegula/tegulaConfigVersion.cmake" \
  "$prefix/share/doc/tegula/LICENSE" "$prefix/share/man/man1/tegula.1" \
  "$prefix/share/bash-completion/completions/tegula" "$prefix/share/zsh/site-functions/_tegula"; do
  test -e "$file" || { echo "not installed: $file"; exit 1; }
done
# The public headers, and no other. mpi.h comes with MPI, tegula_blas.h with the drop-ins.
headers=$(find "$prefix/include" -type f -printf '%P\n' | sort | tr '\n' ' ')
case $headers in
  "tegula/dist.h tegula/nccl.h tegula/tegula.h " | "tegula/dist.h tegula/mpi.h tegula/nccl.h tegula/tegula.h ") ;;
  "tegula/dist.h tegula/nccl.h tegula/tegula.h tegula/tegula_blas.h ") ;;
  "tegula/dist.h tegula/mpi.h tegula/nccl.h tegula/tegula.h tegula/tegula_blas.h ") ;;
  *) echo "these headers are installed: $headers"; exit 1 ;;
esac
ldd "$libdir/libtegula_dist.so" | grep -F "$libdir/libtegula.so.0"
"$prefix/bin/tegula" --version
if [ -e "$build/libtegula_blas.so" ]; then # it must find libtegula.so in its own folder
  ldd "$libdir/libtegula_blas.so" | grep -F "$libdir/libtegula.so.0"
  for name in blas cublas; do readelf -d "$libdir/libtegula_$name.so" | grep -F "[libtegula_$name.so.0]"; done
fi

echo "== find_package"
cmake -S "$here/outside" -B "$work/outside" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
  ${cxx:+-DCMAKE_CXX_COMPILER="$cxx"} >/dev/null
cmake --build "$work/outside"
for program in shared_c static_c ${cxx:+shared_cpp static_cpp}; do
  echo "$program: $("$work/outside/$program")"
done

echo "== pkg-config"
command -v pkg-config >/dev/null || { echo "no pkg-config here"; exit 0; }
export PKG_CONFIG_PATH="$libdir/pkgconfig"
test "$(pkg-config --modversion tegula)" = "$("$prefix/bin/tegula" --version | sed 's/.* //')"
build_with() { # COMPILER SOURCE
  # shellcheck disable=SC2046 # flags
  "$1" "$2" -o "$work/shared" $(pkg-config --cflags --libs tegula) -Wl,-rpath,"$libdir"
  # shellcheck disable=SC2046
  "$1" "$2" -o "$work/static" $(pkg-config --cflags tegula) "$libdir/libtegula.a" \
    $(pkg-config --static --libs tegula | sed 's/-ltegula//')
  readelf -d "$work/shared" | grep -q 'NEEDED.*libtegula\.so\.0'
  if readelf -d "$work/static" | grep -q 'NEEDED.*libtegula'; then return 1; fi
  echo "$1: $("$work/shared"), $("$work/static")"
}
build_with "$cc" "$here/installed_product.c"
if [ -n "$cxx" ]; then
  cp "$here/installed_product.c" "$work/installed_product.cpp"
  build_with "$cxx" "$work/installed_product.cpp"
fi

# Links a program with the drop-in before a whole BLAS: Debian's reference BLAS, which has the function that the
# drop-in lacks.
blas=$(find /usr/lib/*/blas -name 'libblas.so.3*' -type f 2>/dev/null | head -n 1)
if [ -e "$build/libtegula_blas.so" ] && [ -n "$blas" ]; then
  echo "== linked with libtegula_blas.so"
  cp "$here/installed_blas.c" "$work/installed_blas.c"
  cp "$here/installed_blas.c" "$work/installed_blas.cpp"
  link_blas() { # COMPILER SOURCE
    # shellcheck disable=SC2046 # flags
    "$1" "$2" -o "$work/linked" $(pkg-config --cflags --libs tegula_blas) "$blas" \
      -Wl,-rpath,"$libdir" -Wl,-rpath,"$(dirname "$blas")" -Wl,--as-needed
    readelf -d "$work/linked" | grep -q 'NEEDED.*libtegula_blas\.so\.0'
    # The drop-in must serve the calls, not the BLAS after it.
    TEGULA_BLAS_TRACE=1 "$work/linked" 2>"$work/trace"
    test "$(grep -c gem "$work/trace")" -ge 24 || { cat "$work/trace"; exit 1; }
  }
  link_blas "$cc" "$work/installed_blas.c"
  if [ -n "$cxx" ]; then link_blas "$cxx" "$work/installed_blas.cpp"; fi
fi
