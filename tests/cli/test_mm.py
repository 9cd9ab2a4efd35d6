# SPDX-License-Identifier: Apache-2.0
"""tegula mm: files of NumPy in and out, hostile files, and whatever can go wrong with the output."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy
import npy_files
import session
from session import tegula


class Folder(unittest.TestCase):
    """A test in an empty folder."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tegula-mm-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.random = numpy.random.default_rng(1)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, contents):
        with open(self.path(name), "wb") as file:
            file.write(contents)

    def matrix(self, rows, columns, dtype="f4"):
        return self.random.standard_normal((rows, columns)).astype(dtype)

    def save(self, name, array):
        numpy.save(self.path(name), array)
        return array

    def mm(self, *args, **options):
        return tegula("mm", *args, cwd=self.folder, **options)

    def assert_done(self, result):
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertEqual(result.out.count("\n"), 1)

    def assert_failed(self, result, message, code=1):
        """Fails unless there is one line on stderr, this exit code, and no temporary file."""
        self.assertEqual(result.code, code, result.err)
        self.assertEqual(result.out, "")
        self.assertEqual(result.err.count("\n"), 1, result.err)
        self.assertTrue(result.err.startswith("tegula mm: "), result.err)
        self.assertIn(message, result.err)
        self.assertEqual([n for n in os.listdir(self.folder) if n.startswith(".")], [])

    def assert_misfit(self, result, message):
        """assert_failed() with the exit code for files or options whose types or sizes do not go together."""
        self.assert_failed(result, message, code=2)

    def assert_product(self, name, expected, tolerance=1e-4):
        product = numpy.load(self.path(name))
        self.assertEqual(product.shape, expected.shape)
        self.assertEqual(product.dtype, expected.dtype)
        self.assertLess(float(numpy.abs(product - expected).max(initial=0)), tolerance)
        return product


class Products(Folder):
    def test_types_and_orders(self):
        for dtype in "f4", "f8":
            for a_order in "C", "F":
                for b_order in "C", "F":
                    a = self.save("A.npy", numpy.asarray(self.matrix(7, 5, dtype), order=a_order))
                    b = self.save("B.npy", numpy.asarray(self.matrix(5, 9, dtype), order=b_order))
                    self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy"))
                    c = self.assert_product("C.npy", a @ b)
                    self.assertTrue(c.flags.c_contiguous)

    def test_transposes(self):
        a = self.save("A.npy", self.matrix(5, 7))
        b = self.save("B.npy", self.matrix(9, 5))
        self.assert_done(self.mm("A.npy", "B.npy", "--trans-a", "--trans-b", "-o", "C.npy"))
        self.assert_product("C.npy", a.T @ b.T)

    def test_scalars_and_c(self):
        a, b = self.save("A.npy", self.matrix(7, 5)), self.save("B.npy", self.matrix(5, 9))
        for order in "C", "F":
            c0 = self.save("C0.npy", numpy.asarray(self.matrix(7, 9), order=order))
            self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy", "--alpha", "-0.5", "--beta",
                                     "2", "--c", "C0.npy"))
            c = self.assert_product("C.npy", numpy.float32(-0.5) * (a @ b) + 2 * c0)
            self.assertTrue(c.flags.f_contiguous if order == "F" else c.flags.c_contiguous)
        self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy", "--c", "C0.npy"))
        self.assert_product("C.npy", a @ b + c0)

    def test_beta_0_does_not_read_c(self):
        a, b = self.save("A.npy", self.matrix(4, 4)), self.save("B.npy", self.matrix(4, 4))
        self.save("C0.npy", numpy.full((4, 4), numpy.nan, "f4"))
        self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy", "--c", "C0.npy", "--beta", "0"))
        self.assert_product("C.npy", a @ b)

    def test_empty_matrices(self):
        for m, n, k in (0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0):
            self.save("A.npy", numpy.zeros((m, k), "f4"))
            self.save("B.npy", numpy.zeros((k, n), "f4"))
            self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy"))
            self.assert_product("C.npy", numpy.zeros((m, n), "f4"))

    def test_output_may_be_an_input(self):
        a, b = self.save("A.npy", self.matrix(8, 8)), self.save("B.npy", self.matrix(8, 8))
        self.assert_done(self.mm("A.npy", "B.npy", "-o", "A.npy"))
        self.assert_product("A.npy", a @ b)
        self.assert_done(self.mm("B.npy", "B.npy", "-o", "B.npy", "--c", "B.npy"))
        self.assert_product("B.npy", b @ b + b)

    def test_larger_than_the_blocks(self):
        a, b = self.save("A.npy", self.matrix(700, 1100)), self.save("B.npy", self.matrix(1100, 300))
        self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy", "--threads", "2"))
        self.assert_product("C.npy", a @ b, 1e-2)

    def test_writes_the_same_bytes_as_numpy(self):
        self.save("A.npy", self.matrix(8, 8)), self.save("B.npy", self.matrix(8, 8))
        self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy"))
        self.save("D.npy", numpy.load(self.path("C.npy")))
        with open(self.path("C.npy"), "rb") as c, open(self.path("D.npy"), "rb") as d:
            self.assertEqual(c.read(), d.read())


