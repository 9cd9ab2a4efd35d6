# SPDX-License-Identifier: Apache-2.0
"""bench/schedules.c: what it prints and refuses, with stand-ins for the compiler and the GPU."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROW = re.compile(r'\{"simt_64x64x16", "(\w\w)", (\d), (\d+), (\d+), (\d+), (\d+), ([01])\}, '
                 r"/\* cycles not known(?:, \d+\.\d\d us)? \*/")


class Schedules(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tegula-schedules-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.env = dict(os.environ, TEGULA_LIBCUDA=os.environ["FAKE_LIBCUDA"],
                        TEGULA_NVRTC=os.environ["FAKE_LIBNVRTC"],
                        TEGULA_CACHE=os.path.join(self.folder, "cache"))

    def schedules(self, *args, **env):
        words = [os.environ["TEGULA_SCHEDULES"], *map(str, args)]
        return subprocess.run(words, env=dict(self.env, **env), capture_output=True, text=True,
                              timeout=120, check=False)

    def search(self, *args, **env):
        result = self.schedules("--kernel", "simt_64x64x16", "-m", 65, "-n", 66, "-k", 67, *args, **env)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertTrue(lines[0].startswith("as it is: /* cycles not known"), lines[0])
        for line in lines[1:]:
            self.assertRegex(line, ROW)
        return lines

    def test_prints_the_best(self):
        lines = self.search("--count", 9, "--best", 5, "--workers", 2)
        self.assertEqual(len(lines), 6)
        self.assertEqual(len(os.listdir(os.path.join(self.env["TEGULA_CACHE"], "tegula"))), 10)
        self.assertEqual({ROW.match(line).group(2) for line in lines[1:]}, {"2"}) # n is 66
        self.assertEqual(lines, self.search("--count", 9, "--best", 5, "--workers", 3))
        self.assertNotEqual(lines, self.search("--count", 9, "--best", 5, "--seed", 2))

    def test_times(self):
        lines = self.search("--count", 3, "--workers", 1, "--time",
                            FAKE_CUDA_NAME="NVIDIA H200")
        self.assertEqual(len(lines), 4)
        seconds = [float(re.search(r"([\d.]+) us", line).group(1)) for line in lines]
        self.assertEqual(seconds[1:], sorted(seconds[1:]))

    def test_refuses(self):
        for words, message in (
                ([], "--kernel is missing"),
                (["--kernel", "gemv_2"], '"gemv_2" is not a configuration of gemm/simt.cu'),
                (["--kernel", "simt_64x64x16", "--layout", "NX"], '"NX" is not NN, NT, TN or TT'),
                (["--kernel", "simt_64x64x16", "--chip", "z80"], '"z80" is not known'),
                (["--kernel", "simt_64x64x16", "--count", "0"], "--count"),
                (["--kernel", "simt_64x64x16", "--workers", "-1"], "--workers"),
                (["--kernel", "simt_64x64x16", "more"], '"more" is not an option')):
            result = self.schedules(*words)
            self.assertEqual((result.returncode, result.stdout), (2, ""), words)
            self.assertIn(message, result.stderr)

    def test_what_cannot_be_done(self):
        search = ["--kernel", "simt_64x64x16", "-m", 64, "--count", 2]
        for more, env, code, message in (
                ([], {"TEGULA_CACHE": "off"}, 1, "goes through the cache, which is off"),
                ([], {"FAKE_NVRTC_ERROR": "no such thing"}, 1, "no such thing"),
                (["--time"], {}, 2, "the device is planned as unknown")):
            result = self.schedules(*search, *more, **env)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(message, result.stderr)


if __name__ == "__main__":
    unittest.main()
