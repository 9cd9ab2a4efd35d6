#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# declarations.sh OLD NEW: checks that the header NEW declares each function of the header OLD, with the same types.
set -eu

# Prints the declarations of a header, one per line.
declarations() {
  awk '/^TGL_API/ { line = ""; on = 1 }
    on { line = line (line == "" ? "" : " ") $0 }
    on && /;/ { gsub(/ +/, " ", line); print line; on = 0 }' "$1" | sort
}

old=$(declarations "$1")
test "$(echo "$old" | wc -l)" -gt 30 || {
  echo "$1 does not look like the header"
  exit 1
}
missing=$(echo "$old" | while read -r line; do
  declarations "$2" | grep -qxF "$line" || echo "$line"
done)
test -z "$missing" && exit 0
echo "changed since version 0.2:"
echo "$missing"
exit 1
