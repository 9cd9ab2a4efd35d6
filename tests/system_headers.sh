#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that no source includes headers of the Linux kernel, which musl does not have. If musl-gcc is installed, it
# compiles the files that use the most functions of the system.
set -eu
cd "$(dirname "$0")/.."
if grep -rn 'include <\(linux\|asm\)/' src shims cli; then
  echo "headers of the kernel: write the constants down"
  exit 1
fi
command -v musl-gcc >/dev/null || { echo "SKIPPED: there is no musl-gcc"; exit 77; }
for file in src/base/*.c src/cpu/run/*.c src/cpu/device/detect.c src/api/*.c; do
  musl-gcc -std=gnu11 -D_GNU_SOURCE -fsyntax-only -w -Iinclude -Isrc "$file"
done