def bfloat16_of(array):
    """float32 to bfloat16, rounded to nearest even, as ml_dtypes stores it: 2 bytes an element."""
    bits = array.astype("f4").view("u4").astype("u8")
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype("u2")


def float32_of(bfloat16):
    return (bfloat16.astype("u4") << 16).view("f4")


class Types(Folder):
    """Other types than float32; float16 and bfloat16 on the first device that has kernels."""

    def setUp(self):
        super().setUp()
        self.a, self.b = self.matrix(20, 30), self.matrix(30, 10)

    def run_if_supported(self, *args):
        for device in "cpu", "sim":
            result = self.mm(*args, "--device", device)
            if "TGL_UNSUPPORTED" not in result.err:
                self.assert_done(result)
                return
        self.skipTest("no device has kernels for this type")

    def test_float16(self):
        a, b = self.save("A.npy", self.a.astype("f2")), self.save("B.npy", self.b.astype("f2"))
        self.run_if_supported("A.npy", "B.npy", "-o", "C.npy")
        expected = a.astype("f8") @ b.astype("f8")
        c = numpy.load(self.path("C.npy"))
        self.assertEqual(c.dtype, numpy.dtype("f2"))
        self.assertLess(numpy.abs(c - expected).max(), 0.01)
        self.run_if_supported("A.npy", "B.npy", "-o", "C.npy", "--type-d", "f32")
        self.assert_product("C.npy", expected.astype("f4"), 1e-4)

    def test_bfloat16(self):
        a, b = bfloat16_of(self.a), bfloat16_of(self.b)
        self.save("A.npy", a.view("V2")), self.save("B.npy", b.view("V2"))
        for options in (), ("--type", "bf16"):
            self.run_if_supported("A.npy", "B.npy", "-o", "C.npy", *options)
            c = numpy.load(self.path("C.npy"))
            self.assertEqual((c.dtype.itemsize, c.dtype.kind), (2, "V"))
            difference = float32_of(c.view("u2")) - float32_of(a) @ float32_of(b)
            self.assertLess(numpy.abs(difference).max(), 0.1)

    def test_bfloat16_is_written_as_ml_dtypes_writes_it(self):
        self.write("A.npy", npy_files.file(b"", descr="<V2", shape="(0, 4)"))
        self.write("B.npy", npy_files.file(b"\0" * 24, descr="|V2", shape="(4, 3)"))
        result = self.mm("A.npy", "B.npy", "-o", "C.npy", "--device", "cpu")
        if "TGL_UNSUPPORTED" in result.err:
            self.skipTest("the cpu device has no bfloat16")
        with open(self.path("C.npy"), "rb") as file:
            self.assertIn(b"{'descr': '<V2', 'fortran_order': False, 'shape': (0, 3), }", file.read())

    def test_int8(self):
        a, b = (self.random.integers(-128, 128, shape).astype("i1") for shape in ((20, 30), (30, 10)))
        c0 = self.random.integers(-2**31, 2**31, (20, 10)).astype("i4")
        self.save("A.npy", a), self.save("B.npy", b), self.save("C0.npy", numpy.asfortranarray(c0))
        product = a.astype("i4") @ b.astype("i4")
        for options in (), ("--type", "i8"), ("--type-d", "i32"):
            self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy", "--device", "cpu", *options))
            self.assert_product("C.npy", product, 1)
        self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy", "--device", "cpu", "--c", "C0.npy", "--alpha",
                                 -2**31, "--beta", -3))
        wrapped = -2**31 * product.astype("i8") - 3 * c0.astype("i8")
        self.assert_product("C.npy", wrapped.astype("i4"), 1) # astype() wraps

    def test_int8_that_is_refused(self):
        a = self.save("A.npy", numpy.ones((4, 4), "i1"))
        self.save("I.npy", a.astype("i4")), self.save("F.npy", a.astype("f4"))
        for files, options, message in (
                (("A.npy", "A.npy"), ("--alpha", 0.5), "alpha is 0.5; products of i8 take integers of 32 bits"),
                (("A.npy", "A.npy"), ("--c", "I.npy", "--beta", "1e10"), "beta is 1e+10; products of i8"),
                (("A.npy", "A.npy"), ("--c", "F.npy"), "A.npy is int8 and F.npy is float32"),
                (("A.npy", "I.npy"), (), "I.npy is int32, and of integers only int8 can be multiplied"),
                (("A.npy", "F.npy"), (), "A.npy is int8 and F.npy is float32"),
                (("A.npy", "A.npy"), ("--type-d", "f32"), "and C is f32: that needs a scale")):
            self.assert_failed(self.mm(*files, "-o", "C.npy", "--device", "cpu", *options), message,
                               code=1 if "products of i8" in message else 2)

    def test_types_that_differ(self):
        self.save("A.npy", self.a.astype("f2")), self.save("B.npy", self.b)
        self.assert_misfit(self.mm("A.npy", "B.npy", "-o", "C.npy"), "A.npy is float16 and B.npy is float32")
        self.assert_misfit(self.mm("A.npy", "A.npy", "-o", "C.npy", "--type", "bf16"),
                           "A.npy is float16; --type asks for bfloat16")
        self.save("A.npy", self.a), self.save("C0.npy", numpy.zeros((20, 10), "f8"))
        self.assert_misfit(self.mm("A.npy", "B.npy", "-o", "C.npy", "--c", "C0.npy"),
                           "A.npy is float32 and C0.npy is float64")

    def test_complex_numbers(self):
        for dtype, bound in ("c8", 1e-4), ("c16", 1e-13):
            for order in "C", "F":
                with self.subTest(dtype=dtype, order=order):
                    a = self.save("A.npy", (self.a + 2j * self.a[::-1]).astype(dtype, order=order))
                    b = self.save("B.npy", (self.b - 1j * self.b[::-1]).astype(dtype))
                    self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy", "--device", "cpu", "--alpha", 2))
                    exact = 2 * a.astype("c16") @ b.astype("c16")
                    self.assert_product("C.npy", exact.astype(dtype), bound)
        self.save("B.npy", self.b)
        self.assert_misfit(self.mm("A.npy", "B.npy", "-o", "C.npy"), "A.npy is complex128 and B.npy is float32")


