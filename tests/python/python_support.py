# SPDX-License-Identifier: Apache-2.0
"""For tests of the package: random arrays in many layouts, and a comparison with NumPy in float64."""

import numpy as np

import tegula

try:
    import ml_dtypes
    BFLOAT16 = [np.dtype(ml_dtypes.bfloat16)]
except ImportError:
    BFLOAT16 = []

DTYPES = [np.dtype(name) for name in ("float32", "float64", "float16")] + BFLOAT16
# For each type its unit roundoff, and that of the type in which its products are accumulated.
ROUNDOFF = {"float32": (2.0**-24, 2.0**-24), "float64": (2.0**-53, 2.0**-53),
            "float16": (2.0**-11, 2.0**-24), "bfloat16": (2.0**-8, 2.0**-24)}


def has_device(name):
    try:
        tegula.device(name)
    except tegula.TegulaError:
        return False
    return True


def random_array(shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def layouts(x):
    """Arrays with the values of x in other layouts, each with whether BLAS can express its strides."""
    rows, columns = x.shape[-2:]
    batch = x.shape[:-2]
    filler = np.iinfo(x.dtype).min if x.dtype.kind == "i" else np.nan

    def within(shape, index):
        """The values of x as a view of a larger array of NaN, or of the least integer."""
        view = np.full(batch + shape, filler, x.dtype)[(...,) + index]
        view[...] = x
        return view

    turned = np.array(np.swapaxes(x, -1, -2), order="C")
    padded = within((rows, columns + 3), (slice(None), slice(columns)))
    yield "row-major", x.copy(), True
    yield "column-major", np.swapaxes(turned, -1, -2), True
    yield "padded rows", padded, True
    yield "every second row", within((2 * rows, columns), (slice(None, None, 2), slice(None))), True
    yield "every second column", within((rows, 2 * columns),
                                        (slice(None), slice(None, None, 2))), False
    yield "rows reversed", x[..., ::-1, :].copy()[..., ::-1, :], False
    yield "columns reversed", x[..., ::-1].copy()[..., ::-1], False
    raw = np.zeros(x.nbytes + 1, np.uint8)
    misaligned = raw[1:].view(x.dtype).reshape(x.shape)
    misaligned[...] = x
    yield "misaligned", misaligned, False


class Comparison:
    """A base class of test cases, which compares results with the formula computed in float64."""

    def assert_product(self, result, a, b, alpha=1.0, beta=0.0, c=None, bias=None, function=None):
        a64, b64 = np.asarray(a, np.float64), np.asarray(b, np.float64)
        expected = alpha * (a64 @ b64)
        size = abs(alpha) * (abs(a64) @ abs(b64))
        for term, factor in ((c, beta), (bias, 1.0)):
            if term is not None and factor != 0:
                expected = expected + factor * np.asarray(term, np.float64)
                size = size + abs(factor * np.asarray(term, np.float64))
        if function is not None:
            expected = function(expected)
        self.assertEqual(np.shape(result), np.shape(expected))
        unit, accumulated = ROUNDOFF[np.asarray(result).dtype.name]
        tolerance = (a64.shape[-1] + 8) * accumulated * size + 2 * unit * (abs(expected) + 1e-30)
        error = abs(np.asarray(result, np.float64) - expected)
        largest = np.max(error / tolerance, initial=0)
        # The comparison is written so that a NaN fails it.
        self.assertTrue(np.all(error <= tolerance), f"the error is {largest:.3g} tolerances")
