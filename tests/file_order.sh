#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# file_order.sh [ROOT]: checks that no files of src/, cli/, dist/ or shims/ include each other in a circle. A header
# and the .c file with the same name count as one.
set -eu
cd "${1:-$(dirname "$0")/..}"
command -v tsort >/dev/null || exit 77

# Prints a line FILE INCLUDED for each #include, without suffixes. Folders are left out, because names are unique
# (unique_names.sh).
edges() {
  find src cli dist shims -name '*.[ch]' | sort | xargs grep '^ *#include "' |
    sed -E 's,^(.*/)?([^/]*)\.[ch]: *#include "(.*/)?([^/"]*)\.h".*,\2 \4,' | awk 'NF == 2 && $1 != $2'
}
all=$(edges)
if [ -z "$all" ]; then
  echo "no file includes another: the search for includes is wrong"
  exit 1
fi
found=$(echo "$all" | tsort 2>&1 >/dev/null) && exit 0
echo "files include each other in a circle:"
echo "$found"
exit 1
