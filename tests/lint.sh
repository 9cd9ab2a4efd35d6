#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# lint.sh BUILD SOURCES SCRIPTS: checks the format with clang-format, the C sources with clang-tidy and
# cppcheck, the scripts with shellcheck, and the types of the Python package with mypy. Also checks that
# docs/performance.md was generated from the results, and the rules of this project by its own scripts. Runs
# all checks, and fails at the end if one of them has failed. ANALYZED=I/N, for .ci/run: clang-tidy's analyzer
# reads only part I of N of the files, and the 20 files that were changed last.
set -u
build=$1 sources=$2 scripts=$3
failed=""

clang-format --version
# shellcheck disable=SC2086 # a list
clang-format --dry-run -Werror $sources || failed="$failed clang-format"

cmake -S . -B "$build" -DTEGULA_TESTS=ON -DTEGULA_SHIMS=ON -DCMAKE_C_COMPILER=clang \
  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null || exit 1
# The files that CMake compiles; they include the others.
compiled=$(sed -n 's/^ *"file": "\(.*\)".*/\1/p' "$build/compile_commands.json" |
  grep -v "/$build/" | sort -u)
# The analyzer takes most of the time. It does not read the tests, in which the sanitizers find the same errors.
tidy() {
  xargs -P "$(nproc)" -n 4 clang-tidy -p "$build" --quiet "$@" 2>/dev/null
}
analyzed=$(echo "$compiled" | grep -v "/tests/")
case ${ANALYZED:-} in
?*/?*)
  in_turn=$(echo "$analyzed" | awk "NR % ${ANALYZED#*/} == ${ANALYZED%/*}")
  changed=$(git log -n 100 --name-only --pretty=format: | sed -n "s|..*\.c\$|$(pwd -P)/&|p" | grep -v /tests/ |
    awk '!seen[$0]++' | head -20)
  analyzed=$(echo "$analyzed" | grep -Fx -e "$in_turn" -e "$changed")
  ;;
esac
echo "$analyzed" | tidy || failed="$failed clang-tidy"
echo "$compiled" | grep -vFx -e "$analyzed" | tidy --checks='-clang-analyzer-*' ||
  failed="$failed clang-tidy"

cppcheck --version
cppcheck --std=c11 --language=c --enable=warning,performance,portability --inline-suppr --quiet \
  --error-exitcode=1 -j "$(nproc)" -I include -I src -D_GNU_SOURCE -DTGL_BUILD \
  --suppress=missingIncludeSystem src dist cli shims examples python ||
  failed="$failed cppcheck"

for rule in families_named_once file_order folder_order unique_names system_headers commit_subjects; do
  sh "tests/$rule.sh" || [ $? -eq 77 ] || failed="$failed $rule" # 77: the rule needs the history of git
done

# shellcheck disable=SC2086
shellcheck $scripts || failed="$failed shellcheck"

python3 bench/summary.py --check || failed="$failed performance.md"

mypy --version
mypy --config-file python/pyproject.toml python/tegula || failed="$failed mypy"

if [ -n "$failed" ]; then
  echo "lint: failed:$failed"
  exit 1
fi
echo "lint: clean"
