#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# netlib_blas_test.sh LIBRARY [FOLDER...]: runs the testers of the reference BLAS (Debian's package
# libblas-test) with LIBRARY preloaded before the reference BLAS. They are searched in TEGULA_BLAS_TESTERS
# and in each FOLDER. Exits with 77 if there are none.
set -eu
library=$1
shift
folder=""
for candidate in ${TEGULA_BLAS_TESTERS:+"$TEGULA_BLAS_TESTERS"} "$@"; do
  if [ -z "$folder" ] && [ -x "$candidate/xblat3s" ]; then folder=$candidate; fi
done
reference=""
for candidate in "$folder" "$@"; do
  if [ -z "$reference" ] && [ -e "$candidate/libblas.so.3" ]; then reference=$candidate; fi
done
if [ -z "$folder" ] || [ -z "$reference" ]; then
  echo "no testers (libblas-test) or no reference BLAS (libblas3) in: $*"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# tester PROGRAM INPUT ROUTINE LINES: runs a tester. In its report ROUTINE must pass in LINES lines and nothing
# may fail, and Tegula must have served calls.
tester() {
  cp "$folder/$2" input
  rm -f ./*.out ./*.SUMM
  status=0
  LD_LIBRARY_PATH=$reference LD_PRELOAD=$library TEGULA_BLAS_TRACE=1 \
    "$folder/$1" <input >report 2>trace || status=$?
  # The Fortran testers write to the file that the input names.
  cat report ./*.out ./*.SUMM >all 2>/dev/null || true
  passed=$(grep -c "^ $3 *PASSED" all || true)
  served=$(grep -ci "^tegula_blas: $3 .*: tegula\$" trace || true)
  echo "$1: $3: $passed reports of success, $served calls served by Tegula"
  if [ "$status" -ne 0 ] || grep -E 'FAIL|\*\*\*\*' all || [ "$passed" -ne "$4" ] ||
    [ "$served" -eq 0 ] || grep -E ': (next BLAS|loop)$' trace; then
    echo "$1 failed with status $status"
    exit 1
  fi
}

# A report has a line for the error exits, and one for the computations in each layout: one (Fortran) or two
# (CBLAS).
for type in s d c z; do
  upper=$(echo $type | tr sdcz SDCZ)
  tester "xblat2$type" "${type}blat2.in" "${upper}GEMV" 2
  tester "xblat3$type" "${type}blat3.in" "${upper}GEMM" 2
  tester "x${type}cblat2" "${type}in2" "cblas_${type}gemv" 3
  tester "x${type}cblat3" "${type}in3" "cblas_${type}gemm" 3
done
