# SPDX-License-Identifier: Apache-2.0
"""tegula bench and tegula check: what they find, what they write, and that failures are seen."""

import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import session
from session import tegula


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tegula-bench-")
        self.addCleanup(shutil.rmtree, self.folder)

    def rows(self, name):
        return session.rows_of(os.path.join(self.folder, name))


class Check(Folder):
    def test_passes(self):
        result = tegula("check", "--cases", 60, "--device", "cpu")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertRegex(result.out, r"\n\d+ passed, 0 failed on cpu; max error \d")

    def test_nothing_was_checked(self):
        """The sentence says why, and "N passed" does not stand before it."""
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
            time.sleep(2)
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
        command = ["timeout", "2", session.PROGRAM, "check", "--cases", "1000000000", "--device", "cpu"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertRegex(result.stdout, r"\n[1-9]\d* passed, 0 failed on cpu")
        self.assertRegex(result.stderr, r"tegula check: stopped after \d+ of 1000000000 cases\n")

    @unittest.skipIf("thread" in os.environ.get("TEGULA_SANITIZED", ""), "signals come late")
    def test_a_check_on_the_simulator_stops_at_once(self):
        """A case has a kernel to compile for every configuration; Ctrl-C reaches the compiler too."""
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
        command = [session.PROGRAM, "check", "--device", "cpu", "--cases", "300"]
        main, terminal = session.open_terminal(self)
        with subprocess.Popen(command, stderr=terminal, stdout=subprocess.PIPE,
                              env=dict(os.environ, TERM="xterm")) as process:
            os.close(terminal)
            shown = os.read(main, 1000)
            out = process.communicate(timeout=120)[0]
        os.close(main)
        self.assertRegex(shown, rb"\x1b\[K +\d+ %  case \d+ of 300: ")
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
                continue # the device has none of this type
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

    def test_epilogues(self):
        for device, cases in ("cpu", 60), ("sim", 6):
            result = tegula("check", "--cases", cases, "--epilogues", "--device", device, "--type", "f32",
                            "--kernel", "auto")
            self.assertEqual((result.code, result.err), (0, ""))
            self.assertRegex(result.out, r"\n\d+ passed, 0 failed on " + device)

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
        self.assertEqual(len(rows) - len(shapes), len(classes) + 9)  # three classes with three depths more
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
        self.assertEqual([row["kernel"] for row in self.rows("check.csv")], ["gemv"]) # one is called so
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
        # Only the accurate kernels have a use for them.
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


class Bench(Folder):
    def test_epilogue(self):
        for device, options in (("cpu", ["--bias", "column", "--activation", "gelu", "--residual"]),
                                ("cpu", ["--bias", "row", "--activation", "silu"]),
                                ("sim", ["--epilogue", "relu(acc) + col", "--residual"])):
            result = tegula("bench", "-m", 33, "-n", 17, "-k", 5, "--batch", 2, "--repeat", 1, "--time",
                            0.01, "--peer", "none", "--device", device, "--threads", 1, *options)
            self.assertEqual((result.code, result.err), (0, ""))
            self.assertIn("a kept plan, with an epilogue that its peers have not\n", result.out)

    def test_prepared_operands(self):
        for prepared, text in ("a", "A prepared"), ("b", "B prepared"), ("ab", "A and B prepared"):
            result = tegula("bench", "-m", 70, "-n", 66, "-k", 257, "--compute", "accurate", "--kernel",
                            "accurate_128x64", "--prepared", prepared, "--repeat", 1, "--time", 0.01, "--peer",
                            "none", "--device", "sim")
            self.assertEqual((result.code, result.err), (0, ""))
            self.assertIn(f", a kept plan, {text}\n", result.out)
        result = tegula("bench", "-m", 7, "-n", 6, "-k", 5, "--prepared", "b", "--repeat", 1, "--peer", "none",
                        "--device", "cpu", "--threads", 1)
        self.assertEqual((result.code, result.err), (0, "")) # no use for it

    def test_csv_without_peers(self):
        result = tegula("bench", "-m", 33, "-n", 17, "-k", 5, "--type", "f64", "--trans-b", "--repeat",
                        2, "--peer", "none", "--device", "cpu", "--threads", 1, "--csv", "b.csv",
                        cwd=self.folder)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertIn("f64 33x17x5 NT", result.out)
        (row,) = self.rows("b.csv")
        self.assertEqual([row[key] for key in ("device", "threads", "type", "layout", "m", "n", "k",
                                               "batch", "library", "rounds")],
                         ["cpu", "1", "f64", "NT", "33", "17", "5", "1", "tegula", "2"])
        self.assertGreater(float(row["seconds"]), 0)
        self.assertGreater(float(row["gflops"]), 0)

    def test_the_first_line_of_a_csv_file(self):
        name = "a file's\nname;.csv"
        bench = ["bench", "-m", "4", "-n", "4", "-k", "4", "--repeat", "1", "--peer", "none", "--device", "cpu",
                 "--threads", "1"]
        result = tegula(*bench, "--csv", name, cwd=self.folder, env={"TEGULA_CPU": "portable", "BLIS_ARCH_TYPE": "a b"})
        self.assertEqual((result.code, result.err), (0, ""))
        device, command = session.origin_of(os.path.join(self.folder, name))
        info = tegula("info", "--device", "cpu").out
        for key in "processor", "model":
            self.assertEqual(re.search(rf"(?m)^  {key} +(.*)$", info)[1], re.search(f"{key}: ([^;]+);", device)[1])
        words = shlex.split(command)
        start = words.index("tegula")
        self.assertLessEqual({"TEGULA_CPU=portable", "BLIS_ARCH_TYPE=a b"}, set(words[:start]))
        self.assertEqual(words[start:], ["tegula", *bench, "--csv", name.replace("\n", "?")])
        for run in ["check", "--cases", "3"], ["check", "--accuracy", "--small"]:
            self.assertEqual(tegula(*run, "--device", "cpu", "--csv", "c.csv", cwd=self.folder).code, 0)
            _, command = session.origin_of(os.path.join(self.folder, "c.csv"))
            self.assertEqual(shlex.split(command)[-1 - len(run) - 4:], ["tegula", *run, "--device", "cpu", "--csv", "c.csv"])

    def test_suite_and_batches(self):
        with open(os.path.join(self.folder, "s.csv"), "w", encoding="utf-8") as file:
            file.write("# a suite\nf32, 16, 16, 16, TN, 20  # a batch\n\nf64,8,8,8,NN,1\n")
        result = tegula("bench", "--suite", "s.csv", "--repeat", 1, "--peer", "none", "--device", "cpu",
                        "--csv", "b.csv", cwd=self.folder)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertEqual([(r["type"], r["batch"]) for r in self.rows("b.csv")],
                         [("f32", "20"), ("f64", "1")])

    @unittest.skipIf("TEGULA_SANITIZED" in os.environ, "the peers are not built for sanitizers")
    def test_peers_at_hand(self):
        result = tegula("bench", "-m", 32, "-n", 32, "-k", 32, "--repeat", 2, "--device", "cpu",
                        "--csv", "b.csv", cwd=self.folder)
        self.assertEqual((result.code, result.err), (0, ""))
        rows = self.rows("b.csv")
        self.assertEqual(rows[0]["library"], "tegula")
        self.assertEqual(float(rows[0]["time_over_tegula"]), 1)
        for row in rows[1:]:
            self.assertNotEqual(row["version"], "")

    @unittest.skipIf("TEGULA_SANITIZED" in os.environ, "the peers are not built for sanitizers")
    def test_peers_of_bf16(self):
        """oneDNN takes results of bf16 and f32, MKL of f32; the others no bf16. All layouts must be right."""
        seen = set()
        for result_type, possible in (("f32", {"onednn", "mkl"}), ("bf16", {"onednn"})):
            for layout in ([], ["--trans-a"], ["--trans-b"], ["--trans-a", "--trans-b"]):
                result = tegula("bench", "-m", 33, "-n", 50, "-k", 70, "--batch", 2, "--type", "bf16", "--type-c",
                                result_type, "--repeat", 1, "--time", 0.01, "--device", "cpu", "--csv", "b.csv",
                                *layout, cwd=self.folder)
                self.assertEqual((result.code, result.err), (0, ""))
                libraries = {row["library"] for row in self.rows("b.csv")} - {"tegula"}
                self.assertLessEqual(libraries, possible)
                seen |= libraries
        if not seen:
            self.skipTest("neither oneDNN nor MKL is here")

    def test_a_suite_without_the_type(self):
        """Without --type tune takes the shapes of f32, and says so if there are none."""
        with open(os.path.join(self.folder, "f64.csv"), "w", encoding="utf-8") as file:
            file.write("f64,70,70,70,TN,1\n")
        result = tegula("tune", "--device", "cpu", "--suite", "f64.csv", "--output", "t.inc", cwd=self.folder)
        self.assertEqual(result.code, 1)
        self.assertIn("f64.csv has no shape of f32, which is what was looked for; --type names", result.err)

    def test_tune_measures_blockings_of_the_cpu(self):
        with open(os.path.join(self.folder, "s.csv"), "w", encoding="utf-8") as file:
            file.write("f32,100,90,200,NN,1\nf64,70,70,70,TN,1\n")
        run = "tune", "--device", "cpu", "--threads", 1, "--suite", "s.csv", "--output", "t.inc"
        if "\n  model " not in tegula("info", "--device", "cpu").out:
            result = tegula(*run, cwd=self.folder)
            self.assertEqual((result.code, result.err), (1, "tegula tune: the model of this processor is not known\n"))
            return
        for type_, name in ("f32", "TGL_F32"), ("f64", "TGL_F64"):
            result = tegula(*run, "--type", type_, cwd=self.folder)
            self.assertEqual((result.code, result.err), (0, ""))
            *table, last = result.out.splitlines()
            self.assertGreaterEqual(len(table), 9)
            for line in table:
                self.assertRegex(line, r"^kc +\d+  mc +\d+  \d\.\d{3} of the planner's speed$")
            self.assertRegex(last, "^the planner's own blocking is the best$|"
                             rf'^{{"\w+ \d+\.\d+", "\w+", {name}, {{\d+, \d+}}}}, /\* \d\.\d+ of the planner')
            with open(os.path.join(self.folder, "t.inc"), encoding="utf-8") as file:
                self.assertEqual(last.startswith("{"), last in file.read().splitlines())

    def test_tune_leaves_out_what_the_table_has(self):
        facts = dict(line.strip().split(None, 1) for line in tegula("info", "--device", "cpu").out.splitlines()[1:])
        if "model" not in facts:
            self.skipTest("the model of this processor is not known")
        with open(os.path.join(self.folder, "t.inc"), "w", encoding="utf-8") as file:
            file.write(f'{{"{facts["model"]}", "{facts["tier"]}", TGL_F32, {{1, 2}}}},\n')
        result = tegula("tune", "--device", "cpu", "--output", "t.inc", cwd=self.folder)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertEqual(result.out, "t.inc has a row for this processor, tier and type\n")
        result = tegula("tune", "--device", "cpu", "--type", "bf16", "--output", "t.inc", cwd=self.folder)
        self.assertEqual(result.code, 2)
        self.assertIn("--type: the blocking of the cpu device is measured for f32 or f64", result.err)

    def test_a_peer_that_is_wrong_is_left_out(self):
        peer = os.environ.get("TEGULA_WRONG_PEER")
        if peer is None:
            self.skipTest("TEGULA_WRONG_PEER names no library")
        for name in "f32", "i8":
            result = tegula("bench", "-m", 32, "-n", 32, "-k", 32, "--repeat", 1, "--device", "cpu", "--type", name,
                            "--peer", peer, "--csv", "b.csv", cwd=self.folder)
            self.assertEqual(result.code, 0, result.err)
            self.assertIn("is wrong and is left out", result.err)
            self.assertEqual([row["library"] for row in self.rows("b.csv")], ["tegula"])


    def test_nothing_but_rows_gets_into_the_csv_file_when_streams_are_closed(self):
        command = [session.PROGRAM, "bench", "-m", "8", "-n", "8", "-k", "8", "--repeat", "1", "--device",
                   "cpu", "--peer", os.environ.get("TEGULA_WRONG_PEER", "none"), "--csv", "b.csv"]
        for streams, code in (">&-", 1), ("2>&-", 0), ("<&- >&- 2>&-", 1):
            completed = subprocess.run(["sh", "-c", 'exec "$0" "$@" ' + streams, *command],
                                       cwd=self.folder, capture_output=True, timeout=60, check=False)
            self.assertEqual(completed.returncode, code, streams)
            self.assertEqual([row["device"] for row in self.rows("b.csv")], ["cpu"], streams)
            if streams == ">&-":
                self.assertIn(b"cannot write to standard output: Bad file descriptor", completed.stderr)

    def test_a_kernel_that_does_not_exist_is_named_once(self):
        result = tegula("bench", "--kernel", "nonsense", "--peer", "none", "--device", "cpu")
        self.assertEqual(result.code, 2)
        self.assertRegex(result.err, r'^tegula bench: the device cpu has no kernel "nonsense"; the kernels are '
                                     r"[a-z0-9_/, ]+; see `tegula bench --help`\n$")


    def test_unstable_rows_are_marked_and_the_ceiling_is_the_best_of_several(self):
        """A process that takes the processor away now and then."""
        # A process that wakes up preempts the one that runs: this one does so every few milliseconds.
        disturber = subprocess.Popen([sys.executable, "-c", "import time\nprint(flush=True)\nwhile True:\n"
                                      "  end = time.monotonic() + 0.003\n"
                                      "  while time.monotonic() < end: pass\n  time.sleep(0.003)"],
                                     stdout=subprocess.PIPE)
        disturber.stdout.readline() # it has started
        os.sched_setaffinity(disturber.pid, {min(os.sched_getaffinity(0))})
        try:
            for _ in range(5): # on a busy machine others may take the processor instead
                result = tegula("bench", "-m", 64, "-n", 64, "-k", 64, "--peer", "none", "--device", "cpu",
                                "--threads", 1, "--repeat", 60, "--csv", "b.csv", cwd=self.folder,
                                preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}))
                if "unstable" in result.out:
                    break
        finally:
            disturber.kill()
            disturber.communicate()
        if "unstable" not in result.out:
            self.skipTest("no sample was disturbed: other processes hold the processor")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertRegex(result.out, r"  unstable: \d+ %\n")
        self.assertIn("\n1 row is unstable: ", result.out)
        self.assertGreater(float(self.rows("b.csv")[0]["spread"]), 0.25)

    @unittest.skipUnless("FAKE_LIBCUDA" in os.environ, "the stand-ins are not built")
    def test_types_beside_cublas(self):
        env = {"TEGULA_LIBCUDA": os.environ["FAKE_LIBCUDA"], "TEGULA_NVRTC": os.environ["FAKE_LIBNVRTC"],
               "TEGULA_CACHE": os.path.join(self.folder, "cache"), "TEGULA_CUBLAS": os.environ["FAKE_LIBCUBLAS"]}
        result = tegula("bench", "-m", 16, "-n", 16, "-k", 16, "--compute", "tf32", "--device", "cuda",
                        "--repeat", 2, "--csv", "b.csv", cwd=self.folder, env=env)
        self.assertEqual((result.code, result.err), (0, ""))
        rows = self.rows("b.csv")
        self.assertEqual([row["library"] for row in rows], ["tegula", "cublas", "cublaslt"])
        self.assertEqual({row["type"] for row in rows}, {"tf32"})

    # The sizes go up and down, and the types change: shapes share memory on the host.
    SUITE = "f32,40,30,20,NN,1\nf32,9,7,300,NN,2\nbf16,50,60,70,NN,1\nf64,16,8,24,NN,1\nf32,64,64,64,NN,1\n"

    def run_suite_beside_cublas(self, **env):
        with open(os.path.join(self.folder, "s.csv"), "w", encoding="utf-8") as file:
            file.write(self.SUITE)
        env.update(TEGULA_LIBCUDA=os.environ["FAKE_LIBCUDA"], TEGULA_NVRTC=os.environ["FAKE_LIBNVRTC"],
                   TEGULA_CACHE=os.path.join(self.folder, "cache"), TEGULA_CUBLAS=os.environ["FAKE_LIBCUBLAS"])
        return tegula("bench", "--suite", "s.csv", "--device", "cuda", "--repeat", 1, "--csv", "b.csv",
                      cwd=self.folder, env=env)

    @unittest.skipUnless("FAKE_LIBCUDA" in os.environ, "the stand-ins are not built")
    def test_a_suite_beside_cublas(self):
        result = self.run_suite_beside_cublas()
        self.assertEqual((result.code, result.err), (0, ""))
        rows = self.rows("b.csv")
        self.assertEqual([row["library"] for row in rows], 5 * ["tegula", "cublas", "cublaslt"])
        for is_f64 in True, False: # a GPU's rate is measured once
            self.assertEqual(len({row["fma_gflops"] for row in rows if (row["type"] == "f64") == is_f64}), 1)

    @unittest.skipUnless("FAKE_LIBCUDA" in os.environ, "the stand-ins are not built")
    def test_products_that_are_wrong_fail_the_run(self):
        result = self.run_suite_beside_cublas(FAKE_CUDA_WRONG="1")
        self.assertEqual(result.code, 1)
        lines = result.err.splitlines()
        self.assertEqual(len(lines), 5)
        for line in lines:
            self.assertRegex(line, r"^tegula bench: .*: the product is wrong: C\(\d+, \d+\) is ")

    @unittest.skipUnless("FAKE_LIBCUDA" in os.environ, "the stand-ins are not built")
    def test_a_cublas_that_is_wrong_is_left_out(self):
        """Each library begins with a C of NaN, whatever those before it left there."""
        for how, why in ("by one", r"C\(\d+, \d+\) is .*, the reference "), ("nan", r"element \d+ of C is not finite"), \
                ("nothing", "element 0 of C is not finite"):
            result = self.run_suite_beside_cublas(FAKE_CUBLAS_WRONG=how)
            self.assertEqual(result.code, 0, result.err)
            self.assertEqual([row["library"] for row in self.rows("b.csv")], 5 * ["tegula"])
            lines = result.err.splitlines()
            self.assertEqual(len(lines), 10)
            for line in lines:
                self.assertRegex(line, f"^tegula bench: cublas(lt)? is wrong and is left out here: {why}")

    def test_suites_of_other_types(self):
        with open(os.path.join(self.folder, "s.csv"), "w", encoding="utf-8") as file:
            file.write("tf32,8,8,8,NN,1\nf16,8,8,8,NN,1\nf16-f32,8,8,8,NT,2\nbf16,8,8,8,TN,1\n"
                       "i8,8,8,8,NT,3\nc64,9,8,7,NT,2\nc128,9,8,7,TN,1\n")
        result = tegula("bench", "--suite", "s.csv", "--peer", "none", "--device", "cpu", "--repeat", 1,
                        "--csv", "b.csv", cwd=self.folder)
        self.assertIn(result.code, (0, 1)) # 1: without kernels of these types shapes are left out
        self.assertIn("tf32", [row["type"] for row in self.rows("b.csv")])
        for label in "f16 8x8x8 NN", "f16-f32 8x8x8 NT x2", "bf16 8x8x8 TN", "i8 8x8x8 NT x3", \
                "c64 9x8x7 NT x2", "c128 9x8x7 TN":
            self.assertIn(label, result.out + result.err)
        with open(os.path.join(self.folder, "s.csv"), "w", encoding="utf-8") as file:
            file.write("f16-x,8,8,8,NN,1\n")
        result = tegula("bench", "--suite", "s.csv", "--device", "cpu", cwd=self.folder)
        self.assertEqual(result.code, 1)
        self.assertIn("s.csv:1: the type is none of f32, f64, f16, bf16, e4m3, e5m2, i8, c64, c128 and tf32", result.err)


