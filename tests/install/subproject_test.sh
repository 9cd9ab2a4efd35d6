#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# subproject_test.sh SOURCE CC: builds and runs the project in parent/, which includes SOURCE by
# add_subdirectory(), and checks the files that it installs. With FetchContent, only configures it.
set -eu
source=$1 cc=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

configure() { # BUILD OPTION...
  build=$1
  shift
  cmake -S "$here/parent" -B "$build" -DTEGULA_SOURCE="$source" -DCMAKE_C_COMPILER="$cc" "$@" \
    >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}

installed() { # BUILD
  rm -rf "$work/prefix"
  cmake --install "$1" --prefix "$work/prefix" >/dev/null
  (cd "$work/prefix" && find . -type f | sort)
}

fail() { echo "$*"; exit 1; }

echo "== add_subdirectory"
configure "$work/sub" -DCMAKE_C_FLAGS=-Werror
grep -q '^CMAKE_BUILD_TYPE:STRING=$' "$work/sub/CMakeCache.txt" || fail "the build type is set"
cmake --build "$work/sub" -j"$(nproc)" >"$work/log" 2>&1 || { tail -30 "$work/log"; exit 1; }
for program in shared static; do
  echo "$program: $("$work/sub/$program")"
done
test -e "$work/sub/libraries/libtegula.so" || fail "the parent's output folder is not used"
test "$(ctest --test-dir "$work/sub" -N | sed -n 's/Total Tests: //p')" -eq 0 || fail "there are tests"
test "$(installed "$work/sub")" = ./bin/static || fail "more is installed: $(installed "$work/sub")"

echo "== with install rules"
configure "$work/sub" -DTEGULA_INSTALL=ON
installed "$work/sub" >"$work/files"
for file in include/tegula/tegula.h lib.*/libtegula.a lib.*/pkgconfig/tegula.pc \
  lib.*/cmake/tegula/tegulaConfig.cmake share/doc/tegula/LICENSE; do
  grep -qx "\./$file" "$work/files" || fail "not installed: $file"
done
if grep -q 'bin/tegula$\|man1' "$work/files"; then fail "the program is installed"; fi

echo "== FetchContent"
configure "$work/fetch" -DFETCH=ON
cmake --build "$work/fetch" --target help | grep -q tegula_shared || fail "there is no library"
