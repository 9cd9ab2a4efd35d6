# SPDX-License-Identifier: Apache-2.0
"""tegula ladder --html: the data of the page, and errors."""

import csv
import json
import os
import re
import resource
import shutil
import tempfile
import unittest

import session
from session import tegula
from test_ladder import FAKES, HALF_RUNGS, RUNGS, WORD_RUNGS

SIZE = 64
LANES, SECTOR, WORD = 32, 32, 4
TOTALS = {"global_load": ["global load"], "global_store": ["global store", "TMA store"],
          "shared_load": ["shared load"], "shared_store": ["shared store"], "async_copy": ["cp.async", "TMA load"],
          "tma_load": ["TMA load"], "tma_store": ["TMA store"], "mma": ["mma"], "wgmma": ["wgmma"]}
GLOBAL, SHARED = ["requests", "sectors", "bytes"], ["requests", "wavefronts", "conflicts", "bytes"]
COLUMNS = {"global_load": GLOBAL, "global_store": GLOBAL, "shared_load": SHARED, "shared_store": SHARED,
           "async_copy": ["requests", "sectors", "wavefronts", "conflicts", "bytes"],
           "tma_load": GLOBAL, "tma_store": GLOBAL, "mma": ["requests"], "wgmma": ["requests", "bytes"]}


def data_of(path):
    with open(path, encoding="utf-8") as file:
        page = file.read()
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))


