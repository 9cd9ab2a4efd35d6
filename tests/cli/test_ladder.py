# SPDX-License-Identifier: Apache-2.0
"""tegula ladder: counted on the simulator, and timed beside cuBLAS on a CUDA device, with stand-ins
for NVIDIA's libraries; cuBLAS as a peer of tegula bench; and tegula tune."""

import os
import re
import resource
import shutil
import tempfile
import unittest
import xml.etree.ElementTree

import session
from session import tegula

RUNGS = ["naive", "coalesced", "register_tile", "shared_tile", "thread_tile_1d", "thread_tile_2d",
         "vectorised", "register_order", "thread_order", "conflict_free", "register_prefetch",
         "interior_tiles", "moving_pointers", "global_prefetch", "two_blocks", "across_barrier",
         "double_buffer", "copy_schedule", "large_thread_tile", "warp_tiles", "async_copy",
         "remainder_first", "multistage", "block_order", "slices", "split_k"]
HALF_RUNGS = ["f16_wmma", "f16_fragments", "f16_ldmatrix", "f16_multistage", "f16_wgmma",
              "f16_specialised", "f16_persistent"]
WORD_RUNGS = ["words_one", "words_three", "words_promoted"]
FAKES = {"TEGULA_LIBCUDA": "FAKE_LIBCUDA", "TEGULA_NVRTC": "FAKE_LIBNVRTC",
         "TEGULA_CUBLAS": "FAKE_LIBCUBLAS"}
WITHOUT_F64 = {"FAKE_CUDA_CAPABILITY": "75"} # kernels of f64 only for few rows and small matrices


def untimed(table):
    """The lines of a tuned table without the measured columns."""
    return [",".join(line.split(",")[:7]) for line in table.splitlines()]


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tegula-ladder-")
        self.addCleanup(shutil.rmtree, self.folder)

    def rows(self, name):
        return session.rows_of(os.path.join(self.folder, name))

    def texts_of_plot(self, name):
        root = xml.etree.ElementTree.parse(os.path.join(self.folder, name)).getroot()
        return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]


