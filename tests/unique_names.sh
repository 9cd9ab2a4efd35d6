#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# unique_names.sh: checks that no two files of the repository have the same name, so that a name identifies a
# file. Exceptions are CMakeLists.txt, README.md and __init__.py, whose names are given, and files of results,
# which are named after their suite in a folder for each machine.
set -eu
cd "$(dirname "$0")/.."
git rev-parse --is-inside-work-tree >/dev/null 2>&1 || exit 77 # a source archive without git
# Files that are listed but deleted do not count.
twice=$(git ls-files | grep -v '^bench/results/' | while read -r file; do
  test ! -f "$file" || basename "$file"
done | grep -vxE 'CMakeLists\.txt|README\.md|__init__\.py' | sort | uniq -d)
test -z "$twice" && exit 0
echo "more than one file is called:"
echo "$twice"
exit 1
