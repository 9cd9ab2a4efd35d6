#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# families_named_once.sh [ROOT]: checks that only src/families/ names kernel families, so that a new family needs
# only its own files and one line of the table of families.
#
# A family is named by a word, or by a part of an identifier or text between underscores ("skinny",
# "tgl_skinny_plan", "simt_128x256x8"), in upper or lower case. Comments may name a family as an example,
# the tuned tables contain kernel names, and default_compute.c and type_names.c those of compute modes.
set -eu
cd "${1:-$(dirname "$0")/..}"
families=$(sed -n 's/^const tgl_family tgl_family_\([a-z0-9_]*\) = {$/\1/p' src/families/*.c | sort)
test -n "$families" || {
  echo "there are no families in src/families"
  exit 1
}
# The names of pre-passes are checked too, except repack, which is also a word of the launch lists.
names=$(printf '%s\n' "$families" decompose prepass | tr '\n' '|' | sed 's/|$//')

# These families have the name of an instruction. Other code may use the name for the instruction, such as
# TGL_HAS_WGMMA. A compute mode (TGL_COMPUTE_...) may have the name of a family, too.
instructions='mma|wgmma'
others=$(echo "$names" | tr '|' '\n' | grep -vxE "$instructions" | tr '\n' '|' | sed 's/|$//')

# Prints a file without its comments, with the same line numbers.
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
    gsub(/TGL_(HAS|COMPUTE)_[A-Z0-9_]*/, "", kept)
    if (FILENAME ~ /default_compute\.c$/) gsub(/ieee or accurate/, "", kept)
    if (FILENAME ~ /problem\/type_names\.c$/) gsub(/"accurate"/, "", kept)
    print kept
  }' "$1"
}

found=$(find src -path src/families -prune -o \( -name '*.[ch]' -o -name '*.inc' \) -print |
  grep -vE '^src/plan/tuned_[a-z0-9]*\.inc$' | sort | while read -r file; do
  case "$file" in src/sim/*) these=$others ;; *) these=$names ;; esac
  without_comments "$file" | grep -niE "(^|[^a-z0-9])($these)([^a-z0-9]|\$)" | sed "s|^|$file:|" || true
done)
test -z "$found" && exit 0
echo "a kernel family is named outside src/families:"
echo "$found"
exit 1
