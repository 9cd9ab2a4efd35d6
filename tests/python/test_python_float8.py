# SPDX-License-Identifier: Apache-2.0
"""Products of 8-bit floating-point types, and scales of them and of int8."""

import unittest

import numpy as np

import tegula
from tegula._library import TYPES

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

generator = np.random.default_rng(45)


def floats(shape, dtype):
    return generator.uniform(-2, 2, shape).astype(np.float32).astype(dtype)


@unittest.skipIf(ml_dtypes is None, "ml_dtypes is not installed")
class Float8(unittest.TestCase):
    def check(self, result, a, b, scale, tolerance):
        exact = a.astype(np.float64) @ b.astype(np.float64) * scale
        size = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)) * np.abs(scale)
        self.assertTrue(np.all(np.abs(result.astype(np.float64) - exact) <= tolerance * (size + np.abs(exact))))

    def test_types_and_scales(self):
        for type_a, type_b in ((ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
                               (ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn)):
            a, b = floats((37, 60), type_a), floats((60, 21), type_b)
            result = tegula.matmul(a, b)
            self.assertEqual(result.dtype, ml_dtypes.bfloat16)
            self.check(result, a, b, 1, 2**-8)
            out = np.empty((37, 21), np.float32)
            rows = generator.uniform(1, 2, (37, 1)).astype(np.float32)
            columns = generator.uniform(1, 2, 21).astype(np.float32)
            tegula.matmul(a, b, out, scale_a=rows, scale_b=columns)
            self.check(out, a, b, rows * columns, 2**-17)
            tegula.matmul(a, b, out, scale_a=np.float32([3]), scale_b=columns)
            self.check(out, a, b, 3 * columns, 2**-17)

    def test_out_that_overlaps_factors(self):
        a, b = floats((8, 16), ml_dtypes.float8_e4m3fn), floats((16, 8), ml_dtypes.float8_e4m3fn)
        for name, line in ("scale_a", (slice(None), slice(1))), ("scale_b", (slice(1), slice(None))):
            out = generator.uniform(1, 2, (8, 8)).astype(np.float32)
            before = out[line].copy()
            tegula.matmul(a, b, out, **{name: out[line]})
            self.check(out, a, b, before, 2**-17)

    def test_transposed_and_8_bit_results(self):
        a, b = floats((30, 16), ml_dtypes.float8_e4m3fn).T, floats((8, 30), ml_dtypes.float8_e4m3fn).T
        out = np.empty((16, 8), ml_dtypes.float8_e5m2)
        tegula.matmul(a, b, out, scale_a=np.float32([0.5]))
        self.check(out, a, b, 0.5, 2**-3)
        with self.assertRaises(TypeError):
            tegula.matmul(a, b, out)  # it needs a scale

    def blocks(self, rows, columns):
        """Factors of blocks of rows x columns."""
        return generator.uniform(0.5, 2, (rows, columns)).astype(np.float32)

    def check_blocks(self, m, n, k, scale_a, scale_b, tolerance=2**-16):
        """Checks a product. Shapes of the factors: (m or m/128, k/128) and (k/128, n or n/128)."""
        a, b = floats((m, k), ml_dtypes.float8_e4m3fn), floats((n, k), ml_dtypes.float8_e4m3fn).T
        out = np.empty((m, n), np.float32)
        tegula.matmul(a, b, out, scale_a=scale_a, scale_b=scale_b)
        of_k = np.arange(k) // 128
        of_a = scale_a[np.arange(m) // (1 if scale_a.shape[0] == m else 128)][:, of_k]
        of_b = scale_b[of_k][:, np.arange(n) // (1 if scale_b.shape[1] == n else 128)]
        self.check(out, a.astype(np.float64) * of_a, b.astype(np.float64) * of_b, 1, tolerance)

    def test_factors_of_blocks(self):
        m, n, k = 37, 200, 300
        lines_a, lines_b = self.blocks(m, 3), self.blocks(3, n)
        blocks_a, blocks_b = self.blocks(1, 3), self.blocks(3, 2)
        for scale_a in lines_a, np.asfortranarray(lines_a), blocks_a:
            for scale_b in lines_b, blocks_b, np.asfortranarray(blocks_b):
                self.check_blocks(m, n, k, scale_a, scale_b)
        # Blocks of k padded to a multiple of 4, as cuBLASLt has them. One row; k of one block.
        self.check_blocks(m, n, k, lines_a, self.blocks(2, 4).T)
        self.check_blocks(1, n, k, self.blocks(1, 3), blocks_b)
        self.check_blocks(m, n, 100, self.blocks(m, 1), self.blocks(1, 2))
        self.check_blocks(1, n, 100, self.blocks(1, 1), self.blocks(1, 2))

    def check_groups(self, a, b, scale_a, scale_b, sizes=None):
        """Checks a product of 4 groups: rows of a up to those in offs, or, with `sizes`, the first
        rows of each matrix of a. scale_a, scale_b: the factors, and the same spread over the
        elements."""
        offs = None if sizes is not None else np.array([3, 3, 30, 37], np.int32)
        first = [0, 3, 3, 30] if sizes is None else [0] * 4
        end = [3, 3, 30, 37] if sizes is None else sizes
        out = np.full(a.shape[:-1] + (b.shape[-1],), 7, np.float32)
        result = tegula.grouped_matmul(a, b, offs, sizes=sizes, out=out, scale_a=scale_a[0], scale_b=scale_b[0])
        self.assertIs(result, out)
        x, y = a.astype(np.float64) * scale_a[1], b.astype(np.float64) * scale_b[1]
        for group in range(4):
            rows = slice(first[group], end[group])
            of_a, of_d = (x, out) if sizes is None else (x[group], out[group])
            self.check(of_d[rows], of_a[rows], y[group], 1, 2**-16)
        self.assertTrue((out[37:] == 7).all() if sizes is None else
                        all((out[group, sizes[group]:] == 7).all() for group in range(4)))

    def test_groups(self):
        m, n, k = 40, 200, 300
        a, b = floats((m, k), ml_dtypes.float8_e4m3fn), floats((4, n, k), ml_dtypes.float8_e4m3fn)
        b = b.transpose(0, 2, 1)
        masked = floats((4, m, k), ml_dtypes.float8_e4m3fn)
        draw = lambda *shape: generator.uniform(0.5, 2, shape).astype(np.float32)
        of_k, of_n = np.arange(k) // 128, np.arange(n) // 128
        one, lines, parts = draw(1), draw(m), draw(m, 3)
        ones, columns, blocks, columns_parts = draw(4), draw(4, n), draw(4, 2, 3), draw(4, 3, n)
        pairs = [((one, one), (ones, ones[:, None, None])),
                 ((lines, lines[:, None]), (columns, columns[:, None, :])),
                 ((lines[:, None], lines[:, None]), (columns[:, None, :], columns[:, None, :]))]
        spread = blocks.transpose(0, 2, 1)[:, of_k][:, :, of_n]
        for x in parts, np.asfortranarray(parts):
            for y in blocks.transpose(0, 2, 1), blocks.transpose(0, 2, 1).copy():
                pairs.append(((x, parts[:, of_k]), (y, spread)))
            padded = np.zeros((4, 2, 4), np.float32)  # blocks of k are padded to a multiple of 4
            padded[:, :, :3] = blocks
            pairs.append(((x, parts[:, of_k]), (padded.transpose(0, 2, 1), spread)))
            pairs.append(((x, parts[:, of_k]), (columns_parts, columns_parts[:, of_k])))
        for scale_a, scale_b in pairs:
            self.check_groups(a, b, scale_a, scale_b)
        sizes = np.array([0, 40, 1, 17], np.int32)
        each, by_row = draw(4), draw(4, 3, m).transpose(0, 2, 1)
        self.check_groups(masked, b, (each, each[:, None, None]), pairs[0][1], sizes)
        for x in by_row, by_row.copy():  # the first as DeepGEMM has it
            self.check_groups(masked, b, (x, by_row[:, :, of_k]), pairs[3][1], sizes)

    def test_groups_are_refused(self):
        a, b = floats((40, 300), ml_dtypes.float8_e4m3fn), floats((4, 300, 200), ml_dtypes.float8_e4m3fn)
        offs, one = np.array([3, 3, 30, 37], np.int32), np.ones(1, np.float32)
        with self.assertRaisesRegex(ValueError, "scale_b has the shape .3,.; it must have factors for each of 4 groups"):
            tegula.grouped_matmul(a, b, offs, scale_a=one, scale_b=np.ones(3, np.float32))
        with self.assertRaisesRegex(ValueError, "scale_b.i. has the shape .7,.; it must have one element"):
            tegula.grouped_matmul(a, b, offs, scale_a=one, scale_b=np.ones((4, 7), np.float32))
        with self.assertRaisesRegex(NotImplementedError, "a block of 128 rows would have rows of several groups"):
            tegula.grouped_matmul(a, b, offs, scale_a=self.blocks(1, 3), scale_b=np.ones((4, 3, 2), np.float32))
        with self.assertRaisesRegex(NotImplementedError, "TGL_GROUPED_DEPTH have no scales"):
            tegula.grouped_matmul(a, b[0], offs, scale_a=one)

    def test_factors_of_blocks_are_refused(self):
        a, b = floats((37, 300), ml_dtypes.float8_e4m3fn), floats((300, 200), ml_dtypes.float8_e4m3fn)
        with self.assertRaisesRegex(NotImplementedError, "scaling_a is for blocks, and scaling_b is not"):
            tegula.matmul(a, b, scale_a=self.blocks(37, 3))
        with self.assertRaisesRegex(ValueError, "scale_b has the shape \\(2, 2\\)"):
            tegula.matmul(a, b, scale_a=self.blocks(37, 3), scale_b=self.blocks(2, 2))

    def test_other_forms_are_refused(self):
        for name in "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz":
            a = floats((4, 4), getattr(ml_dtypes, name))
            with self.assertRaisesRegex(TypeError, name):
                tegula.matmul(a, a)


class ScaledInt8(unittest.TestCase):
    def test_result(self):
        a = generator.integers(-128, 128, (19, 50), np.int8)
        b = generator.integers(-128, 128, (50, 23), np.int8)
        rows = generator.uniform(0.5, 2, 19).astype(np.float32)
        result = tegula.matmul(a, b, scale_a=rows, scale_b=np.float32(0.25).reshape(1, 1))
        self.assertEqual(result.dtype, np.float32)
        exact = a.astype(np.int64) @ b.astype(np.int64) * rows[:, None].astype(np.float64) * 0.25
        self.assertTrue(np.allclose(result, exact, rtol=1e-6, atol=0))
        out = np.empty((19, 23), np.int8)
        tegula.matmul(a, b, out, scale_a=np.float32([2**-10]))
        whole = np.clip(np.rint((a.astype(np.int64) @ b.astype(np.int64)) * 2.0**-10), -128, 127)
        self.assertTrue(np.array_equal(out, whole))

    def test_errors(self):
        a = np.ones((4, 6), np.int8)
        b = np.ones((6, 5), np.int8)
        with self.assertRaisesRegex(ValueError, "scale_a has the shape \\(5,\\)"):
            tegula.matmul(a, b, scale_a=np.ones(5, np.float32))
        with self.assertRaisesRegex(TypeError, "scale_b has the type float64"):
            tegula.matmul(a, b, scale_b=np.ones(5))
        for x, y in ((a.astype(np.float16), b), (a, b.astype(np.float16))):
            with self.assertRaisesRegex(TypeError, "a and b have different types"):
                tegula.matmul(x, y)
        with self.assertRaises(NotImplementedError):
            tegula.matmul(a, b, np.empty((4, 5), np.int32), scale_a=np.ones(1, np.float32))
        with self.assertRaises(NotImplementedError):
            tegula.matmul(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32),
                          scale_a=np.ones(1, np.float32))


class Names(unittest.TestCase):
    def test_sizes_are_known(self):
        from tegula._library import TYPE_SIZES
        self.assertEqual(set(TYPES.values()), set(TYPE_SIZES))


if __name__ == "__main__":
    unittest.main()
