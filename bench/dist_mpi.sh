#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# dist_mpi.sh [RANKS [RUNS]]: distributed products in FP64 on MPI ranks of one core each, beside ScaLAPACK and COSMA
# (bench/peers/dist_mpi.cpp), for the shapes in $SHAPES. $CSV: a file for the results. Needs Open MPI, its ScaLAPACK,
# OpenBLAS, and COSMA built in $COSMA_BUILD from $COSMA:
#
#     cmake -S COSMA -B BUILD -DCOSMA_BLAS=OPENBLAS -DCOSMA_SCALAPACK=OFF -DCOSMA_WITH_TESTS=OFF -DCOSMA_WITH_APPS=OFF
#     cmake --build BUILD
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${TEGULA_BUILD:-$root/build}
shapes=${SHAPES:-4096x4096x4096 2000x1000x30000}
: "${COSMA:?the sources of COSMA}" "${COSMA_BUILD:?its build folder}"
openblas=${OPENBLAS:-$(sed -n 's/^COSMA_OPENBLAS_LINK_LIBRARIES:[A-Z]*=//p' "$COSMA_BUILD/CMakeCache.txt")}
costa=$(sed -n 's/^costa_SOURCE_DIR:[A-Z]*=//p' "$COSMA_BUILD/CMakeCache.txt")

mpicxx -O2 -std=c++17 -fopenmp -I "$root/include" -I "$COSMA/src" -I "$costa/src" "$root/bench/peers/dist_mpi.cpp" \
  -o "$build/dist_mpi" -L "$build" -Wl,-rpath,"$build" -ltegula_mpi -ltegula_dist -ltegula \
  "$COSMA_BUILD/src/cosma/libcosma.a" "$(find "$COSMA_BUILD" "$costa" -name libcosta.a | head -n 1)" \
  "${SCALAPACK:--lscalapack-openmpi}" "$openblas"
cpu() { sed -n "s/^$1[[:space:]]*: //p" /proc/cpuinfo | head -n 1; }
if test -n "${CSV:-}"; then
  printf '# commit: %s; date: %s; processor: %s; model: %s %s.%s, %s processors; command: SHAPES="%s" %s %s\n%s\n' \
    "$(git -C "$root" describe --always --dirty '--exclude=*' || echo unknown)" "$(date -u +%F)" "$(cpu 'model name')" \
    "$(cpu vendor_id)" "$(cpu 'cpu family')" "$(cpu model)" "$(nproc)" "$shapes" bench/dist_mpi.sh "$*" \
    m,n,k,type,ranks,library,median,quartile_1,quartile_3,least,gflops,runs >"$CSV"
fi
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for shape in $shapes; do
  # shellcheck disable=SC2046 # three numbers
  mpirun -n "${1:-2}" --bind-to core "$build/dist_mpi" $(echo "$shape" | tr x ' ') "${2:-7}" ${CSV:+"$CSV"}
done
