# SPDX-License-Identifier: Apache-2.0
"""`python -m tegula ARGS` runs the program."""

from ._program import main

main()
