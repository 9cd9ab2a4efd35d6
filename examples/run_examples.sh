#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run_examples.sh BUILD: the demonstration of `make run`. It makes two matrices, multiplies them with the
# program, and checks the product with another program. Then it compares Tegula's speed with the libraries
# of this machine, and runs the ladder: GPU kernels from the simplest to the fastest.
set -eu
tegula=$1/tegula pair=$1/examples/pair
m=1500 n=1200 k=1800
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n%s\n' "$*"; fi; }
show() {
  printf '$ tegula %s\n' "$*" | sed "s|$work/||g"
  "$tegula" "$@"
}

say "Multiply a ${m}x$k matrix of random numbers with a ${k}x$n matrix, from NumPy files to a NumPy file"
"$pair" make $m $n $k "$work/A.npy" "$work/B.npy"
show mm "$work/A.npy" "$work/B.npy" -o "$work/C.npy"

say "Check the product"
"$pair" check $m $n $k "$work/A.npy" "$work/B.npy" "$work/C.npy"
show check --cases 300

say "Compare the speed with the other libraries of this machine"
show bench -m 1024 -n 1024 -k 1024 --device cpu
show bench -m 1024 -n 1024 -k 1024 --type f64 --device cpu

say "The ladder of GPU kernels"
if "$tegula" info --device cuda >/dev/null 2>&1; then
  show ladder -m 2048 -n 2048 -k 2048
else
  echo "There is no GPU here: the kernels run on the simulator, which counts their memory accesses."
  show ladder --device sim
fi
