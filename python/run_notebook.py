# SPDX-License-Identifier: Apache-2.0
"""run_notebook.py NOTEBOOK OUTPUT: runs all cells of a notebook, in its own folder, and writes the notebook
with their results to OUTPUT. Fails if a cell raises an exception. Needs nbclient and ipykernel.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def main(source: Path, output: Path) -> None:
    notebook = nbformat.read(source, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": source.parent}}).execute()
    nbformat.write(notebook, output)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
