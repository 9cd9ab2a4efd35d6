#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# lint.sh BUILD SOURCES SCRIPTS: checks layout with clang-format, the C sources with clang-tidy and
# cppcheck, the scripts with shellcheck, and the rules of this project with scripts of its own. Fails at
# the end if any of them found something.
set -u
build=$1 sources=$2 scripts=$3
failed=""

clang-format --version
# shellcheck disable=SC2086 # a list
clang-format --dry-run -Werror $sources || failed="$failed clang-format"

cmake -S . -B "$build" -DTEGULA_TESTS=ON -DCMAKE_C_COMPILER=clang -DTEGULA_OPENMP=OFF \
  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null || exit 1
# Only what CMake compiles: the rest is included by it.
compiled=$(sed -n 's/^ *"file": "\(.*\)".*/\1/p' "$build/compile_commands.json" |
  grep -v "/$build/" | sort -u)
echo "$compiled" | xargs -P "$(nproc)" -n 4 clang-tidy -p "$build" --quiet 2>/dev/null ||
  failed="$failed clang-tidy"

cppcheck --version
cppcheck --std=c11 --language=c --enable=warning,performance,portability --inline-suppr --quiet \
  --error-exitcode=1 -j "$(nproc)" -I include -I src -D_GNU_SOURCE -DTGL_BUILD \
  --suppress=missingIncludeSystem src cli examples ||
  failed="$failed cppcheck"

for rule in families_named_once unique_names; do
  sh "tests/$rule.sh" || failed="$failed $rule"
done

# shellcheck disable=SC2086
shellcheck $scripts || failed="$failed shellcheck"

if [ -n "$failed" ]; then
  echo "lint: complaints from$failed"
  exit 1
fi
echo "lint: clean"
