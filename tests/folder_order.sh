#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# folder_order.sh [ROOT]: the folders of src/ have an order (docs/data-flow.md), and a file includes
# headers of its own folder and of lower ones only. Folders of the same floor do not include each other.
# Headers under kernels/ that kernels and host share count as the lowest floor.
set -eu
cd "${1:-$(dirname "$0")/..}"

# Lowest first; one floor a line.
floors='
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

found=$(find src -name '*.[ch]' -o -name '*.inc' | sort | xargs grep -n '^#include "' |
  awk -v floors="$floors" '
    BEGIN {
      count = split(floors, line, "\n")
      for (i = 1; i <= count; i++) {
        n = split(line[i], folder, " ")
        for (j = 1; j <= n; j++) floor[folder[j]] = i
      }
    }
    {
      split($0, part, "\"")
      path = part[2]
      file = part[1]
      sub(/:[0-9]*:.*/, "", file)
      if (path ~ /^tegula\//) next
      sub(/^(\.\.\/)+/, "", path)
      to = path
      if (!sub(/\/[^\/]*$/, "", to)) { print $0 "   (give the folder of the header)"; next }
      sub(/^kernels\/.*/, "kernels", to)
      from = file
      sub(/^src\//, "", from)
      sub(/\/[^\/]*$/, "", from)
      if (!(from in floor)) print file ": no floor is given for src/" from
      else if (!(to in floor)) print $0 "   (no floor is given for " to ")"
      else if (to != from && floor[to] >= floor[from]) print $0
    }')
test -z "$found" && exit 0
echo "an include does not point to a lower folder (the order is in tests/folder_order.sh):"
echo "$found"
exit 1
