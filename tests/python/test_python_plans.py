# SPDX-License-Identifier: Apache-2.0
"""Plans, devices, errors, threads, processes, and the structs of the C library."""

import ctypes
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import numpy as np
from python_support import Comparison, has_device, random_array

import tegula
from tegula import _library, _matmul, _plans


class Plans(Comparison, unittest.TestCase):
    def setUp(self):
        self.a, self.b = random_array((9, 7)), random_array((7, 5), seed=1)

    def test_run(self):
        plan = tegula.plan(self.a, self.b)
        for seed in range(3):
            a, b = random_array((9, 7), seed=seed), random_array((7, 5), seed=seed + 5)
            self.assert_product(plan(a, b), a, b)
            self.assert_product(plan(a, b, alpha=3), a, b, 3)
            out = np.empty((9, 5), np.float32)
            self.assertIs(plan(a, b, out), out)
            self.assert_product(out, a, b)
        self.assertIn("cpu/", plan.kernel)
        self.assertIn(plan.kernel, plan.explain())
        self.assertIn("(9, 7) @ (7, 5) on cpu", repr(plan))
        self.assertGreaterEqual(plan.workspace_bytes, 0)

    def test_operands(self):
        c, bias = random_array((9, 5), seed=2), random_array(5, seed=3)
        plan = tegula.plan(self.a, self.b, c=c, bias=bias, activation="relu")
        result = plan(self.a, self.b, c=c, bias=bias, beta=0.5)
        self.assert_product(result, self.a, self.b, 1.0, 0.5, c, bias, lambda x: np.maximum(x, 0))

    def test_plans_of_captured_runs_are_kept(self):
        destroyed = []
        def release(plan, destroy=_plans.lib.tgl_plan_destroy):
            destroyed.append(plan)
            destroy(plan)
        with mock.patch.object(_plans.lib, "tgl_plan_destroy", release):
            with _plans.plans_are_kept(True):
                tegula.matmul(self.a, self.b)
            tegula.matmul(self.a[:4], self.b)
            _plans.forget_plans()
            kept = list(_plans._kept.values())
            self.assertEqual([plan.recipe.layouts.a.shape for plan in kept], [(9, 7)])
            with _plans.plans_are_kept(False):
                tegula.matmul(self.a[:3], self.b)
        self.assertEqual(len(_plans._kept), 1)
        self.assertNotIn(kept[0].handle().plan.value, [plan.value for plan in destroyed])
        self.assertTrue(destroyed)

    def test_other_arrays(self):
        plan = tegula.plan(self.a, self.b)
        bias = random_array(5)
        for text, arguments, options in (
                ("a does not fit", (self.a.astype(np.float32, order="F"), self.b), {}),
                ("a does not fit", (self.a[:4], self.b), {}),
                ("out does not fit", (self.a, self.b, np.zeros((9, 5), np.float32, order="F")), {}),
                ("bias does not fit", (self.a, self.b), {"bias": bias}),
                ("type float64", (self.a.astype(float), self.b), {})):
            with self.assertRaisesRegex(ValueError, text):
                plan(*arguments, **options)

    def test_kernel(self):
        name = tegula.device("cpu").kernels()[0]
        self.assertEqual(tegula.plan(self.a, self.b, kernel=name).kernel, name)
        with self.assertRaises(ValueError) as caught:
            tegula.plan(self.a, self.b, kernel="none")
        self.assertEqual(caught.exception.status, "TGL_UNKNOWN_KERNEL")

    def test_explain(self):
        self.assertIn("m=9 n=5 k=7", tegula.explain(self.a, self.b))
        text = tegula.explain(self.a, self.b, chip=tegula.chips()[0], bias=random_array(5),
                              activation="gelu")
        self.assertIn("candidates", text)
        self.assertGreater(len(tegula.explain(np.empty((999, 999), np.float32),
                                              np.empty((999, 999), np.float32), chip="h200")), 4096)
        with self.assertRaises(tegula.TegulaError) as caught:
            tegula.explain(self.a, self.b, chip="abacus")
        self.assertEqual(caught.exception.status, "TGL_NO_DEVICE")

    def test_nothing_is_allocated(self):
        """Plans and explanations need no memory for results and copies."""
        a, b = random_array((9, 14))[:, ::2], self.b
        with mock.patch.object(_matmul, "empty_like", side_effect=AssertionError("a new array")), \
                mock.patch.object(_matmul, "row_major_copy", side_effect=AssertionError("a copy")):
            plan = tegula.plan(a, b)
            tegula.plan(a, b, np.zeros((9, 10), np.float32)[:, ::2])
            self.assertEqual(tegula.explain(a, b), plan.explain())
            tegula.explain(a, b, chip="h200")
            self.assertRaisesRegex(AssertionError, "a new array", plan, a, b)
        self.assert_product(plan(a, b), a, b)

    def test_cache(self):
        """Repeated products use one plan, and unused plans are destroyed."""
        _plans.forget_plans()
        with mock.patch.object(_plans, "Handle", wraps=_plans.Handle) as handle:
            for _ in range(5):
                tegula.matmul(self.a, self.b)
            self.assertEqual(handle.call_count, 1)
            for n in range(1, 300):
                tegula.matmul(np.ones((1, n)), np.ones((n, 1)))
            tegula.matmul(self.a, self.b)
            self.assertEqual(handle.call_count, 301)

    def test_pickle(self):
        for options in ({}, {"bias": random_array(5), "activation": "gelu"}):
            plan = tegula.plan(self.a, self.b, **options)
            copy = pickle.loads(pickle.dumps(plan))
            options.pop("activation", None)
            self.assertTrue(np.array_equal(copy(self.a, self.b, **options),
                                           plan(self.a, self.b, **options)))
        two = tegula.device("cpu", threads=2)
        self.assertIs(pickle.loads(pickle.dumps(two)), two)
        error = pickle.loads(pickle.dumps(tegula.ArgumentError("TGL_BAD_M", "m is -1")))
        self.assertEqual((error.status, str(error)), ("TGL_BAD_M", "m is -1 (TGL_BAD_M)"))