class Dimensions(Folder):
    """Vectors and batches, as numpy.matmul() takes them."""

    def test_vectors_and_batches(self):
        shapes = ((5,), (5,)), ((5,), (5, 3)), ((4, 5), (5,)), ((2, 4, 5), (2, 5, 3)), \
            ((4, 5), (2, 5, 3)), ((2, 4, 5), (5, 3)), ((1, 4, 5), (2, 5, 3)), ((2, 4, 5), (5,)), \
            ((5,), (2, 5, 3)), ((0, 4, 5), (5, 3)), ((2, 4, 0), (2, 0, 3))
        for a_shape, b_shape in shapes:
            for order in "C", "F":
                with self.subTest(a=a_shape, b=b_shape, order=order):
                    a = self.save("A.npy", numpy.asarray(self.random.standard_normal(a_shape), order=order))
                    b = self.save("B.npy", numpy.asarray(self.random.standard_normal(b_shape), order=order))
                    self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy"))
                    product = self.assert_product("C.npy", numpy.asarray(a @ b), 1e-12)
                    self.save("C0.npy", product)
                    self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy", "--c", "C0.npy")
                                     if product.ndim > 0 else self.mm("A.npy", "B.npy", "-o", "C.npy"))
                    if product.ndim > 0:
                        self.assert_product("C.npy", 2 * (a @ b), 1e-12)

    def test_transposed_batches(self):
        a = self.save("A.npy", self.random.standard_normal((3, 5, 4)))
        b = self.save("B.npy", self.random.standard_normal((6, 5)))
        self.assert_done(self.mm("A.npy", "B.npy", "--trans-a", "--trans-b", "-o", "C.npy"))
        self.assert_product("C.npy", a.transpose(0, 2, 1) @ b.T, 1e-12)

    def test_what_does_not_fit(self):
        self.save("a.npy", numpy.zeros((2, 4, 5))), self.save("b.npy", numpy.zeros((3, 5, 6)))
        self.save("v.npy", numpy.zeros(5)), self.save("c.npy", numpy.zeros((4, 6)))
        self.assert_misfit(self.mm("a.npy", "b.npy", "-o", "C.npy"), "a batch of 2 matrices and b.npy one of 3")
        self.assert_misfit(self.mm("v.npy", "v.npy", "-o", "C.npy", "--trans-a"), "v.npy is a vector")
        self.assert_misfit(self.mm("a.npy", "v.npy", "-o", "C.npy", "--c", "c.npy"),
                           "c.npy is 4 x 6, the product is 2 x 4")


