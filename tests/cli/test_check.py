# SPDX-License-Identifier: Apache-2.0
"""tegula check: what it finds, what it writes, and that failures are seen."""

import os
import re
import signal
import subprocess
import time
import unittest

import session
from session import Folder, tegula


class Check(Folder):
    def test_passes(self):
        result = tegula("check", "--cases", 60, "--device", "cpu")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertRegex(result.out, r"\n\d+ passed, 0 failed on cpu; max error \d")

    def test_nothing_was_checked(self):
        """The message says why nothing was checked, and no "N passed" precedes it."""
        empty = "no product has an element to compare"
        unsupported = "no kernel takes these problems; the last one: .*it multiplies f32 matrices only"
        for reason, options in (empty, ["--device", "cpu", "--small", "--seed", 7, "--cases", 1]), \
                (unsupported, ["--device", "sim", "--kernel", "simt_64x64x16", "--type", "f64", "--cases", 3]):
            result = tegula("check", *options)
            self.assertEqual(result.code, 1)
            self.assertRegex(result.err, f"^tegula check: nothing was checked: {reason}\n$")
            self.assertNotIn("passed, ", result.out)

    def test_is_the_same_every_time(self):
        first, second = (tegula("check", "--cases", 30, "--seed", 5, "--device", "cpu").out
                         for _ in range(2))
        self.assertEqual(first, second)

    def test_the_last_case(self):
        for device, options in ("cpu", []), ("sim", ["--kernel", "gemm", "--in-turn"]):
            result = tegula("check", "--device", device, "--case", 2**63 - 1, *options)
            self.assertEqual((result.code, result.err), (0, ""))
            self.assertRegex(result.out, r"\n[1-9]\d* passed, 0 failed on " + device)

    def test_schedules(self):
        result = tegula("check", "--device", "sim", "--kernel", "skinny_4", "--cases", 8,
                        "--schedules", 3)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertEqual(re.findall("(?m)^TEGULA_SIM_SEED=(.*)", result.out), ["0", "1", "2"])
        self.assertEqual(len(set(re.findall(r"(?m)^\d+ passed, 0 failed on sim.*", result.out))), 1)

    def test_a_check_that_is_stopped_tells_what_it_has_seen(self):
        for number in signal.SIGINT, signal.SIGTERM:
            process = subprocess.Popen([session.PROGRAM, "check", "--cases", "1000000000", "--device", "cpu",
                                        "--csv", "check.csv"], cwd=self.folder, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            while process.poll() is None and not os.listdir(self.folder):
                time.sleep(0.01)
            time.sleep(1)
            process.send_signal(number)
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 1)
            stopped = re.fullmatch(r"tegula check: stopped after (\d+) of 1000000000 cases\n", err)
            self.assertTrue(stopped, err)
            cases = int(stopped[1])
            auto = re.search(r"\nauto +(\d+) +0 +0 ", out)
            self.assertIn(int(auto[1]), (cases, cases + 1)) # one case may have been cut short
            row = self.rows("check.csv")[0]
            self.assertEqual((row["cases"], row["passed"]), (stopped[1], auto[1]))
            os.remove(os.path.join(self.folder, "check.csv"))

    def test_a_check_that_timeout_stops(self):
        """timeout(1) sends SIGTERM to the process and to its group."""
        command = ["timeout", "1", session.PROGRAM, "check", "--cases", "1000000000", "--device", "cpu"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertRegex(result.stdout, r"\n[1-9]\d* passed, 0 failed on cpu")
        self.assertRegex(result.stderr, r"tegula check: stopped after \d+ of 1000000000 cases\n")

    @unittest.skipIf("thread" in os.environ.get("TEGULA_SANITIZED", ""), "signals come late")
    def test_a_check_on_the_simulator_stops_at_once(self):
        """A case compiles a kernel for every configuration. Ctrl-C reaches the compiler, too."""
        process = subprocess.Popen([session.PROGRAM, "check", "--device", "sim", "--case", "3"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True, env=dict(os.environ, TEGULA_CACHE="off"))
        time.sleep(3)
        begin = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
        self.assertLess(time.monotonic() - begin, 1)
        self.assertEqual((process.returncode, err), (1, "tegula check: stopped after 0 of 1 cases\n"))
        self.assertRegex(out, r"\n\d+ passed, 0 failed on sim")

    def test_progress_goes_to_terminals_only(self):
        command = [session.PROGRAM, "check", "--device", "cpu", "--cases", "20"]
        main, terminal = session.open_terminal(self)
        with subprocess.Popen(command, stderr=terminal, stdout=subprocess.PIPE,
                              env=dict(os.environ, TERM="xterm")) as process:
            os.close(terminal)
            shown = os.read(main, 1000)
            out = process.communicate(timeout=120)[0]
        os.close(main)
        self.assertRegex(shown, rb"\x1b\[K +\d+ %  case \d+ of 20: ")
        self.assertNotIn(b"\x1b", out)

    def test_bound_and_columns_are_explained(self):
        out = tegula("check", "--cases", 10, "--device", "cpu").out
        self.assertRegex(out, r"; at most \d+ % of the greatest error that passes was reached\n$")
        heading, text = out.splitlines()[0], tegula("check", "--help").out
        columns = "passed", "failed", "not for", "max error", "RMS error", "Frobenius", "lay", "split", "tail", \
            "strips", "batch", "10 x", "D", "scalar", "work", "prep"
        self.assertEqual(heading.split(), ["kernel"] + " ".join(columns).split())
        for column in columns:
            self.assertRegex(text, rf"\n  ([\w ]+, )*{column}(, [\w ]+)* ")

    def test_types(self):
        for options, kernel_types in ((["--type", "f16"], 1), (["--type", "bf16", "--type-c", "f32"], 1),
                                      (["--type", "f16", "--type-d", "f32"], 1), (["--compute", "tf32"], 0)):
            result = tegula("check", "--device", "cpu", "--cases", 30, *options)
            if kernel_types and "no kernel takes these problems" in result.err:
                self.assertEqual(result.code, 1)
                continue # the device has no kernel for this type
            self.assertEqual((result.code, result.err), (0, ""), options)
        result = tegula("check", "--device", "cpu", "--type", "f32", "--type-c", "f16")
        self.assertEqual(result.code, 2)

    def test_i8_is_exact(self):
        for options in [], ["--epilogues"], ["--plain"], ["--type-d", "i32"]:
            result = tegula("check", "--device", "cpu", "--type", "i8", "--cases", 60, *options)
            self.assertEqual((result.code, result.err), (0, ""), options)
            self.assertRegex(result.out, r"\n[1-9]\d* passed, 0 failed on cpu; max error 0\.000, ")
        result = tegula("check", "--device", "sim", "--type", "i8", "--cases", 3, "--kernel", "auto")
        self.assertEqual((result.code, result.err), (0, ""))
        for options, message in ((["--accuracy"], "products of i8 are exact"),
                                 (["--type-c", "f32"], "C is f32: that needs a scale")):
            result = tegula("check", "--type", "i8", *options)
            self.assertEqual(result.code, 2)
            self.assertIn(message, result.err)

    def test_accuracy_is_of_real_products(self):
        for type in "c64", "c128":
            result = tegula("check", "--accuracy", "--type", type, "--device", "cpu", "--small")
            self.assertEqual(result.code, 2)
            self.assertIn("--accuracy compares products of real numbers only", result.err)

    def test_epilogues(self):
        for device, cases in ("cpu", 60), ("sim", 6):
            result = tegula("check", "--cases", cases, "--epilogues", "--device", device, "--type", "f32",
                            "--kernel", "auto")
            self.assertEqual((result.code, result.err), (0, ""))
            self.assertRegex(result.out, r"\n\d+ passed, 0 failed on " + device)

    def test_groups(self):
        for type in "f32", "f64", "f16", "i8", "e5m2":
            result = tegula("check", "--grouped", "--device", "cpu", "--cases", 60, "--type", type)
            if type != "f32" and "no kernel takes these problems" in result.err:
                continue # the device has no kernel for this type
            self.assertEqual((result.code, result.err), (0, ""), type)
            self.assertRegex(result.out, r"\n[1-9]\d* passed, 0 failed on cpu")
        for options in [], ["--epilogues"]:
            result = tegula("check", "--grouped", "--device", "sim", "--cases", 4, "--kernel", "auto", *options)
            self.assertEqual((result.code, result.err), (0, ""), options)
        for options, message in ((["--plain"], "--plain draws no groups"), (["--type", "c64"], "real types only")):
            result = tegula("check", "--grouped", *options)
            self.assertEqual(result.code, 2)
            self.assertIn(message, result.err)

    def test_csv(self):
        result = tegula("check", "--cases", 20, "--device", "cpu", "--csv", "check.csv",
                        cwd=self.folder)
        self.assertEqual(result.code, 0, result.err)
        rows = self.rows("check.csv")
        self.assertEqual(rows[0]["kernel"], "auto")
        self.assertEqual((rows[0]["passed"], rows[0]["cases"]), ("20", "20"))
        result = tegula("check", "--case", 3, "--device", "cpu", "--csv", "one.csv", cwd=self.folder)
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual({row["cases"] for row in self.rows("one.csv")}, {"1"})

    def test_a_family(self):
        result = tegula("check", "--cases", 6, "--device", "sim", "--kernel", "gemm", "--in-turn", "--csv",
                        "check.csv", cwd=self.folder)
        self.assertEqual((result.code, result.err), (0, ""))
        rows = self.rows("check.csv")
        self.assertEqual(rows[0]["kernel"], "auto")
        self.assertIn("simt_64x64x16", {row["kernel"] for row in rows})
        self.assertFalse([row["kernel"] for row in rows if row["kernel"].startswith("ladder/")])
        self.assertEqual(sum(int(row["passed"]) for row in rows), 12)

    @unittest.skipUnless("FAKE_LIBCUDA" in os.environ, "the stand-ins are not built")
    def test_many_threads_beside_a_gpu(self):
        env = {"TEGULA_LIBCUDA": os.environ["FAKE_LIBCUDA"], "TEGULA_NVRTC": os.environ["FAKE_LIBNVRTC"],
               "TEGULA_CACHE": os.path.join(self.folder, "cache"), "FAKE_NVRTC_DELAY": "1"}
        result = tegula("check", "--cases", 40, "--device", "cuda", "--small", "--plain", "--threads", 4,
                        env=env)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertRegex(result.out, r"simt_128x256x8 +40 +0 ")
        result = tegula("check", "--cases", 40, "--device", "cuda", "--small", "--plain", "--threads", 4,
                        env=dict(env, FAKE_CUDA_FAIL="cuLaunchKernel=700"))
        self.assertEqual(result.code, 1)
        self.assertIn("TGL_DEVICE_LOST", result.out)
        result = tegula("check", "--accuracy", "--small", "--device", "cuda",
                        env=dict(env, TEGULA_CUBLAS=os.environ["FAKE_LIBCUBLAS"]))
        self.assertEqual(result.code, 1) # the stand-in sums in double, which no kernel can equal
        self.assertRegex(result.out, r"\nRMS error over cuBLAS's on cuda:0: geometric mean \d+\.")
        result = tegula("check", "--huge", "--device", "cuda", env=env)
        self.assertEqual(result.code, 1)
        self.assertIn("left out: the memory is not enough", result.out)

    def test_huge_products_in_a_rehearsal(self):
        result = tegula("check", "--huge", "--small", "--device", "cpu")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertRegex(result.out, r"\n\d+ products were right, 0 shapes failed on cpu\n$")

    def test_accuracy(self):
        result = tegula("check", "--accuracy", "--small", "--device", "cpu", "--csv", "a.csv",
                        cwd=self.folder)
        self.assertEqual((result.code, result.err), (0, ""))
        _, command = session.origin_of(os.path.join(self.folder, "a.csv"))
        self.assertTrue(command.endswith("tegula check --accuracy --small --device cpu --csv a.csv"), command)
        rows = self.rows("a.csv")
        shapes = [row for row in rows if row["kernel"] == ""]
        self.assertEqual(len(shapes), 12)
        for row in rows:
            self.assertEqual(row["cublas_rms"], "")
            if row["inputs"].startswith("overflow "):  # S is above FLT_MAX: there is no error to count
                self.assertEqual(row["sequential_rms"], "")
                continue
            self.assertLessEqual(float(row["tegula_rms"]), 1.5 * float(row["sequential_rms"]) + 1e-9)
        classes = {row["inputs"]: row for row in rows if row["kernel"] != ""}
        self.assertEqual(len(rows) - len(shapes), len(classes) + 9)  # three classes have three more depths each
        for name in "wide exponents, phi 4", "A*inv(A), condition 2^20", "near FLT_MAX", "NaN in B":
            self.assertGreater(float(classes[name]["ieee_max"]), 0, name)
        for name in "integers of 11 bits", "integers of 22 bits":
            self.assertEqual(float(classes[name]["tegula_max"]), 0, name)
        self.assertRegex(result.out, r"\n0 of \d+ products of classes fail\nLU factors of 512 rows")
        result = tegula("check", "--accuracy", "--small", "--device", "cpu", "--compute", "tf32")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertNotIn("classes", result.out)  # the bound of FP32 sums is not for tf32
        result = tegula("check", "--accuracy", "--device", "cpu", "--kernel", "gemm")
        self.assertEqual((result.code, result.out), (2, ""))
        self.assertIn('the device cpu has no kernel "gemm"', result.err)

    def test_accuracy_without_cublas_is_not_judged_by_the_sequential_sum_alone(self):
        result = tegula("check", "--accuracy", "--small", "--device", "sim", "--type", "bf16", "--type-c", "f32",
                        "--csv", "a.csv", cwd=self.folder)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertTrue(result.out.endswith("\n0 products are wrong\n"))
        above = [row for row in self.rows("a.csv")
                 if float(row["tegula_rms"]) > 1.1 * float(row["sequential_rms"])]
        self.assertTrue(above, "another seed is needed: no product of this one is above by a tenth")

    def test_the_first_part_of_names(self):
        result = tegula("check", "--cases", 20, "--device", "sim", "--kernel", "gemv", "--csv", "check.csv",
                        cwd=self.folder)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertEqual([row["kernel"] for row in self.rows("check.csv")], ["gemv"]) # a kernel of this name
        result = tegula("check", "--cases", 2, "--device", "sim", "--kernel", "small", "--in-turn", "--csv",
                        "check.csv", cwd=self.folder)
        self.assertEqual((result.code, result.err), (0, ""))
        names = [row["kernel"] for row in self.rows("check.csv")]
        self.assertEqual(names[0], "auto")
        self.assertTrue(all(name.startswith("small_batch_") for name in names[1:]))

    def test_a_kernel_with_options(self):
        kernel = "simt_64x64x16:splits=2,strips=0"
        result = tegula("check", "--cases", 3, "--device", "sim", "--kernel", kernel, "--csv", "check.csv",
                        cwd=self.folder)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertEqual([row["kernel"] for row in self.rows("check.csv")], [kernel])
        result = tegula("check", "--cases", 1, "--device", "sim", "--kernel", "simt_64x64x16:parts=2")
        self.assertEqual(result.code, 1)
        self.assertIn("TGL_BAD_ARGUMENT", result.out)

    def test_compute_modes(self):
        for mode in "ieee", "accurate", "tf32":
            result = tegula("check", "--cases", 10, "--device", "cpu", "--compute", mode)
            self.assertEqual((result.code, result.err), (0, ""))
            for more in ("-m", 8, "-n", 8, "-k", 8, "--repeat", 1, "--peer", "none"), ("-m", 8, "-n", 8, "-k", 8):
                command = "bench" if "--peer" in more else "explain"
                result = tegula(command, "--device", "cpu", "--compute", mode, *more)
                self.assertEqual((result.code, result.err), (0, ""))

    def test_results_and_scalars_of_all_kinds(self):
        for device in "cpu", "sim":
            result = tegula("check", "--cases", 60, "--device", device, "--kernel", "auto", "--csv", "check.csv",
                            cwd=self.folder)
            self.assertEqual((result.code, result.err), (0, ""))
            (row,) = self.rows("check.csv")
            for column in "separate_d", "device_scalars":
                self.assertGreater(int(row[column]), 0, column)

    def test_prepared_operands(self):
        # Kernels of the family `accurate` use prepared operands.
        result = tegula("check", "--cases", 200, "--device", "sim", "--kernel", "accurate_128x64", "--csv", "check.csv",
                        cwd=self.folder)
        self.assertEqual((result.code, result.err), (0, ""))
        (row,) = self.rows("check.csv")
        self.assertGreater(int(row["prepared"]), 0)

    def test_one_kernel_of_one_type(self):
        names = re.findall(r"^(\S+) +\d+ ", tegula("check", "--cases", 5, "--device", "cpu").out, re.M)
        self.assertGreater(len(names), 1)
        for name in names:
            result = tegula("check", "--cases", 5, "--device", "cpu", "--kernel", name, "--type", "f64")
            self.assertEqual(result.code, 0, result.err)


if __name__ == "__main__":
    unittest.main()