class Simulated(Folder):
    def test_counts(self):
        result = tegula("ladder", "--device", "sim", "--size", 32, "--csv", "l.csv", "--plot",
                        "l.svg", cwd=self.folder)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertIn("32 x 32 x 32, all elements checked in double precision", result.out)
        rows = {row["rung"]: row for row in self.rows("l.csv")}
        self.assertEqual(list(rows), RUNGS)
        naive, coalesced, shared = (rows[name] for name in ("naive", "coalesced", "shared_tile"))
        # A warp stores 32 floats, each in a sector of its own, or side by side.
        self.assertEqual(int(naive["global_store_sectors"]), 32 * int(naive["global_store_requests"]))
        self.assertEqual(int(coalesced["global_store_requests"]), 32 * 32 // 32)
        self.assertEqual(int(coalesced["global_store_sectors"]), 4 * 32 * 32 // 32)
        self.assertEqual(int(shared["shared_load_conflicts"]), 0)
        self.assertGreater(int(shared["barriers"]), 0)
        self.assertEqual(int(naive["needed_bytes"]), 3 * 32 * 32 * 4)
        for row in rows.values():
            self.assertNotIn(None, row.values())
            self.assertLess(0, float(row["max_error"]))
            self.assertLess(float(row["max_error"]), 64)
        texts = self.texts_of_plot("l.svg")
        for name in RUNGS:
            self.assertIn(name, texts)

    def test_ragged_shape_and_several_sizes(self):
        result = tegula("ladder", "--device", "sim", "-m", 33, "-n", 65, "-k", 7)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertIn("33 x 65 x 7", result.out)
        result = tegula("ladder", "--device", "sim", "--size", 8, "--size", 16, "--csv", "l.csv",
                        cwd=self.folder)
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual([row["m"] for row in self.rows("l.csv")], ["8"] * len(RUNGS) + ["16"] * len(RUNGS))

    def test_the_second_chapter(self):
        result = tegula("ladder", "--device", "sim", "--chapter", 2, "-m", 130, "-n", 72, "-k", 67, "--csv",
                        "l.csv", cwd=self.folder)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertIn("C := A*B, f16, accumulated in f32, row-major", result.out)
        self.assertRegex(result.out, r"\n  27 f16_wmma ")
        self.assertRegex(result.out, r"\n  33 f16_persistent ")
        rows = {row["rung"]: row for row in self.rows("l.csv")}
        self.assertEqual(list(rows), HALF_RUNGS)
        self.assertGreater(int(rows["f16_wmma"]["shared_load_conflicts"]), 0)
        self.assertEqual(int(rows["f16_ldmatrix"]["shared_load_conflicts"]), 0)
        self.assertEqual(int(rows["f16_wgmma"]["shared_load_requests"]), 0)
        self.assertEqual(int(rows["f16_persistent"]["needed_bytes"]), 2 * (130 * 67 + 67 * 72 + 130 * 72))
        for row in rows.values():
            self.assertLess(float(row["max_error"]), 67 + 4)

    def test_the_third_chapter(self):
        result = tegula("ladder", "--device", "sim", "--chapter", 3, "--size", 64, "--csv", "l.csv",
                        cwd=self.folder)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertIn("C := A*B, f32, by products of TF32, row-major", result.out)
        rows = {row["rung"]: float(row["max_error"]) for row in self.rows("l.csv")}
        self.assertEqual(list(rows), WORD_RUNGS)
        self.assertGreater(rows["words_one"], 100 * rows["words_three"])
        self.assertGreater(rows["words_three"], rows["words_promoted"])

    def test_files_that_cannot_be_written(self):
        for option in "--csv", "--plot":
            result = tegula("ladder", "--device", "sim", "--size", 8, option, "nowhere/f",
                            cwd=self.folder)
            self.assertEqual(result.code, 1)
            self.assertIn("cannot write nowhere/f", result.err)


@unittest.skipUnless(all(name in os.environ for name in FAKES.values()), "the stand-ins are not built")
class Timed(Folder):
    def run_on_fakes(self, *args, preexec_fn=None, **changes):
        env = {name: os.environ[path] for name, path in FAKES.items()}
        env["TEGULA_CACHE"] = os.path.join(self.folder, "cache")
        env.update(changes)
        return tegula(*args, "--device", "cuda", cwd=self.folder, env=env, preexec_fn=preexec_fn)

    def test_tune_writes_a_row_a_shape_and_goes_on_where_it_ended(self):
        with open(os.path.join(self.folder, "s.csv"), "w", encoding="utf-8") as file:
            file.write("f32,8,8,200,NN,1\nf32,4,40,8,NN,3\n")
        run = "tune", "--suite", "s.csv", "--output", "t.inc", "--minutes", 1
        result = self.run_on_fakes(*run, FAKE_CUDA_NAME="NVIDIA H200")
        self.assertEqual((result.code, result.err), (0, ""))
        with open(os.path.join(self.folder, "t.inc"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        rows = [line for line in lines if line.startswith("{")]
        self.assertEqual(len(rows), 2)
        self.assertRegex(rows[0], r'^{"h200", "f32", "NN", 8, 8, 200, 1, "[a-z0-9_]+(:[a-z0-9_=,-]+)?"}, /\* [\d.]+ us, ')
        self.assertRegex(rows[1], r'^{"h200", "f32", "NN", 4, 40, 8, 3, ')
        result = self.run_on_fakes(*run, FAKE_CUDA_NAME="NVIDIA H200")
        self.assertEqual((result.code, result.out, result.err), (0, "", ""))
        result = self.run_on_fakes("tune", "--suite", "s.csv", "--output", "u.inc")
        self.assertEqual(result.code, 1)
        self.assertIn("src/plan/chips.c", result.err)

    def test_tune_varies_the_options_of_kernels(self):
        with open(os.path.join(self.folder, "s.csv"), "w", encoding="utf-8") as file:
            file.write("f32,64,64,512,NN,1\n")
        result = self.run_on_fakes("tune", "--suite", "s.csv", "--compute", "ieee", "--output", "t.inc",
                                   FAKE_CUDA_NAME="NVIDIA H200")
        self.assertEqual((result.code, result.err), (0, ""))
        kernel = re.search(r'512, 1, "(.*)"}', self.table())[1]
        result = tegula("explain", "--chip", "h200", "--compute", "ieee", "-m", 64, "-n", 64, "-k", 512, "--kernel", kernel)
        self.assertEqual((result.code, result.err), (0, ""))

    def tune(self, **options):
        with open(os.path.join(self.folder, "s.csv"), "w", encoding="utf-8") as file:
            file.write("f32,8,8,200,NN,1\nf32,4,40,8,NN,3\nf32,4,40,9,NN,1\n")
        return self.run_on_fakes("tune", "--suite", "s.csv", "--output", "t.inc", FAKE_CUDA_NAME="NVIDIA H200",
                                 **options)

    def table(self):
        with open(os.path.join(self.folder, "t.inc"), encoding="utf-8") as file:
            return file.read()

    def test_tune_stops_where_its_table_cannot_be_written(self):
        self.tune()
        whole = self.table()
        size = whole.index("{") + len(whole.splitlines()[-1]) + 40 # a row and a half
        os.remove(os.path.join(self.folder, "t.inc"))
        result = self.tune(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
        self.assertEqual((result.code, result.err), (1, "tegula tune: cannot write t.inc: File too large\n"))
        self.assertEqual(result.out.count("\n"), 2)
        cut = self.table()
        self.assertEqual(untimed(cut)[:-1], untimed(whole)[:-2])

        result = self.tune()
        self.assertEqual(result.code, 1)
        self.assertEqual(result.err, "tegula tune: the last line of t.inc is cut short: complete it or take it "
                                     "out\n")
        self.assertEqual(self.table(), cut)
        with open(os.path.join(self.folder, "t.inc"), "w", encoding="utf-8") as file:
            file.write(cut[:cut.rindex("\n") + 1])
        result = self.tune()
        self.assertEqual((result.code, result.err, result.out.count("\n")), (0, "", 2))
        self.assertEqual(self.table().count("{"), 3)

        os.remove(os.path.join(self.folder, "t.inc"))
        os.symlink("/dev/full", os.path.join(self.folder, "t.inc"))
        result = self.tune()
        self.assertEqual((result.code, result.err),
                         (1, "tegula tune: cannot write t.inc: it is no regular file\n"))

    def test_bench_of_tegula_alone(self):
        result = self.run_on_fakes("bench", "-m", 8, "-n", 8, "-k", 8, "--cliffs")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertIn("0 of 3 steps are cliffs on cuda:0", result.out)
        with open(os.path.join(self.folder, "s.csv"), "w", encoding="utf-8") as file:
            file.write("f32,8,8,8,NN,1\nf64,72,72,8,NN,1\n")
        result = self.run_on_fakes("bench", "--suite", "s.csv", "--cliffs")
        self.assertEqual((result.code, result.err), (0, ""))
        # The stand-in's times are the host's: on a busy machine one of them may look like a cliff.
        self.assertRegex(result.out, r"\d of 6 steps are cliffs on cuda:0")
        result = self.run_on_fakes("bench", "--suite", "s.csv", "--cliffs", **WITHOUT_F64)
        self.assertEqual(result.code, 0)
        self.assertIn("0 of 3 steps are cliffs on cuda:0", result.out)
        self.assertEqual(result.err, "tegula bench: f64 72x72x8 NN is left out: this device has no kernel for "
                                     "the request\n")
        result = self.run_on_fakes("bench", "--suite", "s.csv", "--cliffs", "--type", "f64", **WITHOUT_F64)
        self.assertEqual(result.code, 1)
        self.assertIn("no step was timed", result.err)
        result = self.run_on_fakes("bench", "--host-overhead")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertEqual(result.out.count("us a call"), 9)

    def test_beside_cublas(self):
        result = self.run_on_fakes("ladder", "--size", 16, "--csv", "l.csv", "--plot", "l.svg")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertIn("cuBLAS 13.2.3,", result.out)
        rows = self.rows("l.csv")
        self.assertEqual([row["rung"] for row in rows], ["reference", *RUNGS, "cublas", "cublaslt"])
        for row in rows[1:]:
            for column in "ffma_tflops", "percent_cublas", "percent_cublaslt", "seconds_q1":
                self.assertGreater(float(row[column]), 0)
            self.assertEqual((row["chip"], row["cublas"]), ("Fake GPU 0", "13.2.3"))
            self.assertEqual(row["exact_elements"], "256")
            self.assertGreaterEqual(int(row["repeats"]), 7)
            self.assertAlmostEqual(float(row["tflops"]) * float(row["seconds"]) / (2e-12 * 16**3), 1, 3)
        self.assertIn("FFMA, measured", self.texts_of_plot("l.svg"))

    def test_the_third_chapter_beside_cublas(self):
        result = self.run_on_fakes("ladder", "--chapter", 3, "--size", 16, "--csv", "l.csv", "--plot", "l.svg")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertIn("by the fastest of cuBLASLt's candidates, with TF32", result.out)
        self.assertRegex(result.out, r"\n  36 words_promoted ")
        self.assertEqual([row["rung"] for row in self.rows("l.csv")],
                         ["reference", *WORD_RUNGS, "cublas", "cublaslt"])
        self.assertTrue(any("chapter 3" in text for text in self.texts_of_plot("l.svg")))

    def test_without_cublas(self):
        result = self.run_on_fakes("ladder", "--size", 16, "--csv", "l.csv", TEGULA_CUBLAS="/nowhere")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertIn('without cuBLAS: TEGULA_CUBLAS is "/nowhere", which has no cuBLAS', result.out)
        rows = self.rows("l.csv")
        self.assertEqual([row["rung"] for row in rows], ["reference", *RUNGS])
        self.assertEqual({row["percent_cublas"] for row in rows}, {""})

    def test_cublas_in_a_folder(self):
        folder = os.path.join(self.folder, "lib")
        os.mkdir(folder)
        os.symlink(os.environ["FAKE_LIBCUBLAS"], os.path.join(folder, "libcublas.so.13"))
        result = self.run_on_fakes("ladder", "--size", 8, TEGULA_CUBLAS=folder)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertIn("cuBLAS 13.2.3,", result.out)

    def test_cublas_that_does_not_start(self):
        for function in "cublasCreate", "cublasLtCreate":
            result = self.run_on_fakes("ladder", "--size", 8, FAKE_CUBLAS_FAIL=function)
            self.assertEqual((result.code, result.err), (0, ""))
            self.assertIn("without cuBLAS: cuBLAS does not start", result.out)

    def test_cublaslt_alone_fails(self):
        for function in "cublasLtMatmul", "cublasLtMatmulAlgoGetHeuristic":
            result = self.run_on_fakes("ladder", "--size", 8, FAKE_CUBLAS_FAIL=function)
            self.assertEqual((result.code, result.err), (0, ""))
            self.assertRegex(result.out, r"cublaslt +(none of|cuBLASLt does not take it)")
            self.assertRegex(result.out, r"\n     cublas +\d")

    def test_a_cublas_that_is_wrong(self):
        result = self.run_on_fakes("ladder", "--size", 8, FAKE_CUBLAS_WRONG="by one")
        self.assertEqual(result.code, 1)
        self.assertRegex(result.out, r"cublas +WRONG: C\(0, 0\) is ")
        self.assertRegex(result.out, r"naive +\d")

    def test_once(self):
        result = self.run_on_fakes("ladder", "--size", 8, "--once")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertEqual(re.findall(r"^ +\d+ (\S+) +right$", result.out, re.M), RUNGS)
        self.assertNotIn("cuBLAS", result.out)

    def test_a_lost_device(self):
        result = self.run_on_fakes("ladder", "--size", 8, FAKE_CUDA_FAIL="cuLaunchKernel=700")
        self.assertEqual(result.code, 1)
        self.assertIn("TGL_DEVICE_LOST", result.err)

    def test_bench_beside_cublas(self):
        result = self.run_on_fakes("bench", "-m", 8, "-n", 12, "-k", 5, "--repeat", 2, "--csv", "b.csv")
        self.assertEqual((result.code, result.err), (0, ""))
        rows = self.rows("b.csv")
        self.assertEqual([row["library"] for row in rows], ["tegula", "cublas", "cublaslt"])
        self.assertEqual(rows[1]["version"], "cuBLAS 13.2.3")

    def test_bench_with_the_peers_asked_for(self):
        shape = "bench", "-m", 8, "-n", 12, "-k", 5, "--repeat", 1
        result = self.run_on_fakes(*shape, "--peer", "cublaslt", "--csv", "b.csv")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertEqual([row["library"] for row in self.rows("b.csv")], ["tegula", "cublaslt"])
        result = self.run_on_fakes(*shape, "--peer", "openblas")
        self.assertEqual(result.code, 2)
        self.assertIn("cublas and cublaslt", result.err)
        result = self.run_on_fakes(*shape, "--peer", "cublas", TEGULA_CUBLAS="/nowhere")
        self.assertEqual(result.code, 1)
        result = self.run_on_fakes(*shape, "--peer", "none", "--csv", "b.csv")
        self.assertEqual((result.code, len(self.rows("b.csv"))), (0, 1))

    def test_bench_leaves_out_what_the_device_does_not_take(self):
        with open(os.path.join(self.folder, "s.csv"), "w", encoding="utf-8") as file:
            file.write("f32,8,8,8,NN,1\nf64,72,72,8,NN,1\n")
        result = self.run_on_fakes("bench", "--suite", "s.csv", "--repeat", 1, "--csv", "b.csv",
                                   **WITHOUT_F64)
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("f64 72x72x8 NN is left out", result.err)
        self.assertEqual({row["type"] for row in self.rows("b.csv")}, {"f32"})


if __name__ == "__main__":
    unittest.main()
