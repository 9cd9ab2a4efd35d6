#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# scalapack_test.sh LIBRARY MPIEXEC FOLDER: runs ScaLAPACK's testers of PBLAS level 3 (Debian's package
# scalapack-mpi-test) in FOLDER, with LIBRARY preloaded. All must pass, and Tegula must have served products and
# named the setting that is misspelt.
# Exits with 77 if there are no testers.
set -eu
library=$1 mpiexec=$2 folder=$3
if [ ! -x "$folder/dpb3tst" ]; then
  echo "no testers (scalapack-mpi-test) in $folder"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export TEGULA_SCALAPACK_TRACE=1 TEGULA_SCALAPACK_TRACES=1 OMP_NUM_THREADS=1

# tester PROGRAM INPUT ROUTINE: runs a tester, and counts the calls of ROUTINE that Tegula has served.
tester() {
  cp "$folder/$2" .
  "$mpiexec" -n 4 env LD_PRELOAD="$library" "$folder/$1" >report 2>trace || true
  misspelt=$(grep -c '^tegula_scalapack: there is no setting TEGULA_SCALAPACK_TRACES. It is ignored.$' trace || true)
  served=$(grep -c "^tegula_scalapack: $3 .*: tegula\$" trace || true)
  echo "$1: $served calls served by Tegula"
  if ! grep -q 'End of Tests' report ||
    ! awk '/^  \|/ { n++; if ($3 != $4 || $5 != 0 || $6 != 0) bad = 1 } END { exit n < 8 || bad }' report ||
    grep 'FAILED  \*' report || [ "$served" -lt 16 ] || [ "$misspelt" -lt 1 ]; then
    tail -n 30 report trace
    exit 1
  fi
}
tester dpb3tst PDBLAS3TST.dat pdgemm
tester spb3tst PSBLAS3TST.dat psgemm