class CsvFiles(Folder):
    """A file that is there is replaced by rows, and by nothing else."""

    BENCH = "bench", "--peer", "none", "--device", "cpu", "--threads", "1", "--csv", "b.csv"
    SHAPE = "-m", "8", "-n", "8", "-k", "8", "--repeat", "1"

    def setUp(self):
        super().setUp()
        for name in "b.csv", "l.svg":
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write("old\n")

    def assert_as_before(self):
        for name in os.listdir(self.folder):
            self.assertIn(name, ("b.csv", "l.svg", "s.csv"))
            if name != "s.csv":
                with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                    self.assertEqual(file.read(), "old\n")

    def test_runs_that_produce_nothing(self):
        for command in (*self.BENCH, *self.SHAPE, "--kernel", "nonsense"), \
                ("check", "--device", "cpu", "--kernel", "nonsense", "--csv", "b.csv"), \
                ("ladder", "--device", "sim", "--size", 16, "--csv", "b.csv", "--plot", "l.svg"):
            result = tegula(*command, cwd=self.folder, env={"TEGULA_CC": "/nowhere"})
            self.assertNotEqual(result.code, 0, command)
            self.assert_as_before()

    def test_files_over_their_limit(self):
        for command in (*self.BENCH, *self.SHAPE), \
                ("check", "--device", "cpu", "--cases", 3, "--csv", "b.csv"), \
                ("check", "--device", "cpu", "--accuracy", "--small", "--csv", "b.csv"):
            result = tegula(*command, cwd=self.folder,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (90, 90)))
            self.assertEqual(result.code, 1, command)
            self.assertEqual(result.err, f"tegula {command[0]}: cannot write b.csv: File too large\n")
            self.assert_as_before()

    def test_disks_that_are_full(self):
        for option in "--csv", "--plot":
            result = tegula("ladder", "--device", "sim", "--size", 8, "--size", 16, option, "/dev/full")
            self.assertEqual((result.code, result.err),
                             (1, "tegula ladder: cannot write /dev/full: No space left on device\n"))

    def start(self, suite):
        with open(os.path.join(self.folder, "s.csv"), "w", encoding="utf-8") as file:
            file.write(suite)
        return subprocess.Popen([session.PROGRAM, *self.BENCH, "--suite", "s.csv"], cwd=self.folder,
                                stdout=subprocess.DEVNULL, env=dict(os.environ, TEGULA_CPU="portable"))

    def wait(self, process, is_reached):
        while process.poll() is None and not is_reached():
            time.sleep(0.002)
        process.terminate()
        self.assertEqual(process.wait(60), -signal.SIGTERM)

    @unittest.skipIf("thread" in os.environ.get("TEGULA_SANITIZED", ""), "signals come late")
    def test_a_run_that_is_stopped_leaves_the_rows_it_has(self):
        great = "f64,3000,3000,3000,NN,1\n"
        self.wait(self.start(great), lambda: len(os.listdir(self.folder)) == 4)
        self.assert_as_before()
        self.wait(self.start("f32,8,8,8,NN,1\n" + great),
                  lambda: os.path.getsize(os.path.join(self.folder, "b.csv")) > 4)
        self.assertEqual([row["m"] for row in self.rows("b.csv")], ["8"])
        self.assertEqual(sorted(os.listdir(self.folder)), ["b.csv", "l.svg", "s.csv"])


