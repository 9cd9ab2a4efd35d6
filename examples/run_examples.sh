#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run_examples.sh BUILD: what `make run` shows. A pair of matrices is made, multiplied by the program, and the
# product checked by another one; then Tegula's speed beside the libraries that this machine has.
set -eu
tegula=$1/tegula pair=$1/examples/pair
m=1500 n=1200 k=1800
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() {
  printf '$ tegula %s\n' "$*" | sed "s|$work/||g"
  "$tegula" "$@"
}

say "A product of ${m}x$k and ${k}x$n random numbers, from NumPy files to a NumPy file"
"$pair" make $m $n $k "$work/A.npy" "$work/B.npy"
show mm "$work/A.npy" "$work/B.npy" -o "$work/C.npy"

say "Is it right?"
"$pair" check $m $n $k "$work/A.npy" "$work/B.npy" "$work/C.npy"
show check --cases 300

say "How fast is it beside the other libraries here?"
show bench -m 1024 -n 1024 -k 1024 --device cpu
show bench -m 1024 -n 1024 -k 1024 --type f64 --device cpu

say "The ladder of GPU kernels"
if "$tegula" info --device cuda >/dev/null 2>&1; then
  show ladder -m 2048 -n 2048 -k 2048
else
  echo "No GPU here, so each rung runs on the simulator, which counts what it does:"
  show ladder --device sim
fi
