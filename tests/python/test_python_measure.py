# SPDX-License-Identifier: Apache-2.0
"""tegula.bench() and tegula.ladder()."""

import types
import unittest

import numpy as np
from python_support import has_device

import tegula


class Bench(unittest.TestCase):
    def test_rows(self):
        rows = tegula.bench([8, (16, 4, 9)], device="cpu", seconds=0.02)
        self.assertEqual([row["size"] for row in rows], ["8x8x8", "16x4x9"])
        for row in rows:
            flops = 2e-9 * row["m"] * row["n"] * row["k"]
            self.assertAlmostEqual(row["gflops"], flops / row["seconds"])
            self.assertAlmostEqual(row["numpy_gflops"], flops / row["numpy_seconds"])
        self.assertEqual(rows[0]["device"], "cpu")
        lines = str(rows).splitlines()
        self.assertEqual(len(lines), 3)
        self.assertTrue(lines[0].split()[0] == "device" and "16x4x9" in lines[2])
        self.assertEqual(str(tegula.Table([], "x", [])), "(no rows)")

    def test_types(self):
        for dtype in (np.float64, "float16"):
            self.assertGreater(tegula.bench([8], dtype=dtype, device="cpu",
                                            seconds=0)[0]["gflops"], 0)

    def test_plot(self):
        """plot() draws one line for each column; these axes only record it."""
        drawn = []
        axes = types.SimpleNamespace(
            plot=lambda x, y, style, label: drawn.append((label, x, y)),
            set_xlabel=lambda text: None, tick_params=lambda *a, **k: None, legend=lambda: None)
        table = tegula.Table([{"n": 1, "y": 2.0, "z": 5}, {"n": 2, "y": 3.0, "z": 6}], "n", ["y"])
        self.assertIs(table.plot(ax=axes), axes)
        table.plot("z", ax=axes)
        self.assertEqual(drawn, [("y", ["1", "2"], [2.0, 3.0]), ("z", ["1", "2"], [5, 6])])


class Arrays(unittest.TestCase):
    def test_copies(self):
        for source in (np.arange(12.0).reshape(3, 4).T, np.float32(3), [[1, 2]], np.ones((0, 3))):
            copy = tegula.device("cpu").array(source)
            self.assertTrue(np.array_equal(copy, source) and copy.dtype == np.asarray(source).dtype)
            self.assertTrue(copy.flags.c_contiguous and not np.shares_memory(copy, source))
        copies = [tegula.device("cpu").array(np.ones(n)) for n in range(1, 20)]
        self.assertEqual([copy.ctypes.data % 128 for copy in copies], 19 * [0])


@unittest.skipUnless(has_device("sim"), "the device sim needs a C compiler")
class Ladder(unittest.TestCase):
    def test_counts(self):
        rows = {row["rung"]: row for row in tegula.ladder((64, 32, 16))}
        self.assertGreaterEqual(len(rows), 12)
        for row in rows.values():
            self.assertLess(row["max_error"], 16)
            self.assertGreater(row["max_error"], 0)
            self.assertEqual(row["needed_bytes"], 4 * (64 * 16 + 16 * 32 + 64 * 32))
        for name, sectors in ("naive", 16.5), ("coalesced", 2.5):
            # Matrices begin at multiples of 128 bytes, as on a GPU.
            self.assertEqual(rows[name]["global_load_sectors"],
                             sectors * rows[name]["global_load_requests"])
        self.assertEqual(rows["conflict_free"]["shared_load_conflicts"], 0)
        self.assertGreater(rows["vectorised"]["shared_load_conflicts"], 0)

    def test_chapters(self):
        rows = {row["rung"]: row for row in tegula.ladder((64, 40, 48), chapter=2)}
        self.assertEqual((list(rows)[0], list(rows)[-1], len(rows)), ("f16_wmma", "f16_persistent", 7))
        for row in rows.values():
            self.assertLess(row["max_error"], 48 + 4)
            self.assertEqual(row["needed_bytes"], 2 * (64 * 48 + 48 * 40 + 64 * 40))
        self.assertGreater(rows["f16_wmma"]["shared_load_conflicts"], 0)
        # One tile of 128 x 128 x 64, in instructions of 16 x 8 x 16 and 64 x 128 x 16.
        self.assertEqual(rows["f16_fragments"]["mma_requests"], 512)
        self.assertEqual((rows["f16_wgmma"]["mma_requests"], rows["f16_wgmma"]["wgmma_requests"]), (0, 8))
        self.assertEqual(rows["f16_wgmma"]["mbarrier_waits"], 256)
        rows = {row["rung"]: row["max_error"] for row in tegula.ladder(64, chapter=3)}
        self.assertEqual(list(rows), ["words_one", "words_three", "words_promoted"])
        self.assertGreater(rows["words_one"], 100 * rows["words_three"])
        self.assertEqual(len(tegula.ladder(8)), 26)  # chapter 1 alone
        for wrong in 0, 4, "1", None:
            with self.assertRaisesRegex(ValueError, "it must be 1, 2 or 3"):
                tegula.ladder(8, chapter=wrong)

    def test_counters_of_plans(self):
        a = np.ones((8, 8), np.float32)
        plan = tegula.plan(a, a, device="sim")
        self.assertRaises(NotImplementedError, plan.counters)  # it has not run yet
        plan(a, a)
        counters = plan.counters()
        self.assertGreater(counters["global_load_bytes"] + counters["async_copy_bytes"], 0)
        with self.assertRaises(NotImplementedError):
            tegula.plan(a, a, device="cpu").counters()

    def test_traces_of_plans(self):
        a = np.ones((8, 8), np.float32)
        plan = tegula.plan(a, a, device="sim", kernel="ladder/naive")
        with self.assertRaisesRegex(NotImplementedError, "only plans on sim have one, after they"):
            plan.trace()
        plan(a, a)
        trace = plan.trace()
        self.assertEqual((trace["file"], trace["threads"]), ("ladder/01_naive.cu", 256))
        loads = [line["requests"] for line in trace["lines"] if line["kind"] == "global load"]
        self.assertEqual(sum(loads), plan.counters()["global_load_requests"])


if __name__ == "__main__":
    unittest.main()
