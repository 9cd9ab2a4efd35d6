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

    def assert_failed(self, result, message):
        """One line on stderr, exit code 1, and nothing half done."""
        self.assertEqual(result.code, 1, result.err)
        self.assertEqual(result.out, "")
        self.assertEqual(result.err.count("\n"), 1, result.err)
        self.assertTrue(result.err.startswith("tegula mm: "), result.err)
        self.assertIn(message, result.err)
        self.assertEqual([n for n in os.listdir(self.folder) if n.startswith(".")], [])

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
        self.assert_failed(self.mm("A.npy", "B.npy", "-o", "C.npy"), "is 2 x 3 and op(B) is 4 x 5")
        self.assert_failed(self.mm("A.npy", "D.npy", "-o", "C.npy"), "A.npy is float32 and D.npy is")
        self.assert_failed(self.mm("A.npy", "E.npy", "-o", "C.npy", "--c", "E.npy"),
                           "E.npy is 3 x 5, the product is 2 x 5")
        self.assert_failed(self.mm("A.npy", "nothing.npy", "-o", "C.npy"), "No such file")
        self.assert_failed(self.mm("A.npy", ".", "-o", "C.npy"), "a folder")

    def test_a_product_too_large_for_memory(self):
        self.write("A.npy", npy_files.file(b"", shape="(1099511627776, 0)"))
        self.write("B.npy", npy_files.file(b"", shape="(0, 1099511627776)"))
        self.assert_failed(self.mm("A.npy", "B.npy", "-o", "C.npy"), "63 bits")
        self.write("B.npy", npy_files.file(b"", shape="(0, 1048576)"))
        self.assert_failed(self.mm("A.npy", "B.npy", "-o", "C.npy"), "memory")


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
            result = self.mm("A.npy", "B.npy", "-o", "C.npy", stdout=full)
        self.assertEqual(result.code, 1)
        self.assertIn("cannot write to standard output", result.err)


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
            env=dict(os.environ, TEGULA_CPU="portable"))
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
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            process = self.start()
            process.send_signal(number)
            process.communicate()
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
