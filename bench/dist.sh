#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# dist.sh [OPTIONS]: distributed products on the GPUs of this host, beside PyTorch (bench/dist_table.py has the options).
# Needs a build in $TEGULA_BUILD (build), and PyTorch.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${TEGULA_BUILD:-$root/build}
PYTHONPATH=$root/python${PYTHONPATH:+:$PYTHONPATH} TEGULA_LIBRARY=$build/libtegula.so \
  exec "${PYTHON:-python3}" "$root/bench/dist_table.py" "$@"
