#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# aarch64.sh [BUILD]: builds for aarch64 with Debian's cross compiler and checks the tiers (instruction
# sets) of the cpu device under qemu: f32, f64 and the types of 8 and 16 bits, on processors with and
# without SDOT, SMMLA and BFMMLA. Exits with 77 if packages are missing: gcc-aarch64-linux-gnu,
# libc6-dev-arm64-cross, qemu-user. The unit tests of the tiers run too if TEGULA_ARM64_CMOCKA names a
# folder with the arm64 files of libcmocka-dev.
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
# The simulator is left out, because it compiles kernels at run time with the compiler of this machine.
# shellcheck disable=SC2086 # CMAKE_FLAGS is a list
cmake -S . -B "$build" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_BUILD_TYPE=Release -DTEGULA_SIM=OFF \
  -DTEGULA_WERROR=ON -DTEGULA_TESTS=$tests -DCMOCKA_INCLUDE_DIR="$cmocka/usr/include" \
  -DCMOCKA_LIBRARY="$cmocka/usr/lib/aarch64-linux-gnu/libcmocka.so" \
  -DCMAKE_EXE_LINKER_FLAGS="${cmocka:+-Wl,-rpath,$cmocka/usr/lib/aarch64-linux-gnu}" \
  ${CMAKE_FLAGS:-} >"$build/configure.log"
targets="tegula_program"
words="test_words test_words_blocks test_words_threads"
if [ "$tests" = ON ]; then targets="$targets test_cpu_tiers test_cpu_small $words"; fi
# shellcheck disable=SC2086 # a list
cmake --build "$build" -j"${JOBS:-$(nproc)}" --target $targets >"$build/build.log" 2>&1 || {
  tail -30 "$build/build.log"
  exit 1
}

# has_kernels PROCESSOR KERNELS: checks that the cpu device has exactly these kernels on the processor.
has_kernels() {
  qemu-aarch64 -cpu "$1" "$build/tegula" info --device cpu | grep "kernels *$2\$"
}
has_kernels max 'cpu/neon_mm cpu/neon_dot cpu/neon cpu/portable'
has_kernels neoverse-n1 'cpu/neon_dot cpu/neon cpu/portable'
has_kernels cortex-a72 'cpu/neon cpu/portable'

# check TIER TYPE [OPTION...]: runs `tegula check` with this tier.
check() {
  tier=$1 type=$2
  shift 2
  echo "$tier, $type${*:+, $*}:"
  TEGULA_CPU=$tier qemu-aarch64 -cpu max "$build/tegula" check --device cpu --type "$type" \
    --cases 60 "$@" >"$build/check.log" || {
    cat "$build/check.log"
    exit 1
  }
  tail -1 "$build/check.log"
}
for tier in neon portable; do
  for type in f32 f64 f16 bf16 i8; do
    check "$tier" "$type"
  done
done
check neon_dot i8
check neon_mm i8
check neon_mm bf16
check neon_mm bf16 --type-c f32
check neon_mm bf16 --type-c f32 --compute ieee
if [ "$tests" = ON ]; then
  for test in test_cpu_tiers test_cpu_small; do
    TEGULA_CPU=neon qemu-aarch64 -cpu max "$build/tests/$test"
  done
  for test in $words; do
    qemu-aarch64 -cpu max "$build/tests/$test"
  done
fi
