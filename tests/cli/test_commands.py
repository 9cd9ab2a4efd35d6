# SPDX-License-Identifier: Apache-2.0
"""What all commands share: the CSV files that they write, streams that are closed, signals, versions."""

import os
import resource
import signal
import subprocess
import sys
import time
import unittest

import session
from session import Folder, tegula


class CsvFiles(Folder):
    """An existing file is only replaced if there are rows to write."""

    BENCH = "bench", "--peer", "none", "--device", "cpu", "--threads", "1", "--csv", "b.csv"
    SHAPE = "-m", "8", "-n", "8", "-k", "8", "--repeat", "1"

    def setUp(self):
        super().setUp()
        for name in "b.csv", "l.svg":
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write("old\n")

    def assert_as_before(self):
        for name in os.listdir(self.folder):
            self.assertIn(name, ("b.csv", "l.svg", "s.csv"))
            if name != "s.csv":
                with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                    self.assertEqual(file.read(), "old\n")

    def test_runs_that_produce_nothing(self):
        for command in (*self.BENCH, *self.SHAPE, "--kernel", "nonsense"), \
                ("check", "--device", "cpu", "--kernel", "nonsense", "--csv", "b.csv"), \
                ("ladder", "--device", "sim", "--size", 16, "--csv", "b.csv", "--plot", "l.svg"):
            result = tegula(*command, cwd=self.folder, env={"TEGULA_CC": "/nowhere"})
            self.assertNotEqual(result.code, 0, command)
            self.assert_as_before()

    def test_files_over_their_limit(self):
        for command in (*self.BENCH, *self.SHAPE), \
                ("check", "--device", "cpu", "--cases", 3, "--csv", "b.csv"), \
                ("check", "--device", "cpu", "--accuracy", "--small", "--csv", "b.csv"):
            result = tegula(*command, cwd=self.folder,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (90, 90)))
            self.assertEqual(result.code, 1, command)
            self.assertEqual(result.err, f"tegula {command[0]}: cannot write b.csv: File too large\n")
            self.assert_as_before()

    def test_disks_that_are_full(self):
        for option in "--csv", "--plot":
            result = tegula("ladder", "--device", "sim", "--size", 8, "--size", 16, option, "/dev/full")
            self.assertEqual((result.code, result.err),
                             (1, "tegula ladder: cannot write /dev/full: No space left on device\n"))

    def start(self, suite):
        with open(os.path.join(self.folder, "s.csv"), "w", encoding="utf-8") as file:
            file.write(suite)
        return subprocess.Popen([session.PROGRAM, *self.BENCH, "--suite", "s.csv"], cwd=self.folder,
                                stdout=subprocess.DEVNULL, env=dict(os.environ, TEGULA_CPU="portable"))

    def wait(self, process, is_reached):
        while process.poll() is None and not is_reached():
            time.sleep(0.002)
        process.terminate()
        self.assertEqual(process.wait(60), -signal.SIGTERM)

    @unittest.skipIf("thread" in os.environ.get("TEGULA_SANITIZED", ""), "signals come late")
    def test_a_run_that_is_stopped_leaves_the_rows_it_has(self):
        great = "f64,3000,3000,3000,NN,1\n"
        self.wait(self.start(great), lambda: len(os.listdir(self.folder)) == 4)
        self.assert_as_before()
        self.wait(self.start("f32,8,8,8,NN,1\n" + great),
                  lambda: os.path.getsize(os.path.join(self.folder, "b.csv")) > 4)
        self.assertEqual([row["m"] for row in self.rows("b.csv")], ["8"])
        self.assertEqual(sorted(os.listdir(self.folder)), ["b.csv", "l.svg", "s.csv"])


class Everywhere(Folder):
    def test_children_do_not_inherit_an_ignored_sigint(self):
        """Checks session.py: in the background of a shell, the test itself ignores SIGINT."""
        program = "import signal, sys; sys.path.insert(0, sys.argv[1]); import session, subprocess;" \
            "p = subprocess.Popen(['sleep', '9']); p.send_signal(signal.SIGINT); print(p.wait())"
        here = os.path.dirname(os.path.abspath(__file__))
        completed = subprocess.run([sys.executable, "-c", program, here], capture_output=True, timeout=90, check=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        self.assertEqual(completed.stdout, b"-2\n")

    COMMANDS = "mm", "bench", "check", "explain", "ladder", "info", "tune", "warm"

    def test_version(self):
        version = tegula("--version")
        self.assertEqual((version.code, version.err), (0, ""))
        for command in [[]] + [[name] for name in self.COMMANDS]:
            for option in "--version", "-V":
                result = tegula(*command, option)
                self.assertEqual((result.code, result.out, result.err), (0, version.out, ""), (command, option))

    def test_warm_tells_how_long_all_kernels_take(self):
        without_compiler = {"TEGULA_NVRTC": "/nowhere/libnvrtc.so"}
        every = tegula("warm", env=without_compiler)
        self.assertEqual(len(every.notes), 1, every.err)
        self.assertRegex(every.notes[0], r"^note: all kernels .* take about \d+ minutes of one processor; --kernel ")
        one = tegula("warm", "--kernel", "simt_64x64x16", env=without_compiler)
        self.assertEqual((every.code, one.code, one.notes), (1, 1, []))

    def test_standard_output_that_is_full_or_closed(self):
        for command in ["info"], ["--version"], ["--help"], ["explain", "-m", 8, "-n", 8, "-k", 8, "--chip", "h200"], \
                ["check", "--device", "cpu", "--cases", 2], ["ladder", "--device", "sim", "--size", 8]:
            with open("/dev/full", "wb") as full:
                results = tegula(*command, stdout=full), tegula(*command, preexec_fn=lambda: os.close(1))
            name = "" if command[0].startswith("-") else " " + command[0]
            for result, reason in zip(results, ("No space left on device", "Bad file descriptor")):
                self.assertEqual((result.code, result.err),
                                 (1, f"tegula{name}: cannot write to standard output: {reason}\n"))

    def test_errors_have_no_control_characters(self):
        result = tegula("mm", "\x1b[31mA.npy", "B.npy", "-o", "C.npy", cwd=self.folder)
        self.assertEqual(result.code, 1)
        self.assertNotIn("\x1b", result.err)

    def test_a_temporary_folder_that_is_missing(self):
        result = tegula("explain", "-m", 8, "-n", 8, "-k", 8, "--device", "sim",
                        env={"TMPDIR": "/nowhere/at/all", "TEGULA_CACHE": "off"})
        self.assertEqual(result.code, 1)
        self.assertIn("/nowhere/at/all", result.err)

    @unittest.skipIf("thread" in os.environ.get("TEGULA_SANITIZED", ""), "signals come late")
    def test_signals_leave_nothing_beside_a_csv_file(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE:
            process = subprocess.Popen([session.PROGRAM, "bench", "-m", "2000", "-n", "2000", "-k", "2000",
                                        "--peer", "none", "--device", "cpu", "--threads", "1", "--csv", "b.csv"],
                                       cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env=dict(os.environ, TEGULA_CPU="portable"),
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
            while process.poll() is None and not os.listdir(self.folder):
                time.sleep(0.002)
            process.send_signal(number)
            self.assertEqual(process.wait(60), -number)
            self.assertEqual(os.listdir(self.folder), [], number)


if __name__ == "__main__":
    unittest.main()