class Archives(Folder):
    def setUp(self):
        super().setUp()
        self.a, self.b = self.matrix(6, 5), self.matrix(5, 4)

    def save_archives(self):
        numpy.savez(self.path("stored.npz"), a=self.a, b=self.b)
        numpy.savez_compressed(self.path("packed.npz"), a=self.a, b=self.b)

    def has_zlib(self):
        return "built without zlib" not in self.mm("packed.npz:a", "stored.npz:b", "-o", "C.npy").err

    def test_members(self):
        self.save_archives()
        self.assert_done(self.mm("stored.npz:a", "stored.npz:b", "-o", "C.npy"))
        self.assert_product("C.npy", self.a @ self.b)
        if not self.has_zlib():
            self.skipTest("built without zlib")
        self.assert_done(self.mm("packed.npz:a", "packed.npz:b.npy", "-o", "C.npy"))
        self.assert_product("C.npy", self.a @ self.b)

    def test_an_archive_with_a_single_array(self):
        numpy.savez(self.path("one.npz"), self.b)
        self.save("A.npy", self.a)
        self.assert_done(self.mm("A.npy", "one.npz", "-o", "C.npy"))
        self.assert_product("C.npy", self.a @ self.b)

    def test_names(self):
        self.save_archives()
        self.assert_failed(self.mm("stored.npz", "stored.npz:b", "-o", "C.npy"), "has the arrays a, b")
        self.assert_failed(self.mm("stored.npz:x", "stored.npz:b", "-o", "C.npy"), 'no array "x"; it has a, b')
        self.save("A.npy", self.a)
        shutil.copy(self.path("A.npy"), self.path("no.npz"))
        self.assert_failed(self.mm("no.npz:a", "stored.npz:b", "-o", "C.npy"), "not an .npz archive")
        shutil.copy(self.path("A.npy"), self.path("odd.npz:name"))
        self.assert_done(self.mm("odd.npz:name", "stored.npz:b", "-o", "C.npy"))

    def test_damaged_archives(self):
        """An archive that is cut off or has a changed byte gives an error or the right product."""
        self.save_archives()
        self.save("B.npy", self.b)
        for name in "stored.npz", "packed.npz":
            with open(self.path(name), "rb") as file:
                whole = file.read()
            for at in range(0, len(whole), 23):
                for contents in whole[:at], whole[:at] + bytes([whole[at] ^ 0xff]) + whole[at + 1:]:
                    self.write("x.npz", contents)
                    result = self.mm("x.npz:a", "B.npy", "-o", "C.npy")
                    self.assertIn(result.code, (0, 1), (name, at, result.err))
                    if result.code == 0:
                        self.assert_product("C.npy", self.a @ self.b)


class Streams(Folder):
    def test_standard_input_and_output(self):
        a, b = self.matrix(6, 5), self.save("B.npy", self.matrix(5, 4))
        self.save("A.npy", a)
        with open(self.path("A.npy"), "rb") as file:
            contents = file.read()
        for options in {"input": contents}, {"stdin": open(self.path("A.npy"), "rb")}:
            completed = subprocess.run([session.PROGRAM, "mm", "-", "B.npy", "-o", "-"], cwd=self.folder,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                                       check=False, **options)
            self.assertEqual(completed.returncode, 0, completed.stderr)
            self.write("C.npy", completed.stdout)
            self.assert_product("C.npy", a @ b)
            options.get("stdin", sys.stdin).close() if "stdin" in options else None
        result = self.mm("-", "-", "-o", "C.npy", input=contents)
        self.assertEqual(result.code, 2)
        self.assertIn("only one file can be -", result.err)
        self.assert_failed(self.mm("-", "B.npy", "-o", "C.npy", input=contents[:100]),
                           "standard input: the file is cut off")

    def test_an_empty_name(self):
        result = self.mm("A.npy", "B.npy", "-o", "")
        self.assertEqual(result.code, 2)
        self.assertIn("--output: the value is empty", result.err)

    def test_a_terminal_gets_no_bytes(self):
        self.save("A.npy", self.matrix(6, 6))
        main, terminal = session.open_terminal(self)
        result = self.mm("A.npy", "A.npy", "-o", "-", stdout=terminal)
        os.close(terminal)
        self.assertEqual(result.code, 2)
        self.assertIn("standard output is a terminal", result.err)
        self.assertRaises(OSError, os.read, main, 1) # the end: nothing was written
        os.close(main)


