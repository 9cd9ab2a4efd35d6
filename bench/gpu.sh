#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# gpu.sh BUILD [RESULTS]: runs the checks before a release, on a machine with an NVIDIA GPU and the CUDA toolkit.
# `make gpu` builds and calls it. Runs the tests that need a GPU; random products, huge ones and accuracy;
# compute-sanitizer with kernels of all types; the ladder and the bench compared with cuBLAS. Writes
# CSV files to bench/results/CHIP. Continues after a failure, prints a summary, and fails if a step failed.
# CHECK_CASES and SANITIZE_CASES in the environment set the number of products of most steps.
set -u
unset TEGULA_COMPUTE
build=$1 results=${2:-bench/results}
tegula=$build/tegula
export TEGULA_CACHE="$PWD/$build/gpu-cache" # so that all kernels are compiled by what is tested
rm -rf "$TEGULA_CACHE"
summary=$(mktemp)
trap 'rm -f "$summary"' EXIT
failed=0

begin() {
  name=$1 start=$(date +%s)
  printf '\n==== %s\n' "$name"
}

# finish STATUS: records the result of the current step.
finish() {
  ended=passed
  if [ "$1" -ne 0 ]; then ended=FAILED failed=1; fi
  printf '%-34s %-7s %5d s\n' "$name" $ended $(($(date +%s) - start)) >>"$summary"
}

if ! "$tegula" info --device cuda; then
  echo "make gpu needs an NVIDIA GPU and the CUDA toolkit" >&2
  exit 1
fi

begin "tests that need a GPU"
if grep -q '^TEGULA_TESTS:BOOL=ON' "$build/CMakeCache.txt"; then
  ctest --test-dir "$build" -L gpu --no-tests=error --output-on-failure
  finish $?
else
  echo "the tests are not built: install cmocka (libcmocka-dev)"
  finish 1
fi

# "NVIDIA H200" -> h200, "NVIDIA H100 80GB HBM3" -> h100
chip=$("$tegula" info --device cuda | sed -n 's/^  chip  *//p' | tr '[:upper:] ' '[:lower:]-' |
  sed 's/^nvidia-//; s/-[0-9]*gb.*//')
results=$results/$chip
mkdir -p "$results"

# check NAME OPTION...: `tegula check` on the GPU.
check() {
  begin "$1"
  shift
  "$tegula" check --device cuda "$@"
  finish $?
}

check "random products, the ladder" --plain --kernel ladder --cases 300
check "random products, the ladder in f16" --plain --kernel ladder --type f16 --cases 300
check "random products, the ladder by TF32 words" --plain --kernel ladder --compute tf32 --cases 300
check "random products" --kernel gemm --compute ieee --cases "${CHECK_CASES:-5000}"
check "random products with epilogues" --kernel gemm --compute ieee --epilogues --in-turn --cases 500
check "random grouped products" --kernel gemm --grouped --in-turn --cases 500
check "random grouped products in bf16" --kernel gemm --grouped --in-turn --type bf16 --cases 500

# options_of TYPE: prints the options of `tegula` for products of this type.
options_of() {
  case $1 in
  tf32 | accurate) echo "--type f32 --compute $1" ;;
  *) echo "--type $1" ;;
  esac
}

types="f16 bf16 tf32 f64 e4m3 e5m2 i8 c64 c128 accurate"
for type in $types; do
  # shellcheck disable=SC2046 # the options are words
  check "random products, $type" --kernel gemm --in-turn --cases "${CHECK_CASES:-5000}" $(options_of "$type")
done
check "random products, e4m3 in FAST" --kernel gemm --in-turn --cases "${CHECK_CASES:-5000}" --type e4m3 --compute fast
check "accuracy beside cuBLAS" --accuracy --compute ieee --csv "$results/accuracy-ieee.csv"
check "accuracy of ACCURATE" --accuracy --compute accurate --csv "$results/accuracy-accurate.csv"
check "huge products" --huge --kernel gemm