class Devices(unittest.TestCase):
    def test_device(self):
        cpu = tegula.device("cpu")
        self.assertIs(tegula.device("cpu"), cpu)
        self.assertEqual(cpu.name, "cpu")
        self.assertIn("threads", cpu.properties)
        one = tegula.device("cpu", threads=1)
        self.assertEqual(one.properties["threads"], "1")
        a = random_array((50, 50))
        self.assertTrue(np.array_equal(tegula.matmul(a, a, device=one), tegula.matmul(a, a)))
        cpu.sync()

    @unittest.skipUnless("TEGULA_TEST_CC" in os.environ, "needs a C compiler")
    def test_nvrtc_of_packages(self):
        """NVRTC in the packages of this Python is loaded, so that the library finds its name."""
        with tempfile.TemporaryDirectory() as folder:
            nvrtc = Path(folder, "nvidia/cu99/lib/libnvrtc.so.99")
            driver = Path(folder, "driver.so")
            nvrtc.parent.mkdir(parents=True)
            for library in nvrtc, driver:
                subprocess.run([os.environ["TEGULA_TEST_CC"], "-shared", "-xc", os.devnull, "-o",
                                library, f"-Wl,-soname,{library.name}"], check=True)
            code = ("import ctypes, sys, tegula; tegula.device(sys.argv[1])\n"
                    "try: ctypes.CDLL('libnvrtc.so.99'); print('loaded')\n"
                    "except OSError: pass")

            def is_loaded(name, **changes):
                environment = {"TEGULA_LIBCUDA": str(driver), **changes, "PYTHONPATH": os.pathsep.join(
                    (folder, os.environ["PYTHONPATH"]))}
                inherited = {k: v for k, v in os.environ.items() if k != "TEGULA_NVRTC"}
                ran = subprocess.run([sys.executable, "-c", code, name], text=True, capture_output=True,
                                     env={**inherited, **environment})
                self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                return ran.stdout == "loaded\n"
            self.assertTrue(is_loaded("auto"))
            self.assertFalse(is_loaded("cpu"))
            self.assertFalse(is_loaded("auto", TEGULA_NVRTC="/none.so"))
            self.assertFalse(is_loaded("auto", TEGULA_LIBCUDA="/none.so"))

    def test_errors(self):
        with self.assertRaises(tegula.TegulaError) as caught:
            tegula.device("tpu")
        self.assertEqual(caught.exception.status, "TGL_NO_DEVICE")
        self.assertIn("tpu", str(caught.exception))
        self.assertRaises(ValueError, tegula.device, "cpu", -1)
        a = random_array((2, 2))
        self.assertRaises(tegula.TegulaError, tegula.matmul, a, a, device="")
        for path in "/none.so", __file__:
            with self.assertRaisesRegex(ImportError, f"cannot be loaded: {path}: .*; .*set TEGULA_LIBRARY to"), \
                    mock.patch.dict(os.environ, TEGULA_LIBRARY=path):
                _library._load()