class Explain(Folder):
    def test_batches_are_run_on_the_simulator(self):
        for options in ["-m", 64, "-n", 64, "-k", 64, "--batch", 3], \
                ["-m", 40, "-n", 9, "-k", 20, "--batch", 5, "--order", "col", "--lda", 50, "--ldb", 30,
                 "--ldc", 70, "--trans-a", "--bias", "row", "--residual"], \
                ["-m", 8, "-n", 8, "-k", 8, "--batch", 0]:
            result = tegula("explain", "--device", "sim", *options)
            self.assertEqual((result.code, result.err), (0, ""))
            self.assertNotIn("not run", result.out)
        for options in ["-m", 64, "-n", 64, "-k", 64, "--batch", 1000], \
                ["-m", 1, "-n", 1, "-k", 1, "--batch", 5000]:
            result = tegula("explain", "--device", "sim", *options)
            self.assertEqual((result.code, result.err), (0, ""))
            self.assertIn("\nnot run, and so not counted", result.out)


    def test_one_intensity_and_one_style(self):
        shape = "-m", 1000, "-n", 1000, "-k", 1000
        texts = [tegula("explain", *shape, "--device", "cpu").out, tegula("explain", *shape, "--chip", "h200").out]
        lines = [re.search(r"^intensity .*$", text, re.MULTILINE)[0] for text in texts]
        self.assertEqual(lines[0], lines[1])
        self.assertIn("166.7 FLOP/byte", lines[0]) # 2 GFLOP over 12 MB: A, B and C once
        for text in texts:
            for line in text.splitlines():
                if not line.startswith("candidates") and not line.startswith("  "):
                    self.assertRegex(line, r"^[a-zA-Z]+ +\S", line)
                    self.assertEqual(len(re.match(r"\S+ +", line)[0]), 12, line)

    def test_unknown_names_list_the_known_ones(self):
        shape = "-m", 8, "-n", 8, "-k", 8
        for options, known in ((["--chip", "z80"], "h200"), (["--chip", "h200", "--kernel", "x"], "simt_128x256x8"),
                               (["--device", "cpu", "--kernel", "x"], "cpu/portable"),
                               (["--device", "gpu"], "auto, cpu, cuda")):
            result = tegula("explain", *shape, *options)
            self.assertEqual((result.code, result.out), (2, ""), options)
            self.assertIn(known, result.err)

    def test_types_without_a_kernel(self):
        for options in (["--type", "f16"], ["--type", "bf16", "--type-d", "f32"]):
            result = tegula("explain", "-m", 8, "-n", 8, "-k", 8, "--device", "cpu", *options)
            self.assertIn(result.code, (0, 1))
            self.assertTrue(result.code == 0 or "TGL_UNSUPPORTED" in result.err, result.err)