class Formats(Folder):
    def test_versions(self):
        a, b = self.matrix(6, 5), self.save("B.npy", self.matrix(5, 4))
        for version in (1, 0), (2, 0), (3, 0):
            with open(self.path("A.npy"), "wb") as file:
                numpy.lib.format.write_array(file, a, version=version)
            self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy"))
            self.assert_product("C.npy", a @ b)

    def test_byte_order_marks(self):
        a, b = self.matrix(2, 3), self.save("B.npy", self.matrix(3, 4))
        marks = "<=|" if sys.byteorder == "little" else ">=|"
        for descr in [mark + "f4" for mark in marks] + ["f4"]:
            self.write("A.npy", npy_files.file(a.tobytes(), descr=descr))
            self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy"))
            self.assert_product("C.npy", a @ b)

    def test_other_spellings(self):
        a, b = self.matrix(2, 3), self.save("B.npy", self.matrix(3, 4))
        for text in ('{"shape":(2,3),"fortran_order":False,"descr":"<f4"}',
                     "  { 'fortran_order' : False ,\t'descr':'<f4', 'shape': ( 2L, 3L, ) , }  "):
            self.write("A.npy", npy_files.header(text) + a.tobytes())
            self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy"))
            self.assert_product("C.npy", a @ b)

    def test_data_that_is_not_aligned(self):
        a, b = self.matrix(2, 3, "f8"), self.save("B.npy", self.matrix(3, 4, "f8"))
        for blanks in range(8):
            text = npy_files.dictionary(descr="<f8") + " " * blanks
            self.write("A.npy", npy_files.header(text, pad=False) + a.tobytes())
            self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy"))
            self.assert_product("C.npy", a @ b)

    def test_more_behind_the_data(self):
        a, b = self.matrix(2, 3), self.save("B.npy", self.matrix(3, 4))
        self.write("A.npy", npy_files.file(a.tobytes() + b"another array"))
        self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy"))
        self.assert_product("C.npy", a @ b)

    def test_pipes(self):
        a, b = self.save("A.npy", self.matrix(300, 200)), self.save("B.npy", self.matrix(200, 9))
        with open(self.path("A.npy"), "rb") as file:
            contents = file.read()
        self.assert_done(self.mm("/dev/stdin", "B.npy", "-o", "C.npy", input=contents))
        self.assert_product("C.npy", a @ b)


class Refusals(Folder):
    def test_hostile_files(self):
        self.save("B.npy", numpy.zeros((3, 4), "f4"))
        for name, (contents, message) in npy_files.HOSTILE.items():
            with self.subTest(name):
                self.write("A.npy", contents)
                self.assert_failed(self.mm("A.npy", "B.npy", "-o", "C.npy"), message)
                self.assertFalse(os.path.exists(self.path("C.npy")))

    def test_every_truncation(self):
        whole = npy_files.file(descr="<f4")
        self.save("B.npy", numpy.zeros((3, 4), "f4"))
        for length in list(range(0, 80, 7)) + list(range(len(whole) - 26, len(whole))):
            self.write("A.npy", whole[:length])
            self.assert_failed(self.mm("A.npy", "B.npy", "-o", "C.npy"), "A.npy: ")

    def test_files_that_do_not_fit(self):
        self.save("A.npy", self.matrix(2, 3)), self.save("B.npy", self.matrix(4, 5))
        self.save("D.npy", self.matrix(3, 5, "f8")), self.save("E.npy", self.matrix(3, 5))
        self.assert_misfit(self.mm("A.npy", "B.npy", "-o", "C.npy"), "is 2 x 3 and op(B) is 4 x 5")
        self.assert_misfit(self.mm("A.npy", "D.npy", "-o", "C.npy"), "A.npy is float32 and D.npy is")
        self.assert_misfit(self.mm("A.npy", "E.npy", "-o", "C.npy", "--c", "E.npy"),
                           "E.npy is 3 x 5, the product is 2 x 5")
        self.assert_failed(self.mm("A.npy", "nothing.npy", "-o", "C.npy"), "No such file")
        self.assert_failed(self.mm("A.npy", ".", "-o", "C.npy"), "a folder")

    def test_a_product_too_large_for_memory(self):
        self.write("A.npy", npy_files.file(b"", shape="(1099511627776, 0)"))
        self.write("B.npy", npy_files.file(b"", shape="(0, 1099511627776)"))
        self.assert_misfit(self.mm("A.npy", "B.npy", "-o", "C.npy"), "63 bits")
        self.write("B.npy", npy_files.file(b"", shape="(0, 1048576)"))
        self.assert_failed(self.mm("A.npy", "B.npy", "-o", "C.npy"), "memory")

    def test_a_product_that_the_host_would_be_stopped_for(self):
        """A product of 80 TB from two small files is refused before any of it is computed."""
        self.save("A.npy", numpy.ones((4500000, 1), "f4")), self.save("B.npy", numpy.ones((1, 4500000), "f4"))
        begin = time.monotonic()
        self.assert_failed(self.mm("A.npy", "B.npy", "-o", "C.npy", "--device", "cpu"),
                           "the product of 4500000 x 4500000 elements needs 81000.0 GB of memory; ")
        self.assertLess(time.monotonic() - begin, 5)