sanitizer=compute-sanitizer
for path in /usr/local/cuda*/bin/compute-sanitizer "${CUDA_HOME:-/usr/local/cuda}"/bin/compute-sanitizer; do
  if [ -x "$path" ]; then sanitizer=$path; fi
done

# sanitize NAME TOOL COMMAND...: fails if the tool reports an error or the command fails.
sanitize() {
  begin "$2, $1"
  checker=$2
  shift 2
  "$sanitizer" --tool "$checker" --error-exitcode 9 "$tegula" "$@" --device cuda
  finish $?
}

# synccheck reports the barrier of simt.cu as an error, although PTX allows it (kernels/lib/block_barrier.h).
# Therefore it runs only with types that simt.cu does not multiply.
for type in f16 bf16 f64; do
  sanitize "$type" synccheck check --small --kernel gemm --in-turn --threads 4 \
    --cases "${SANITIZE_CASES:-150}" --type $type
done

for tool in memcheck racecheck initcheck; do
  for type in $types; do
    # shellcheck disable=SC2046 # the options are words
    sanitize "$type" "$tool" check --small --kernel gemm --in-turn --threads 4 \
      --cases "${SANITIZE_CASES:-150}" $(options_of "$type")
  done
  sanitize "every configuration" "$tool" check --small --kernel gemm --in-turn --threads 4 \
    --cases "${SANITIZE_CASES:-150}"
  for chapter in 1 2 3; do
    sanitize "chapter $chapter of the ladder" "$tool" ladder --chapter "$chapter" -m 131 -n 263 -k 37 --once
  done
done

ladder=$results/ladder.csv bench=$results/bench.csv

begin "ladder"
"$tegula" ladder --device cuda --csv "$ladder" --plot "$results/ladder.svg"
finish $?

for chapter in 2 3; do
  begin "chapter $chapter of the ladder"
  "$tegula" ladder --device cuda --chapter "$chapter" --csv "$results/ladder_$chapter.csv" \
    --plot "$results/ladder_$chapter.svg"
  finish $?
done

begin "bench"
"$tegula" bench --device cuda --compute ieee --suite bench/suites/ladder.csv --time 0.5 --csv "$bench"
finish $?

# show_ladder FILE: prints TFLOP/s and percentage of cuBLAS's speed of the chapter's last three rungs, by size.
show_ladder() {
  awk -F, '
    /^#/ { next }
    !has_columns { has_columns = 1; for (i = 1; i <= NF; i++) column[$i] = i; next }
    {
      if ($column["rung"] !~ /^cublas/ && !($column["rung"] in known)) {
        known[$column["rung"]] = 1
        name[1] = name[2]; name[2] = name[3]; name[3] = $column["rung"]
      }
      size = $column["m"] "x" $column["n"] "x" $column["k"]
      if (!(size in seen)) { seen[size] = 1; sizes[++count] = size }
      rate[size, $column["rung"]] = $column["tflops"]
      share[size, $column["rung"]] = $column["percent_cublas"]
    }
    END {
      printf "%-18s", "TFLOP/s (% of cuBLAS)"
      for (r = 1; r <= 3; r++) printf " %18s", name[r]
      printf " %8s %9s\n", "cublas", "cublaslt"
      for (s = 1; s <= count; s++) {
        printf "%-21s", sizes[s]
        for (r = 1; r <= 3; r++)
          printf " %9.2f (%6.1f)", rate[sizes[s], name[r]], share[sizes[s], name[r]]
        printf " %8.2f %9.2f\n", rate[sizes[s], "cublas"], rate[sizes[s], "cublaslt"]
      }
    }' "$1"
}

printf '\n==== summary\n'
for file in "$ladder" "${ladder%.csv}_2.csv" "${ladder%.csv}_3.csv"; do
  if [ -s "$file" ]; then show_ladder "$file"; fi
done
printf '\n'
cat "$summary"
printf 'results: %s, %s\n' "$ladder" "$bench"
exit $failed
