# SPDX-License-Identifier: Apache-2.0
"""The exercises of `tegula learn` in Python and in notebooks (python/learn.ipynb).

    from tegula import learn
    print(learn.start("coalesce"))      # the text of the exercise
    result = learn.check(source)        # checks a kernel, given as a text or a file, and prints the results
    result.solved, result.gates         # True; [Gate(name="sectors a global load", seen=2.5, ...)]

The simulator runs the kernels. It needs no GPU, but a C compiler. A check runs the kernel with your
permissions: check only kernels that you trust.
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import List, NamedTuple, Tuple, Union

from ._program import program

__all__ = ["Exercise", "Gate", "Result", "check", "exercises", "hint", "solution", "start"]


class Exercise(NamedTuple):
    """A row of the list of exercises."""
    name: str
    title: str


class Gate(NamedTuple):
    """A figure that a check has measured, such as loads per element, and its limit."""
    name: str
    seen: float
    limit: float
    at_least: bool  # True: the figure must be at least the limit; False: at most
    passed: bool


class Result(NamedTuple):
    """The result of a check. `text` is the output of the program."""
    solved: bool
    text: str
    gates: List[Gate]


_GATE = re.compile(r"^gate +(.+?) +(\S+), wanted at (most|least) (\S+): (passed|FAILED)$", re.MULTILINE)


def _run(*words: str) -> Tuple[int, str]:
    """The exit code of `tegula learn WORDS...`, and its output. Misuse raises ValueError."""
    ran = subprocess.run([program(), "learn", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, check=False)
    error = ran.stderr.decode(errors="replace").strip()
    if ran.returncode == 2:
        raise ValueError(error)
    if error:
        raise RuntimeError(error)
    return ran.returncode, ran.stdout.decode(errors="replace")


def exercises() -> List[Exercise]:
    """The exercises in their order."""
    with tempfile.TemporaryDirectory() as folder: # without files, so that nothing is checked
        _, text = _run("--folder", folder)
    return [Exercise(*row) for row in re.findall(r"^  (\w+) +(\S.*)$", text, re.MULTILINE)]


def start(name: str) -> str:
    """The text of an exercise. It is a kernel, and the comment at its head says what to do."""
    with tempfile.TemporaryDirectory() as folder:
        _run("start", name, "--folder", folder)
        return next(Path(folder).iterdir()).read_text(encoding="utf-8")


def hint(name: str, number: int = 1) -> str:
    """A hint. Number 1 is a question, and higher numbers say more. ValueError: there is no hint of that
    number."""
    return _run("hint", name, str(number))[1].split("\n")[0]


def solution(name: str) -> str:
    """The text of a solution, with an explanation."""
    return _run("solution", name)[1]


def check(kernel: Union[str, "os.PathLike[str]"], *, quiet: bool = False) -> Result:
    """Checks a kernel, given as its text or as the path of a file whose name ends with .cu. Prints the results
    unless quiet is true. RuntimeError: the file cannot be read, the text names no exercise, or this machine
    has no C compiler."""
    text = os.fspath(kernel)
    if "\n" in text:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "kernel.cu")
            path.write_text(text, encoding="utf-8")
            code, output = _run("check", str(path))
    else:
        code, output = _run("check", text)
    if not quiet:
        print(output, end="")
    gates = [Gate(name, float(seen), float(limit), side == "least", state == "passed")
             for name, seen, side, limit, state in _GATE.findall(output)]
    return Result(code == 0, output, gates)
