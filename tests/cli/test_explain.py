# SPDX-License-Identifier: Apache-2.0
"""tegula explain: what it runs on the simulator, the style of its lines, and what it refuses."""

import re
import unittest

from session import Folder, tegula


class Explain(Folder):
    def test_batches_are_run_on_the_simulator(self):
        for options in ["-m", 64, "-n", 64, "-k", 64, "--batch", 3], \
                ["-m", 40, "-n", 9, "-k", 20, "--batch", 5, "--order", "col", "--lda", 50, "--ldb", 30,
                 "--ldc", 70, "--trans-a", "--bias", "row", "--residual"], \
                ["-m", 8, "-n", 8, "-k", 8, "--batch", 0]:
            result = tegula("explain", "--device", "sim", *options)
            self.assertEqual((result.code, result.err), (0, ""))
            self.assertNotIn("not run", result.out)
        for options in ["-m", 64, "-n", 64, "-k", 64, "--batch", 1000], \
                ["-m", 1, "-n", 1, "-k", 1, "--batch", 5000]:
            result = tegula("explain", "--device", "sim", *options)
            self.assertEqual((result.code, result.err), (0, ""))
            self.assertIn("\nnot run, and so not counted", result.out)


    def test_one_intensity_and_one_style(self):
        shape = "-m", 1000, "-n", 1000, "-k", 1000
        texts = [tegula("explain", *shape, "--device", "cpu").out, tegula("explain", *shape, "--chip", "h200").out]
        lines = [re.search(r"^intensity .*$", text, re.MULTILINE)[0] for text in texts]
        self.assertEqual(lines[0], lines[1])
        self.assertIn("166.7 FLOP/byte", lines[0]) # 2 GFLOP over 12 MB: A, B and C once
        for text in texts:
            for line in text.splitlines():
                if not line.startswith("candidates") and not line.startswith("  "):
                    self.assertRegex(line, r"^[a-zA-Z]+ +\S", line)
                    self.assertEqual(len(re.match(r"\S+ +", line)[0]), 12, line)

    def test_unknown_names_list_the_known_ones(self):
        shape = "-m", 8, "-n", 8, "-k", 8
        for options, known in ((["--chip", "z80"], "h200"), (["--chip", "h200", "--kernel", "x"], "simt_128x256x8"),
                               (["--device", "cpu", "--kernel", "x"], "cpu/portable"),
                               (["--device", "gpu"], "auto, cpu, cuda")):
            result = tegula("explain", *shape, *options)
            self.assertEqual((result.code, result.out), (2, ""), options)
            self.assertIn(known, result.err)

    def test_types_without_a_kernel(self):
        for options in (["--type", "f16"], ["--type", "bf16", "--type-d", "f32"]):
            result = tegula("explain", "-m", 8, "-n", 8, "-k", 8, "--device", "cpu", *options)
            self.assertIn(result.code, (0, 1))
            self.assertTrue(result.code == 0 or "TGL_UNSUPPORTED" in result.err, result.err)


if __name__ == "__main__":
    unittest.main()
