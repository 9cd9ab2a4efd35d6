# SPDX-License-Identifier: Apache-2.0
"""bench/results, and bench/summary.py, which writes docs/performance.md from it."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import results_csv  # pylint: disable=wrong-import-position
import summary  # pylint: disable=wrong-import-position

COLUMNS = "type,layout,m,n,k,batch,library,gflops,time_over_tegula,fma_gflops\n"


def shape(ratios, n=8, kind="f32", layout="NN", batch=1):
    """The rows of a shape: ours, and those of libraries x, y ... with these ratios."""
    libraries = [("tegula", 1), *zip("xyz", ratios)]
    return "".join(f"{kind},{layout},{n},{n},{n},{batch},{name},{100 / ratio},{ratio},\n" for name, ratio in libraries)


class Results(unittest.TestCase):
    def test_the_first_line_of_each_file(self):
        files = list((ROOT / "bench" / "results").glob("*/*.csv"))
        self.assertGreater(len(files), 50)
        for path in files:
            heading = results_csv.heading(path)
            self.assertRegex(heading["commit"], r"^([0-9a-f]{7,}(-dirty)?|unknown)$", path)
            self.assertRegex(heading["date"], r"^\d{4}-\d\d-\d\d$", path)
            self.assertTrue(heading.get("driver") or heading.get("model"), path)
            self.assertRegex(heading["command"], r"tegula |bench/\w+\.(py|sh|cu)", path)
            self.assertTrue(results_csv.rows(path), path)

    def test_the_page_is_that_of_the_results(self):
        done = subprocess.run([sys.executable, ROOT / "bench" / "summary.py", "--check"], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
        self.assertLessEqual(page.count("\n"), 300)
        for target in re.findall(r"\]\(([^)#:]+)\)", page):
            self.assertTrue((ROOT / "docs" / target).exists(), target)


class Summary(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tegula-results-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, rows, comments=""):
        path = self.folder / "chip" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# commit: 1234567; date: 2026-01-02; driver: 1; command: tegula bench -m 8; x: y\n{comments}"
                        + COLUMNS + rows, encoding="utf-8")
        return path

    def test_heading(self):
        path = self.write("s.csv", shape([1]), "# older code: a; b\n# note: see: here\n")
        self.assertEqual(results_csv.heading(path),
                         {"commit": "1234567", "date": "2026-01-02", "driver": "1", "older code": "a; b",
                          "note": "see: here", "command": "tegula bench -m 8; x: y"})
        self.assertEqual([row["library"] for row in results_csv.rows(path)], ["tegula", "x"])

    def test_rows(self):
        self.write("s-avx2-16threads.csv", shape([2, 4], 8) + shape([0.97, 3], 9) + shape([0.99], 10, layout="TN")
                   + shape([2], 11, batch=3) + shape([], 12) + shape([1], 13, "f64"))
        found = summary.read_all(self.folder)
        f32, f64 = summary.suites(found)[2:]
        mean = (2 * 0.97 * 0.99 * 2) ** 0.25
        self.assertEqual(f32, "| [s](../bench/results/chip/s-avx2-16threads.csv), avx2, 16 threads | f32 | 4 | "
                              f"{mean:.3f} | 50 % | 25 % | 0.97 | 9 |")
        self.assertIn("| f64 | 1 | 1.000 | 0 % | 0 % | 1.00 | 13 |", f64)
        worst = summary.worst(found)
        self.assertEqual(worst[2], "| 0.97 9 (avx2, 16 threads) | 1.00 13 (avx2, 16 threads) |")
        self.assertEqual(worst[3], "| 0.99 10 TN (avx2, 16 threads) |  |")
        self.assertEqual(summary.squares(found)[2:],
                         ["| chip | f32, avx2, 16 threads | 9 | 100 GFLOP/s | 103 GFLOP/s (x) |",
                          "| chip | f64, avx2, 16 threads | 13 | 100 GFLOP/s | 100 GFLOP/s (x) |"])

    def test_only_ten_are_listed(self):
        self.write("s.csv", "".join(shape([2 + n / 100], n) for n in range(1, 30)))
        self.assertEqual([line[:8] for line in summary.worst(summary.read_all(self.folder))[2:]],
                         [f"| {2 + n / 100:.2f} {n}"[:8] for n in range(1, 11)])

    def test_older_code_is_in_its_table_only(self):
        self.write("old.csv", shape([0.5]) + shape([3], kind="f64"), "# older code: all\n")
        self.write("new.csv", shape([2]))
        found = summary.read_all(self.folder)
        for table in summary.suites, summary.worst, summary.squares:
            self.assertNotIn("0.5", "".join(table(found)))
        self.assertEqual(summary.older(found)[2:],
                         ["| chip | [old](../bench/results/chip/old.csv) | f32 0.500 (0.50 at 8); f64 3.000 (3.00 at 8) |"])

    def test_pages(self):
        self.write("s.csv", shape([2]))
        (self.folder / "chip" / "other.csv").write_text("# commit: 1; date: x\na,b\n1,2\n", encoding="utf-8")
        found = summary.read_all(self.folder)
        self.assertIn("\n| [s](", summary.page("a\n{{suites chip}}\nb", found))
        for template in "{{squares}}", "{{suites chip}}{{worst other}}":  # no table for `chip`, no machine `other`
            with self.assertRaises(SystemExit):
                summary.page(template, found)


if __name__ == "__main__":
    unittest.main()
