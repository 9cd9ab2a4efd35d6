#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# without_sim.sh SOURCE BUILD CC: builds in BUILD with -DTEGULA_SIM=OFF, and checks that the library works without
# the simulator and reports that it has none. Prints the sizes of the libraries, for .ci/run.
set -eu
source=$1 build=$2 compiler=$3

cmake -S "$source" -B "$build" -DTEGULA_SIM=OFF -DTEGULA_TESTS=OFF -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_COMPILER="$compiler" >"$build.log"
cmake --build "$build" -j"$(nproc)" >>"$build.log" 2>&1 || {
  tail -30 "$build.log"
  exit 1
}

for kind in so a; do
  strip --strip-debug -o "$build/stripped" "$build/libtegula.$kind"
  echo "size: libtegula.$kind without the simulator has $(wc -c <"$build/stripped") bytes"
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
"$build/tegula" learn check "$source/exercises/coalesce.cu" 2>&1 | grep -q 'without the simulator'
