# SPDX-License-Identifier: Apache-2.0
"""tegula bench: what it measures, what it writes, that wrong products are seen; and tune on the cpu device."""

import os
import re
import shlex
import subprocess
import sys
import unittest

import session
from session import Folder, tegula


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
        run = ["check", "--cases", "3", "--device", "cpu", "--csv", "c.csv"] # --accuracy: test_check.py
        self.assertEqual(tegula(*run, cwd=self.folder).code, 0)
        _, command = session.origin_of(os.path.join(self.folder, "c.csv"))
        self.assertEqual(shlex.split(command)[-1 - len(run):], ["tegula", *run])

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
        """oneDNN has products of bf16 with results of bf16 and f32, MKL with results of f32; the others have none."""
        types = ("f32", {"onednn", "mkl"}), ("bf16", {"onednn"})
        for layout in ([], ["--trans-a"], ["--trans-b"], ["--trans-a", "--trans-b"]):
            seen = set()
            for result_type, possible in types:
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
        """Another process takes the processor away now and then."""
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
        """C is NaN before each library runs, so that results of the one before do not count."""
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


if __name__ == "__main__":
    unittest.main()
