#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# aarch64.sh [BUILD]: builds for aarch64 with Debian's cross compiler and checks the tiers "neon" and
# "portable" of the cpu device under qemu, f32, f64 and the 16-bit types. Ends with 77 where the
# packages are missing: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user. The unit tests of the
# tiers run too if TEGULA_ARM64_CMOCKA names a folder with the arm64 files of libcmocka-dev.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build-aarch64}
for program in aarch64-linux-gnu-gcc qemu-aarch64; do
  command -v "$program" >/dev/null || {
    echo "SKIPPED: there is no $program"
    exit 77
  }
done
mkdir -p "$build"
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu

cmocka=${TEGULA_ARM64_CMOCKA:-}
tests=OFF
if [ -n "$cmocka" ]; then tests=ON; fi
# The simulator is left out: its kernels are compiled at run time, by the machine's own compiler.
# shellcheck disable=SC2086 # CMAKE_FLAGS is a list
cmake -S . -B "$build" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_BUILD_TYPE=Release -DTEGULA_SIM=OFF \
  -DTEGULA_WERROR=ON -DTEGULA_TESTS=$tests -DCMOCKA_INCLUDE_DIR="$cmocka/usr/include" \
  -DCMOCKA_LIBRARY="$cmocka/usr/lib/aarch64-linux-gnu/libcmocka.so" \
  -DCMAKE_EXE_LINKER_FLAGS="${cmocka:+-Wl,-rpath,$cmocka/usr/lib/aarch64-linux-gnu}" \
  ${CMAKE_FLAGS:-} >"$build/configure.log"
targets="tegula_program"
if [ "$tests" = ON ]; then targets="$targets test_cpu_tiers test_cpu_small"; fi
# shellcheck disable=SC2086 # a list
cmake --build "$build" -j"${JOBS:-$(nproc)}" --target $targets >"$build/build.log" 2>&1 || {
  tail -30 "$build/build.log"
  exit 1
}

qemu-aarch64 "$build/tegula" info --device cpu | grep 'kernels *cpu/neon cpu/portable'
for tier in neon portable; do
  for type in f32 f64 f16 bf16; do
    echo "$tier, $type:"
    TEGULA_CPU=$tier qemu-aarch64 "$build/tegula" check --device cpu --type $type --cases 60 \
      >"$build/check.log" || {
      cat "$build/check.log"
      exit 1
    }
    tail -1 "$build/check.log"
  done
done
if [ "$tests" = ON ]; then
  for test in test_cpu_tiers test_cpu_small; do
    TEGULA_CPU=neon qemu-aarch64 "$build/tests/$test"
  done
fi
