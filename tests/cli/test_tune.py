# SPDX-License-Identifier: Apache-2.0
"""tegula tune, on a CUDA device with stand-ins for NVIDIA's libraries, and on the cpu device: what it
measures, what it reads of a trace, and what later plans take from the wisdom."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import session
from session import tegula

FAKES = {"TEGULA_LIBCUDA": "FAKE_LIBCUDA", "TEGULA_NVRTC": "FAKE_LIBNVRTC"}
# On the fake device a launch takes a millisecond, or 0.1 ms if its tiles have 32 rows.
TIMES = {"FAKE_CUDA_US": "1000", "FAKE_CUDA_FAST": "32", "TEGULA_COMPUTE": "ieee"}
TRACE = """the program prints this
tegula_cublas: cublasSgemm_v2 NN m=64 n=60 k=56 lda=64 ldb=56 ldc=64 batch=1 f32,f32,f32 compute=68: tegula, simt, 4.1 us
tegula_cublas: cublasSgemm_v2 NN m=64 n=60 k=56 lda=64 ldb=56 ldc=64 batch=1 f32,f32,f32 compute=68: tegula, simt, 4.3 us
tegula_cublas: cublasGemmEx TN m=32 n=48 k=64 lda=64 ldb=70 ldc=32 batch=2 f32,f32,f32 compute=77 mode=tf32 stride=2048,3360,1536: tegula, mma
tegula_cublas: cublasLtMatmul TN m=8 n=16 k=24 lda=24 ldb=24 ldc=8 batch=1 f32,f32,f32 compute=68 device-scalars bias,relu: tegula, x
tegula_cublas: cublasGemmEx NN m=80 n=88 k=96 lda=80 ldb=96 ldc=80 batch=1 f64,f64,f64 compute=70 mode=ieee: cuBLAS, cuBLAS is expected to be faster
tegula_cublas: cublasGemmEx NN m=8 n=8 k=8 lda=8 ldb=8 ldc=8 batch=1 type5,f32,f32 compute=68: cuBLAS, these types
tegula_cublas: cublasSgemmBatched NN m=8 n=8 k=8 lda=8 ldb=8 ldc=8 batch=4 f32,f32,f32 compute=68 pointers: tegula, x
tegula_cublas: cublasLtMatmul NN m=8 n=9 k=8 lda=8 ldb=8 ldc=8 batch=1 f32,f32,f32 compute=68 separate-c: tegula, x
tegula_cublas: cublasSgemm_v2 NN m=99999999999999999999 n=1 k=1 lda=1 ldb=1 ldc=1 batch=1 f32,f32,f32 compute=68: tegula, x
tegula_cublas: cublasSgemm_v2 NN m=64 n=60 k=56 lda=64 ldb=56 ldc=64 batch=1 f32,f3"""


@unittest.skipUnless(all(name in os.environ for name in FAKES.values()), "the stand-ins are not built")
class Tune(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tegula-tune-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.wisdom = os.path.join(self.folder, "wisdom")
        self.write("s.csv", "f32,64,64,64,NN,1\nf32,40,48,56,TN,3\n")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def environment(self, **changes):
        env = {name: os.environ[path] for name, path in FAKES.items()}
        env.update(TIMES, TEGULA_CACHE=os.path.join(self.folder, "cache"), TEGULA_WISDOM=self.wisdom)
        env.update(changes)
        return env

    def run_on_fakes(self, *args, **changes):
        return tegula(*args, "--device", "cuda", cwd=self.folder, env=self.environment(**changes))

    def start_on_fakes(self, *args, **changes):
        process = subprocess.Popen([session.PROGRAM, *args, "--device", "cuda"], cwd=self.folder,
                                   env=dict(os.environ, **self.environment(**changes)), stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def lines(self):
        with open(self.wisdom, encoding="utf-8") as file:
            return file.read().splitlines()

    def test_what_was_measured_is_what_runs(self):
        result = self.run_on_fakes("tune", "--suite", "s.csv", "--seconds", 0.3)
        self.assertEqual((result.code, result.err), (0, ""))
        first, second = result.out.splitlines()
        self.assertRegex(first, r"^f32 NN 64x64x64 batch 1: simt_32x\S+, \d+\.\d\d us in bursts, \d samples?, spread ")
        self.assertRegex(second, r"^f32 TN 40x48x56 batch 3: \S+, \d+\.\d\d us in bursts")
        lines = self.lines()
        self.assertGreater(len(lines), 8)
        for line in lines:
            self.assertRegex(line, r"^Fake GPU 0, 4 SMs \| CUDA 13\.0, NVRTC 13\.0, sm_90a \| [\d.]+ \| [0-9a-f]{16} \| "
                                   r"f32,f32,f32,f32 \w\w \d+x\d+x\d+x\d ieee \| \S+ \| \d+\.\d{3} \| \d+\.\d{3} \| \d+ \| burst$")
        kernel = re.match(r".*: (\S+),", first)[1]
        result = self.run_on_fakes("explain", "-m", 64, "-n", 64, "-k", 64)
        self.assertIn(f"choice      {kernel}, measured to be fastest\n", result.out)
        self.assertRegex(result.out, r"\nwisdom      \S+/wisdom \(\d+ lines of this chip\)\n")

        again = self.run_on_fakes("tune", "--suite", "s.csv", "--seconds", 0.3)
        self.assertEqual((again.code, again.err), (0, ""))
        self.assertEqual(self.lines(), lines)

    def test_the_power_limit(self):
        self.write("s.csv", "f32,64,64,64,NN,1\n")
        result = self.run_on_fakes("tune", "--suite", "s.csv", FAKE_CUDA_US="20000")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertIn(" us at the power limit, ", result.out)
        modes = [line.rsplit(" | ", 1)[1] for line in self.lines()]
        self.assertIn("burst", modes)
        self.assertLessEqual(2, modes.count("sustained"))

    def test_a_wisdom_that_cannot_be_written(self):
        result = self.run_on_fakes("tune", "--suite", "s.csv", TEGULA_WISDOM="off")
        self.assertEqual((result.code, result.err),
                         (1, "tegula tune: the wisdom cannot be written: off (TEGULA_WISDOM says so)\n"))
        self.write("wisdom", "# nothing\n")
        os.chmod(self.wisdom, 0o400)
        result = self.run_on_fakes("tune", "--suite", "s.csv")
        self.assertEqual(result.code, 1)
        self.assertIn("(0 lines of this chip, read-only)", result.err)
        self.assertEqual(self.lines(), ["# nothing"])

    def test_a_line_is_shown_when_its_shape_ends(self):
        self.write("first.csv", "f32,64,64,64,NN,1\n")
        self.run_on_fakes("tune", "--suite", "first.csv", "--seconds", 0.05)
        process = self.start_on_fakes("tune", "--suite", "s.csv", "--seconds", "0.05", FAKE_NVRTC_DELAY="600000")
        timer = threading.Timer(60, process.kill)
        timer.start()
        self.addCleanup(timer.cancel)
        self.assertIn(b"64x64x64", process.stdout.readline()) # while the second shape compiles

    def test_a_signal_ends_it_while_it_compiles(self):
        for number in signal.SIGINT, signal.SIGTERM:
            for command in (["tune", "--suite", "s.csv"], ["bench", "--suite", "s.csv", "--peer", "none", "--csv", "b.csv"]):
                mark = os.path.join(self.folder, f"mark-{number}-{command[0]}")
                process = self.start_on_fakes(*command, FAKE_NVRTC_DELAY="600000", FAKE_NVRTC_MARK=mark, TEGULA_EFFORT="measure")
                self.wait_for(mark, process)
                process.send_signal(number)
                self.assertEqual(process.wait(60), -number, command)

    def wait_for(self, path, process):
        """Until the file exists."""
        end = time.monotonic() + 60
        while not os.path.exists(path):
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_time_is_up(self):
        result = self.run_on_fakes("tune", "--suite", "s.csv", "--seconds", 0.01, "--minutes", 1e-9)
        self.assertEqual(result.code, 0)
        self.assertIn("time is up: ", result.out)

    def test_a_trace(self):
        self.write("t.txt", TRACE)
        result = self.run_on_fakes("tune", "--trace", "t.txt", "--seconds", 0.005)
        self.assertEqual((result.code, result.err), (0, ""))
        products = [line.split(":")[0] for line in result.out.splitlines()]
        self.assertEqual(products, ["f32 NN 64x60x56 batch 1", "tf32 TN 32x48x64 batch 2", "f32 TN 8x16x24 batch 1",
                                    "f64 NN 80x88x96 batch 1"])
        keys = {line.split(" | ")[4] for line in self.lines()}
        self.assertLessEqual({"f32,f32,f32,f32 NN 60x64x56x1 ieee",
                              "f32,f32,f32,f32 NT 48x32x64x2 tf32 ld=70,64,32,32 stride=3360,2048,1536,1536",
                              "f32,f32,f32,f32 NT 16x8x24x1 ieee device-scalars bias=column,f32,0 activation=1"}, keys)

    def test_cublas_as_a_peer(self):
        cublas = os.environ.get("FAKE_LIBCUBLAS")
        if cublas is None:
            self.skipTest("the stand-in of cuBLAS is not built")
        self.write("s.csv", "f32,64,64,64,NN,1\n")
        result = self.run_on_fakes("tune", "--suite", "s.csv", "--seconds", 0.05, "--peer", TEGULA_CUBLAS=cublas,
                                   FAKE_CUDA_US="0") # the stand-in of cuBLAS launches no kernel
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertRegex(result.out, r"^f32 NN 64x64x64 batch 1: .*; cuBLAS takes \d+\.\d{3} times as long\n$")
        peers = [line for line in self.lines() if " | peer | " in line]
        self.assertEqual(len(peers), 1)
        self.assertRegex(peers[0], r" \| 0000000000000000 \| f32,f32,f32,f32 NN 64x64x64x1 ieee \| peer \| [\d.]+ \| 0\.000 \| 1 \| burst$")
        again = self.run_on_fakes("tune", "--suite", "s.csv", "--seconds", 0.05, "--peer", TEGULA_CUBLAS=cublas,
                                  FAKE_CUDA_US="0")
        self.assertEqual((again.code, again.out), (0, result.out)) # cuBLAS is not measured again
        self.assertEqual([line for line in self.lines() if " | peer | " in line], peers)
        result = self.run_on_fakes("explain", "-m", 64, "-n", 64, "-k", 64)
        self.assertIn(", measured to be fastest\n", result.out)
        self.assertRegex(result.out, r"\npeer        \d+\.\d\d us\n")
        result = self.run_on_fakes("tune", "--suite", "s.csv", "--seconds", 0.05, "--peer", TEGULA_CUBLAS="/nowhere")
        self.assertEqual(result.code, 1)
        self.assertIn("tegula tune: --peer: ", result.err)

    def test_a_product_that_is_wrong_beside_cublas(self):
        cublas = os.environ.get("FAKE_LIBCUBLAS")
        if cublas is None:
            self.skipTest("the stand-in of cuBLAS is not built")
        self.write("s.csv", "f32,64,64,64,NN,1\nf32,32,32,32,NN,1\n")
        result = self.run_on_fakes("tune", "--suite", "s.csv", "--seconds", 0.05, "--peer", TEGULA_CUBLAS=cublas,
                                   FAKE_CUDA_US="0", FAKE_CUDA_WRONG="1")
        self.assertEqual((result.code, len(result.out.splitlines())), (1, 2))
        self.assertRegex(result.err, r"^(tegula tune: NN \d+x\d+x\d+: the product is wrong: C\(\d+, \d+\) is .*\n){2}$")
        self.assertEqual([line for line in self.lines() if " | peer | " in line], [])

    def test_a_trace_of_nothing(self):
        self.write("t.txt", "no line of the library\n")
        result = self.run_on_fakes("tune", "--trace", "t.txt")
        self.assertEqual(result.code, 1)
        self.assertIn("t.txt has no product of Tegula", result.err)
        result = self.run_on_fakes("tune", "--trace", "missing.txt")
        self.assertEqual((result.code, result.err),
                         (1, "tegula tune: cannot read the trace missing.txt: No such file or directory\n"))
        result = self.run_on_fakes("tune", "--trace", "t.txt", "--suite", "s.csv")
        self.assertEqual(result.code, 2)

    def test_the_effort_of_the_environment(self):
        result = self.run_on_fakes("explain", "-m", 64, "-n", 64, "-k", 64, TEGULA_EFFORT="measure:0.3")
        self.assertIn("measured to be fastest\n", result.out)
        result = self.run_on_fakes("explain", "-m", 64, "-n", 64, "-k", 64, TEGULA_EFFORT="much")
        self.assertEqual(result.code, 1)
        self.assertIn('TEGULA_EFFORT is "much"', result.err)


class TuneCpu(unittest.TestCase):
    def test_settings_are_remembered(self):
        with tempfile.TemporaryDirectory(prefix="tegula-tune-") as folder:
            wisdom, suite = os.path.join(folder, "wisdom"), os.path.join(folder, "s.csv")
            with open(suite, "w", encoding="utf-8") as file:
                file.write("f32,130,130,130,NN,1\n")

            def tune(*args):
                return tegula("tune", "--device", "cpu", "--suite", suite, "--seconds", 0.02, *args,
                              cwd=folder, env={"TEGULA_WISDOM": wisdom})

            result = tune()
            self.assertEqual((result.code, result.err), (0, ""))
            self.assertRegex(result.out, r"^f32 NN 130x130x130 batch 1: cpu/\S+, \d+\.\d\d us, \d samples, spread ")
            with open(wisdom, encoding="utf-8") as file:
                lines = file.read().splitlines()
            self.assertGreater(len(lines), 1)
            for line in lines:
                self.assertRegex(line, r" \| none \| [\d.]+ \| [0-9a-f]{16} \| f32,f32,f32,f32 NN 130x130x130x1 default \| "
                                       r"cpu/\w+(:(row|kc|mc)=\d+)? \| \d+\.\d{3} \| \d+\.\d{3} \| \d \| burst$")
            self.assertEqual(tune().out, result.out)
            with open(wisdom, encoding="utf-8") as file:
                self.assertEqual(file.read().splitlines(), lines)
            self.assertEqual(tune("--peer").code, 2)


if __name__ == "__main__":
    unittest.main()
