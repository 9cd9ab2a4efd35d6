#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# blas_exports_test.sh LIBRARY MAP: checks that a library exports exactly the names of its version script MAP.
set -eu
exported=$(nm -D --defined-only "$1" | sed 's/.* //' | sort)
listed=$(sed -n 's/^ *\([A-Za-z0-9_]*\);$/\1/p' "$2" | sort)
test "$exported" = "$listed" && echo "$(echo "$exported" | wc -l) names" && exit 0
echo "exported:" "$exported"
echo "listed:" "$listed"
exit 1
