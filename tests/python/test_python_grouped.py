# SPDX-License-Identifier: Apache-2.0
"""grouped_matmul() on NumPy arrays: results, layouts, arguments that are refused."""

import unittest

import numpy as np
from python_support import has_device

import tegula

SIZES = np.array([3, 0, 7, 1], np.int32)
OFFS = np.cumsum(SIZES, dtype=np.int32)


def small(shape, seed=0):
    """Small integers: products are exact."""
    return np.random.default_rng(seed).integers(-4, 4, shape).astype(np.float32)


def by_group(a, b):
    first, parts = 0, []
    for group, size in enumerate(SIZES):
        parts.append(a[first:first + size] @ b[group])
        first += size
    return np.concatenate(parts)


class Grouped(unittest.TestCase):
    def test_rows(self):
        a, b = small((11, 6)), small((4, 6, 5), 1)
        for device in (None, "sim") if has_device("sim") else (None,):
            for x in a, np.asfortranarray(a):
                for y in b, b.transpose(0, 2, 1).copy().transpose(0, 2, 1):
                    result = tegula.grouped_matmul(x, y, OFFS, device=device)
                    np.testing.assert_array_equal(result, by_group(a, b))
        np.testing.assert_array_equal(tegula.grouped_matmul(a, b, sizes=SIZES), by_group(a, b))

    def test_rows_behind_the_last_group_stay(self):
        a, b = small((20, 6)), small((4, 6, 5), 1)
        out = np.full((20, 5), 7, np.float32)
        self.assertIs(tegula.grouped_matmul(a, b, OFFS, out=out), out)
        np.testing.assert_array_equal(out[:11], by_group(a, b))
        self.assertTrue((out[11:] == 7).all())

    def test_depth(self):
        a, b = small((6, 11)), small((11, 5), 1)
        result = tegula.grouped_matmul(a, b, OFFS)
        self.assertEqual(result.shape, (4, 6, 5))
        for group, (end, size) in enumerate(zip(OFFS, SIZES)):
            part = slice(end - size, end)
            np.testing.assert_array_equal(result[group], a[:, part] @ b[part])

    def test_masked(self):
        a, b = small((4, 8, 6)), small((4, 6, 5), 1)
        out = np.zeros((4, 8, 5), np.float32)
        tegula.grouped_matmul(a, b, sizes=SIZES, out=out)
        for group, size in enumerate(SIZES):
            np.testing.assert_array_equal(out[group, :size], a[group, :size] @ b[group])
            self.assertTrue((out[group, size:] == 0).all())

    def test_bias_and_activation(self):
        a, b, bias = small((11, 6)), small((4, 6, 5), 1), small((4, 5), 2)
        result = tegula.grouped_matmul(a, b, OFFS, bias=bias, activation="relu")
        expected = by_group(a, b) + np.repeat(bias, SIZES, axis=0)
        np.testing.assert_array_equal(result, np.maximum(expected, 0))

    def test_refused(self):
        a, b = small((11, 6)), small((4, 6, 5), 1)
        with self.assertRaises(tegula.ArgumentError):
            tegula.grouped_matmul(a[:10], b, OFFS)  # a group ends behind the rows
        for offs, sizes in (None, None), (OFFS, SIZES), (OFFS.astype(np.int64), None):
            with self.assertRaises(TypeError):
                tegula.grouped_matmul(a, b, offs, sizes=sizes)
        with self.assertRaises(ValueError):
            tegula.grouped_matmul(a, b[:3], OFFS)
        with self.assertRaises(ValueError):
            tegula.grouped_matmul(a[:, :5], b, OFFS)
        with self.assertRaises(ValueError):
            tegula.grouped_matmul(a, b, OFFS, bias=small((4, 4)))
        with self.assertRaises(ValueError):
            tegula.grouped_matmul(a, b, OFFS, out=np.zeros((11, 4), np.float32))


if __name__ == "__main__":
    unittest.main()
