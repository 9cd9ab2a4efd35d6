#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# fuzz.sh BUILD: builds the fuzz targets with clang in BUILD and runs each for FUZZ_SECONDS (20) seconds. Inputs
# that reach new code are kept in BUILD/corpus-*, inputs that fail in BUILD/crash-*.
set -eu
build=$1 seconds=${FUZZ_SECONDS:-20}
cmake -S . -B "$build" -DCMAKE_C_COMPILER=clang -DTEGULA_FUZZ=ON \
  -DTEGULA_SANITIZE=fuzzer-no-link,address,undefined -DCMAKE_BUILD_TYPE=RelWithDebInfo >/dev/null
cmake --build "$build" -j"$(nproc)" --target fuzz_api fuzz_npy >/dev/null
for target in api npy; do
  mkdir -p "$build/corpus-$target"
  echo "== fuzz_$target for $seconds s"
  dictionary=""
  test ! -f "tests/fuzz_$target.dict" || dictionary=-dict=tests/fuzz_$target.dict
  # shellcheck disable=SC2086 # an empty variable is no argument
  "$build/fuzz_$target" $dictionary -max_total_time="$seconds" -max_len=4096 \
    -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix="$build/" "$build/corpus-$target" 2>"$build/fuzz_$target.log" || {
    tail -40 "$build/fuzz_$target.log"
    exit 1
  }
  grep -E "^(Done|stat::number_of_executed|stat::new_units)" "$build/fuzz_$target.log"
done
