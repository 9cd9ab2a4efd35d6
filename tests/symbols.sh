#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# symbols.sh LIBRARY "HEADER..." [VERSION]: checks that the shared library exports exactly the functions of the
# headers, all with one symbol version, and calls none of them through the loader, which could find another copy
# of the library.
set -eu
version=${3:-TEGULA_0}
exported=$(nm -D --defined-only "$1" | sed -n "s/^.* T \\(.*\\)@@$version\$/\\1/p" | sort)
test -z "$(nm -D --defined-only "$1" | grep -v "@@$version\$" | grep -v " A $version\$")"
bound_by_loader=$(readelf -rW "$1" | grep -wF "$exported" || true)
test -z "$bound_by_loader" || {
  echo "found by the loader:" "$bound_by_loader"
  exit 1
}
# shellcheck disable=SC2086
declared=$(awk '/^TGL_API/ { on = 1 } on { print } /;/ { on = 0 }' $2 | grep -o 'tgl_[a-z0-9_]*(' | tr -d '(' | sort -u)
test "$exported" = "$declared" && echo "$(echo "$exported" | wc -l) functions" && exit 0
echo "exported:" "$exported"
echo "declared:" "$declared"
exit 1
