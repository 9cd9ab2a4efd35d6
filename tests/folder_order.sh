#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# folder_order.sh [ROOT]: the folders of src/ and those of cli/ have an order of floors (docs/data-flow.md).
# Checks that a file includes only headers of its own folder and of lower floors. Folders on the same floor
# must not include each other. Headers under kernels/ that kernels and host share are the lowest floor.
set -eu
cd "${1:-$(dirname "$0")/..}"

# One floor per line, the lowest first.
floors_of_src='
kernels
base
problem
plan
families
backend
cpu/kernels
cpu/device
cpu/plan
cpu/run cuda sim
api
'
# The files directly in cli/ are the commands. The first two floors are folders of the library. Only two files
# include more of it than its public header: learn/learn_plan.c makes plans of kernels that are not part of the
# library, and ladder/truth.c calls the rung that runs on the host.
floors_of_cli='
kernels
api families sim
reference
common
io
bench
check dist ladder learn mm
.
'

# includes_upwards ROOT FLOORS: prints the includes in ROOT that do not point to a lower floor. Headers of cli/
# are included without their folder, because names are unique (unique_names.sh).
includes_upwards() {
  find "$1" -name '*.[ch]' -o -name '*.inc' | sort | xargs grep -n '^#include "' |
    awk -v root="$1" -v floors="$2" -v headers="$(find "$1" -name '*.h')" '
    function folder_of(path) {
      if (!sub(/\/[^\/]*$/, "", path)) return "."
      return path
    }
    BEGIN {
      count = split(floors, line, "\n")
      for (i = 1; i <= count; i++) {
        n = split(line[i], folder, " ")
        for (j = 1; j <= n; j++) floor[folder[j]] = i
      }
      count = split(headers, line, "\n")
      for (i = 1; i <= count; i++) {
        name = line[i]
        sub(/.*\//, "", name)
        at[name] = folder_of(substr(line[i], length(root) + 2))
      }
    }
    {
      split($0, part, "\"")
      path = part[2]
      file = part[1]
      sub(/:[0-9]*:.*/, "", file)
      if (path ~ /^tegula\//) next
      sub(/^(\.\.\/)+/, "", path)
      from = folder_of(substr(file, length(root) + 2))
      to = folder_of(path)
      if (to == "." && root == "src") { print $0 "   (give the folder of the header)"; next }
      if (to == "." && path in at) to = at[path]
      sub(/^kernels\/.*/, "kernels", to)
      if (!(from in floor)) print file ": no floor is given for " root "/" from
      else if (!(to in floor)) print $0 "   (no floor is given for " to ")"
      else if (to != from && floor[to] >= floor[from]) print $0
    }'
}

found=$(includes_upwards src "$floors_of_src" && includes_upwards cli "$floors_of_cli")
test -z "$found" && exit 0
echo "an include does not point to a lower folder (the order is in tests/folder_order.sh):"
echo "$found"
exit 1