def wavefronts(step):
    """The wavefronts of an access to shared memory, from the words of its lanes. A bank returns one word at a time."""
    count = 0
    for first in range(0, LANES, step["together"]):
        words = set()
        for offset in step["shared"][first:first + step["together"]]:
            if offset is not None:
                words.update(range(offset // WORD, (offset + step["bytes"] + WORD - 1) // WORD))
        banks = [word % LANES for word in words]
        count += max((banks.count(bank) for bank in banks), default=0)
    return count


class Data(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tegula-page-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        result = tegula("ladder", "--device", "sim", "--size", SIZE, "--html", "l.html", cwd=cls.folder)
        assert (result.code, result.err) == (0, ""), result.err
        cls.path = os.path.join(cls.folder, "l.html")
        cls.data = data_of(cls.path)
        cls.rungs = {rung["name"]: rung for rung in cls.data["rungs"]}
        names = cls.data["columns"].split(",")
        cls.counts = {name: dict(zip(names, rung["counts"].split(","))) for name, rung in cls.rungs.items()}

    def test_every_rung_is_there(self):
        self.assertEqual(list(self.rungs), RUNGS + HALF_RUNGS + WORD_RUNGS)
        self.assertEqual([rung["number"] for rung in self.data["rungs"]], list(range(1, 37)))
        for rung in self.data["rungs"]:
            self.assertIn(rung["trace"]["file"], self.data["files"])
        self.assertLess(os.path.getsize(self.path), 2 << 20)

    def test_the_page_is_one_file(self):
        with open(self.path, encoding="utf-8") as file:
            page = re.sub(r'<script type="application/json".*?</script>', "", file.read(), flags=re.S)
        self.assertNotIn("{{", page)
        self.assertIsNone(re.search(r"<link(?! rel=\"icon\" href=\"data:,\")|@import|url\(|\bsrc=|fetch\(", page))
        addresses = set(re.findall(r"https?:[^\"' ]+", page))
        self.assertEqual(addresses, {"http://www.w3.org/2000/svg"}) # the name of an XML namespace, which is not fetched

    def test_sources_are_those_of_the_repository(self):
        root = os.path.join(os.path.dirname(__file__), "..", "..", "kernels")
        for name, text in self.data["files"].items():
            with open(os.path.join(root, name), encoding="utf-8") as file:
                self.assertEqual(text, file.read())

    def test_counts_are_those_of_the_table(self):
        for chapter in 1, 2, 3:
            result = tegula("ladder", "--device", "sim", "--chapter", chapter, "--size", SIZE, "--csv", "l.csv",
                            cwd=self.folder)
            self.assertEqual(result.code, 0, result.err)
            rows = session.rows_of(os.path.join(self.folder, "l.csv"))
            for row in rows:
                own = dict(self.counts[row["rung"]])
                del own["date"], row["date"]
                self.assertEqual(own, row)

    def test_lines_add_up_to_the_totals(self):
        for name, rung in self.rungs.items():
            for total, kinds in TOTALS.items():
                lines = [line for line in rung["trace"]["lines"] if line["kind"] in kinds]
                for what in COLUMNS[total]:
                    column = f"{total}_{what}"
                    self.assertEqual(sum(line[what] for line in lines), int(self.counts[name][column]), (name, column))

    def ffmas(self, name):
        rung = self.rungs[name]
        lines = self.data["files"][rung["trace"]["file"]].split("\n")
        return sum(threads for line, threads in rung["trace"]["executions"]
                   if line > 0 and re.search(r"\b(acc|sum)\S* \+= .+ \* ", lines[line - 1])) // LANES

    def test_ffmas_by_line(self):
        for name in RUNGS[:5]: # rungs whose tiles divide 64
            self.assertEqual(self.ffmas(name), SIZE**3 // LANES, name)
        for name in RUNGS[5:18]: # rungs with tiles of 128 x 128
            self.assertEqual(self.ffmas(name), 128 * 128 * SIZE // LANES, name)
        for name in WORD_RUNGS: # their only FFMA is for sums that are not finite
            self.assertEqual(self.ffmas(name), 0, name)

    def instructions(self, name, kind):
        return sum(line["requests"] for line in self.rungs[name]["trace"]["lines"] if line["kind"] == kind)

    def test_tensor_core_instructions_by_line(self):
        tile = 128 * 128 * SIZE
        for name in HALF_RUNGS[:4]:
            self.assertEqual(self.instructions(name, "mma"), tile // (16 * 8 * 16), name)
        self.assertEqual(self.instructions("f16_wgmma", "wgmma"), tile // (64 * 128 * 16))
        tiles = [self.instructions(name, "mma") for name in WORD_RUNGS]
        one = tile // (16 * 8 * 8)
        self.assertEqual(tiles, [one, 3 * one, 3 * one])

    def test_steps(self):
        kinds = set()
        for name, rung in self.rungs.items():
            steps = rung["trace"]["steps"]
            self.assertGreater(len(steps), 5)
            for step in steps:
                kinds.add(step["kind"])
                if "sectors" in step:
                    touched = [offset // SECTOR for offset in step["global"] if offset is not None]
                    self.assertEqual(step["sectors"], len(set(touched)), (name, step))
                if "wavefronts" in step:
                    self.assertEqual(step["wavefronts"], wavefronts(step), (name, step))
            for line in rung["trace"]["lines"]: # each line that accesses memory has a step at least
                self.assertTrue(any((step["line"], step["kind"]) == (line["line"], line["kind"]) for step in steps),
                                (name, line))
        self.assertEqual(kinds, set(sum(TOTALS.values(), [])))

    def test_the_first_step_of_the_first_rungs(self):
        row = 4 * SIZE
        naive, coalesced = (self.rungs[name]["trace"]["steps"] for name in ("naive", "coalesced"))
        self.assertEqual((naive[0]["matrix"], naive[0]["sectors"]), ("A", 32))
        self.assertEqual(naive[0]["global"], [lane * row for lane in range(LANES)]) # a column of A
        self.assertEqual(coalesced[1]["global"], [4 * lane for lane in range(LANES)]) # a row of B
        self.assertEqual(coalesced[1]["sectors"], 4)
        self.assertEqual([step["global"][0] for step in naive[:6:2]], [0, 4, 8]) # along K
        self.assertEqual((naive[-1]["kind"], naive[-1]["matrix"]), ("global store", "C"))

    def test_fragments(self):
        f = self.rungs["f16_fragments"]["trace"]["fragments"]
        # PTX ISA, "Matrix Fragments for mma.m16n8k16": lane 5 has g = 1 and t = 1.
        self.assertEqual((f["m"], f["n"], f["k"]), (16, 8, 16))
        def held(name, columns):
            return [(i // columns, i % columns, x // LANES) for i, x in enumerate(f[name]) if x % LANES == 5]
        self.assertEqual(held("a", 16), [(1, 2, 0), (1, 3, 0), (1, 10, 2), (1, 11, 2),
                                         (9, 2, 1), (9, 3, 1), (9, 10, 3), (9, 11, 3)])
        self.assertEqual(held("b", 8), [(2, 1, 0), (3, 1, 0), (10, 1, 1), (11, 1, 1)])
        self.assertEqual(held("sums", 8), [(1, 2, 0), (1, 3, 1), (9, 2, 2), (9, 3, 3)])
        f = self.rungs["words_one"]["trace"]["fragments"]
        self.assertEqual(f["k"], 8)
        self.assertEqual(held("a", 8), [(1, 1, 0), (1, 5, 2), (9, 1, 1), (9, 5, 3)])
        self.assertEqual(held("b", 8), [(1, 1, 0), (5, 1, 1)])

    def test_speeds(self):
        rows = list(csv.DictReader(line for line in self.data["speeds"][0].splitlines() if not line.startswith("#")))
        self.assertIn("multistage", {row["rung"] for row in rows})
        self.assertTrue(all(float(row["tflops"]) > 0 for row in rows))

    def test_one_chapter_alone(self):
        result = tegula("ladder", "--device", "sim", "--chapter", 3, "-m", 20, "-n", 33, "-k", 9, "--html", "3.html",
                        cwd=self.folder)
        self.assertEqual((result.code, result.err), (0, ""))
        data = data_of(os.path.join(self.folder, "3.html"))
        self.assertEqual([rung["name"] for rung in data["rungs"]], WORD_RUNGS)


class Errors(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tegula-page-")
        self.addCleanup(shutil.rmtree, self.folder)

    def run_page(self, *args, **options):
        return tegula("ladder", *args, "--html", "l.html", cwd=self.folder, **options)

    def test_options_that_do_not_go_together(self):
        for more in ["--csv", "l.csv"], ["--plot", "l.svg"], ["--once"]:
            result = self.run_page("--device", "sim", *more)
            self.assertEqual(result.code, 2)
            self.assertIn("--html goes without --csv, --plot and --once", result.err)
        result = self.run_page("--device", "sim", "--size", 8, "--size", 16)
        self.assertEqual(result.code, 2)
        self.assertIn("--html shows one size, not 2", result.err)
        self.assertEqual(os.listdir(self.folder), [])

    @unittest.skipUnless(all(name in os.environ for name in FAKES.values()), "the stand-ins are not built")
    def test_another_device(self):
        env = {name: os.environ[path] for name, path in FAKES.items()}
        for device in ["--device", "cuda"], []:
            result = self.run_page(*device, env=env)
            self.assertEqual(result.code, 2)
            self.assertIn("--html shows what the simulator counts: add --device sim", result.err)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_file_that_cannot_be_written(self):
        result = tegula("ladder", "--device", "sim", "--size", 8, "--html", "nowhere/l.html", cwd=self.folder)
        self.assertEqual(result.code, 1)
        self.assertIn("cannot write nowhere/l.html", result.err)

    def test_a_disk_that_is_full(self):
        path = os.path.join(self.folder, "l.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write("old")
        limit = 100 << 10
        result = self.run_page("--device", "sim", "--chapter", 3, "--size", 8,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(result.code, 1)
        self.assertIn("cannot write l.html: File too large", result.err)
        self.assertEqual(os.listdir(self.folder), ["l.html"])
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "old")


if __name__ == "__main__":
    unittest.main()
