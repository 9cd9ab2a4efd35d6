#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# copied_folder_test.sh PROGRAM LIBRARY...: copies the libraries of a build folder to another folder, and checks
# that the drop-ins find libtegula.so there. Neither they nor the program may search another folder than their
# own; an empty entry of a RUNPATH would mean the current folder.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/copy" "$work/untrusted"
for file; do
  for path in $(readelf -d "$file" | sed -n 's/.*R.*PATH.*\[\(.*\)\]/\1:end/p' | sed 's/:end$//; s/^:/EMPTY:/; s/:$/:EMPTY/; s/::/:EMPTY:/; s/:/ /g'); do
    # shellcheck disable=SC2016 # the loader's word
    [ "$path" = '$ORIGIN' ] || { echo "$file searches $path"; exit 1; }
  done
done
shift
for file; do cp -L "$file" "$work/copy/$(readelf -d "$file" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')"; done
cd "$work/untrusted"
for library in "$work"/copy/libtegula_*; do
  echo "== $library"
  env -u LD_LIBRARY_PATH LD_PRELOAD="$library" ldd "$library" | tee "$work/log"
  grep -q "=> $work/copy/libtegula.so.0 " "$work/log"
done
