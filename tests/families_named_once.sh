#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# families_named_once.sh [ROOT]: no code of the library but src/families/ names a kernel family, so that
# adding one touches its own files and a line of the table.
#
# What counts as a name: the family's own, as a word or as a part of an identifier or text between
# underscores ("skinny", "tgl_skinny_plan", "simt_128x256x8"), in any case. Comments may name one as an
# example, and the tuned tables hold kernel strings.
set -eu
cd "${1:-$(dirname "$0")/..}"
# The files of src/families/ that are not called after a family.
shared='families|cost|gemm_launch'
names=$(find src/families -name '*.c' | sed 's|.*/||; s|\.c$||' | grep -vxE "$shared" | sort |
  tr '\n' '|' | sed 's/|$//')
test -n "$names" || {
  echo "there are no families in src/families"
  exit 1
}

# A file without comments. Lines keep their numbers.
without_comments() {
  awk '{
    line = $0
    kept = ""
    while (line != "") {
      if (inside) {
        end = index(line, "*/")
        if (end == 0) break
        line = substr(line, end + 2)
        inside = 0
      } else {
        start = index(line, "/*")
        if (start == 0) { kept = kept line; break }
        kept = kept substr(line, 1, start - 1)
        line = substr(line, start + 2)
        inside = 1
      }
    }
    sub(/\/\/.*/, "", kept)
    print kept
  }' "$1"
}

found=$(find src -path src/families -prune -o \( -name '*.[ch]' -o -name '*.inc' \) -print |
  grep -vE '^src/plan/tuned_[a-z0-9]*\.inc$' | sort | while read -r file; do
  without_comments "$file" | grep -niE "(^|[^a-z0-9])($names)([^a-z0-9]|\$)" | sed "s|^|$file:|" || true
done)
test -z "$found" && exit 0
echo "a kernel family is named outside src/families:"
echo "$found"
exit 1
