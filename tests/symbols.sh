#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# symbols.sh LIBRARY HEADER: the shared library exports exactly the functions of the header.
set -eu
exported=$(nm -D --defined-only "$1" | sed 's/.* //' | sort)
declared=$(sed -n '/^TGL_API/,/;/p' "$2" | grep -o 'tgl_[a-z0-9_]*(' | tr -d '(' | sort -u)
test "$exported" = "$declared" && echo "$(echo "$exported" | wc -l) functions" && exit 0
echo "exported:" "$exported"
echo "declared:" "$declared"
exit 1
