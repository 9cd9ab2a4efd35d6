# SPDX-License-Identifier: Apache-2.0
"""Runs command lines of the program for the tests, each test in a folder of its own."""

import csv
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import unittest

# A shell starts background jobs with SIGINT ignored. The programs that the tests start, and stop by SIGINT,
# would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

PROGRAM = os.environ.get("TEGULA", "build/tegula")

# Parts of the output that differ between machines or runs, and the text that replaces them.
MASKS = [
    (re.compile(r"\d+\.\d+ s, \d+\.\d+ GFLOP/s"), "TIME s, RATE GFLOP/s"),
    (re.compile(r"(?<=kernel )\S+(?=:)"), "KERNEL"),
    (re.compile(r"(?<=kernels are )[^;]+"), "KERNELS"),
    (re.compile(r"\b\d+\.\d{3}\b"), "E"),
    (re.compile(r"\b\d\.\d\de[+-]\d\d\b"), "E"),
]


def mask(text):
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return text


class Result:
    """The outcome of one command line."""

    def __init__(self, completed):
        self.code = completed.returncode
        self.out = completed.stdout.decode(errors="replace")
        self.err = completed.stderr.decode(errors="replace")
        # Notes of the program, such as about more threads than processors or long work, are not errors.
        self.notes = re.findall(r"^note: .*", self.err, re.MULTILINE)
        self.err = re.sub(r"^note: .*\n", "", self.err, flags=re.MULTILINE)
        if "TEGULA_SANITIZED" in os.environ:
            # A sanitizer prints a warning if an allocation fails, which some tests cause on purpose.
            self.err = re.sub(r"==\d+==WARNING: .*\n", "", self.err)


def open_terminal(test):
    """The two ends of a pseudo-terminal. Skips the test if the system has none, as in a minimal chroot."""
    try:
        return os.openpty()
    except OSError as error:
        return test.skipTest(f"no pseudo-terminal: {error}")


def tegula(*args, cwd=None, env=None, **options):
    """Runs `tegula ARGS...` and waits for its end."""
    environment = dict(os.environ, **(env or {}))
    completed = subprocess.run([PROGRAM, *map(str, args)], cwd=cwd, env=environment,
                               stdout=options.pop("stdout", subprocess.PIPE),
                               stderr=subprocess.PIPE, timeout=240, check=False, **options)
    if completed.stdout is None:
        completed.stdout = b""
    return Result(completed)


# The first line of a CSV file.
ORIGIN = re.compile(r"# commit: (?:[0-9a-f]{7,}(?:-dirty)?|unknown); date: \d{4}-\d\d-\d\d; "
                    r"((?:[a-z]+: [^;]+; )+)command: (.*\btegula .*)\n")


def origin_of(path):
    """The description of the device, and the command, in the first line of a CSV file."""
    with open(path, newline="", encoding="utf-8") as file:
        line = file.readline()
    match = ORIGIN.fullmatch(line)
    assert match, line
    return match[1], match[2]


def rows_of(path):
    """The rows of a CSV file. Fails if the first line does not have the required form."""
    origin_of(path)
    with open(path, newline="", encoding="utf-8") as file:
        file.readline()
        return list(csv.DictReader(file))


class Folder(unittest.TestCase):
    """Test cases, each with a folder of its own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tegula-cli-")
        self.addCleanup(shutil.rmtree, self.folder)

    def rows(self, name):
        return rows_of(os.path.join(self.folder, name))


def transcript(commands, cwd):
    """The commands and their output on both streams, as a terminal would show them."""
    lines = []
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "tegula", command
        result = tegula(*words[1:], cwd=cwd)
        lines.append(f"$ {command}\n")
        lines.append(mask(result.out))
        lines.append(mask(result.err))
        if result.code != 0:
            lines.append(f"[exit code {result.code}]\n")
    return "".join(lines)
