#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# fast_math_test.sh SOURCE COMPILER: checks that CMake and the compiler refuse flags such as -ffast-math with a
# message.
set -eu
source=$1 compiler=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# refused CMAKE_ARGUMENT: checks that CMake refuses the argument.
refused() {
  if cmake -S "$source" -B "$work/build" -DCMAKE_C_COMPILER="$compiler" -DTEGULA_SIM=OFF -DTEGULA_SHIMS=OFF \
    "$1" >"$work/log" 2>&1; then
    echo "CMake takes $1"
    exit 1
  fi
  tr '\n' ' ' <"$work/log" | grep -q 'flush-to-zero' || {
    echo "CMake does not say why it refuses $1:"
    cat "$work/log"
    exit 1
  }
  rm -rf "$work/build"
}
refused -DCMAKE_C_FLAGS=-ffast-math
refused '-DCMAKE_C_FLAGS=-Ofast -fno-fast-math'
refused -DCMAKE_C_FLAGS_RELEASE=-Ofast
refused -DCMAKE_SHARED_LINKER_FLAGS=-ffast-math

for flag in -ffast-math -ffinite-math-only; do
  if echo 'int x;' | "$compiler" $flag -fsyntax-only -include "$source/src/base/strict_math.h" -x c - \
    2>"$work/log" || ! grep -q 'cannot be compiled with -ffast-math' "$work/log"; then
    echo "the compiler takes $flag"
    exit 1
  fi
done
grep -q 'strict_math.h' "$source/src/CMakeLists.txt"
