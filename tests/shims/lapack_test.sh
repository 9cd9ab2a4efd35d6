#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# lapack_test.sh LIBRARY FOLDER BLAS: runs LAPACK's complex testers (Debian's package liblapack-test) in
# FOLDER, with LIBRARY preloaded before the reference BLAS in the folder BLAS. Fails if they report other
# failures than without LIBRARY, or if Tegula has not computed products. Exits with 77 if there are no
# testers.
set -eu
library=$1 folder=$2 blas=$3
if [ ! -x "$folder/xlintstc" ] || [ ! -e "$folder/liblapack.so.3" ] || [ ! -e "$blas/libblas.so.3" ]; then
  echo "no testers (liblapack-test), or no reference LAPACK and BLAS, in $folder and $blas"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export LD_LIBRARY_PATH="$folder:$blas"

# summary REPORT: prints the lines that say which groups of tests passed or failed, without those of the largest
# errors.
summary() {
  grep -E 'passed|fail|\*\*\*' "$1" || true
}

# tester PROGRAM ROUTINE CALLS: runs a tester with the file `input`. Tegula must serve at least CALLS calls of
# ROUTINE.
tester() {
  LD_PRELOAD=$library TEGULA_BLAS_TRACE=1 "$folder/$1" <input >report 2>trace || echo "status $?" >>report
  served=$(grep -c "^tegula_blas: $2 .*: tegula\$" trace || true)
  echo "$1: $(grep -c passed report) groups passed, $served calls of $2 served by Tegula"
  if grep -E 'fail|\*\*\*|^status' report; then
    "$folder/$1" <input >reference || echo "status $?" >>reference
    summary reference >expected
    summary report | diff expected - || exit 1
  fi
  if ! grep -q 'End of tests' report || [ "$served" -lt "$3" ]; then
    tail -n 20 report
    tail -n 20 trace
    exit 1
  fi
}

for type in c z; do
  path=$(echo $type | tr cz CZ)
  # The inputs of the package, reduced to two sizes, two block sizes and some kinds of matrices.
  awk -v kinds="^$path(GE|PO|HE|TR|QR|LS) " 'NR == 2 || NR == 4 || NR == 8 { print 2; next }
    NR == 3 || NR == 5 { print "10 30"; next } NR == 9 { print "3 20"; next } NR == 10 { print "1 9"; next }
    NR < 17 || $0 ~ kinds' "$folder/${type}test.in" >input
  tester "xlintst$type" "${type}gemm" 100
  awk 'NR == 2 { print 2; next } NR == 3 { print "3 12"; next } 1' "$folder/nep.in" >input
  tester "xeigtst$type" "${type}gemm" 100
done
