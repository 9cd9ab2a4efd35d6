#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# commit_subjects.sh: checks that the subjects of commits have at most 72 characters.
set -eu
cd "$(dirname "$0")/.."
before=127d6f7fc8340c6467e53fac8815cb551807efe0 # the rule holds for the commits after this one
git merge-base --is-ancestor "$before" HEAD 2>/dev/null || exit 77 # without git, or a shallow clone
long=$(git log --format='%h %s' "$before..HEAD" | grep -E '^[0-9a-f]+ .{73}' || true)
test -z "$long" && exit 0
echo "more than 72 characters in the subject of a commit:"
echo "$long"
exit 1
