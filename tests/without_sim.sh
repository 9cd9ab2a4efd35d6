#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# without_sim.sh SOURCE BUILD CC: builds in BUILD with -DTEGULA_SIM=OFF. The library has to be small and
# to work, and says that it has no simulator.
set -eu
source=$1 build=$2 compiler=$3
limit_so=1500000 limit_a=1850000 # bytes, stripped

cmake -S "$source" -B "$build" -DTEGULA_SIM=OFF -DTEGULA_TESTS=OFF -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_COMPILER="$compiler" >"$build.log"
cmake --build "$build" -j"$(nproc)" >>"$build.log" 2>&1 || {
  tail -30 "$build.log"
  exit 1
}

for kind in so a; do
  library=$build/libtegula.$kind
  strip --strip-debug -o "$build/stripped" "$library"
  size=$(wc -c <"$build/stripped")
  echo "$(basename "$library") has $size bytes"
  if [ $kind = so ]; then limit=$limit_so; else limit=$limit_a; fi
  test "$size" -le "$limit"
done
if nm "$build/libtegula.a" 2>/dev/null | grep -q 'tgl_sim_'; then
  echo "the library contains parts of the simulator"
  exit 1
fi

"$build/tegula" info | grep -q 'without the simulator'
"$build/tegula" check --cases 5 --device cpu >/dev/null
if "$build/tegula" check --cases 1 --device sim >"$build/out" 2>&1; then
  echo "the device sim can be opened"
  exit 1
fi
grep -q 'without the simulator' "$build/out" || {
  cat "$build/out"
  exit 1
}