class Concurrency(Comparison, unittest.TestCase):
    def test_threads(self):
        """Threads share plans and open devices at the same time."""
        # For any cache, k is in one block, so that products with few and many rows have the same bits.
        a, b = random_array((150, 120)), random_array((120, 130), seed=1)
        expected = tegula.matmul(a, b)
        plan = tegula.plan(a, b)

        def work(number):
            same = [np.array_equal(plan(a, b), expected) for _ in range(20)]
            n = 20 + number % 3
            return all(same) and np.array_equal(tegula.matmul(a[:n], b), expected[:n]) and \
                tegula.device("cpu", threads=3) is tegula.device("cpu", threads=3)
        with ThreadPoolExecutor(8) as pool:
            self.assertTrue(all(pool.map(work, range(32))))

    def test_gil(self):
        """Other threads of Python run during a product, and do not wait for its end."""
        a = np.ones((1500, 1500))
        plan = tegula.plan(a, a, device=tegula.device("cpu", threads=1))
        started, done, times = threading.Event(), threading.Event(), []

        def record():
            while not done.is_set():
                times.append(time.monotonic())
                started.set()
        thread = threading.Thread(target=record)
        thread.start()
        started.wait()
        begin = time.monotonic()
        plan(a, a)
        end = time.monotonic()
        done.set()
        thread.join()
        within = [begin, *(t for t in times if begin < t < end), end]
        longest = max(after - before for before, after in zip(within, within[1:]))
        self.assertLess(longest, (end - begin) / 2)

    def test_fork(self):
        """A child of fork() uses the plans and devices that it inherits."""
        a, b = random_array((150, 170)), random_array((170, 130), seed=1)
        expected = tegula.matmul(a, b)
        plans = [tegula.plan(a, b)]
        if has_device("sim"):
            small = random_array((20, 20))
            plans.append(tegula.plan(small, small, device="sim"))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                good = np.array_equal(plans[0](a, b), expected)
                good = good and np.array_equal(tegula.matmul(a, b), expected)
                if len(plans) > 1:
                    good = good and np.allclose(plans[1](small, small), small @ small, atol=1e-5)
                plans.clear()
                code = 0 if good else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertTrue(np.array_equal(plans[0](a, b), expected))

    def test_processes(self):
        a, b = random_array((30, 40)), random_array((40, 20), seed=1)
        plan = tegula.plan(a, b)
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                results = pool.starmap(plan, [(a, b)] * 4)
                self.assertTrue(all(np.array_equal(r, plan(a, b)) for r in results))
                self.assertRaises(ValueError, pool.apply, tegula.matmul, (a, a))
                with self.assertRaises(TypeError) as caught:
                    pool.apply(tegula.matmul, (a, b.astype(float)))
                self.assertEqual(caught.exception.status, "TGL_BAD_TYPE")


class Library(unittest.TestCase):
    STRUCTS = {"tgl_device_options": _library.DeviceOptions, "tgl_problem": _library.Problem,
               "tgl_epilogue": _library.Epilogue, "tgl_plan_options": _library.PlanOptions,
               "tgl_operands": _library.Operands, "tgl_counters": _library.Counters}

    @unittest.skipUnless("TEGULA_TEST_CC" in os.environ, "needs a C compiler")
    def test_structs(self):
        """ctypes has the sizes and offsets of the C compiler."""
        lines, expected = [], []
        for name, struct in self.STRUCTS.items():
            lines.append(f"sizeof({name})")
            expected.append(ctypes.sizeof(struct))
            for member, *_ in struct._fields_:
                lines.append(f"offsetof({name}, {member})")
                expected.append(getattr(struct, member).offset)
        program = "#include <stdio.h>\n#include <tegula/tegula.h>\nint main(void) {\n" + "".join(
            f'printf("%zu ", {line});\n' for line in lines) + "}\n"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "sizes")
            subprocess.run([os.environ["TEGULA_TEST_CC"], "-xc", "-", "-o", path, "-I",
                            os.environ["TEGULA_TEST_INCLUDE"]], input=program, text=True,
                           check=True)
            out = subprocess.run([path], capture_output=True, text=True, check=True).stdout
        found = [int(x) for x in out.split()]
        self.assertEqual(dict(zip(lines, found)), dict(zip(lines, expected)))

    def test_version(self):
        self.assertRegex(tegula.__version__, r"^\d+\.\d+\.\d+$")

    def test_without_torch(self):
        with mock.patch.dict(sys.modules, torch=None), \
                self.assertRaisesRegex(ImportError, "needs PyTorch 2.4"):
            import tegula.torch  # noqa: F401

    def test_exit(self):
        """Nothing is printed when the interpreter ends with open devices and plans."""
        code = ("import tegula, numpy; a = numpy.ones((99, 99)); p = tegula.plan(a, a); p(a, a); "
                "tegula.matmul(a, a)")
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
