# SPDX-License-Identifier: Apache-2.0
"""bench/fit/predictions.py, which compares predictions with measured times."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from session import PROGRAM

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "bench" / "fit" / "predictions.py"
CHIP = "NVIDIA H200, 132 SMs"
PRODUCT = "bf16,bf16,bf16,bf16 NT 1024x1024x4096x1 default"


def line(kernel, us, product=PRODUCT, chip=CHIP, mode="burst"):
    return f"{chip} | CUDA 13.0 | 0.2.0 | 0123456789abcdef | {product} | {kernel} | {us} | 0.5 | 5 | {mode}\n"


class Predictions(unittest.TestCase):
    def run_script(self, text, *options):
        with tempfile.TemporaryDirectory(prefix="tegula-predictions-") as folder:
            path = pathlib.Path(folder) / "file"
            path.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, SCRIPT, PROGRAM, path, *options], capture_output=True, text=True,
                                  check=False)
        return done

    def report(self, text, *options):
        done = self.run_script(text, *options)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def error(self, text, *options):
        done = self.run_script(text, *options)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        return done.stderr

    def predicted(self, kernel):
        """The prediction for PRODUCT, from the report of a measured time of 1000 us."""
        head, mean = self.report(line(kernel, 1000)).splitlines()[0].split("measured/predicted ")
        self.assertEqual(head.split()[-1], "1")
        return 1000 / float(mean.split(",")[0])

    def test_wisdom(self):
        slow, fast = "wgmma_128x256:splits=1,exchanged=0,cluster=2", "wgmma_64x64:splits=2,exchanged=0,cluster=1"
        self.assertLess(self.predicted(fast), self.predicted(slow))
        text = self.report("# a comment\n" + line(fast, 999) + line(slow, 160) + line(fast, 200) + line("peer", 100))
        self.assertRegex(text, r"(?m)^wgmma_64x64 split +1  measured/predicted \d\.\d{3}, spread 0\.000$")
        self.assertRegex(text, r"(?m)^wgmma_128x256 +1  measured/predicted \d\.\d{3}, spread 0\.000$")
        self.assertIn("1 products, mean loss 25.00%\nshare of the peer: mean 0.500, least 0.500\n", text)
        self.assertRegex(text, rf"(?m)^ 25\.0% bf16 NT 1024x1024x4096x1: {fast} 200\.00 us .* best {slow} 160\.00 ")

    def test_a_kernel_without_options_is_that_kernel(self):
        self.assertAlmostEqual(self.predicted("wgmma_64x64"), self.predicted("wgmma_64x64:splits=1"), delta=1e-9)

    def test_skipped_lines_of_the_wisdom(self):
        kernel = "wgmma_128x256"
        others = [line(kernel, 1, chip="NVIDIA A100, 108 SMs"), line(kernel, 1, mode="sustained"),
                  line(kernel, 1, PRODUCT + " bias=row"), "nothing | else\n"]
        self.assertEqual(self.report("".join(others)), "")
        self.assertEqual(self.report(line("no_such_kernel", 1) + line(kernel + ":no_option=1", 1)),
                         "2 of 2 kernels skipped: this build does not have them\n")

    def test_the_wisdom_as_csv(self):
        text = line("wgmma_128x256:splits=1", 160) + line("wgmma_64x64:splits=2,cluster=1", 200) + line("peer", 100)
        with tempfile.NamedTemporaryFile(prefix="tegula-candidates-", suffix=".csv") as file:
            report = self.report(text, "--write", file.name)
            written = file.read().decode()
        heading, columns, *rows = written.splitlines()
        self.assertRegex(heading, r"^# commit: .*; date: .*; driver: .*; chip: .*; command: .*predictions\.py")
        self.assertEqual(columns, "product,kernel,microseconds")
        self.assertEqual(rows[1:], ['bf16 NT 1024x1024x4096x1 default,"wgmma_64x64:splits=2,cluster=1",200.0',
                                    "bf16 NT 1024x1024x4096x1 default,peer,100.0"])
        self.assertEqual(self.report("\n".join([heading, "# note: more", columns, *rows])), report)

    def test_the_heading_has_the_chip_that_was_measured(self):
        for chip in ("NVIDIA H200", "NVIDIA H100 80GB HBM3"):
            with tempfile.NamedTemporaryFile(prefix="tegula-candidates-", suffix=".csv") as file:
                report = self.report(line("wgmma_128x256", 160, chip=chip + ", 132 SMs"), "--write", file.name)
                written = file.read().decode()
            self.assertIn(f"; chip: {chip}; ", written.splitlines()[0])
            self.assertEqual(self.report(written), report)

    def test_write_needs_candidates_of_one_chip(self):
        h200, h100, a100 = (line("wgmma_128x256", 160, chip=chip) for chip in (
            CHIP, "NVIDIA H100 80GB HBM3, 132 SMs", "NVIDIA A100, 108 SMs"))
        with tempfile.NamedTemporaryFile("w+", prefix="tegula-candidates-", suffix=".csv") as file:
            file.write("kept")
            file.flush()
            start = f"{file.name} is not written: it must have candidates of one chip, and those read are of "
            self.assertEqual(self.error(h200 + h100, "--write", file.name),
                             start + "several chips: NVIDIA H200, NVIDIA H100 80GB HBM3\n")
            self.assertEqual(self.error(a100, "--write", file.name),
                             start + "none of: NVIDIA H200, NVIDIA H100 80GB HBM3\n")
            self.assertEqual(pathlib.Path(file.name).read_text(encoding="utf-8"), "kept")

    def test_candidates_of_an_unknown_chip(self):
        rows = "product,kernel,microseconds\nbf16 NT 1024x1024x4096x1 default,peer,100.0\n"
        for heading, chip in (("", "unknown"), ("# commit: 1; chip: unknown; command: x\n", "unknown"),
                              ("# commit: 1; chip: NVIDIA A100; command: x\n", "NVIDIA A100")):
            self.assertRegex(self.error(heading + rows), f": the chip in its heading is {chip}; it must be one of: "
                                                         "NVIDIA H200, NVIDIA H100 80GB HBM3\n$")

    def test_csv(self):
        head = "chip,type,layout,m,n,k,batch,library,kernel,seconds\n"
        row = "NVIDIA H200,{},NT,4096,4096,4096,1,tegula,{},1e-3\n"
        text = self.report(head + row.format("tf32", "wgmma_128x256:splits=1") + row.format("f32", "simt_128x256x8"))
        self.assertRegex(text, r"(?m)^simt in place single +1  predicted/measured \d\.\d{3}, spread 0\.000$")
        self.assertRegex(text, r"(?m)^wgmma in place single +1  predicted/measured 0\.\d{3}, spread 0\.000$")


if __name__ == "__main__":
    unittest.main()
