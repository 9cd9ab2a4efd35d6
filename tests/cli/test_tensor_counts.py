# SPDX-License-Identifier: Apache-2.0
"""The counts of chapter 2 of the ladder on the simulator, beside counts by hand: what its tiles need of
global and shared memory and of the tensor cores, at sizes that are no multiples of tiles and at one that is."""

import os
import re
import shutil
import tempfile
import unittest

import session
from session import tegula
from test_ladder import HALF_RUNGS
from test_ladder_page import data_of

ELEMENT, SECTOR, LANES, WARPS = 2, 32, 32, 8
BM = BN = 128
BK = 64
CHUNK = 8   # elements in 16 bytes
BOX = 64    # elements in 128 bytes
STEP = 16   # K of an instruction
GROUP = 64  # rows of a warpgroup


def ceil(x, y):
    return (x + y - 1) // y


class Matrix:
    """A matrix of rows without padding, whose first byte is aligned."""

    def __init__(self, rows, cols):
        self.rows, self.cols = rows, cols

    def part(self, row, col, count):
        """The sectors and bytes of `count` elements of a row, without those beyond the matrix's edge."""
        end = min(col + count, self.cols) if row < self.rows else col
        if end <= col:
            return set(), 0
        first = (row * self.cols + col) * ELEMENT
        return set(range(first // SECTOR, ceil(first + (end - col) * ELEMENT, SECTOR))), (end - col) * ELEMENT

    def box(self, row, col, rows, cols):
        """Requests, sectors and bytes of a box by TMA, which loads each row by itself."""
        parts = [self.part(r, col, cols) for r in range(row, row + rows)]
        return 1, sum(len(sectors) for sectors, _ in parts), sum(size for _, size in parts)

    def warps(self, row, col, rows, cols, width):
        """Requests, sectors and bytes of warps whose lanes load `width` elements each of a tile, row by row."""
        lanes = [(r, c) for r in range(row, row + rows) for c in range(col, col + cols, width)]
        requests = sectors = size = 0
        for i in range(0, len(lanes), LANES):
            parts = [self.part(r, c, width) for r, c in lanes[i:i + LANES]]
            touched = set().union(*(part for part, _ in parts))
            requests += bool(touched)
            sectors += len(touched)
            size += sum(part for _, part in parts)
        return requests, sectors, size


def total(counts):
    return tuple(map(sum, zip(*counts)))


class Counts(unittest.TestCase):
    SHAPES = (200, 328, 152), (129, 264, 72) # m, n, k: n and k are multiples of 8, as TMA needs rows of 16 bytes

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tegula-counts-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.counts, cls.lines = {}, {}
        for m, n, k in cls.SHAPES:
            result = tegula("ladder", "--device", "sim", "--chapter", 2, "-m", m, "-n", n, "-k", k,
                            "--html", "c.html", cwd=cls.folder)
            assert (result.code, result.err) == (0, ""), result.err
            data = data_of(os.path.join(cls.folder, "c.html"))
            names = data["columns"].split(",")
            for rung in data["rungs"]:
                cls.counts[m, n, k, rung["name"]] = dict(zip(names, rung["counts"].split(",")))
                cls.lines[m, n, k, rung["name"]] = rung["trace"]["lines"]

    def of(self, shape, rung, kind, *columns):
        row = self.counts[(*shape, rung)]
        return tuple(int(row[f"{kind}_{column}"]) for column in columns)

    def accesses(self, shape, rung, kind):
        return self.of(shape, rung, kind, "requests", "sectors", "bytes")

    def shared(self, shape, rung, kind):
        return self.of(shape, rung, kind, "requests", "wavefronts", "conflicts")

    def tiles(self, shape, bn=BN):
        """The first row and column of each tile of C, and the first k of each step."""
        m, n, k = shape
        return [(i, j) for i in range(0, m, BM) for j in range(0, n, bn)], list(range(0, k, BK))

    def each(self):
        for shape in self.SHAPES:
            with self.subTest(shape=shape):
                yield shape, Matrix(shape[0], shape[2]), Matrix(shape[2], shape[1]), Matrix(shape[0], shape[1])

    def test_all_rungs_are_here(self):
        for shape in self.SHAPES:
            self.assertEqual([key[3] for key in self.counts if key[:3] == shape], HALF_RUNGS)

    def test_loads_by_threads(self):
        for shape, a, b, _ in self.each():
            tiles, steps = self.tiles(shape)
            loads = total(x for i, j in tiles for p in steps
                          for x in (a.warps(i, p, BM, BK, CHUNK), b.warps(p, j, BK, BN, CHUNK)))
            for rung in HALF_RUNGS[:3]:
                self.assertEqual(self.accesses(shape, rung, "global_load"), loads, rung)
            # cp.async writes zeros where nothing is copied
            stores = len(tiles) * len(steps) * (BM * BK + BK * BN) // CHUNK // LANES
            self.assertEqual(self.accesses(shape, "f16_multistage", "async_copy"), (stores, *loads[1:]))
            self.assertEqual(self.of(shape, "f16_multistage", "async_copy", "wavefronts", "conflicts"), (4 * stores, 0))
            self.assertEqual(self.of(shape, "f16_multistage", "shared_store", "requests"), (0,))
            for rung in HALF_RUNGS[1:3]:
                self.assertEqual(self.shared(shape, rung, "shared_store"), (stores, 4 * stores, 0), rung)

    def test_fragments(self):
        """For its 64 x 32 results a warp loads 4 fragments of A, 16 x 16, and 4 of B, 16 x 8."""
        for shape in self.SHAPES:
            tiles, steps = self.tiles(shape)
            executions = len(tiles) * len(steps) * BK // STEP * WARPS
            # Four registers of each of 4 fragments of A: eight rows in the same banks. Four elements of each
            # of 4 fragments of B: four rows.
            loads = 16 * executions, 16 * executions
            fragments = sum(loads), 8 * loads[0] + 4 * loads[1]
            self.assertEqual(self.shared(shape, "f16_fragments", "shared_load"),
                             (*fragments, 7 * loads[0] + 3 * loads[1]))
            for rung in "f16_ldmatrix", "f16_multistage":
                self.assertEqual(self.shared(shape, rung, "shared_load"), (6 * executions, 24 * executions, 0), rung)
            # wmma: the sums go through shared memory, eight to a lane; then lanes store pairs of rows.
            sums = len(tiles) * WARPS * 8 * 8
            pairs = ceil(shape[0], 2) * ceil(shape[1], 16)
            copies = len(tiles) * len(steps) * 64
            self.assertEqual(self.shared(shape, "f16_wmma", "shared_load")[:2],
                             (fragments[0] + pairs, fragments[1] + pairs))
            self.assertEqual(self.shared(shape, "f16_wmma", "shared_store"),
                             (copies + sums, 4 * copies + 4 * sums, 3 * sums))

    def test_copies_by_tma(self):
        for shape, a, b, _ in self.each():
            for rung, bn in ("f16_wgmma", 128), ("f16_specialised", 256):
                tiles, steps = self.tiles(shape, bn)
                copies = total(x for i, j in tiles for p in steps
                               for x in (a.box(i, p, BM, BOX), *(b.box(p, j + c, BK, BOX) for c in range(0, bn, BOX))))
                self.assertEqual(self.accesses(shape, rung, "async_copy"), copies, rung)
                self.assertEqual(self.accesses(shape, rung, "tma_load"), copies, rung)
                self.assertEqual(self.accesses(shape, rung, "global_load"), (0, 0, 0), rung)
                self.assertEqual(self.shared(shape, rung, "shared_load"), (0, 0, 0), rung)

    def test_multicast(self):
        """Two blocks of a cluster lie below each other. Each loads half of the rows of B for both."""
        for shape, a, b, _ in self.each():
            tiles, steps = self.tiles(shape, 256)
            pairs = [(i, j) for i, j in tiles if i % (2 * BM) == 0]
            of_a = total(a.box(i + rank * BM, p, BM, BOX) for i, _ in pairs for rank in range(2) for p in steps)
            of_b = total(b.box(p + rank * 32, j + c, 32, BOX) for _, j in pairs for rank in range(2) for p in steps
                         for c in range(0, 256, BOX))
            self.assertEqual(self.accesses(shape, "f16_persistent", "async_copy"), total((of_a, of_b)))
            self.assertEqual(self.accesses(shape, "f16_persistent", "tma_load"), total((of_a, of_b)))
            self.assertEqual(self.of(shape, "f16_persistent", "tma", "multicast_bytes"), (of_b[2],))
            # Every pair of tiles loads B once. Rung 32 loads it for each tile.
            m, n, k = shape
            self.assertEqual(of_b[2], ceil(m, 256) * n * k * ELEMENT)
            saved = self.accesses(shape, "f16_specialised", "async_copy")[2] - \
                self.accesses(shape, "f16_persistent", "async_copy")[2]
            self.assertEqual(saved, (ceil(m, 128) - ceil(m, 256)) * n * k * ELEMENT)

    def test_stores(self):
        for shape, _, _, c in self.each():
            m, n, _ = shape
            # a lane has 2 columns, a warp 8 rows of 8 columns: 16 bytes of each row, in one sector
            pairs = ceil(m, 8) * n // 8, m * n // 8, m * n * ELEMENT
            for rung in HALF_RUNGS[1:6]:
                self.assertEqual(self.accesses(shape, rung, "global_store"), pairs, rung)
            by_wmma = total(c.warps(i, j, 2, 16, 1) for i in range(0, m, 2) for j in range(0, n, 16))
            self.assertEqual(self.accesses(shape, "f16_wmma", "global_store"), by_wmma)
            tiles, _ = self.tiles(shape, 256)
            blocks = [(i + rank * BM, j) for i, j in tiles if i % (2 * BM) == 0 for rank in range(2)]
            boxes = total(c.box(i + g, j + x, GROUP, BOX) for i, j in blocks for g in (0, GROUP)
                          for x in range(0, 256, BOX))
            self.assertEqual(self.accesses(shape, "f16_persistent", "global_store"), boxes)
            self.assertEqual(self.accesses(shape, "f16_persistent", "tma_store"), boxes)
            # stmatrix stores four 8 x 8 matrices, of which each is a wavefront
            stores = len(blocks) * BM * 256 // (4 * 8 * 8)
            self.assertEqual(self.shared(shape, "f16_persistent", "shared_store"), (stores, 4 * stores, 0))

    def tensor(self, shape, rung, kind):
        """The requests and bytes of all lines of the source. Fails unless their sums are the totals."""
        lines = [line for line in self.lines[(*shape, rung)] if line["kind"] == kind]
        found = tuple(sum(line[what] for line in lines) for what in ("requests", "bytes"))
        columns = ("requests", "bytes") if kind == "wgmma" else ("requests",)
        self.assertEqual(self.of(shape, rung, kind, *columns), found[:len(columns)], rung)
        return found

    def test_instructions_and_their_operands(self):
        for shape in self.SHAPES:
            tiles, steps = self.tiles(shape)
            executions = len(tiles) * len(steps) * BM * BN * BK // (16 * 8 * 16)
            for rung in HALF_RUNGS[:4]:
                self.assertEqual(self.tensor(shape, rung, "mma"), (executions, 0), rung)
                self.assertEqual(self.tensor(shape, rung, "wgmma"), (0, 0), rung)
            pairs = ceil(shape[0], 256) * ceil(shape[1], 256)
            for rung, bn, blocks in (("f16_wgmma", 128, len(tiles)),
                                     ("f16_specialised", 256, len(self.tiles(shape, 256)[0])),
                                     ("f16_persistent", 256, 2 * pairs)):
                executions = blocks * len(steps) * 2 * BK // STEP
                size = (GROUP + bn) * STEP * ELEMENT
                self.assertEqual(self.tensor(shape, rung, "wgmma"), (executions, executions * size), rung)

    def test_barriers(self):
        for shape in self.SHAPES:
            tiles, steps = self.tiles(shape)
            wide = len(self.tiles(shape, 256)[0])
            pairs = ceil(shape[0], 256) * ceil(shape[1], 256)
            expected = (*[2 * len(tiles) * len(steps)] * 3, len(tiles) * len(steps), len(tiles) * (1 + len(steps)),
                        wide, 2 * 2 * pairs)
            self.assertEqual(tuple(int(self.counts[(*shape, rung)]["barriers"]) for rung in HALF_RUNGS), expected)

    def test_waits_at_mbarriers(self):
        """All threads of rung 31 wait once for each tile; of rungs 32 and 33 the consumers, and the one
        thread of the producer that starts the copies."""
        for shape in self.SHAPES:
            tiles, steps = self.tiles(shape)
            wide = len(self.tiles(shape, 256)[0])
            pairs = ceil(shape[0], 256) * ceil(shape[1], 256)
            expected = *[0] * 4, 256 * len(tiles) * len(steps), 257 * wide * len(steps), 257 * 2 * pairs * len(steps)
            self.assertEqual(tuple(int(self.counts[(*shape, rung)]["mbarrier_waits"]) for rung in HALF_RUNGS), expected)


class WholeTiles(unittest.TestCase):
    """256 x 256 x 128: two rows of tiles, and two steps of 64 along K."""
    COLUMNS = ("mma_requests", "wgmma_requests", "wgmma_bytes", "tma_load_requests", "tma_load_sectors", "tma_load_bytes",
               "tma_multicast_bytes", "tma_store_requests", "tma_store_sectors", "tma_store_bytes", "mbarrier_waits")
    EXPECTED = {
        # 256 * 256 * 128 multiplications, 16 * 8 * 16 of them by an instruction.
        "f16_fragments": (4096, *[0] * 10),
        # Four blocks, two steps: eight instructions of 64 x 128 x 16, which read 64 + 128 rows of 32 bytes; a box
        # of A with 128 rows of 128 bytes, and two of B with 64. 256 threads wait.
        "f16_wgmma": (0, 64, 64 * 6144, 24, 8192, 262144, 0, 0, 0, 0, 2048),
        # Two blocks, a cluster, two steps: eight instructions of 64 x 256 x 16; a box of A, and four of B with
        # 32 rows, which both blocks receive. Each block stores eight boxes of 64 rows. 257 threads wait.
        "f16_persistent": (0, 32, 32 * 10240, 20, 4096, 131072, 65536, 16, 4096, 131072, 1028),
    }

    def test_totals(self):
        folder = tempfile.mkdtemp(prefix="tegula-counts-")
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "c.csv")
        result = tegula("ladder", "--device", "sim", "--chapter", 2, "-m", 256, "-n", 256, "-k", 128, "--csv", path)
        self.assertEqual((result.code, result.err), (0, ""))
        rows = {row["rung"]: tuple(int(row[column]) for column in self.COLUMNS) for row in session.rows_of(path)}
        for rung, expected in self.EXPECTED.items():
            self.assertEqual(rows[rung], expected, rung)

    def test_explain(self):
        def explained(rung):
            result = tegula("explain", "--device", "sim", "--type", "f16", "-m", 256, "-n", 256, "-k", 128,
                            "--kernel", f"ladder/{rung}")
            self.assertEqual((result.code, result.err), (0, ""))
            text = re.search("counted in the last run\n(.*?)by line", result.out, re.S).group(1)
            return [re.split(" {2,}", line.strip()) for line in text.splitlines()]
        fragments, persistent = explained("f16_fragments"), explained("f16_persistent")
        self.assertIn(["mma.sync", "4096 requests"], fragments)
        self.assertFalse([line for line in fragments if line[0] in ("wgmma", "by TMA", "TMA loads", "multicast", "mbarrier waits")])
        self.assertIn(["wgmma", "32 requests", "327680 bytes of shared memory"], persistent)
        self.assertIn(["multicast", "65536 bytes to further blocks"], persistent)
        self.assertIn(["mbarrier waits", "1028 by threads"], persistent)
        self.assertIn(["TMA loads", "20 requests", "4096 sectors", "204.80 per request", "131072 bytes"], persistent)
        self.assertIn(["by TMA", "16 requests", "4096 sectors", "256.00 per request", "131072 bytes"], persistent)
        self.assertFalse([line for line in persistent if line[0] in ("mma.sync", "cp.async", "into shared")])


if __name__ == "__main__":
    unittest.main()