class Outputs(Folder):
    def setUp(self):
        super().setUp()
        self.a = self.save("A.npy", self.matrix(64, 64))
        self.b = self.save("B.npy", self.matrix(64, 64))

    def test_disk_full(self):
        self.assert_failed(self.mm("A.npy", "B.npy", "-o", "/dev/full"), "No space left on device")

    def test_file_too_large_keeps_the_old_one(self):
        self.write("C.npy", b"old")
        result = self.mm("A.npy", "B.npy", "-o", "C.npy",
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        self.assert_failed(result, "File too large")
        with open(self.path("C.npy"), "rb") as file:
            self.assertEqual(file.read(), b"old")

    def test_bad_places(self):
        self.assert_failed(self.mm("A.npy", "B.npy", "-o", "nowhere/C.npy"), "No such file")
        self.assert_failed(self.mm("A.npy", "B.npy", "-o", "A.npy/C.npy"), "Not a directory")
        self.assert_failed(self.mm("A.npy", "B.npy", "-o", "."), "Is a directory")
        self.assert_failed(self.mm("A.npy", "B.npy", "-o", "x" * 300), "File name too long")

    def as_nobody(self, *args):
        """Runs a copy of the program as a user who is not the superuser."""
        if os.geteuid() != 0:
            return self.mm(*args)
        for name in [self.folder] + [self.path(n) for n in os.listdir(self.folder)]:
            os.chmod(name, os.stat(name).st_mode | 0o055)
        bin_folder = tempfile.mkdtemp(prefix="tegula-bin-")
        self.addCleanup(shutil.rmtree, bin_folder)
        os.chmod(bin_folder, 0o755)
        program = shutil.copy(session.PROGRAM, bin_folder)
        return session.Result(subprocess.run([program, "mm", *args], cwd=self.folder, user=65534,
                                             capture_output=True, timeout=60, check=False))

    def test_folder_that_cannot_be_written(self):
        os.chmod(self.folder, 0o555)
        result = self.as_nobody("A.npy", "B.npy", "-o", "C.npy")
        os.chmod(self.folder, 0o755)
        self.assert_failed(result, "Permission denied")

    def test_file_that_cannot_be_written(self):
        self.write("C.npy", b"old")
        os.chmod(self.path("C.npy"), 0o444)
        os.chmod(self.folder, 0o777)
        self.assert_failed(self.as_nobody("A.npy", "B.npy", "-o", "C.npy"), "Permission denied")
        with open(self.path("C.npy"), "rb") as file:
            self.assertEqual(file.read(), b"old")

    def test_permissions_are_those_of_any_file(self):
        self.mm("A.npy", "B.npy", "-o", "C.npy", preexec_fn=lambda: os.umask(0o027))
        self.assertEqual(os.stat(self.path("C.npy")).st_mode & 0o777, 0o640)
        os.chmod(self.path("C.npy"), 0o600)
        self.mm("A.npy", "B.npy", "-o", "C.npy")
        self.assertEqual(os.stat(self.path("C.npy")).st_mode & 0o777, 0o600)

    def test_a_link_stays_a_link(self):
        os.mkdir(self.path("elsewhere"))
        self.write("elsewhere/real.npy", b"old")
        os.symlink("elsewhere/real.npy", self.path("C.npy"))
        self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy"))
        self.assertTrue(os.path.islink(self.path("C.npy")))
        self.assert_product("elsewhere/real.npy", self.a @ self.b)

    def test_a_link_to_a_file_that_is_not_there_yet(self):
        os.mkdir(self.path("elsewhere"))
        os.symlink("elsewhere/first.npy", self.path("C.npy"))
        os.symlink(self.path("elsewhere/real.npy"), self.path("elsewhere/first.npy"))
        self.assert_done(self.mm("A.npy", "B.npy", "-o", "C.npy"))
        self.assertTrue(os.path.islink(self.path("C.npy")))
        self.assertTrue(os.path.islink(self.path("elsewhere/first.npy")))
        self.assert_product("elsewhere/real.npy", self.a @ self.b)
        os.symlink("round.npy", self.path("round.npy"))
        self.assert_failed(self.mm("A.npy", "B.npy", "-o", "round.npy"), "Too many levels of symbolic links")

    def assert_product_in(self, contents):
        self.write("D.npy", contents)
        self.assert_product("D.npy", self.a @ self.b)

    def test_standard_output(self):
        os.symlink("/dev/stdout", self.path("link"))
        for name in "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link":
            completed = subprocess.run([session.PROGRAM, "mm", "A.npy", "B.npy", "-o", name],
                                       cwd=self.folder, capture_output=True, timeout=60, check=False)
            self.assertEqual(completed.returncode, 0, completed.stderr)
            self.assertTrue(completed.stderr.startswith(b"64 x 64 x 64 f32 on "), completed.stderr)
            self.assert_product_in(completed.stdout)

    def test_standard_output_that_appends_to_a_file(self):
        for mode, before in ("ab", b"before"), ("wb", b""):
            self.write("log", b"before")
            with open(self.path("log"), mode) as log:
                result = self.mm("A.npy", "B.npy", "-o", "/dev/stdout", stdout=log)
            self.assertEqual(result.code, 0, result.err)
            with open(self.path("log"), "rb") as log:
                contents = log.read()
            self.assertTrue(contents.startswith(before))
            self.assert_product_in(contents[len(before):])

    def test_descriptors(self):
        reading, writing = os.pipe()
        result = self.mm("A.npy", "B.npy", "-o", f"/dev/fd/{writing}", pass_fds=[writing])
        os.close(writing)
        self.assertEqual((result.code, result.out), (0, ""))
        with open(reading, "rb") as pipe:
            self.assert_product_in(pipe.read())
        self.assert_failed(self.mm("A.npy", "B.npy", "-o", "/dev/fd/77"), "Bad file descriptor")

    def test_a_fifo(self):
        os.mkfifo(self.path("fifo"))
        with subprocess.Popen(["cat", "fifo"], cwd=self.folder, stdout=subprocess.PIPE) as cat:
            result = self.mm("A.npy", "B.npy", "-o", "fifo")
            contents = cat.communicate(timeout=60)[0]
        self.assertEqual((result.code, result.out), (0, ""))
        self.assert_product_in(contents)

    def test_stdout_that_cannot_be_written(self):
        with open("/dev/full", "wb") as full:
            for old in (None, b"the old file"):
                if old is not None:
                    with open(self.path("C.npy"), "wb") as file:
                        file.write(old)
                result = self.mm("A.npy", "B.npy", "-o", "C.npy", stdout=full)
                self.assertEqual(result.code, 1)
                self.assertIn("cannot write to standard output: No space left on device; C.npy stays", result.err)
                self.assertEqual(result.err.count("\n"), 1, result.err)
                if old is None:
                    self.assertFalse(os.path.exists(self.path("C.npy")))
                else:
                    with open(self.path("C.npy"), "rb") as file:
                        self.assertEqual(file.read(), old)
        self.assertEqual([n for n in os.listdir(self.folder) if n.startswith(".")], [])


@unittest.skipIf("thread" in os.environ.get("TEGULA_SANITIZED", ""),
                 "ThreadSanitizer delivers signals late")
class Interruptions(Folder):
    """The program is stopped between the start of its work and the end."""

    def start(self):
        size = 3000
        zeros = numpy.zeros((size, size), "f4")
        self.save("A.npy", zeros), self.save("B.npy", zeros)
        self.write("C.npy", b"old")
        process = subprocess.Popen(
            [session.PROGRAM, "mm", "A.npy", "B.npy", "-o", "C.npy", "--device", "cpu", "--threads",
             "1"], cwd=self.folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
            env=dict(os.environ, TEGULA_CPU="portable"),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
        while process.poll() is None and not self.temporaries():
            time.sleep(0.002)
        return process

    def temporaries(self):
        return [name for name in os.listdir(self.folder) if name.startswith(".C.npy.")]

    def assert_nothing_happened(self):
        self.assertEqual(self.temporaries(), [])
        with open(self.path("C.npy"), "rb") as file:
            self.assertEqual(file.read(), b"old")

    def test_signals(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE:
            process = self.start()
            begin = time.monotonic()
            process.send_signal(number)
            process.communicate()
            self.assertLess(time.monotonic() - begin, 1)
            self.assertEqual(process.returncode, -number)
            self.assert_nothing_happened()

    def test_inputs_cut_short_meanwhile(self):
        process = self.start()
        for name in "A.npy", "B.npy":
            os.truncate(self.path(name), 0)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 1)
        self.assertIn(b"became shorter while it was read", err)
        self.assert_nothing_happened()


@unittest.skipIf("thread" in os.environ.get("TEGULA_SANITIZED", ""), "signals come late")
class LongWork(Folder):
    def test_a_long_product_says_so_and_stops_at_once(self):
        """A product that takes an hour on the simulator. The estimate assumes a constant rate."""
        zeros = numpy.zeros((4096, 4096), "f4")
        self.save("A.npy", zeros)
        process = subprocess.Popen([session.PROGRAM, "mm", "A.npy", "A.npy", "-o", "C.npy", "--device", "sim"],
                                   cwd=self.folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        note = process.stderr.readline()
        self.assertRegex(note, rb"^note: the product takes about \d+ minutes on sim\n$")
        time.sleep(1)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, 1)
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertEqual(os.listdir(self.folder), ["A.npy"])

    def test_progress_on_a_terminal_only(self):
        self.save("A.npy", numpy.zeros((600, 600), "f4"))
        command = [session.PROGRAM, "mm", "A.npy", "A.npy", "-o", "C.npy", "--device", "sim"]
        main, terminal = session.open_terminal(self)
        with subprocess.Popen(command, cwd=self.folder, stderr=terminal, stdout=subprocess.DEVNULL,
                              env=dict(os.environ, TERM="xterm", OMP_NUM_THREADS="1")) as process:
            os.close(terminal)
            shown = os.read(main, 1000)
            process.kill()
        os.close(main)
        self.assertIn(b"multiplying (estimated)", shown)
        self.assertIn(b"\x1b[K", shown)
        with subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              env=dict(os.environ, OMP_NUM_THREADS="1")) as process:
            time.sleep(3)
            process.kill()
            self.assertEqual(process.stderr.read(), b"")

    def test_more_threads_than_processors(self):
        self.save("A.npy", numpy.zeros((6, 6), "f4"))
        most = len(os.sched_getaffinity(0))
        for threads in 1, 4 * most:
            result = self.mm("A.npy", "A.npy", "-o", "C.npy", "--device", "cpu", "--threads", threads)
            self.assert_done(result)
            self.assertEqual(len(result.notes), int(threads > 1), result.notes)
        self.assertRegex(result.notes[0], rf"{4 * most} threads on \d+ processors?")


@unittest.skipUnless("TEGULA_PAIR" in os.environ, "TEGULA_PAIR names no program")
class Pair(Folder):
    """examples/pair.c, by which `make run` judges a product."""

    def check(self, c):
        self.save("C.npy", c)
        return subprocess.run([os.environ["TEGULA_PAIR"], "check", "3", "4", "5", "A.npy", "B.npy", "C.npy"],
                              cwd=self.folder, stdout=subprocess.PIPE, timeout=60, check=False).returncode

    def test_what_is_wrong_anywhere_fails(self):
        subprocess.run([os.environ["TEGULA_PAIR"], "make", "3", "4", "5", "A.npy", "B.npy"],
                       cwd=self.folder, timeout=60, check=True)
        c = numpy.load(self.path("A.npy")) @ numpy.load(self.path("B.npy"))
        self.assertEqual(self.check(c), 0)
        for row in range(3):
            for wrong in numpy.nan, numpy.inf, 0.5:
                other = c.copy()
                other[row, 1] += numpy.float32(wrong)
                self.assertEqual(self.check(other), 1, (row, wrong))


if __name__ == "__main__":
    unittest.main()