class Everywhere(Folder):
    def test_children_do_not_inherit_an_ignored_sigint(self):
        """The test itself may run in the background of a shell."""
        program = "import signal, sys; sys.path.insert(0, sys.argv[1]); import session, subprocess;" \
            "p = subprocess.Popen(['sleep', '9']); p.send_signal(signal.SIGINT); print(p.wait())"
        here = os.path.dirname(os.path.abspath(__file__))
        completed = subprocess.run([sys.executable, "-c", program, here], capture_output=True, timeout=90, check=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        self.assertEqual(completed.stdout, b"-2\n")

    COMMANDS = "mm", "bench", "check", "explain", "ladder", "info", "tune", "warm"

    def test_version(self):
        version = tegula("--version")
        self.assertEqual((version.code, version.err), (0, ""))
        for command in [[]] + [[name] for name in self.COMMANDS]:
            for option in "--version", "-V":
                result = tegula(*command, option)
                self.assertEqual((result.code, result.out, result.err), (0, version.out, ""), (command, option))

    def test_warm_tells_how_long_all_kernels_take(self):
        without_compiler = {"TEGULA_NVRTC": "/nowhere/libnvrtc.so"}
        every = tegula("warm", env=without_compiler)
        self.assertEqual(len(every.notes), 1, every.err)
        self.assertRegex(every.notes[0], r"^note: all kernels .* take about \d+ minutes of one processor; --kernel ")
        one = tegula("warm", "--kernel", "simt_64x64x16", env=without_compiler)
        self.assertEqual((every.code, one.code, one.notes), (1, 1, []))

    def test_standard_output_that_is_full_or_closed(self):
        for command in ["info"], ["--version"], ["--help"], ["explain", "-m", 8, "-n", 8, "-k", 8, "--chip", "h200"], \
                ["check", "--device", "cpu", "--cases", 2], ["ladder", "--device", "sim", "--size", 8]:
            with open("/dev/full", "wb") as full:
                results = tegula(*command, stdout=full), tegula(*command, preexec_fn=lambda: os.close(1))
            name = "" if command[0].startswith("-") else " " + command[0]
            for result, reason in zip(results, ("No space left on device", "Bad file descriptor")):
                self.assertEqual((result.code, result.err),
                                 (1, f"tegula{name}: cannot write to standard output: {reason}\n"))

    def test_errors_have_no_control_characters(self):
        result = tegula("mm", "\x1b[31mA.npy", "B.npy", "-o", "C.npy", cwd=self.folder)
        self.assertEqual(result.code, 1)
        self.assertNotIn("\x1b", result.err)

    def test_a_temporary_folder_that_is_missing(self):
        result = tegula("explain", "-m", 8, "-n", 8, "-k", 8, "--device", "sim",
                        env={"TMPDIR": "/nowhere/at/all", "TEGULA_CACHE": "off"})
        self.assertEqual(result.code, 1)
        self.assertIn("/nowhere/at/all", result.err)

    @unittest.skipIf("thread" in os.environ.get("TEGULA_SANITIZED", ""), "signals come late")
    def test_signals_leave_nothing_beside_a_csv_file(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE:
            process = subprocess.Popen([session.PROGRAM, "bench", "-m", "2000", "-n", "2000", "-k", "2000",
                                        "--peer", "none", "--device", "cpu", "--threads", "1", "--csv", "b.csv"],
                                       cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env=dict(os.environ, TEGULA_CPU="portable"),
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
            while process.poll() is None and not os.listdir(self.folder):
                time.sleep(0.002)
            process.send_signal(number)
            self.assertEqual(process.wait(60), -number)
            self.assertEqual(os.listdir(self.folder), [], number)


class Info(Folder):
    def test_names_the_cpu_and_says_why_others_are_missing(self):
        result = tegula("info")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertIn("\ncpu\n", result.out)
        for name in "cuda:0", "sim":
            self.assertIn(f"\n{name}\n", result.out)


if __name__ == "__main__":
    unittest.main()
